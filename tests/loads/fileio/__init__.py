"""Fileio."""
