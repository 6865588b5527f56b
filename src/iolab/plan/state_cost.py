"""How long it takes to bring targets into their start state, and how much is written for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from iolab.model.run import DataSet, PlannedRun
from iolab.model.state import Purge, Restore
from iolab.model.study import Study
from iolab.model.workload import Job
from iolab.plan.guests import makers_of
from iolab.plan.steady_rounds import WINDOW
from iolab.plan.targets import serial_of, targets_of
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
    """How often the start state is made: also after a trim, and for blocks that nobody knows."""
    return sum(made for _, _, made in _course(study, runs))


def turn_of(restore: Restore, run: PlannedRun) -> str:
    """What the start state of a run is made for: it is made again when this changes."""
    match restore:
        case Restore.ONCE:
            return "once"
        case Restore.EACH_WORKLOAD:
            return _workload_of(run)
        case Restore.EACH_POINT:
            return f"{run.point.digest} {run.repeat} {run.attempt}"


def steady_series(study: Study, runs: Iterable[PlannedRun]) -> int:
    """How often a writing workload is brought to its steady state, which no new start leaves."""
    if not study.precondition.steady:
        return 0
    count = 0
    steady: dict[str, str] = {}
    for run, places, made in _course(study, runs):
        if made:
            _drop(steady, places)
        workload = _workload_of(run)
        if run.point.io.access.writes and any(steady.get(one) != workload for one in places):
            count += 1
            steady |= dict.fromkeys(places, workload)
        if run.point.io.access.trims:
            _drop(steady, places)
    return count


def _course(
    study: Study, runs: Iterable[PlannedRun]
) -> Iterator[tuple[PlannedRun, tuple[str, ...], bool]]:
    """Each run, the keys of its targets, and whether their start state is made before it.

    It is where a session makes it: on all targets of a run when one of them lacks it. Of what a run
    trims nothing is left. What a device's blocks must hold is known after a fill for a run that
    verifies, until one writes or trims that does not; a lost host is not foreseen.
    """
    wish = study.precondition
    places_of, raw = _Places(study), _raw(study)
    stands: dict[str, str] = {}
    known: set[str] = set()
    for run in runs:
        if not isinstance(run.point.job, Job):
            continue
        places, job, turn = places_of(run), run.point.io, turn_of(wish.restore, run)
        if not wish.is_asked and raw.isdisjoint(places):
            yield run, places, False
            continue
        made = any(stands.get(one) != turn for one in places)
        if job.verify and wish.fill >= 1:
            made = made or any(one in raw and one not in known for one in places)
        if made:
            stands |= dict.fromkeys(places, turn)
            known = known | set(places) if job.verify else known - set(places)
        yield run, places, made
        if job.access.trims:
            _drop(stands, places)
        if not job.verify and (job.access.writes or job.access.trims):
            known = known - set(places)


class _Places:
    """The keys of the targets that runs work on; those of a configuration are looked up once."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._keys = {
            (configuration, target.host): target.key
            for target in targets_of(study)
            for configuration in target.configurations
        }
        self._found: dict[tuple[str, int, int], tuple[str, ...]] = {}

    def __call__(self, run: PlannedRun) -> tuple[str, ...]:
        point = run.point
        which = (point.configuration, point.per_node, point.host_count)
        if which not in self._found:
            hosts = makers_of(self._study, point)
            self._found[which] = tuple(self._keys[point.configuration, host] for host in hosts)
        return self._found[which]


def _raw(study: Study) -> frozenset[str]:
    """The keys of devices that are found as they are; the disks of booted guests were laid out."""
    if study.guests is not None:
        return frozenset()
    return frozenset(target.key for target in targets_of(study) if target.serial is not None)


def _workload_of(run: PlannedRun) -> str:
    """A sweep by name, as the session's ledger has it."""
    return f"{run.point.configuration}/{run.point.workload}"


def _drop(states: dict[str, str], places: tuple[str, ...]) -> None:
    for one in places:
        states.pop(one, None)
