"""What a plan will take before anything runs: seconds by item, bytes to write, free space."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from iolab.core.host import HostTransport
from iolab.core.run import NeighbourPlan, PlanDemand, PlannedRun
from iolab.core.study import Method, Study
from iolab.core.target_state import PurgeMethod, RestorePolicy
from iolab.core.workload import DataSet, Direction
from iolab.stats.rounds import WINDOW
from iolab.study.targets import (
    hypervisors_of_study,
    load_host_names_of_point,
    target_serial,
    targets_of_study,
)
from iolab.text import counted_noun, quote_value
from iolab.units import format_bytes, format_duration_s, format_rate_bytes

if TYPE_CHECKING:
    from iolab.study.kinds import StudyKinds, TimeAndSpaceDemand, TimeItem

PURGE_S: Final = {
    PurgeMethod.NONE: 0.0,
    PurgeMethod.DISCARD: 30.0,
    PurgeMethod.NVME_FORMAT: 60.0,
    PurgeMethod.SANITIZE: 600.0,
    PurgeMethod.FSTRIM: 30.0,
    PurgeMethod.RECREATE: 5.0,
}
"""Assumed seconds of one purge: a discard takes seconds on most devices, minutes on some."""

ASSUMED_WRITE_BYTES_PER_S: Final = 200e6
"""One client's sequential writing where nothing was measured: a SATA SSD that is neither new nor
empty, or a sixth of a 10 Gbit/s port. Most targets are faster, so plans err on the long side."""

SESSION_OVERHEAD_S: Final = 3.0
"""Connecting hosts, reading facts and cleaning up."""

RUN_OVERHEAD_S: Final = 1.5
"""Proving extents, dropping caches, the lead to a common start and the commit of a run: measured at
one second on one host, and more hosts take a little longer. The idle watch is not in it."""

SPARE_SHARE: Final = 0.05
"""File systems slow down, and keep blocks for themselves, when the last twentieth is used."""

SPARE_BYTES: Final = 64 << 20
"""For journals and metadata of the smallest file systems."""

_PURGE_WORDS: Final = {
    PurgeMethod.NONE: "written over",
    PurgeMethod.DISCARD: "discarded and written over",
    PurgeMethod.NVME_FORMAT: "erased by nvme format and written over",
    PurgeMethod.SANITIZE: "erased by nvme sanitize and written over",
}


def is_target_block_device(study: Study, configuration_id: str, host_name: str) -> bool:
    """Whether a configuration's target on that host is a block device."""
    return target_serial(study.configuration(configuration_id), study.host(host_name)) is not None


def max_fill_bytes_per_host_beyond_layout(study: Study, data_sets: Iterable[DataSet]) -> int:
    """What one fill writes on the host where it writes most, beyond a layout of files."""
    precondition = study.precondition
    more = max(precondition.fill - 1, 0)
    if study.guests is not None:
        # The layout of guests' images was the first fill, and what they have is one disk.
        return round(max((item.bytes_per_host for item in data_sets), default=0) * more)
    sizes: dict[tuple[str, bool], list[int]] = {}
    for data_set in data_sets:
        here = study.configuration(data_set.configuration)
        for host in here.hosts:
            key = (host, is_target_block_device(study, here.id, host))
            sizes.setdefault(key, []).append(data_set.with_jobs_of_host(host).bytes_per_host)
    each = [
        # Data sets lie over each other on a device, and beside each other in a directory.
        max(host_sizes) * precondition.fill if device else sum(host_sizes) * more
        for (_, device), host_sizes in sizes.items()
    ]
    return round(max(each, default=0))


def precondition_time_items(
    study: Study,
    data_sets: tuple[DataSet, ...],
    runs: tuple[PlannedRun, ...],
    write_bytes_per_s: float,
) -> Iterator[tuple[str, float]]:
    """Purge, fill and rounds, each with the seconds that all of them take at most."""
    precondition = study.precondition
    times = start_state_preparation_count(study, runs)
    if precondition.purge is not PurgeMethod.NONE:
        message = f"{times} x purge by {precondition.purge.value} (assumed)"
        yield message, times * PURGE_S[precondition.purge]
    if precondition.purge in (PurgeMethod.FSTRIM, PurgeMethod.RECREATE):
        again = sum(item.bytes_per_host for item in data_sets)
        yield f"{times} x lay out {format_bytes(again)} anew", times * again / write_bytes_per_s
    size = max_fill_bytes_per_host_beyond_layout(study, data_sets)
    if size:
        speed = format_rate_bytes(write_bytes_per_s)
        message = f"{times} x fill, {format_bytes(size)} on each host at {speed}"
        yield f"{message} (assumed)", times * size / write_bytes_per_s
    series = steady_state_series_count(study, runs)
    if series:
        round_s = format_duration_s(precondition.round_s)
        message = (
            f"{series} x until steady: {WINDOW} to {precondition.rounds_max} rounds of {round_s}"
        )
        yield message, series * precondition.rounds_max * precondition.round_s


