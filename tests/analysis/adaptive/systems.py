"""Storage systems that do not exist: a known truth, noise of a seed, and results of their runs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from iolab.analysis.adaptive import AdaptiveQueue
from iolab.core.metric import Metric, RunResult
from iolab.core.run import PlannedRun, Point
from iolab.core.study import Study
from iolab.loads.fileio.workload import Job
from tests.plans import make_plan
from tests.results import result_of_run

NOISE = 0.006


@dataclass(frozen=True)
class System:
    """What a point does: its rate (1/s) and its p99 (ns), without noise."""

    rate: Callable[[Point], float]
    p99_ns: Callable[[Point], float] = lambda _: 1e6


def measured(run: PlannedRun, system: System, *, noise: float = NOISE) -> RunResult:
    """The result of a run; its noise is that of the point and the repeat, whenever it is made."""
    draw = random.Random(f"{run.point.digest} {run.repeat}")  # noqa: S311 - noise
    rate = system.rate(run.point) * math.exp(draw.gauss(0, noise))
    p99 = system.p99_ns(run.point) * math.exp(draw.gauss(0, 5 * noise))
    return result_of_run(
        run,
        {
            "iops": Metric(rate, "1/s"),
            "lat_ns_mean": Metric(p99 / 3, "ns"),
            "lat_ns_p99": Metric(p99, "ns"),
        },
        order=run.order,
    )


def whole_session(
    study: Study, system: System, stored: Iterable[RunResult] = ()
) -> tuple[list[PlannedRun], list[RunResult]]:
    """All runs that a queue asks for, and their results."""
    queue = AdaptiveQueue(study, make_plan(study), stored)
    runs: list[PlannedRun] = []
    results: list[RunResult] = []
    while (run := queue.take_next_run()) is not None:
        assert len(runs) < 500, "a queue comes to its end"
        runs.append(run)
        results.append(measured(run, system))
        queue.add_result(results[-1])
    return runs, results


def saturating(limit: float, least_response_s: float) -> Callable[[Point], float]:
    """A closed loop that goes over softly from N / R to its limit."""

    def rate(point: Point) -> float:
        straight = Job.require_type(point.job).iodepth_per_client / least_response_s
        return float((straight**-4 + limit**-4) ** -0.25)

    return rate
