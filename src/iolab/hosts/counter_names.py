"""What the positions of an agent's sample are called, and its scopes (schema/wire.json)."""

from __future__ import annotations

from typing import Final

CPU: Final = (
    "user_ns",
    "nice_ns",
    "system_ns",
    "idle_ns",
    "iowait_ns",
    "irq_ns",
    "softirq_ns",
    "steal_ns",
)
DISK: Final = (
    "read_ios",
    "read_bytes",
    "read_time_ns",
    "write_ios",
    "write_bytes",
    "write_time_ns",
    "in_flight",
    "busy_time_ns",
    "queue_time_ns",
    "discard_ios",
    "discard_bytes",
    "flush_ios",
    "temperature_mc",
)
NIC: Final = ("rx_bytes", "rx_frames", "rx_drops", "tx_bytes", "tx_frames", "tx_drops")
GUEST_DISK: Final = (
    "read_ios",
    "write_ios",
    "read_bytes",
    "write_bytes",
    "read_ns",
    "write_ns",
)
GUEST_USE: Final = ("vcpu_run_ns", "vcpu_wait_ns")
GUEST: Final = (*GUEST_DISK, *GUEST_USE)
"""What a node counts of a guest: of its data disk, and of its processors all together. A sample
tells it as `guests`, and of each guest at a moment of its own."""

POWER: Final = ("power_mw", "energy_uj", "energy_range_uj")
"""Of a power meter; its name begins with what it measures (`core.power.PowerBoundary`)."""

OF_SERVERS: Final = ("cassandra",)
"""Scopes of a server on the host, told in samples of their own, at times and with numbers of their
own."""

GUESTS: Final = "guest"
"""The scope of a node's guests, by their names."""

METERS: Final = "power"
"""The scope of power meters, by their names; each is read at moments of its own."""

SCOPES_BY_NAME: Final = (GUESTS, METERS)
"""Scopes whose every name has moments of its own."""

TARGET: Final = "target"
"""The scope of the target's file system, told where it was requested."""

WHOLE_HOST: Final = ("memory", "pressure", "thermal", "agent", TARGET, *OF_SERVERS)
"""Scopes that a sample holds as an object; their rows have an empty name."""