def max_precondition_saving_s(study: Study, runs: tuple[PlannedRun, ...]) -> float:
    """What of that is not needed when the first window of every series is steady."""
    precondition = study.precondition
    return (
        steady_state_series_count(study, runs)
        * (precondition.rounds_max - WINDOW)
        * precondition.round_s
    )


def start_state_preparation_count(study: Study, runs: Iterable[PlannedRun]) -> int:
    """How often the start state is made: also after a trim, and for blocks that nobody knows."""
    return sum(prepared.makes_start_state for prepared in _data_set_runs(study, runs))


def start_state_key(restore_policy: RestorePolicy, run: PlannedRun) -> str:
    """What the start state of a run is made for: it is made again when this changes."""
    match restore_policy:
        case RestorePolicy.ONCE:
            return "once"
        case RestorePolicy.EACH_WORKLOAD:
            return _sweep_key(run)
        case RestorePolicy.EACH_POINT:
            return f"{run.point.digest} {run.repeat} {run.attempt}"


def steady_state_series_count(study: Study, runs: Iterable[PlannedRun]) -> int:
    """How often a writing workload is brought to its steady state, which no new start leaves."""
    return sum(1 for _ in _runs_preceded_by_steady_state_series(study, runs))


def _runs_preceded_by_steady_state_series(
    study: Study, runs: Iterable[PlannedRun]
) -> Iterator[PlannedRun]:
    """The runs before which that is done."""
    if not study.precondition.steady:
        return
    steady: dict[str, str] = {}
    for run, places, makes_start_state in _data_set_runs(study, runs):
        if makes_start_state:
            _forget_states_of_targets(steady, places)
        workload = _sweep_key(run)
        ways = run.point.job.data_directions
        if Direction.WRITE in ways and any(steady.get(place) != workload for place in places):
            yield run
            steady |= dict.fromkeys(places, workload)
        if Direction.TRIM in ways:
            _forget_states_of_targets(steady, places)


class _DataSetRun(NamedTuple):
    """A run with the keys of its targets, and whether their start state is made before it."""

    run: PlannedRun
    target_keys: tuple[str, ...]
    makes_start_state: bool


def _data_set_runs(study: Study, runs: Iterable[PlannedRun]) -> Iterator[_DataSetRun]:
    """Each run that works on files or devices.

    The start state is made where a session makes it: on all targets of a run when one of them lacks
    it. Of what a run trims nothing is left. What a device's blocks must hold is known after a fill
    for a run that verifies, until one writes or trims that does not; a lost host is not foreseen.
    """
    precondition = study.precondition
    places_of, raw = _TargetKeysOfRuns(study), _raw_device_keys(study)
    stands: dict[str, str] = {}
    known_blocks: set[str] = set()
    for run in runs:
        if not run.point.data_set:
            continue
        places, job, turn = (
            places_of(run),
            run.point.job,
            start_state_key(precondition.restore, run),
        )
        if not precondition.needs_more_than_layout and raw.isdisjoint(places):
            yield _DataSetRun(run, places, makes_start_state=False)
            continue
        is_made = any(stands.get(place) != turn for place in places)
        if job.verify and precondition.fill >= 1:
            is_made = is_made or any(place in raw and place not in known_blocks for place in places)
        if is_made:
            stands |= dict.fromkeys(places, turn)
            known_blocks = known_blocks | set(places) if job.verify else known_blocks - set(places)
        yield _DataSetRun(run, places, is_made)
        if Direction.TRIM in job.data_directions:
            _forget_states_of_targets(stands, places)
        if not job.verify and job.changes_data:
            known_blocks = known_blocks - set(places)


