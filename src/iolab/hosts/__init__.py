"""Hosts and how they are reached: the agent's wire, ssh, commands, pods, telemetry."""
