"""The command line, as a user and as a program meets it."""
