"""Tests of how hosts are reached."""
