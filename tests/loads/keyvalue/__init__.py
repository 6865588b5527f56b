"""Keyvalue."""
