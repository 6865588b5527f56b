"""From a run's evidence to its numbers and its verdict; pure, so it can be repeated any day."""
