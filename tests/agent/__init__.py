"""The agent as a program: what it says and does over its two pipes."""