class _TargetKeysOfRuns:
    """The keys of the targets that runs work on; those of a configuration are looked up once."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._keys = {
            (configuration, target.host): target.key
            for target in targets_of_study(study)
            for configuration in target.configurations
        }
        self._keys_by_target: dict[tuple[str, int, int], tuple[str, ...]] = {}

    def __call__(self, run: PlannedRun) -> tuple[str, ...]:
        point = run.point
        which = (point.configuration, point.per_node, point.host_count)
        if which not in self._keys_by_target:
            hosts = load_host_names_of_point(self._study, point)
            self._keys_by_target[which] = tuple(
                self._keys[point.configuration, host] for host in hosts
            )
        return self._keys_by_target[which]


def _raw_device_keys(study: Study) -> frozenset[str]:
    """The keys of devices that are found as they are; the disks of booted guests were laid out."""
    if study.guests is not None:
        return frozenset()
    return frozenset(target.key for target in targets_of_study(study) if target.serial is not None)


def _sweep_key(run: PlannedRun) -> str:
    """A sweep by name, as the session's ledger has it."""
    return f"{run.point.configuration}/{run.point.workload}"


def _forget_states_of_targets(
    state_by_target_key: dict[str, str], target_keys: tuple[str, ...]
) -> None:
    for place in target_keys:
        state_by_target_key.pop(place, None)


def idle_watch_seconds_beyond_settle(method: Method) -> float:
    """Seconds of the idle watch before a run that are not rest, too: it rests while watched."""
    return max(method.idle_watch_s - method.settle_s, 0.0)


def total_settle_seconds(method: Method, run_count: int) -> float:
    """Seconds of rest in that many runs: the first follows none, and is only watched."""
    return run_count * method.settle_s - max(method.settle_s - method.idle_watch_s, 0.0)


def meter_idle_seconds_per_run(study: Study) -> float:
    """How long machines idle around a run's load while their meters are read."""
    return 2 * study.meters.idle_s


def run_overhead_seconds(method: Method) -> float:
    """What a run takes beside its load and its rest, with what its idle watch takes longer."""
    return RUN_OVERHEAD_S + idle_watch_seconds_beyond_settle(method)


def plan_demand(
    study: Study,
    kinds: StudyKinds,
    data_sets: tuple[DataSet, ...],
    runs: tuple[PlannedRun, ...],
    *,
    extra_run_count: int = 0,
    neighbours: tuple[NeighbourPlan, ...] = (),
) -> PlanDemand:
    """What the plan takes; seconds of laying out are at a write rate that is assumed.

    `extra_run_count` may follow the certain runs, as results ask for them; `neighbours` load beside
    each.
    """
    rate = ASSUMED_WRITE_BYTES_PER_S
    per_host = {
        host: sum(
            data_set.with_jobs_of_host(host).bytes_per_host
            for data_set in data_sets
            if host in study.configuration(data_set.configuration).hosts
            # A device is written over as a whole instead.
            and not is_target_block_device(study, data_set.configuration, host)
        )
        for host in {name for item in study.configurations for name in item.hosts}
    }
    most = max(per_host.values(), default=0)
    demands = [kind.time_and_space_demand(study, runs, rate, kinds.hosts) for kind in kinds.loads]
    of_hosts = kinds.hosts.booted_host_demand(study, len(runs), rate)
    prepared = sum(demand.prepared_run_count for demand in demands)
    time_items = _plan_time_items(study, _layout_time_items(most, rate), demands, len(runs))
    time_items += tuple(precondition_time_items(study, data_sets, runs, rate))
    time_items += tuple(item for demand in demands for item in demand.own_preparation_time_items)
    time_items += of_hosts.time_items
    certain_s = sum(seconds for _, seconds in time_items)
    spared_s = sum(demand.avoidable_s for demand in demands) + max_precondition_saving_s(
        study, runs
    )
    if extra_run_count:
        method = study.method
        # Without I/O, whose end a rule decides, a run's load is as written.
        longest_s = method.load_seconds_range[1] if prepared else method.warmup_s + method.runtime_s
        each_s = longest_s + run_overhead_seconds(method) + method.settle_s
        each_s += meter_idle_seconds_per_run(study)
        time_items += (
            (
                f"up to {extra_run_count} more runs, as results ask for them",
                extra_run_count * each_s,
            ),
        )
    seconds = sum(seconds for _, seconds in time_items)
    least = certain_s - spared_s
    hosts = {name for item in study.configurations for name in item.hosts}
    restores = start_state_preparation_count(study, runs)
    filled = max_fill_bytes_per_host_beyond_layout(study, data_sets) * restores * len(hosts)
    laid_out = sum(per_host.values())
    if study.precondition.purge in (PurgeMethod.FSTRIM, PurgeMethod.RECREATE):
        laid_out *= 1 + restores
    by_point = {run.point.digest: run.point for run in runs}
    writes_by_digest = {key: kinds.writes_of_run(study, point) for key, point in by_point.items()}
    writes = [writes_by_digest[run.point.digest] for run in runs]
    for neighbour in neighbours:
        here = neighbour.point.configuration
        beside = sum(run.point.configuration == here for run in runs)
        writes += [kinds.neighbour_writes(study, neighbour)] * beside
    round_s = study.precondition.round_s
    rounds_s = (WINDOW * round_s, study.precondition.rounds_max * round_s)
    writes += [
        replace(writes_by_digest[run.point.digest], bytes=0, seconds_range=rounds_s)
        for run in _runs_preceded_by_steady_state_series(study, runs)
    ]
    space = most + sum(demand.space_bytes for demand in demands)
    image = study.target.image_bytes or 0
    return PlanDemand(
        seconds=seconds,
        time_items=time_items,
        layout_bytes_per_host=most,
        write_bytes_estimate=laid_out
        + filled
        + sum(demand.set_up_bytes for demand in demands)
        + round(sum(item.min_known_bytes for item in writes))
        + of_hosts.image_bytes_per_node * len(hypervisors_of_study(study)),
        free_bytes_needed_per_host=_needed_free_bytes(
            max(space, image, of_hosts.space_bytes_per_node)
        ),
        least_seconds=least if least < seconds else None,
        open_write_s=sum(item.seconds_range_at_target_speed[0] for item in writes),
        open_write_most_s=sum(item.seconds_range_at_target_speed[1] for item in writes),
    )


