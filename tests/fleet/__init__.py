"""Tests over ssh, on a fleet that is made for them on this machine."""
