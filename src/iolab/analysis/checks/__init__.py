"""Checks that apply to any kind of load."""
