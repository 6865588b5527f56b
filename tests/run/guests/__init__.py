"""Tests of servers of key-value stores, with a program that plays Java."""
