"""Network ports: the bytes that passed each way against the speed of the link."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.analyse.account import LOOPBACK
from iolab.analyse.limits.use import Resource, Use, means
from iolab.analyse.view import RunView
from iolab.analyse.window import Window
from iolab.model.host import HostFacts, Role

NOMINAL_DRIVERS: Final = frozenset(
    {"veth", "bridge", "tun", "tap", "virtio_net", "vxlan", "dummy", "macvlan", "ipvlan", "xen"}
)
"""Ports whose speed is a made-up number (10 Gbit/s of every veth), or the one that a hypervisor
says: what they can carry is their hosts' affair."""

BYTES_PER_MBIT: Final = 1e6 / 8

QUIET_BYTES_PER_S: Final = 1e6
"""What management moves: a port of unknown speed with less has no part in the load."""

LOAD_SHARE: Final = 0.5
"""Of a client's port at least this share must be its own load, or others fill it."""

WAYS: Final = {"rx_bytes_per_s": "in", "tx_bytes_per_s": "out"}
"""Both ways of a port: a link carries its speed in each of them."""


def port_uses(
    view: RunView,
    host: str,
    role: Role,
    facts: HostFacts | None,
    window: Window,
    flow: float | None,
) -> Iterator[Use]:
    """Each port and way of a host; `flow` is the load's own bytes a second there, if known."""
    speeds = _speeds(facts)
    for metric, way in WAYS.items():
        for port, rate in means(view, host, "nic", metric, window).items():
            if port == LOOPBACK or (flow is not None and flow < LOAD_SHARE * rate):
                continue
            speed = speeds.get(port)
            if speed is not None:
                yield Use(Resource.PORT, host, role, f"{port} {way}", rate / speed, rate)
            elif rate >= QUIET_BYTES_PER_S:
                yield Use(Resource.PORT, host, role, f"{port} {way}", None, rate)


def _speeds(facts: HostFacts | None) -> dict[str, float]:
    """Bytes a second of each port that has a speed of its own."""
    return {
        nic.name: nic.speed_mbit_s * BYTES_PER_MBIT
        for nic in (facts.nics if facts else ())
        if nic.speed_mbit_s and nic.driver not in NOMINAL_DRIVERS
    }
