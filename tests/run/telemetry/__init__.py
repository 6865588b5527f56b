"""Tests of the telemetry."""
