"""Virtual machines that a session boots as hosts."""
