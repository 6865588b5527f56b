"""What guests saw, what their nodes saw of them, and where the time between went."""
