"""Samples as an agent sends them, with what a test wants to say and zeros elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iolab.core.samples import CounterTable
from iolab.hosts.counter_names import CPU, DISK, NIC
from iolab.hosts.rates import CounterSeries, derive_counter_series
from iolab.hosts.telemetry import CounterCollector

SECOND: Final = 1_000_000_000
START: Final = 1_800_000_000 * SECOND

Counts = Mapping[str, int | None]


def sample(
    seq: int,
    at_s: float,
    *,
    cpu: Mapping[tuple[int, int], Counts] | None = None,
    disks: Mapping[str, Counts] | None = None,
    nics: Mapping[str, Counts] | None = None,
    **whole: Counts,
) -> dict[str, object]:
    """One sample message `at_s` seconds after the start."""
    return {
        "id": 7,
        "is": "sample",
        "seq": seq,
        "mono_ns": round(at_s * SECOND),
        "real_ns": START + round(at_s * SECOND),
        "cpu": [[*key, *_row(CPU, row)] for key, row in (cpu or {}).items()],
        "disks": [[name, *_row(DISK, row)] for name, row in (disks or {}).items()],
        "nics": [[name, *_row(NIC, row)] for name, row in (nics or {}).items()],
        **whole,
    }


def table(*samples: Mapping[str, object]) -> CounterTable:
    """The counters of one host."""
    collector = CounterCollector()
    for one in samples:
        collector.add(0, one)
    return collector.pop_table()


def series(*samples: Mapping[str, object]) -> dict[tuple[str, str, str], CounterSeries]:
    """What one host's samples derive to, by scope, name and metric."""
    found = derive_counter_series(table(*samples), ("h",))
    return {(one.scope, one.name, one.metric): one for one in found}


def _row(metrics: Sequence[str], values: Counts) -> list[int | None]:
    assert set(values) <= set(metrics)
    return [values.get(metric, 0) for metric in metrics]
