"""Other tools' results as bundles: one file per format, each with a table of what is taken and what is refused."""
