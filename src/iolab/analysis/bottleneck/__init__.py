"""What limits a run: what its telemetry shows of resources, and what is decided by it."""
