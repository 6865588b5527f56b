"""How long it takes to bring targets into their start state, and how much is written for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from iolab.model.run import DataSet, PlannedRun
from iolab.model.state import Purge, Restore
from iolab.model.study import Study
from iolab.model.workload import Job
from iolab.plan.steady_rounds import WINDOW
from iolab.plan.targets import serial_of
from iolab.units import format_bytes, format_duration_s, format_rate_bytes

PURGE_S: Final = {
    Purge.NONE: 0.0,
    Purge.DISCARD: 30.0,
    Purge.NVME_FORMAT: 60.0,
    Purge.SANITIZE: 600.0,
    Purge.FSTRIM: 30.0,
    Purge.RECREATE: 5.0,
}
"""Assumed seconds of one purge: a discard takes seconds on most devices, minutes on some."""


def is_on_device(study: Study, configuration_id: str, host: str) -> bool:
    """Whether a configuration's target on that host is a block device."""
    (found,) = (item for item in study.configurations if item.id == configuration_id)
    return serial_of(found, study.host(host)) is not None


def filled_bytes(study: Study, data_sets: Iterable[DataSet]) -> int:
    """What one fill writes on the host where it writes most, beyond a layout of files."""
    wish = study.precondition
    more = max(wish.fill - 1, 0)
    if study.guests is not None:
        # The layout of guests' images was the first fill, and what they have is one disk.
        return round(max((item.bytes_per_host for item in data_sets), default=0) * more)
    sizes: dict[tuple[str, bool], list[int]] = {}
    for data_set in data_sets:
        (here,) = (item for item in study.configurations if item.id == data_set.configuration)
        for host in here.hosts:
            key = (host, is_on_device(study, here.id, host))
            sizes.setdefault(key, []).append(data_set.on(host).bytes_per_host)
    each = [
        # Data sets lie over each other on a device, and beside each other in a directory.
        max(found) * wish.fill if device else sum(found) * more
        for (_, device), found in sizes.items()
    ]
    return round(max(each, default=0))


def state_reasons(
    study: Study, data_sets: tuple[DataSet, ...], runs: tuple[PlannedRun, ...], rate: float
) -> Iterator[tuple[str, float]]:
    """Purge, fill and rounds, each with the seconds that all of them take at most."""
    wish = study.precondition
    times = restorations(study, runs)
    if wish.purge is not Purge.NONE:
        says = f"{times} x purge by {wish.purge.value} (assumed)"
        yield says, times * PURGE_S[wish.purge]
    if wish.purge in (Purge.FSTRIM, Purge.RECREATE):
        again = sum(item.bytes_per_host for item in data_sets)
        yield f"{times} x lay out {format_bytes(again)} anew", times * again / rate
    size = filled_bytes(study, data_sets)
    if size:
        says = f"{times} x fill, {format_bytes(size)} on each host at {format_rate_bytes(rate)}"
        yield f"{says} (assumed)", times * size / rate
    series = steady_series(study, runs)
    if series:
        round_s = format_duration_s(wish.round_s)
        says = f"{series} x until steady: {WINDOW} to {wish.rounds_max} rounds of {round_s}"
        yield says, series * wish.rounds_max * wish.round_s


def spared_seconds(study: Study, runs: tuple[PlannedRun, ...]) -> float:
    """What of that is not needed when the first window of every series is steady."""
    wish = study.precondition
    return steady_series(study, runs) * (wish.rounds_max - WINDOW) * wish.round_s


def restorations(study: Study, runs: Iterable[PlannedRun]) -> int:
    """How often the start state is made: after a run that trims there is none any more."""
    runs = tuple(runs)
    restore = study.precondition.restore
    if restore is Restore.EACH_POINT:
        return len(runs)
    count, before = 0, None
    stands: set[str] = set()
    for run in runs:
        here, turn = run.point.configuration, (run.point.configuration, run.point.workload)
        turned = restore is Restore.EACH_WORKLOAD and turn != before
        count += turned or here not in stands
        before = turn
        stands = stands - {here} if trims(run) else stands | {here}
    return count


def trims(run: PlannedRun) -> bool:
    """Whether nothing is left of what the run works on."""
    return isinstance(run.point.job, Job) and run.point.job.access.trims


def steady_series(study: Study, runs: tuple[PlannedRun, ...]) -> int:
    """How often a writing workload is brought to its steady state, which no trim leaves."""
    if not study.precondition.steady:
        return 0
    again = study.precondition.restore is Restore.EACH_POINT
    count, before = 0, None
    for run in runs:
        if trims(run):
            before = None
        elif isinstance(run.point.job, Job) and run.point.job.access.writes:
            turn = (run.point.configuration, run.point.workload)
            count += again or turn != before
            before = turn
    return count
