"""Choosing a configuration."""
