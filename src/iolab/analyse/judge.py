"""Judges a run: metrics of the fleet and of each host, every check, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.analyse.checks import CHECKS
from iolab.analyse.load import measure
from iolab.analyse.summary import fleet_metrics, host_metrics
from iolab.analyse.view import RunView
from iolab.model.host import HostFacts
from iolab.model.metric import HostResult, Result, Verdict
from iolab.model.run import RunRecord
from iolab.run.telemetry.rates import derive

ANALYSIS_VERSION: Final = 2
"""Rises whenever the same record could get another number or another level."""


def judge(record: RunRecord, facts: Mapping[str, HostFacts]) -> Result:
    """What a run is worth: pure, so the same record and facts always give the same result.

    `facts` holds the hosts' facts by `HostRun.target_key`; a host without is judged as far as it
    can be. The result's `window_s` is the least time that the measured intervals of any host
    cover, 0 where the hosts had no window in common.
    """
    load = measure(record)
    view = RunView(record, facts, load, derive(record.counters, record.host_names))
    point = record.run.point
    return Result(
        configuration=point.configuration,
        workload=point.workload,
        axis=point.axis,
        repeat=record.run.repeat,
        digest=point.digest,
        status=record.status,
        failure=record.failure,
        window_s=float(load.seconds.min()) if load.shared else 0.0,
        metrics=fleet_metrics(load, point.io.access),
        hosts=tuple(
            HostResult(host.host, host_metrics(load, index, point.io.access))
            for index, host in enumerate(record.hosts)
        ),
        verdict=verdict_of(view),
    )


def verdict_of(view: RunView) -> Verdict:
    """The worst check decides. Where no I/O was measured only the run itself is judged."""
    asked = [check for check in CHECKS if view.has_load or not check.needs_load]
    results = tuple(check(view) for check in asked)
    level = max((result.level for result in results), key=lambda level: level.rank)
    return Verdict(level, results)
