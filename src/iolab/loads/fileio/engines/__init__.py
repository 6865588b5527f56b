"""Programs that make I/O, and what they print."""
