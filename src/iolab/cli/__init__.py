"""The command line: one file a command, and everything that a terminal shows."""
