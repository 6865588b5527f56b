"""I/O on files in briefs and exports, of which some may be swept over guests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from iolab.analysis.points import PointSummary
from iolab.core.study import Study
from iolab.core.workload import AnyJob, Job
from iolab.report.best import Headline
from iolab.report.brief import Brief
from iolab.report.kinds import Anchors, Charts, HostsReport, Looks
from iolab.report.one_figure import OneFigureReport, load_charts
from iolab.report.table import Table
from iolab.report.tables import workloads_table


@dataclass(frozen=True, slots=True, eq=False)
class FileReport(OneFigureReport):
    """I/O on files, of which `hosts` tell what is swept over guests."""

    hosts: HostsReport

    jobs: ClassVar[tuple[type[AnyJob], ...]] = (Job,)
    lays_out_files: ClassVar[bool] = True

    def headlines(self, study: Study, points: Sequence[PointSummary]) -> tuple[Headline, ...]:
        """Every workload; of guests each mix is one by itself."""
        every = OneFigureReport.headlines(self, study, points)
        plain = (one for one in every if not self.hosts.are_swept(one.workload))
        return (*plain, *self.hosts.headlines(study, points))

    def charts(self, brief: Brief, looks: Looks, anchors: Anchors) -> Charts:  # noqa: ARG002
        """As of any load, and those of guests."""
        workloads = [one for one in brief.study.workloads if self.makes(one)]
        plain = [one for one in workloads if not self.hosts.are_swept(one)]
        return {**load_charts(brief, plain, looks), **self.hosts.charts(brief, looks)}

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:  # noqa: ARG002
        """The jobs."""
        return (workloads_table(study),)
