"""Tests of the analysis, on records made by hand."""
