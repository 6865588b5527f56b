"""Sessions to compare: synthetic runs whose rates and latencies are what a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.synthetic import Shape, make_facts, make_plan, make_record, make_result, make_study
from msgspec.structs import replace

from iolab.core.events import SessionStatus
from iolab.core.host import HostFacts
from iolab.core.metric import Metric, RunResult
from iolab.core.run import Plan, PlannedRun
from iolab.core.study import Study
from iolab.store.writer import SessionWriter

NOON_NS = 1_750_000_000_000_000_000
DAY_NS = 86_400_000_000_000
Wobble = Sequence[float]
NOISE: Wobble = (0.004, -0.003, -0.001)


@dataclass(frozen=True)
class Target:
    """How fast a synthetic target is beside another one, and how its runs differ.

    Run n of a point is faster by `factor` times 1 + the n-th of `noise`; latency follows. `study`,
    `plan`, `facts` and `result` may change what the session says, `foreseen` leaves out of its plan
    what was measured all the same.
    """

    factor: float = 1.0
    noise: Wobble = NOISE
    repeats: int = 3
    points: int = 2
    name: str = "session"
    day: int = 0
    study: Callable[[Study], Study] = lambda study: study
    plan: Callable[[Plan], Plan] = lambda plan: plan
    facts: Callable[[Mapping[str, HostFacts]], Mapping[str, HostFacts]] = lambda facts: facts
    result: Callable[[RunResult], RunResult] = lambda result: result
    foreseen: Callable[[Plan], Plan] = lambda plan: plan


def _shape(target: Target) -> Shape:
    return Shape(
        points=target.points, seconds=1, hosts=2, repeats=target.repeats, cores=1, disks=1, nics=1
    )


def make_target(directory: Path, target: Target) -> Path:
    """A whole session of that target."""
    shape = _shape(target)
    study, plan = target.study(make_study(shape)), target.plan(make_plan(shape))
    clock = NOON_NS + target.day * DAY_NS
    with SessionWriter.create(
        directory, study, target.foreseen(plan), target.name, ("iolab", "run"), clock=lambda: clock
    ) as writer:
        writer.record_host_facts_at_start(target.facts(make_facts(shape)), "0.1.0")
        for run in plan.runs:
            record = make_record(run, shape)
            writer.commit_run(record, _result(target, run, shape), analysis_version=1)
        writer.end_session_and_close(SessionStatus.DONE)
    return directory


def _result(target: Target, run: PlannedRun, shape: Shape) -> RunResult:
    """The first repeat's result times what the target's runs differ by."""
    first = make_result(make_record(replace(run, repeat=1), shape))
    speed = target.factor * (1 + target.noise[(run.repeat - 1) % len(target.noise)])
    return target.result(
        replace(
            first,
            repeat=run.repeat,
            metrics={key: _scaled(metric, speed) for key, metric in first.metrics.items()},
        )
    )


def _scaled(metric: Metric, speed: float) -> Metric:
    if metric.value is None:
        return metric
    value = metric.value / speed if metric.unit == "ns" else metric.value * speed
    return replace(metric, value=value)
