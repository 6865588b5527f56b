"""Hosts: how a machine's agent is reached, and what it is asked."""
