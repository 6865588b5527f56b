"""How many guests one node's agent carries, and how guests may be called."""

from __future__ import annotations

from typing import Final

RUNS: Final = 256
"""Runs at the same time of a host's agent (`MAX_RUNS` there): each guest's QEMU is one, and each
server of a copy."""

RUNS_KEPT: Final = 16
"""Of them for all else that is run on a node: images are laid out and copied."""

REQUESTS: Final = 1000
"""Requests under way at the same time to one host."""

REQUESTS_KEPT: Final = 50
"""Of them for all else that is asked of a node."""

GUEST_REQUESTS: Final = 5
"""Of each guest at most: its QEMU, the ways to its agent and to its monitor, and what is sent over
each or asked about it."""

COPIES: Final = 4096
"""Copies of images of one session: a port each, so that nodes which share an address share none."""

NAME_BYTES: Final = 64
"""Of a guest's name: its kernel takes no longer one."""


def most_guests(replicas: int) -> int:
    """How many guests a node may have, where each image lies on so many nodes.

    All nodes have as many, and so each serves as many copies of others as there are of its own.
    """
    by_runs = (RUNS - RUNS_KEPT) // replicas
    by_requests = (REQUESTS - REQUESTS_KEPT) // (GUEST_REQUESTS + replicas - 1)
    return min(by_runs, by_requests)
