"""How fast a system copied what a fault had cost it, from the counters of its devices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from iolab.analysis.storage_bytes import boot_ids_by_host, names_of_devices_on_no_other
from iolab.analysis.view import RunView
from iolab.analysis.window import Window, to_controller_clock_ns
from iolab.core.metric import Metric
from iolab.core.samples import unique_io_mask
from iolab.core.scenario import WitnessAnswer
from iolab.core.workload import Direction
from iolab.hosts.rates import CounterSeries, derive_counter_series
from iolab.units import NS_PER_S

WRITTEN: Final = "write_bytes_per_s"
"""The telemetry of a device that tells it."""

REUSED_NAMES: Final = ("loop", "nbd")
"""Devices whose name may be another's a moment later."""


def copied_bytes_in_window(answers: Sequence[WitnessAnswer], window: Window) -> int | None:
    """What a witness that counts it saw copied in a window; None where it says nothing.

    A count that fell began anew.
    """
    counts = [answer.rebuilt_bytes or 0 for answer in _answers_with_rebuilt_bytes(answers, window)]
    if len(counts) < 2:
        return None
    return sum(
        later - earlier if later >= earlier else later for earlier, later in pairwise(counts)
    )


def rebuild_rate(
    view: RunView, baseline_window: Window, rebuild_window: Window, witness_id: str
) -> Metric | None:
    """Bytes a second that were copied: as the witness counts them, or as the devices wrote them.

    The witness counted at some moment between question and answer: those of its first and last
    count in the window are the bounds. Of each byte that clients write the target's devices write
    as many as they did in the `baseline_window`, and what they write beyond that is of the rebuild.
    None where neither is known.
    """
    answers = [a for a in all_witness_answers(view) if a.witness == witness_id]
    counted = copied_bytes_in_window(answers, rebuild_window)
    if counted is not None:
        ends = _answers_with_rebuilt_bytes(answers, rebuild_window)
        return _rate_between_answers(counted, ends[0], ends[-1])
    excess = _bytes_written_beyond_baseline(view, baseline_window, rebuild_window)
    if excess is None or rebuild_window.seconds <= 0:
        return None
    return Metric(max(excess, 0.0) / rebuild_window.seconds, "bytes/s")


def _answers_with_rebuilt_bytes(
    answers: Sequence[WitnessAnswer], window: Window
) -> list[WitnessAnswer]:
    return [
        answer
        for answer in answers
        if answer.rebuilt_bytes is not None and window.start_ns <= answer.real_ns <= window.end_ns
    ]


def _rate_between_answers(
    copied_bytes: int, first: WitnessAnswer, last: WitnessAnswer
) -> Metric | None:
    longest_ns = last.real_ns - first.asked_real_ns
    shortest_ns = last.asked_real_ns - first.real_ns
    middle_ns = (longest_ns + shortest_ns) / 2
    if middle_ns <= 0:
        return None
    high = copied_bytes * NS_PER_S / shortest_ns if shortest_ns > 0 else None
    low = copied_bytes * NS_PER_S / longest_ns
    return Metric(copied_bytes * NS_PER_S / middle_ns, "bytes/s", low, high)


def all_witness_answers(view: RunView) -> Sequence[WitnessAnswer]:
    """All answers of witnesses in a run."""
    return () if view.record.scenario is None else view.record.scenario.answers


def _bytes_written_beyond_baseline(
    view: RunView, baseline_window: Window, rebuild: Window
) -> float | None:
    series = _target_device_write_series(view)
    if not series or baseline_window.seconds <= 0:
        return None
    devices = [
        sum(_device_bytes_written_in_window(view, member, window) for member in series)
        for window in (baseline_window, rebuild)
    ]
    claimed = [_bytes_written_by_clients(view, window) for window in (baseline_window, rebuild)]
    if claimed[1] and not claimed[0]:
        return None  # How often devices write what a neighbour does is not known.
    factor = devices[0] / claimed[0] if claimed[0] else 0.0
    idle = 0.0 if claimed[0] else devices[0] / baseline_window.seconds * rebuild.seconds
    return devices[1] - factor * claimed[1] - idle


def boot_id_and_device_pairs_of_target(view: RunView) -> set[tuple[str, str]]:
    """The devices that the target stands on, each of a kernel once: boot and name."""
    kernels = boot_ids_by_host(view.facts)
    return {
        (kernels.get(host, host), name)
        for host, names in _target_leaf_device_names_by_host(view).items()
        for name in names
    }


def _target_leaf_device_names_by_host(view: RunView) -> dict[str, frozenset[str]]:
    members: dict[str, frozenset[str]] = {}
    for host in view.hosts:
        target = view.target_of_host(host)
        names = list(target.devices) if target is not None else []
        members[host.host] = frozenset(
            names_of_devices_on_no_other(names, view.facts_of_host(host))
        )
    for node in view.record.monitored_hosts:
        names = [delta.device for delta in node.devices]
        members[node.host] = frozenset(
            names_of_devices_on_no_other(names, view.facts.get(node.host))
        )
    return members


def _target_device_write_series(view: RunView) -> list[CounterSeries]:
    """What the target's devices wrote, each device of a kernel once."""
    record, members = view.record, _target_leaf_device_names_by_host(view)
    kernels = boot_ids_by_host(view.facts)
    found: dict[tuple[str, str], CounterSeries] = {}
    for series in derive_counter_series(record.counters, record.host_names, {"disk": None}):
        is_member = series.name in members.get(series.host, frozenset())
        if series.metric == WRITTEN and is_member and not series.name.startswith(REUSED_NAMES):
            found.setdefault((kernels.get(series.host, series.host), series.name), series)
    return list(found.values())


def _device_bytes_written_in_window(view: RunView, series: CounterSeries, window: Window) -> float:
    shared = view.step_overlap_ns(series, window)
    known = (shared > 0) & np.isfinite(series.value)
    return float((series.value[known] * shared[known]).sum() / NS_PER_S)


def _bytes_written_by_clients(view: RunView, window: Window) -> float:
    """What engines wrote in a window, those of neighbours as well, by the controller's clock."""
    record, total = view.record, 0.0
    loads = [(record.intervals, record.hosts)]
    if record.neighbour_intervals is not None:
        hosts = tuple(neighbour.host for neighbour in record.neighbours)
        loads.append((record.neighbour_intervals, hosts))
    for table, hosts in loads:
        writes = (table.direction == Direction.WRITE) & unique_io_mask(table.direction)
        for index, host in enumerate(hosts):
            rows = np.flatnonzero((table.host == index) & writes)
            ends = to_controller_clock_ns(table.end_real_ns[rows], host.clock_offset_ns)
            starts = ends - table.span_ns[rows]
            shared = np.minimum(ends, window.end_ns) - np.maximum(starts, window.start_ns)
            share = np.clip(shared / np.maximum(table.span_ns[rows], 1), 0.0, 1.0)
            total += float((table.bytes[rows] * share).sum())
    return total
