"""Checkpoint load: the ranks of a model save their state, and restore it."""
