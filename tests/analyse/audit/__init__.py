"""Audits of sets of results."""
