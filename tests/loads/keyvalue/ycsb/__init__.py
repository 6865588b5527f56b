"""YCSB."""
