"""Fleets of virtual machines in the report: curves, a node from inside, the account of latency."""
