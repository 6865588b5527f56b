"""Tests of reading studies and of planning."""
