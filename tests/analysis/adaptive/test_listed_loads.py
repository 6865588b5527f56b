"""A search among listed loads measures few of them and finds the highest within its limit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from iolab.analysis.adaptive import AdaptiveQueue
from iolab.analysis.curves import session_load_findings
from iolab.core.metric import Metric, RunResult, Verdict, VerdictLevel
from iolab.core.run import PlannedRun, Point
from iolab.report.phrases import document_of_load_findings, sentences_of_load_findings
from tests.analysis.adaptive.systems import System, measured
from tests.plans import make_plan
from tests.study.studies import load

TRAINING = """
format = 1
id = "training"

[method]
repeats = 1

[[workload]]
id = "reads"
engine = "training-read"
dataset = "resnet50"
objective = "max-load"
accelerators = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
"""

REPLAY = """
format = 1
id = "kv"

[method]
repeats = 1

[[workload]]
id = "chat"
engine = "kv-cache"
kv_bytes_per_token = 512
capacity = "1g"
objective = "max-load"
limit = "prefix-load p99 <= 100ms"
requests_per_s = [2, 4, 8, 16, 32, 64]
"""

SYSTEM = System(lambda _: 1000.0)


def loads_and_results(
    text: str, result_of: Callable[[PlannedRun, int], RunResult]
) -> tuple[list[int], list[RunResult]]:
    """The loads that a whole session measures, in their order."""
    study = load(text)
    queue = AdaptiveQueue(study, make_plan(study))
    loads: list[int] = []
    results: list[RunResult] = []
    while (run := queue.take_next_run()) is not None:
        assert len(loads) < 50, "a search comes to its end"
        loads.append(_load(run.point))
        results.append(result_of(run, loads[-1]))
        queue.add_result(results[-1])
    return loads, results


def _load(point: Point) -> int:
    ((_, value),) = point.axis_values
    return int(value)


def training_result(run: PlannedRun, accelerators: int, most: float = 9.5) -> RunResult:
    """Storage feeds `most` accelerators at the threshold."""
    utilisation = min(1.0, 0.9 * most / accelerators)
    result = measured(run, SYSTEM)
    metrics = {**result.metrics, "accelerator_utilisation": Metric(utilisation, "share")}
    return replace(result, metrics=metrics)


def test_the_most_accelerators_are_found_with_few_runs_and_confirmed() -> None:
    loads, results = loads_and_results(TRAINING, training_result)
    # 1, 2, 4, 8 and all 12, which is too many; between 8 and 12 it is halved.
    assert loads[:5] == [1, 2, 4, 8, 12]
    assert sorted(set(loads)) == [1, 2, 4, 8, 9, 10, 12]
    assert loads.count(9) == loads.count(10) == 2
    findings = session_load_findings(load(TRAINING), results)
    (found,) = document_of_load_findings(findings)["listed_loads"]
    assert (found["highest"], found["exceeding"], found["settled"]) == (9, 10, True)
    (sentence,) = sentences_of_load_findings(findings)
    assert all(fact in sentence for fact in ("90 %", "accelerators 9", "10"))


@pytest.mark.parametrize(("most", "highest", "exceeding"), [(100, 12, None), (0.5, None, 1)])
def test_a_list_without_its_end_is_told(
    most: float, highest: int | None, exceeding: int | None
) -> None:
    _, results = loads_and_results(TRAINING, lambda run, n: training_result(run, n, most))
    (found,) = document_of_load_findings(session_load_findings(load(TRAINING), results))[
        "listed_loads"
    ]
    assert (found["highest"], found["exceeding"]) == (highest, exceeding)


def test_a_rate_of_requests_keeps_its_limit_only_in_runs_that_are_worth_something() -> None:
    """At 16 requests a second prefixes come in time, but the queue grows."""

    def replayed(run: PlannedRun, rate: int) -> RunResult:
        result = measured(run, SYSTEM)
        metrics = {**result.metrics, "prefix_load_lat_ns_p99": Metric(rate * 5e6, "ns")}
        level = VerdictLevel.VALID if rate < 16 else VerdictLevel.INVALID
        return replace(result, metrics=metrics, verdict=Verdict(level, ()))

    loads, results = loads_and_results(REPLAY, replayed)
    assert loads[:4] == [2, 4, 16, 8]
    (found,) = document_of_load_findings(session_load_findings(load(REPLAY), results))[
        "listed_loads"
    ]
    assert (found["highest"], found["exceeding"]) == (8, 16)
    assert found["limit"] == "prefix-load p99 <= 100 ms"