def demand_duration_text(demand: PlanDemand) -> str:
    """How long a plan takes, from the least to the most where runs end when they may."""
    most = format_duration_s(demand.seconds)
    if demand.least_seconds is None:
        return f"about {most}"
    return f"{format_duration_s(demand.least_seconds)} to {most}"


def _needed_free_bytes(data_bytes: int) -> int:
    """Free space in a file system; a device needs none."""
    return with_free_space_margin(data_bytes) if data_bytes else 0


def with_free_space_margin(data_bytes: int) -> int:
    """Free space that data of so many bytes needs."""
    return math.ceil(data_bytes * (1 + SPARE_SHARE)) + SPARE_BYTES


def _layout_time_items(layout_bytes: int, write_bytes_per_s: float) -> tuple[TimeItem, ...]:
    if not layout_bytes:
        return ()
    size, speed = format_bytes(layout_bytes), format_rate_bytes(write_bytes_per_s)
    return (
        (f"lay out {size} on each host at {speed} (assumed)", layout_bytes / write_bytes_per_s),
    )


def _plan_time_items(
    study: Study,
    layout: tuple[TimeItem, ...],
    demands: Sequence[TimeAndSpaceDemand],
    run_count: int,
) -> tuple[TimeItem, ...]:
    method, prepared = study.method, sum(demand.prepared_run_count for demand in demands)
    proving = f"{counted_noun(prepared, 'run')}: verify, drop caches, idle watch, commit"
    rest = format_duration_s(method.settle_s)
    settling = f"rest between {counted_noun(run_count, 'run')}: settle {rest}"
    resting_s = total_settle_seconds(method, run_count)
    idle_s = run_count * meter_idle_seconds_per_run(study)
    idle = format_duration_s(study.meters.idle_s)
    metering = f"{counted_noun(run_count, 'run')}: meters of idle machines, {idle} before and after"
    return (
        ("connect hosts, read facts, clean up", SESSION_OVERHEAD_S),
        *layout,
        *(item for demand in demands for item in demand.load_time_items),
        *(((proving, prepared * run_overhead_seconds(method)),) if prepared else ()),
        *(item for demand in demands for item in demand.generator_limit_time_items),
        *(((settling, resting_s),) if resting_s else ()),
        *(((metering, idle_s),) if idle_s else ()),
    )


def destroyed_device_texts(study: Study) -> tuple[str, ...]:
    """One sentence for each device whose content will be lost."""
    way = _PURGE_WORDS.get(study.precondition.purge, _PURGE_WORDS[PurgeMethod.NONE])
    if any(Direction.TRIM in workload.job.data_directions for workload in study.workloads):
        way = f"{way} and trimmed"
    if study.target.make_xfs:
        way = "formatted: an XFS is made on it"
    return tuple(
        f"All that is on the device {quote_value(target.path)} (serial "
        f"{quote_value(target.serial)}) of host "
        f"{quote_value(target.host)}: it is {way}."
        for target in targets_of_study(study)
        # The disks of guests that are booted are files of the session.
        if target.serial is not None and study.host(target.host).transport is not HostTransport.VM
    )
