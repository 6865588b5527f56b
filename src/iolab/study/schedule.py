"""From a study to its plan: points in the order in which they will run, with their cost."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import NODEFAULT, to_builtins
from msgspec.structs import asdict, replace

from iolab.core.configuration import Configuration, Objective
from iolab.core.run import NeighbourPlan, Plan, PlannedRun, Point
from iolab.core.scenario import EventPlan
from iolab.core.study import IDLE_WATCH_S, RunOrder, Study
from iolab.core.target_state import NO_PRECONDITION
from iolab.core.workload import (
    HOSTS_AXIS,
    VMS_PER_NODE_AXIS,
    AnyJob,
    DataSet,
    Direction,
    Workload,
)
from iolab.record import Record, default_values, nested_field_values
from iolab.stats.seeds import (
    LOAD_RUNS_MAX,
    PEAK_RUNS_MAX,
    GridPoint,
    initial_loads,
    initial_peak_points,
)
from iolab.study.cost import destroyed_device_texts, plan_demand
from iolab.study.targets import load_host_names, neighbour_host_names, targets_of_study

if TYPE_CHECKING:
    from iolab.study.kinds import StudyKinds

RATE: Final = "rate_iops"
"""The axis of a max-load search, whose values are made as it goes: I/Os per second of one job."""

DIGEST_CHARACTERS: Final = 16
"""64 bits: no two of 10,000 points meet, and a path stays short."""

_RECENT_EXPANSIONS: Final[deque[tuple[Study, tuple[Point, ...]]]] = deque(maxlen=4)
"""The points of the newest studies, which never change: a report asks for them at every workload,
and those of a large sweep took it half of its time."""

SENTINEL_EVERY_CELLS: Final = 8

SENTINEL_EVERY_S: Final = 3600.0
"""After so many other runs, or so long, the sentinel is measured again."""

CONFIRMED_MAX: Final = 2
"""Points of one search that are confirmed: confirming the best may show that another is better."""


def expand_points(study: Study) -> tuple[Point, ...]:
    """All points: configurations as written, in each its workloads, the first axis slowest."""
    for expanded, points in tuple(_RECENT_EXPANSIONS):
        if expanded is study:
            return points
    points = tuple(
        _build_point(study, configuration, workload, values)
        for configuration in study.configurations
        for workload in study.workloads
        for values in _axis_combinations(workload)
    )
    _RECENT_EXPANSIONS.append((study, points))
    return points


def build_point_at(
    study: Study,
    configuration_id: str,
    workload_id: str,
    axis_values: tuple[tuple[str, int | str], ...],
) -> Point:
    """The point at these axis values, also where the study lists no such; KeyError for ids unknown.

    Under a rate that the study does not list, I/Os arrive as independent users make them where the
    workload says nothing else.
    """
    owner, behaviour = study.configuration(configuration_id), study.workload(workload_id)
    if RATE in dict(axis_values):
        behaviour = replace(behaviour, job=behaviour.job.with_default_poisson_arrivals())
    return _build_point(study, owner, behaviour, axis_values)


def neighbour_plans(study: Study) -> tuple[NeighbourPlan, ...]:
    """The loads that events begin, in each configuration, on files of their own."""
    scenario = study.scenario
    if scenario is None:
        return ()
    return tuple(
        _build_neighbour_plan(
            study, configuration, event, scenario.neighbour_workload(event.neighbour)
        )
        for configuration in study.configurations
        for event in scenario.events
        if event.neighbour
    )


def _build_neighbour_plan(
    study: Study, configuration: Configuration, event: EventPlan, workload: Workload
) -> NeighbourPlan:
    hosts = neighbour_host_names(study, configuration.id, event)
    point = _build_point(study, configuration, workload, ())
    own = _own_job_counts_by_host(study, hosts)
    jobs_of = dict(own)
    total = sum(jobs_of.get(name, workload.job.jobs_per_client) for name in hosts)
    job = workload.job.with_share_of_fleet_rate(total)
    data_set = f"{point.data_set}-{event.id}"
    return NeighbourPlan(
        event.id, replace(point, job=job, host_numjobs=own, data_set=data_set), hosts
    )


def _neighbour_data_set(study: Study, plan: NeighbourPlan) -> DataSet:
    """The files of a neighbour: none on the hosts that make the measured load alone."""
    point = plan.point
    files = point.job.data_set(point.configuration)
    if files is None:
        raise ValueError("a neighbour works on files that are laid out")
    hosts = study.configuration(point.configuration).hosts
    none = tuple((name, 0) for name in hosts if name not in plan.hosts)
    return replace(files, id=point.data_set, host_numjobs=(*point.host_numjobs, *none))


def shared_data_sets(study: Study, points: tuple[Point, ...]) -> tuple[DataSet, ...]:
    """The files that the points share: one set for each size, as many jobs as the widest point.

    A client with a number of jobs of its own has files for these; where clients read each other's
    files, all of them have files for the widest.
    """
    by_id: dict[str, DataSet] = {}
    for point in points:
        wanted = point.job.data_set(point.configuration)
        if wanted is None:
            continue
        earlier = by_id.get(point.data_set)
        numjobs = max(wanted.numjobs, earlier.numjobs if earlier else 0)
        # A point may be of some of the clients alone; the files are of all that any point is of.
        before = earlier.host_numjobs if earlier else ()
        own = tuple({**dict(before), **dict(point.host_numjobs)}.items())
        if study.target.rotate:
            numjobs = max(numjobs, *(count for _, count in own), 0)
            own = ()
        if study.scenario is not None:
            # The files are not of those that make a neighbour's load alone.
            alone = study.scenario.neighbour_only_hosts
            own = tuple({**dict(own), **dict.fromkeys(sorted(alone), 0)}.items())
        by_id[point.data_set] = replace(
            wanted, id=point.data_set, numjobs=numjobs, host_numjobs=own
        )
    neighbours = (_neighbour_data_set(study, plan) for plan in neighbour_plans(study))
    return (*by_id.values(), *neighbours)


def content_digest(content: object) -> str:
    """The first characters of the SHA-256 of the content's canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:DIGEST_CHARACTERS]


