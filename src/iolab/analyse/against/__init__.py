"""Results set beside figures that others published."""
