"""Tests mirror src; house rules, golden files, properties and end-to-end runs have folders of their own."""
