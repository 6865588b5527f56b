"""Tests mirror src; house rules, golden files, properties and end-to-end have their folders."""
