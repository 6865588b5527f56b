"""Judges a run: metrics of the fleet and of each host, every check, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.analyse.checks import CHECKS, METADATA_CHECKS
from iolab.analyse.intervals import with_intervals
from iolab.analyse.load import measure
from iolab.analyse.metadata.phases import measure_metadata
from iolab.analyse.metadata.summary import metadata_host_metrics, metadata_metrics
from iolab.analyse.spread import operation_spreads, spread_of
from iolab.analyse.steady import steady_of
from iolab.analyse.summary import fleet_metrics, host_metrics
from iolab.analyse.view import RunView
from iolab.model.host import HostFacts
from iolab.model.metadata import MetadataJob
from iolab.model.metric import HostResult, Metric, Result, Verdict
from iolab.model.run import RunRecord
from iolab.run.telemetry.rates import derive

ANALYSIS_VERSION: Final = 5
"""Rises whenever the same record could get another number or another level."""

JUDGED: Final = {"cpu": "all", "agent": None, "thermal": None}
"""The telemetry that checks ask for, by scope and name; what no check asks for is not derived."""


def judge(record: RunRecord, facts: Mapping[str, HostFacts]) -> Result:
    """What a run is worth: pure, so the same record and facts always give the same result.

    `facts` holds the hosts' facts by `HostRun.target_key`; a host without is judged as far as it
    can be. The result's `window_s` is the least time that the measured intervals of any host
    cover, 0 where the hosts had no window in common; of metadata load the shortest common window of
    its phases on files.
    """
    telemetry = derive(record.counters, record.host_names, JUDGED)
    point = record.run.point
    of_metadata = isinstance(point.job, MetadataJob)
    phases = measure_metadata(record) if of_metadata else None
    steady = None if of_metadata else steady_of(record)
    load = measure(record, steady.window if steady and record.rule else None)
    view = RunView(record, facts, load, telemetry, phases, steady)
    return Result(
        configuration=point.configuration,
        workload=point.workload,
        axis=point.axis,
        repeat=record.run.repeat,
        digest=point.digest,
        status=record.status,
        failure=record.failure,
        window_s=_window_s(view),
        metrics=_fleet(view),
        hosts=tuple(
            HostResult(host.host, _host(view, index)) for index, host in enumerate(record.hosts)
        ),
        verdict=verdict_of(view),
        spread=spread_of(record, view.load) if phases is None else None,
        operation_spreads={} if phases is None else operation_spreads(record, phases),
        without=record.without,
        attempt=record.run.attempt,
        steadiness=steady.steadiness if steady else None,
        order=record.run.order,
    )


def _window_s(view: RunView) -> float:
    if view.metadata is not None:
        return view.metadata.window_s
    return float(view.load.seconds.min()) if view.load.shared else 0.0


def _fleet(view: RunView) -> dict[str, Metric]:
    if view.metadata is not None:
        return metadata_metrics(view.record, view.metadata)
    metrics = fleet_metrics(view.load, view.access)
    return with_intervals(metrics, view.record, view.load, view.steady)


def _host(view: RunView, index: int) -> dict[str, Metric]:
    if view.metadata is not None:
        return metadata_host_metrics(view.metadata, index)
    return host_metrics(view.load, index, view.access)


def verdict_of(view: RunView) -> Verdict:
    """The worst check decides. Where no I/O was measured only the run itself is judged."""
    checks = CHECKS if view.metadata is None else METADATA_CHECKS
    asked = [check for check in checks if view.has_load or not check.needs_load]
    results = tuple(check(view) for check in asked)
    level = max((result.level for result in results), key=lambda level: level.rank)
    return Verdict(level, results)
