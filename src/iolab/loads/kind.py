"""A kind of load as one object: all that the rest of iolab knows of it.

Nothing is imported before it is used: a study is read and planned without drivers, analysis or
report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iolab.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from iolab.analysis.kinds import LoadAnalysis
    from iolab.core.metric_spec import MetricSpec
    from iolab.core.workload import AnyJob
    from iolab.report.brief import HostsReport, LoadReport
    from iolab.session.kinds import LoadSession
    from iolab.study.kinds import LoadStudy


def _usual_analysis() -> LoadAnalysis[Any]:
    from iolab.analysis.kinds import LoadAnalysis

    return LoadAnalysis()


@dataclass(frozen=True, slots=True)
class LoadKind:
    """One kind of load: its name, its `jobs`, and parts that are imported when they are called.

    `analysis` and `report` are those of load whose operations are counted as reads and writes, and
    of which one figure and one latency tell a run, where a kind has none of its own. `report` is
    handed what tells of hosts that are booted, of which a load may be swept. `metrics` are those of
    its results that are no rates and latencies of operations, `document_lists` the lists that its
    results add to `iolab show --json`, which others have empty.
    """

    name: str
    jobs: tuple[type[AnyJob], ...]
    study: Callable[[], LoadStudy]
    session: Callable[[], LoadSession]
    analysis: Callable[[], LoadAnalysis[Any]] = _usual_analysis
    report: Callable[[HostsReport], LoadReport] | None = None
    metrics: tuple[MetricSpec, ...] = ()
    document_lists: tuple[str, ...] = ()

    def reported(self, hosts: HostsReport) -> LoadReport:
        """Its part of reports."""
        if self.report is not None:
            return self.report(hosts)
        from iolab.report.one_figure import OneFigureReport

        return OneFigureReport(self.jobs)
