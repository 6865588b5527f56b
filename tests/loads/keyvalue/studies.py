"""A study of two configurations under a key-value load, and results of its points made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from iolab.analysis.points import PointSummary, summarise_points
from iolab.core.metric import Metric, RunResult, Verdict, VerdictLevel
from iolab.core.metric_spec import metric_spec
from iolab.core.run import RunStatus
from iolab.core.study import Study
from iolab.core.tagged import type_tag_of
from iolab.core.workload import Axis, Workload
from iolab.loads.keyvalue.workload import BY_KEY_OPERATIONS, DbBenchJob
from tests.analysis.test_points import STUDY as PLAIN
from tests.loads.keyvalue.records import BENCH

THREADS: Final = (4, 16, 64)
BASE, OTHER = "old-ssd", "new-ssd"

_WORKLOAD: Final = Workload(
    "readrandom-4k",
    "Random reads",
    BENCH,
    (Axis("threads", THREADS),),
    BY_KEY_OPERATIONS,
)

STUDY: Final[Study] = replace(
    PLAIN,
    configurations=tuple(
        replace(PLAIN.configurations[0], id=name, title=name) for name in (BASE, OTHER)
    ),
    workloads=(_WORKLOAD, replace(_WORKLOAD, id="readrandom-16k")),
)

Values = Mapping[str, float | Metric]


def results(
    configuration: str,
    repeats: Sequence[Values],
    threads: int = 4,
    workload: str = "readrandom-4k",
    level: VerdictLevel = VerdictLevel.VALID,
) -> list[RunResult]:
    """The runs of one cell, each with these metrics."""
    return [
        _result(configuration, workload, threads, repeat, values, level)
        for repeat, values in enumerate(repeats, 1)
    ]


def _result(
    configuration: str,
    workload: str,
    threads: int,
    repeat: int,
    values: Values,
    level: VerdictLevel,
) -> RunResult:
    metrics = {
        key: value if isinstance(value, Metric) else Metric(value, metric_spec(key).unit)
        for key, value in values.items()
    }
    return RunResult(
        configuration=configuration,
        workload=workload,
        axis_values=(("threads", threads),),
        repeat=repeat,
        digest=f"{configuration}-{workload}-{threads}",
        status=RunStatus.DONE,
        failure=None,
        window_s=20.0,
        metrics=metrics,
        hosts=(),
        verdict=Verdict(level, ()),
        load=type_tag_of(DbBenchJob),
    )


def rates(values: Sequence[float]) -> list[dict[str, float | Metric]]:
    """Repeats of which only the whole rate is known."""
    return [{"ops_per_s": value} for value in values]


def summarised(*cells: Sequence[RunResult]) -> tuple[PointSummary, ...]:
    return summarise_points([one for cell in cells for one in cell], STUDY)
