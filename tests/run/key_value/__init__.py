"""Tests of load on key-value stores, without and with the real programs."""
