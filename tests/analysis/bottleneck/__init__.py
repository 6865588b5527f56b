"""Bottleneck."""
