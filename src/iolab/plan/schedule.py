"""From a study to its plan: points in the order in which they will run, with their cost."""

from __future__ import annotations

import random
from collections.abc import Iterator

from iolab.model.run import Plan, PlannedRun, Point
from iolab.model.study import Order, Study
from iolab.plan.budget import budget_of
from iolab.plan.sweep import data_sets, digest_of, expand
from iolab.plan.targets import targets_of


def make_plan(study: Study, *, layout_bytes_per_s: float | None = None) -> Plan:
    """The plan; `layout_bytes_per_s` is a measured write rate of one host, if there is one.

    Runs are numbered from 1. A repeat is a block: every point once, then every point again. Within
    a block the order is as written, or shuffled by `random.Random(seed)` - one generator for the
    whole plan, all configurations in one block - so that a slow drift does not follow an axis.
    """
    points = expand(study)
    sets = data_sets(study, points)
    runs = tuple(
        PlannedRun(order, repeat, point)
        for order, (repeat, point) in enumerate(_ordered(study, points), start=1)
    )
    return Plan(
        study=study.id,
        digest=digest_of(_identity(study, runs)),
        data_sets=sets,
        runs=runs,
        budget=budget_of(study, sets, runs, layout_bytes_per_s),
        destroys=(),
    )


def _ordered(study: Study, points: tuple[Point, ...]) -> Iterator[tuple[int, Point]]:
    shuffler = random.Random(study.method.seed)  # noqa: S311 - an order, not a secret
    repeats = {item.id: item.repeats or study.method.repeats for item in study.workloads}
    for repeat in range(1, max(repeats.values()) + 1):
        block = [point for point in points if repeat <= repeats[point.workload]]
        if study.method.order is Order.RANDOMISED:
            shuffler.shuffle(block)
        for point in block:
            yield repeat, point


def _identity(study: Study, runs: tuple[PlannedRun, ...]) -> dict[str, object]:
    """What makes two plans the same: the study, how it measures, and every run in its order."""
    method = study.method
    return {
        "study": study.id,
        "scale": study.scale,
        "method": [method.kind, method.warmup_s, method.runtime_s, method.settle_s],
        "caches": method.drop_caches,
        "telemetry": study.telemetry.interval_ms,
        "targets": [[target.host, target.path] for target in targets_of(study)],
        "runs": [[run.repeat, run.point.digest] for run in runs],
    }
