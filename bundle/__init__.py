"""The format of a run, shared by the writer (bench) and the readers (services)."""
