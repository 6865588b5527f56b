"""Against."""
