"""What load on a key-value store amounts to."""
