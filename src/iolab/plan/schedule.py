"""From a study to its plan: points in the order in which they will run, with their cost."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import astuple

from iolab.model.objective import Objective
from iolab.model.run import Plan, PlannedRun, Point
from iolab.model.state import PLAIN
from iolab.model.study import Order, Study
from iolab.model.workload import Workload
from iolab.plan.budget import budget_of
from iolab.plan.destroy import destroyed
from iolab.plan.guests import node_path, nodes_of
from iolab.plan.key_value_build import server_identity
from iolab.plan.searches import SENTINEL_EVERY_CELLS, Search, runs_most, searches_of
from iolab.plan.sweep import data_sets, digest_of, expand, told_guests
from iolab.plan.targets import targets_of


def make_plan(study: Study, *, layout_bytes_per_s: float | None = None) -> Plan:
    """The plan; `layout_bytes_per_s` is a measured write rate of one host, if there is one.

    Runs are numbered from 1. A repeat is a block: every point once, then every point again. Within
    a block the order is as written, or shuffled by `random.Random(seed)` - one generator for the
    whole plan, all configurations in one block - so that a slow drift does not follow an axis.

    Of a search only the points stand among the runs that it begins with; the others are candidates.
    """
    points = expand(study)
    sets = data_sets(study, points)
    searches = searches_of(study, points)
    first = {point.digest for search in searches for point in search.first}
    searched = {item.id for item in study.workloads if item.aim.searches}
    certain = tuple(p for p in points if p.workload not in searched or p.digest in first)
    runs = tuple(
        PlannedRun(order, repeat, point)
        for order, (repeat, point) in enumerate(_ordered(study, certain), start=1)
    )
    more = _runs_more(study, searches, runs)
    return Plan(
        study=study.id,
        digest=digest_of(_identity(study, runs)),
        data_sets=sets,
        runs=runs,
        budget=budget_of(study, sets, runs, layout_bytes_per_s, runs_more=more),
        destroys=destroyed(study),
        candidates=tuple(point for point in points if point not in certain),
        runs_more=more,
    )


def _ordered(study: Study, points: tuple[Point, ...]) -> Iterator[tuple[int, Point]]:
    shuffler = random.Random(study.method.seed)  # noqa: S311 - an order, not a secret
    repeats = {item.id: _certain_repeats(study, item) for item in study.workloads}
    for repeat in range(1, max(repeats.values()) + 1):
        block = [point for point in points if repeat <= repeats[point.workload]]
        if study.method.order is Order.RANDOMISED:
            shuffler.shuffle(block)
        for point in block:
            yield repeat, point


def _certain_repeats(study: Study, workload: Workload) -> int:
    """How often a point is measured in any case; a search repeats what it settles on."""
    if workload.aim.objective is not Objective.GRID:
        return 1
    return workload.repeats or study.method.repeats


def _runs_more(study: Study, searches: tuple[Search, ...], runs: tuple[PlannedRun, ...]) -> int:
    """How many runs the results may ask for beyond those that are certain.

    Those are not counted that are made again because the sentinel had moved.
    """
    method = study.method
    owners = {search.workload.id for search in searches}
    certain = sum(1 for run in runs if run.point.workload in owners)
    more = sum(runs_most(study, search) for search in searches) - certain
    if not method.sequential:
        return more
    own = {item.id for item in study.workloads if item.repeats} | owners
    grid = {run.point.digest for run in runs if run.point.workload not in own}
    more += len(grid) * (method.repeats_max - method.repeats)
    return more + (len(runs) + more) // SENTINEL_EVERY_CELLS


def _preparation(study: Study) -> Mapping[str, object]:
    """What is done to targets beforehand, where anything is."""
    target = study.target
    made = {"filesystem": ["xfs", target.image_bytes]} if target.make_xfs else {}
    if study.precondition == PLAIN:
        return made
    return {**made, "precondition": list(astuple(study.precondition))}


def _aims(study: Study) -> dict[str, object]:
    """What decides further runs, where anything does."""
    aims = [[item.id, list(astuple(item.aim))] for item in study.workloads if item.aim.searches]
    method = study.method
    turns = [method.repeats_max, method.target_half_width, method.sentinel]
    return {"aims": [*aims, turns]} if aims or method.sequential else {}


def _rule(study: Study) -> dict[str, object]:
    """When runs end, where that is decided on the way."""
    method = study.method
    if method.rule is None:
        return {}
    return {"rule": list(astuple(method.rule))}


def _guests(study: Study) -> dict[str, object]:
    """The guests that are booted, and on which nodes, where any are."""
    if study.guests is None:
        return {}
    return {
        "guests": told_guests(study.guests),
        "nodes": [
            [node.name, node_path(study, node) or "", node.storage_address]
            for node in nodes_of(study)
        ],
    }


def _identity(study: Study, runs: tuple[PlannedRun, ...]) -> dict[str, object]:
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
            for target in targets_of(study)
        ],
        **_preparation(study),
        **server_identity(study),
        **_rule(study),
        **_aims(study),
        **_guests(study),
        "runs": [[run.repeat, run.point.digest] for run in runs],
    }