def _axis_combinations(workload: Workload) -> Iterator[tuple[tuple[str, int | str], ...]]:
    names = [axis.name for axis in workload.sweep]
    for values in itertools.product(*(axis.values for axis in workload.sweep)):
        yield tuple(zip(names, values, strict=True))


def _build_point(
    study: Study,
    configuration: Configuration,
    workload: Workload,
    axis_values: tuple[tuple[str, int | str], ...],
) -> Point:
    job = workload.job.with_axis_values(axis_values)
    files = job.data_set(configuration.id)
    per_node, host_count = (
        int(dict(axis_values).get(name, 0)) for name in (VMS_PER_NODE_AXIS, HOSTS_AXIS)
    )
    hosts = load_host_names(study, configuration.id, per_node, host_count)
    own = _own_job_counts_by_host(study, hosts) if files else ()
    jobs_of = dict(own)
    job = job.with_share_of_fleet_rate(
        sum(jobs_of.get(name, job.jobs_per_client) for name in hosts)
    )
    reads = Direction.READ in job.data_directions
    content: dict[str, object] = {
        "configuration": configuration.id,
        "hosts": hosts,
        "workload": workload.id,
        "axis": axis_values,
        "job": _non_default_values(job),
        **job.server_part_of_digest(study.server),
        # What most studies do without is left out, so that their digests stay.
        **({"host_numjobs": own} if own else {}),
        **({"rotate": study.target.rotate} if reads and study.target.rotate else {}),
        **({"guests": study.guests.settings_that_change_results} if study.guests and files else {}),
    }
    suffix = f"-{configuration.id}" if len(study.configurations) > 1 else ""
    return Point(
        digest=content_digest(content),
        configuration=configuration.id,
        workload=workload.id,
        axis_values=axis_values,
        job=job,
        data_set=f"{files.id}{suffix}" if files else "",
        host_numjobs=own,
        per_node=per_node,
        host_count=host_count,
    )


