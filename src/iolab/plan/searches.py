"""Which points a search chooses among, and with which of them it begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from iolab.model.objective import Objective
from iolab.model.run import Point
from iolab.model.study import Study
from iolab.model.workload import Workload
from iolab.plan.guest_tables import PER_NODE

Place = tuple[int, ...]
"""A point by its values on the searched axes."""

SEARCHED: Final = ("iodepth", "numjobs", PER_NODE)
"""Axes along which load rises; a curve over others is no curve of load."""

PEAK_RUNS_MOST: Final = 24
LOAD_RUNS_MOST: Final = 12
"""Runs that a search makes before it must answer; see docs/explanation/method.md."""

SENTINEL_EVERY_CELLS: Final = 8
SENTINEL_EVERY_S: Final = 3600.0
"""After so many other runs, or so long, the sentinel is measured again."""

CONFIRMED_MOST: Final = 2
"""Points of one search that are confirmed: confirming the best may show that another is better."""


@dataclass(frozen=True, slots=True)
class Search:
    """Points of one workload and configuration that differ in searched axes alone.

    `axes` are the values of each searched axis, ascending; a max-load search has none, and the one
    point of it is the load without a rate.
    """

    workload: Workload
    configuration: str
    names: tuple[str, ...]
    axes: tuple[tuple[int, ...], ...]
    points: Mapping[Place, Point]

    @property
    def fixed(self) -> tuple[tuple[str, int | str], ...]:
        """The values of the other axes, which all points share."""
        any_point = next(iter(self.points.values()))
        return tuple(pair for pair in any_point.axis if pair[0] not in self.names)

    @property
    def first(self) -> tuple[Point, ...]:
        """The points that are measured before any is chosen."""
        if not self.axes:
            return tuple(self.points.values())
        if self.workload.aim.objective is Objective.PEAK:
            return tuple(self.points[place] for place in peak_seeds(self.axes))
        wanted = {*seed_loads(self.axes[0]), *self.workload.aim.headline}
        return tuple(self.points[(load,)] for load in self.axes[0] if load in wanted)


def searches_of(study: Study, points: Iterable[Point]) -> tuple[Search, ...]:
    """Every search among the points of a study, in their order."""
    axes = {item.id: searched_axes(item) for item in study.workloads if item.aim.searches}
    return _grouped(study, points, axes)


def curves_of(study: Study, points: Iterable[Point]) -> tuple[Search, ...]:
    """Every curve over one axis of load, also where all of its points are measured."""
    axes = {item.id: _varied(item) for item in study.workloads}
    grid = [item.id for item in study.workloads if item.aim.objective is Objective.GRID]
    single = {name: axes[name] for name in grid if len(axes[name]) == 1}
    return _grouped(study, points, single)


def _grouped(
    study: Study, points: Iterable[Point], axes: Mapping[str, tuple[str, ...]]
) -> tuple[Search, ...]:
    """The points of these workloads, together where they differ in the workload's axes alone."""
    workloads = {item.id: item for item in study.workloads if item.id in axes}
    found: dict[object, dict[Place, Point]] = {}
    owners: dict[object, tuple[Workload, str, tuple[str, ...]]] = {}
    for point in points:
        workload = workloads.get(point.workload)
        if workload is None:
            continue
        names = axes[workload.id]
        values = dict(point.axis)
        rest = tuple(pair for pair in point.axis if pair[0] not in names)
        key = (point.configuration, point.workload, rest)
        owners[key] = (workload, point.configuration, names)
        found.setdefault(key, {})[tuple(int(values[name]) for name in names)] = point
    return tuple(_search(*owners[key], places) for key, places in found.items())


def _search(
    workload: Workload, configuration: str, names: tuple[str, ...], points: dict[Place, Point]
) -> Search:
    axes = tuple(tuple(sorted({place[i] for place in points})) for i in range(len(names)))
    return Search(workload, configuration, names, axes, points)


def searched_axes(workload: Workload) -> tuple[str, ...]:
    """The axes of a workload that its search chooses on; none for a max-load search."""
    if workload.aim.objective is Objective.MAX_LOAD or not workload.aim.searches:
        return ()
    return _varied(workload)


def _varied(workload: Workload) -> tuple[str, ...]:
    """The axes of load that have several values."""
    return axes_of_load(axis.name for axis in workload.sweep if len(axis.values) > 1)


def axes_of_load(varied: Iterable[str]) -> tuple[str, ...]:
    """Of the axes that vary those along which load rises.

    Where the fleet grows it is that axis alone: what each guest does is then one behaviour of
    several, not a load of its own.
    """
    found = [name for name in varied if name in SEARCHED]
    return (PER_NODE,) if PER_NODE in found else tuple(found)


def runs_most(study: Study, search: Search) -> int:
    """How many runs a search makes at most."""
    method = study.method
    confirming = CONFIRMED_MOST * method.repeats_max
    if search.workload.aim.objective is Objective.MAX_LOAD:
        return 1 + LOAD_RUNS_MOST + method.repeats_max
    if search.workload.aim.objective is Objective.PEAK:
        return min(len(search.points), PEAK_RUNS_MOST) + confirming
    each = method.repeats_max if method.sequential else method.repeats
    return len(search.points) * each


def seed_loads(loads: Sequence[int]) -> tuple[int, ...]:
    """The smallest, the largest, and those nearest to doublings of the smallest."""
    axis = sorted(set(loads))
    wanted = {axis[0], axis[-1]}
    load = axis[0]
    while load < axis[-1]:
        wanted.add(min(axis, key=lambda candidate: abs(candidate - load)))
        load *= 2
    return tuple(sorted(wanted))


def peak_seeds(axes: Sequence[Sequence[int]]) -> tuple[Place, ...]:
    """The corners and the centre; of one axis also the quarters."""
    middle = tuple(axis[len(axis) // 2] for axis in axes)
    seeds = [middle, *product(*((axis[0], axis[-1]) for axis in axes))]
    if len(axes) == 1:
        axis = axes[0]
        seeds += [(axis[len(axis) // 4],), (axis[3 * len(axis) // 4],)]
    return tuple(dict.fromkeys(seeds))
