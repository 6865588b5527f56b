"""Objects of an S3 store: put, got, listed and deleted by the agent's own engine."""
