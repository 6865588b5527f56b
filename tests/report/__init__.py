"""Tests of the report and the exports."""
