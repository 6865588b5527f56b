"""Tests of sessions, hosts and engines."""
