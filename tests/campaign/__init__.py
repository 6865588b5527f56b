"""Faults drawn from a seed, against small sessions on hosts that are made for them."""
