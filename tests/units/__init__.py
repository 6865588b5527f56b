"""Tests of sizes, durations and rates."""
