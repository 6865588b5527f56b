"""Results made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from iolab.core.metric import Metric, RunResult, Verdict, VerdictLevel
from iolab.core.run import PlannedRun, RunStatus


def result_of_run(run: PlannedRun, metrics: Mapping[str, Metric], **changes: Any) -> RunResult:
    """The result of a run that went well and has those metrics."""
    point = run.point
    result = RunResult(
        configuration=point.configuration,
        workload=point.workload,
        axis_values=point.axis_values,
        repeat=run.repeat,
        digest=point.digest,
        status=RunStatus.DONE,
        failure=None,
        window_s=30.0,
        metrics=metrics,
        hosts=(),
        verdict=Verdict(VerdictLevel.VALID, ()),
    )
    return replace(result, **changes)
