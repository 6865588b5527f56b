"""Tests over inputs that are made up at random."""
