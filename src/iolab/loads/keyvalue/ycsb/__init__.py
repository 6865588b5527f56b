"""YCSB as an engine, its clients, and what they say."""
