"""Runs with a bottleneck that is known, planted in the kernel's counters of their hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.bottleneck.resource_use import run_resources, view_with_all_resource_telemetry
from iolab.core.host import HostFacts, NicFacts
from iolab.core.resources import RunResources
from iolab.core.run import RunRecord
from iolab.core.samples import CounterTable
from iolab.hosts.counter_names import CPU, NIC
from iolab.loads.fileio.workload import Job
from iolab.registry import analysis_kinds
from tests.analysis.records import DEVICE, GO_NS, JOB, SECOND, Burst, bursts_record, facts_of

CORES: Final = 8
PORT: Final = "ens1"
PORT_MBIT: Final = 10_000
SECONDS: Final = 30

Growth = Mapping[tuple[str, str, str], float]
"""What each counter (scope, name, metric) grows by in a second."""


def disk(
    busy: float, ios: float = 40_000.0, each_ns: float = 640_000.0, name: str = DEVICE
) -> Growth:
    """A disk that reads so many I/Os a second, each of which takes so long."""
    grown = {
        "read_ios": ios,
        "read_bytes": ios * 4096,
        "read_time_ns": ios * each_ns,
        "busy_time_ns": busy * SECOND,
        "queue_time_ns": ios * each_ns,
        "write_ios": 0.0,
        "write_bytes": 0.0,
        "write_time_ns": 0.0,
    }
    return {("disk", name, metric): value for metric, value in grown.items()}


def cores(*busy: float) -> Growth:
    """Cores that are busy for such shares of the time; the rest of eight are at 5 %."""
    shares = [*busy, *[0.05] * (CORES - len(busy))]
    found: dict[tuple[str, str, str], float] = {}
    for core, share in enumerate(shares):
        spent = dict.fromkeys(CPU, 0.0)
        spent |= {"user_ns": share * SECOND, "idle_ns": (1 - share) * SECOND}
        found |= {("cpu", f"{core}@0", name): value for name, value in spent.items()}
    return found


def port(received: float, sent: float = 0.0, name: str = PORT) -> Growth:
    """A port that carries so many bytes a second."""
    carried = dict.fromkeys(NIC, 0.0) | {"rx_bytes": received, "tx_bytes": sent}
    return {("nic", name, metric): value for metric, value in carried.items()}


def counters(*hosts: Growth) -> CounterTable:
    """A sample a second of every host."""
    rows = [
        (host, seq, GO_NS + seq * SECOND, *place, round(seq * each))
        for host, growth in enumerate(hosts)
        for seq in range(SECONDS + 1)
        for place, each in growth.items()
    ]
    columns = list(zip(*rows, strict=True))
    host, seq, at, value = (np.array(columns[i], dtype=np.int64) for i in (0, 1, 2, 6))
    scope, name, metric = (np.array(columns[i], dtype=np.object_) for i in (3, 4, 5))
    return CounterTable(host, seq, at, scope, name, metric, value)


def record(*hosts: Growth, job: Job = JOB, burst: Burst | None = None, **more: Any) -> RunRecord:
    """A run of clients `c1`, `c2`, … that kept 32 I/Os in flight, 40,000 a second of 800 us."""
    bursts = [[burst or Burst()]] * (len(hosts) - len(more.get("monitored_hosts", ())))
    return bursts_record(*bursts, job=job, counters=counters(*hosts), **more)


def facts(name: str = "c1", driver: str | None = "mlx5_core", **target: Any) -> HostFacts:
    """A client's facts, with a port of 10 Gbit/s."""
    port_facts = NicFacts(PORT, driver, PORT_MBIT, 1500, up=True)
    return replace(facts_of(name, **target), nics=(port_facts,))


def watched(found: RunRecord, known: Mapping[str, HostFacts] | None = None) -> RunResources:
    """What is seen of it, by default with the facts of every client."""
    every = {host.host: facts(host.host) for host in found.hosts} if known is None else known
    return run_resources(view_with_all_resource_telemetry(found, every, analysis_kinds()))


QUIET: Final[Growth] = {**disk(0.4), **cores(0.3), **port(160e6)}
"""Nothing at its limit: a disk that is busy for 40 % of the time, a core for 30 %, a port an eighth
full."""
