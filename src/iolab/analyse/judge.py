"""Judges a run: metrics of the fleet and of each host, every check, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.analyse.kinds import kind_of
from iolab.analyse.view import RunView
from iolab.model.host import HostFacts
from iolab.model.metric import HostResult, Result, Verdict
from iolab.model.run import RunRecord
from iolab.run.telemetry.decode import GUESTS
from iolab.run.telemetry.rates import derive

ANALYSIS_VERSION: Final = 7
"""Rises whenever the same record could get another number or another level."""

JUDGED: Final = {"cpu": "all", "agent": None, "thermal": None}
"""The telemetry that checks ask for, by scope and name; what no check asks for is not derived."""

JUDGED_OF_NODES: Final = {**JUDGED, "cpu": None, "disk": None, "nic": None, GUESTS: None}
"""The same where guests made the load: every disk, core and port, guest by guest."""


def judge(record: RunRecord, facts: Mapping[str, HostFacts]) -> Result:
    """What a run is worth: pure, so the same record and facts always give the same result.

    `facts` holds the hosts' facts by `HostRun.target_key`; a host without is judged as far as it
    can be. The result's `window_s` is the least time that the measured intervals of any host
    cover, 0 where the hosts had no window in common; of metadata load the shortest common window of
    its phases on files.
    """
    wanted = JUDGED if record.fleet is None else JUDGED_OF_NODES
    telemetry = derive(record.counters, record.host_names, wanted)
    point, kind = record.run.point, kind_of(record)
    view = kind.view(record, facts, telemetry)
    return Result(
        configuration=point.configuration,
        workload=point.workload,
        axis=point.axis,
        repeat=record.run.repeat,
        digest=point.digest,
        status=record.status,
        failure=record.failure,
        window_s=kind.window_s(view),
        metrics=kind.fleet(view),
        hosts=tuple(
            HostResult(host.host, kind.host(view, index)) for index, host in enumerate(record.hosts)
        ),
        verdict=verdict_of(view),
        spread=kind.spread(view),
        operation_spreads=kind.spreads(view),
        without=record.without,
        attempt=record.run.attempt,
        steadiness=view.steady.steadiness if view.steady else None,
        order=record.run.order,
        nodes=kind.nodes(view),
    )


def verdict_of(view: RunView) -> Verdict:
    """The worst check decides. Where no load was measured only the run itself is judged."""
    checks = kind_of(view.record).checks
    asked = [check for check in checks if view.has_load or not check.needs_load]
    results = tuple(check(view) for check in asked)
    level = max((result.level for result in results), key=lambda level: level.rank)
    return Verdict(level, results)
