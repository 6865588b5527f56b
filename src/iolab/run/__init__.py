"""Runs a plan on hosts: sessions, phases, hosts, engines and telemetry. Never meets the store."""
