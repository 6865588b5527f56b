"""How fast a system copied what a fault had cost it, from the counters of its devices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from iolab.analysis.storage_bytes import boot_ids_by_host, leaf_device_names
from iolab.analysis.view import RunView
from iolab.analysis.window import Window
from iolab.core.course import WitnessAnswer
from iolab.core.metric import Metric
from iolab.core.samples import unique_io_mask
from iolab.core.workload import Direction
from iolab.hosts.rates import CounterSeries, derive_series
from iolab.units import NS_PER_S

WRITTEN: Final = "write_bytes_per_s"
"""The telemetry of a device that tells it."""

REUSED_NAMES: Final = ("loop", "nbd")
"""Devices whose name may be another's a moment later."""


def rebuilt_bytes(answers: Sequence[WitnessAnswer], window: Window) -> int | None:
    """What a witness that counts it saw copied in a window; None where it says nothing.

    A count that fell began anew.
    """
    counts = [
        answer.rebuilt_bytes
        for answer in answers
        if answer.rebuilt_bytes is not None and window.start_ns <= answer.real_ns <= window.end_ns
    ]
    if len(counts) < 2:
        return None
    return sum(
        later - earlier if later >= earlier else later for earlier, later in pairwise(counts)
    )


def rebuild_rate(view: RunView, before: Window, rebuild: Window, witness: str) -> Metric | None:
    """Bytes a second that were copied: as the witness counts them, or as the devices wrote them.

    Of each byte that clients write the target's devices write as many as they did `before`, and
    what they write beyond that is of the rebuild. None where neither is known.
    """
    answers = [a for a in course_answers(view) if a.witness == witness]
    copied: float | None = rebuilt_bytes(answers, rebuild)
    if copied is None:
        copied = _excess_bytes(view, before, rebuild)
    if copied is None or rebuild.seconds <= 0:
        return None
    return Metric(max(copied, 0.0) / rebuild.seconds, "bytes/s")


def course_answers(view: RunView) -> Sequence[WitnessAnswer]:
    """All answers of witnesses in a run."""
    return () if view.record.course is None else view.record.course.answers


def _excess_bytes(view: RunView, before: Window, rebuild: Window) -> float | None:
    series = _member_series(view)
    if not series or before.seconds <= 0:
        return None
    devices = [
        sum(_bytes(view, member, window) for member in series) for window in (before, rebuild)
    ]
    claimed = [_written_by_clients(view, window) for window in (before, rebuild)]
    factor = devices[0] / claimed[0] if claimed[0] else 0.0
    idle = 0.0 if claimed[0] else devices[0] / before.seconds * rebuild.seconds
    return devices[1] - factor * claimed[1] - idle


def _member_series(view: RunView) -> list[CounterSeries]:
    """What the target's devices wrote, each device of a kernel once."""
    record = view.record
    members: dict[str, frozenset[str]] = {}
    for host in view.hosts:
        target = view.target_of_host(host)
        names = list(target.devices) if target is not None else []
        members[host.host] = frozenset(leaf_device_names(names, view.facts_of_host(host)))
    for node in record.bystanders:
        names = [delta.device for delta in node.devices]
        members[node.host] = frozenset(leaf_device_names(names, view.facts.get(node.host)))
    kernels = boot_ids_by_host(view.facts)
    found: dict[tuple[str, str], CounterSeries] = {}
    for series in derive_series(record.counters, record.host_names, {"disk": None}):
        is_member = series.name in members.get(series.host, frozenset())
        if series.metric == WRITTEN and is_member and not series.name.startswith(REUSED_NAMES):
            found.setdefault((kernels.get(series.host, series.host), series.name), series)
    return list(found.values())


def _bytes(view: RunView, series: CounterSeries, window: Window) -> float:
    shared = view.step_overlap_ns(series, window)
    known = (shared > 0) & np.isfinite(series.value)
    return float((series.value[known] * shared[known]).sum() / NS_PER_S)


def _written_by_clients(view: RunView, window: Window) -> float:
    """What engines wrote in a window, by the controller's clock."""
    table, total = view.record.intervals, 0.0
    writes = (table.direction == Direction.WRITE) & unique_io_mask(table.direction)
    for index, host in enumerate(view.hosts):
        rows = np.flatnonzero((table.host == index) & writes)
        ends = table.end_real_ns[rows] - host.clock_offset_ns
        starts = ends - table.span_ns[rows]
        shared = np.minimum(ends, window.end_ns) - np.maximum(starts, window.start_ns)
        share = np.clip(shared / np.maximum(table.span_ns[rows], 1), 0.0, 1.0)
        total += float((table.bytes[rows] * share).sum())
    return total
