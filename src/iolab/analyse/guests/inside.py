"""One node over time: each device, each NUMA node's processors, each port. Pure.

Series are on the controller's clock, so that they can stand beside each other and beside the load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from iolab.analyse.guests.disks import leaves_of
from iolab.analyse.window import controller_ns
from iolab.model.host import HostFacts
from iolab.model.run import Bystander, RunRecord
from iolab.model.sample import Floats
from iolab.run.telemetry.rates import ALL_CORES

if TYPE_CHECKING:
    from iolab.run.telemetry.rates import Series

LOOPBACK: Final = "lo"

BITS_PER_BYTE: Final = 8
BITS_PER_MBIT: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Inside:
    """What a node's own counters say of it, each thing by its name, in the order of names.

    `real_ns` of every series is the controller's time at the end of each step. Devices are the
    leaves of those that serve the guests' images. `processors` are `node<N>` for each NUMA node, or
    `all` where there is one. Ports are all but the loopback; `tx_share`, of what the link can
    carry, is there where the port's speed is known.
    """

    node: str
    iops: Mapping[str, Series]
    write_lat_ns: Mapping[str, Series]
    processors: Mapping[str, Series]
    tx_bytes_per_s: Mapping[str, Series]
    tx_frames_per_s: Mapping[str, Series]
    tx_share: Mapping[str, Series]


def inside_of(
    record: RunRecord, telemetry: Sequence[Series], facts: HostFacts | None, node: str
) -> Inside | None:
    """The node from inside; None where it was not watched.

    `telemetry` are the series derived from the record's counters, `facts` those of the node.
    """
    watched = next((one for one in record.bystanders if one.host == node), None)
    if watched is None:
        return None
    mine = [_moved(one, watched) for one in telemetry if one.host == node]

    def named(scope: str, metric: str, takes: Callable[[str], bool]) -> dict[str, Series]:
        found = [s for s in mine if (s.scope, s.metric) == (scope, metric) and takes(s.name)]
        return {one.name: one for one in sorted(found, key=lambda one: _order(one.name))}

    disks = {delta.device for delta in leaves_of(watched, facts)}
    reads = named("disk", "read_iops", disks.__contains__)
    writes = named("disk", "write_iops", disks.__contains__)
    numa = named("cpu", "busy_share", _is_numa)
    sent = named("nic", "tx_bytes_per_s", lambda name: name != LOOPBACK)
    return Inside(
        node=node,
        iops={name: _added(reads[name], writes[name]) for name in reads if name in writes},
        write_lat_ns=named("disk", "write_lat_ns", disks.__contains__),
        processors=numa if len(numa) > 1 else named("cpu", "busy_share", ALL_CORES.__eq__),
        tx_bytes_per_s=sent,
        tx_frames_per_s=named("nic", "tx_frames_per_s", lambda name: name != LOOPBACK),
        tx_share=_shares(sent, facts),
    )


def link_bytes_per_s(facts: HostFacts | None, port: str) -> float | None:
    """What a port's link carries each way; None where the kernel does not know its speed."""
    ports = facts.nics if facts else ()
    speed = next((nic.speed_mbit_s for nic in ports if nic.name == port), None)
    return speed * BITS_PER_MBIT / BITS_PER_BYTE if speed and speed > 0 else None


def _moved(series: Series, watched: Bystander) -> Series:
    return replace(series, real_ns=controller_ns(series.real_ns, watched.clock_offset_ns))


def _added(reads: Series, writes: Series) -> Series:
    """Both directions of one device, which were counted in the same steps."""
    total: Floats = np.asarray(reads.value + writes.value)
    return replace(reads, metric="iops", value=total)


def _shares(ports: Mapping[str, Series], facts: HostFacts | None) -> dict[str, Series]:
    found = {}
    for name, series in ports.items():
        link = link_bytes_per_s(facts, name)
        if link is not None:
            share: Floats = np.asarray(series.value / link)
            found[name] = replace(series, metric="tx_share", value=share)
    return found


def _is_numa(name: str) -> bool:
    return name.startswith("node") and name[4:].isdigit()


def _order(name: str) -> tuple[str, int]:
    """`node2` before `node10`."""
    words = name.rstrip("0123456789")
    return words, int(name[len(words) :] or 0)
