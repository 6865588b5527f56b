"""Hosts, agents and programs that follow a script, for tests without a machine."""
