"""Metadata load: what its phases did, its metrics, and statistics over iterations."""
