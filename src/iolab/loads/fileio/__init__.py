"""I/O on files and block devices."""
