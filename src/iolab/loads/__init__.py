"""The kinds of load, each in a folder of its own."""
