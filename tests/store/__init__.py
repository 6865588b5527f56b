"""The store: whole runs or none, whatever happens."""
