"""Judges a run: metrics of the fleet and of each host, every check, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.analysis.checks.client import is_bound
from iolab.analysis.kinds import WHOLE_RUN, Analyses
from iolab.analysis.view import RunView
from iolab.core.host import HostFacts
from iolab.core.metric import HostResult, Result, Verdict
from iolab.core.run import RunRecord
from iolab.hosts.rates import derive
from iolab.hosts.telemetry import GUESTS

ANALYSIS_VERSION: Final = 12
"""Rises whenever the same record could get another number or another level."""

JUDGED: Final = {"cpu": "all", "agent": None, "thermal": None}
"""The telemetry that checks ask for, by scope and name; what no check asks for is not derived."""

JUDGED_OF_NODES: Final = {**JUDGED, "cpu": None, "disk": None, "nic": None, GUESTS: None}
"""The same where guests made the load: every disk, core and port, guest by guest."""


def judge(record: RunRecord, facts: Mapping[str, HostFacts], kinds: Analyses) -> Result:
    """What a run is worth: pure, so the same record and facts always give the same result.

    `facts` holds the hosts' facts by `HostRun.target_key`; a host without is judged as far as it
    can be. The result's `window_s` is the least time that the measured intervals of any host
    cover, 0 where the hosts had no window in common; of metadata load the shortest common window of
    its phases on files.
    """
    wanted = JUDGED if record.fleet is None else JUDGED_OF_NODES
    telemetry = derive(record.counters, record.host_names, wanted)
    point, kind = record.run.point, kinds.of(record)
    view = kinds.view(record, facts, telemetry)
    if any(is_bound(view, index) for index in range(len(view.hosts))):
        # A load that may use some cores alone is judged by those, each by its name.
        telemetry = derive(record.counters, record.host_names, {**wanted, "cpu": None})
        view = kinds.view(record, facts, telemetry)
    spreads = dict(kind.spreads(view))
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
        verdict=verdict_of(view, kinds),
        spread=spreads.pop(WHOLE_RUN, None),
        operation_spreads=spreads,
        without=record.without,
        attempt=record.run.attempt,
        steadiness=view.steady.steadiness if view.steady else None,
        order=record.run.order,
        nodes=kind.nodes(view),
        load=point.job.stored_as,
    )


def verdict_of(view: RunView, kinds: Analyses) -> Verdict:
    """The worst check decides. Where no load was measured only the run itself is judged."""
    checks = kinds.checks(type(view.record.run.point.job))
    asked = [check for check in checks if view.has_load or not check.needs_load]
    results = tuple(check(view) for check in asked)
    looked = (result.level for result in results if result.level is not None)
    level = max(looked, key=lambda level: level.rank)
    return Verdict(level, results)
