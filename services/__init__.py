"""Use cases: what a click or a command does. Pages and cli.py call only this room."""
