"""How long a run of YCSB lasts: its warm-up and runtime, and room for clients to come to start."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from iolab.model.study import Method
from iolab.model.ycsb import ServerKind

CONNECT_S: Final[Mapping[ServerKind, int]] = {
    ServerKind.EMBEDDED: 2,
    ServerKind.MANAGED: 5,
    ServerKind.GIVEN: 6,
}
"""From the start of YCSB's own clock to the first operation: a database is opened, or a driver
finds all nodes of a cluster and connects to each. Half a second, one, and three on idle hosts, and
several times that on busy ones."""

APART_S: Final = 5
"""How far the clients' own clocks may start from each other: a Java machine starts in half a
second on an idle host and in several on a busy one, and YCSB counts only from then on."""


def start_allowance_s(kind: ServerKind, clients: int) -> int:
    """What a run lasts beyond its warm-up and runtime, so that all clients have these in common."""
    return CONNECT_S[kind] + (APART_S if clients > 1 else 0)


def load_seconds(method: Method, kind: ServerKind, clients: int) -> int:
    """YCSB's `maxexecutiontime` on each client: connecting, warm-up and runtime, whole seconds."""
    return math.ceil(method.warmup_s + method.runtime_s) + start_allowance_s(kind, clients)
