"""Telemetry: what surrounds a run, from samples of counters to rates."""
