"""Engines: what makes the load, each behind one interface."""
