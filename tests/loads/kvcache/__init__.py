"""Metadata."""
