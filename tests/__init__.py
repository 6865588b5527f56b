"""Tests mirror src; properties and end-to-end have their folders."""