def _own_job_counts_by_host(study: Study, hosts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """The clients that have a number of jobs of their own."""
    return tuple(
        (name, numjobs) for name in hosts if (numjobs := study.host(name).numjobs) is not None
    )


def _non_default_values(job: AnyJob) -> dict[str, object]:
    """The job without what is as usual, so that a field added later keeps every digest."""
    usual = default_values(type(job))
    return {
        name: to_builtins(value)
        for name, value in asdict(job).items()
        if value != usual.get(name, NODEFAULT)
    }


class SearchSpace(Record):
    """Points of one workload and configuration that differ in searched axes alone.

    `axes` are the values of each searched axis, ascending; a max-load search for a rate of I/Os has
    none, and the one point of it is the load without a rate.
    """

    workload: Workload
    configuration: str
    axis_names: tuple[str, ...]
    axes: tuple[tuple[int, ...], ...]
    point_by_grid_point: Mapping[GridPoint, Point]

    @property
    def fixed_axis_values(self) -> tuple[tuple[str, int | str], ...]:
        """The values of the other axes, which all points share."""
        any_point = next(iter(self.point_by_grid_point.values()))
        return tuple(pair for pair in any_point.axis_values if pair[0] not in self.axis_names)

    @property
    def initial_points(self) -> tuple[Point, ...]:
        """The points that are measured before any is chosen."""
        if not self.axes:
            return tuple(self.point_by_grid_point.values())
        if self.workload.search_goal.objective is Objective.MAX_LOAD:
            return (self.point_by_grid_point[(self.axes[0][0],)],)
        if self.workload.search_goal.objective is Objective.PEAK:
            return tuple(
                self.point_by_grid_point[place] for place in initial_peak_points(self.axes)
            )
        wanted = {*initial_loads(self.axes[0]), *self.workload.search_goal.headline_loads}
        return tuple(self.point_by_grid_point[(load,)] for load in self.axes[0] if load in wanted)


def adaptive_searches_of_points(study: Study, points: Iterable[Point]) -> tuple[SearchSpace, ...]:
    """Every search among the points of a study, in their order."""
    axes = {
        item.id: searched_axes(item) for item in study.workloads if item.search_goal.is_adaptive
    }
    return _searches_of_points(study, points, axes)


def grid_load_curve_searches(study: Study, points: Iterable[Point]) -> tuple[SearchSpace, ...]:
    """Every curve over one axis of load, also where all of its points are measured."""
    axes = {item.id: _varied_rising_load_axes(item) for item in study.workloads}
    grid = [item.id for item in study.workloads if item.search_goal.objective is Objective.GRID]
    single = {name: axes[name] for name in grid if len(axes[name]) == 1}
    return _searches_of_points(study, points, single)


def _searches_of_points(
    study: Study, points: Iterable[Point], axes_by_workload: Mapping[str, tuple[str, ...]]
) -> tuple[SearchSpace, ...]:
    """The points of these workloads, together where they differ in the workload's axes alone."""
    workloads = {item.id: item for item in study.workloads if item.id in axes_by_workload}
    by_key: dict[object, dict[GridPoint, Point]] = {}
    owners: dict[object, tuple[Workload, str, tuple[str, ...]]] = {}
    for point in points:
        workload = workloads.get(point.workload)
        if workload is None:
            continue
        names = axes_by_workload[workload.id]
        values = dict(point.axis_values)
        rest = tuple(pair for pair in point.axis_values if pair[0] not in names)
        key = (point.configuration, point.workload, rest)
        owners[key] = (workload, point.configuration, names)
        by_key.setdefault(key, {})[tuple(int(values[name]) for name in names)] = point
    return tuple(_build_search(*owners[key], places) for key, places in by_key.items())


def _build_search(
    workload: Workload,
    configuration_id: str,
    axis_names: tuple[str, ...],
    points: dict[GridPoint, Point],
) -> SearchSpace:
    axes = tuple(tuple(sorted({place[i] for place in points})) for i in range(len(axis_names)))
    return SearchSpace(workload, configuration_id, axis_names, axes, points)


def searched_axes(workload: Workload) -> tuple[str, ...]:
    """The axes of a workload that its search chooses on; none where that chooses rates of I/Os."""
    if not workload.search_goal.is_adaptive:
        return ()
    if workload.search_goal.objective is Objective.MAX_LOAD:
        return (workload.job.max_load_search_axis,) if workload.job.max_load_search_axis else ()
    return _varied_rising_load_axes(workload)


def _varied_rising_load_axes(workload: Workload) -> tuple[str, ...]:
    """The axes of load that have several values."""
    several = [axis.name for axis in workload.sweep if len(axis.values) > 1]
    return rising_load_axes(workload.job, several)


def rising_load_axes(job: AnyJob | type[AnyJob], varied_axes: Collection[str]) -> tuple[str, ...]:
    """Of the axes that vary those along which load rises.

    Where the fleet grows it is that axis alone: what each guest does is then one behaviour of
    several, not a load of its own.
    """
    axes = [name for name in job.load_axes if name in varied_axes]
    return (VMS_PER_NODE_AXIS,) if VMS_PER_NODE_AXIS in axes else tuple(axes)


def max_run_count_of_search(study: Study, search: SearchSpace) -> int:
    """How many runs a search makes at most."""
    method = study.method
    confirming = CONFIRMED_MAX * method.repeats_max
    if search.workload.search_goal.objective is Objective.MAX_LOAD and search.axes:
        # Doubled until one is too much, then halved between both.
        return (
            min(len(search.point_by_grid_point), 2 * len(search.point_by_grid_point).bit_length())
            + confirming
        )
    if search.workload.search_goal.objective is Objective.MAX_LOAD:
        return 1 + LOAD_RUNS_MAX + method.repeats_max
    if search.workload.search_goal.objective is Objective.PEAK:
        return min(len(search.point_by_grid_point), PEAK_RUNS_MAX) + confirming
    each = method.repeats_max if method.chooses_repeats_by_results else method.repeats
    return len(search.point_by_grid_point) * each


def make_plan(study: Study, kinds: StudyKinds) -> Plan:
    """The plan of a study, with what it costs.

    Runs are numbered from 1. A repeat is a block: every point once, then every point again. Within
    a block the order is as written, or shuffled by `random.Random(seed)` - one generator for the
    whole plan, all configurations in one block - so that a slow drift does not follow an axis.

    Of a search only the points stand among the runs that it begins with; the others are candidates.
    """
    points = expand_points(study)
    sets = shared_data_sets(study, points)
    searches = adaptive_searches_of_points(study, points)
    first = {point.digest for search in searches for point in search.initial_points}
    searched = {item.id for item in study.workloads if item.search_goal.is_adaptive}
    certain = tuple(p for p in points if p.workload not in searched or p.digest in first)
    chosen = {point.digest for point in certain}
    runs = tuple(
        PlannedRun(order, repeat, point)
        for order, (repeat, point) in enumerate(
            _ordered_repeats_and_points(study, certain), start=1
        )
    )
    more = _max_extra_run_count(study, searches, runs)
    neighbours = neighbour_plans(study)
    return Plan(
        study=study.id,
        digest=content_digest(_plan_digest_content(study, kinds, runs)),
        data_sets=sets,
        runs=runs,
        demand=plan_demand(study, kinds, sets, runs, extra_run_count=more, neighbours=neighbours),
        destroyed_device_texts=destroyed_device_texts(study),
        candidate_points=tuple(point for point in points if point.digest not in chosen),
        extra_run_count=more,
        neighbours=neighbours,
    )


def _ordered_repeats_and_points(
    study: Study, points: tuple[Point, ...]
) -> Iterator[tuple[int, Point]]:
    shuffler = random.Random(study.method.seed)  # noqa: S311 - an order, not a secret
    repeats = {item.id: _fixed_repeat_count(study, item) for item in study.workloads}
    for repeat in range(1, max(repeats.values()) + 1):
        block = [point for point in points if repeat <= repeats[point.workload]]
        if study.method.order is RunOrder.RANDOMISED:
            shuffler.shuffle(block)
        for point in block:
            yield repeat, point


def _fixed_repeat_count(study: Study, workload: Workload) -> int:
    """How often a point is measured in any case; a search repeats what it settles on."""
    if workload.search_goal.objective is not Objective.GRID:
        return 1
    return workload.repeats or study.method.repeats


def _max_extra_run_count(
    study: Study, searches: tuple[SearchSpace, ...], runs: tuple[PlannedRun, ...]
) -> int:
    """How many runs the results may ask for beyond those that are certain.

    Those are not counted that are made again because the sentinel had moved.
    """
    method = study.method
    owners = {search.workload.id for search in searches}
    certain = sum(1 for run in runs if run.point.workload in owners)
    more = sum(max_run_count_of_search(study, search) for search in searches) - certain
    if not method.chooses_repeats_by_results:
        return more
    own = {item.id for item in study.workloads if item.repeats} | owners
    grid = {run.point.digest for run in runs if run.point.workload not in own}
    more += len(grid) * (method.repeats_max - method.repeats)
    return more + (len(runs) + more) // SENTINEL_EVERY_CELLS


def _preparation_digest_content(study: Study) -> Mapping[str, object]:
    """What is done to targets beforehand, where anything is."""
    target = study.target
    filesystem = {"filesystem": ["xfs", target.image_bytes]} if target.make_xfs else {}
    if study.precondition == NO_PRECONDITION:
        return filesystem
    return {**filesystem, "precondition": nested_field_values(study.precondition)}


def _search_digest_content(study: Study) -> dict[str, object]:
    """What decides further runs, where anything does."""
    aims = [
        [item.id, nested_field_values(item.search_goal)]
        for item in study.workloads
        if item.search_goal.is_adaptive
    ]
    method = study.method
    turns = [method.repeats_max, method.target_half_width, method.sentinel]
    return {"aims": [*aims, turns]} if aims or method.chooses_repeats_by_results else {}


def _stopping_rule_digest_content(study: Study) -> dict[str, object]:
    """When runs end, where that is decided on the way."""
    method = study.method
    if method.rule is None:
        return {}
    return {"rule": nested_field_values(method.rule)}


def _idle_watch_digest_content(study: Study) -> dict[str, object]:
    """What a session looks at before its runs, where that is not as usual."""
    method = study.method
    usual = method.idle_watch_s == IDLE_WATCH_S and method.generator_limit
    return {} if usual else {"looks": [method.idle_watch_s, method.generator_limit]}


def _scenario_digest_content(study: Study) -> dict[str, object]:
    """Phases, events and what they do, where runs have any; not what sentences call them."""
    scenario = study.scenario
    if scenario is None:
        return {}
    neighbours = [
        [neighbour.event, neighbour.point.digest, neighbour.hosts]
        for neighbour in neighbour_plans(study)
    ]
    parts = (
        scenario.phases,
        [replace(event, title="") for event in scenario.events],
        scenario.actions,
        scenario.witnesses,
    )
    return {"scenario": [*map(to_builtins, parts), neighbours]}


def _plan_digest_content(
    study: Study, kinds: StudyKinds, runs: tuple[PlannedRun, ...]
) -> dict[str, object]:
    """What makes two plans the same: the study, how it measures, and every run in its order."""
    method = study.method
    return {
        "study": study.id,
        "scale": study.scale,
        "method": [method.kind, method.warmup_s, method.runtime_s, method.settle_s],
        "caches": method.drop_caches,
        "telemetry": study.telemetry.interval_ms,
        "targets": [
            # What most studies do without is left out, so that their digests stay.
            [target.host, target.path, *([target.serial] if target.serial else [])]
            for target in targets_of_study(study)
        ],
        **_preparation_digest_content(study),
        **_idle_watch_digest_content(study),
        **_stopping_rule_digest_content(study),
        **_search_digest_content(study),
        **_scenario_digest_content(study),
        **kinds.plan_digest_content(study),
        "runs": [[run.repeat, run.point.digest] for run in runs],
    }
