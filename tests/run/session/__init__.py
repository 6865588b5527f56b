"""Tests of whole sessions on hosts that do not exist."""
