"""Findings on what limits each best point, from one of its runs' telemetry and its curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from iolab.analyse.findings.figures import LOADS, curves
from iolab.analyse.findings.finding import Best, Limited, RunKey
from iolab.analyse.limits.decide import Cause, Decision, decide
from iolab.analyse.limits.step import Step, law_of, step_at
from iolab.analyse.limits.watched import Watched
from iolab.analyse.method.usl import Usl
from iolab.analyse.points import PointSummary
from iolab.analyse.scaling import HOSTS
from iolab.model.study import Study


def limited(
    study: Study,
    points: Sequence[PointSummary],
    found: Sequence[Best],
    watched: Mapping[RunKey, Watched],
) -> Iterator[Limited]:
    """What limits each best, of those with a run that was watched."""
    axes = {
        one.id: [axis.name for axis in one.sweep if axis.name in (*LOADS, HOSTS)]
        for one in study.workloads
    }
    for best in found:
        key = next((run for run in best.runs if run in watched), None)
        if key is None:
            continue  # before points are looked through: few of thousands of bests were watched
        mine = [one for one in points if _is_of(one, best)]
        point = next(one for one in mine if one.key.axis == best.axis)
        # A latency is best where the load is least: a step from there tells of no limit.
        names = [] if best.value.unit == "ns" else axes.get(best.workload, [])
        step = _telling(mine, point, names, best.metric)
        decision = decide(watched[key], step)
        steps = decision.step.runs if decision.step else ()
        yield Limited(
            configuration=best.configuration,
            workload=best.workload,
            axis=best.axis,
            decision=decision,
            seen=watched[key],
            law=_law(mine, point, decision, best.metric),
            level=best.level,
            runs=tuple(dict.fromkeys((key, *steps))),
        )


def _law(
    points: Sequence[PointSummary], best: PointSummary, decision: Decision, key: str
) -> Usl | None:
    """The law of contention of the curve, where nothing that is busy explains it."""
    step = decision.step
    if step is None or decision.cause not in (Cause.SOFTWARE, Cause.BEYOND):
        return None
    return law_of(_curve_of(points, best, step.axis), step.axis, key)


def _is_of(point: PointSummary, best: Best) -> bool:
    place = (point.key.configuration, point.key.workload, point.key.without)
    return place == (best.configuration, best.workload, ())


def _telling(
    points: Sequence[PointSummary], best: PointSummary, names: Sequence[str], key: str
) -> Step | None:
    """Of all axes of load the step that still pays; else the first: one way to more is enough."""
    steps = [
        step
        for name in names
        if (step := step_at(_curve_of(points, best, name), best, name, key)) is not None
    ]
    paying = [step for step in steps if step.pays]
    return next(iter((*paying, *steps)), None)


def _curve_of(
    points: Sequence[PointSummary], best: PointSummary, name: str
) -> tuple[PointSummary, ...]:
    """The points that differ from the best in that load alone."""
    fixed = tuple(pair for pair in best.key.axis if pair[0] != name)
    return next((curve for other, curve in curves(points, name) if other == fixed), ())
