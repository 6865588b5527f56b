"""Guests in briefs and exports: their mixes, their nodes, and what makes them no storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iolab.analysis.curves import findings
from iolab.analysis.points import PointSummary
from iolab.analysis.window import Window
from iolab.core.host import HostFacts
from iolab.core.metric import Result
from iolab.core.run import Plan, RunRecord
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.guests.charts import fleet_charts, inside_charts
from iolab.guests.groups import fleet_groups, group_headlines, inside_run, of_guests, told_runs
from iolab.guests.latency_account import layers_table
from iolab.guests.node_chart import node_inside
from iolab.guests.tables import (
    accounts_of,
    caveats,
    fleets_of,
    guest_tables,
    guests_table,
    nodes_of_points,
    nodes_table,
    outliers_table,
    subtitle,
    written_table,
)
from iolab.hosts.rates import Series
from iolab.report.best import Headline
from iolab.report.brief import Brief
from iolab.report.caveats import run_name
from iolab.report.kinds import Charts, Looks, NodeMetrics
from iolab.report.page_parts import ChartGroup
from iolab.report.series import DetailKey, Inside
from iolab.report.table import Table


class GuestsReport:
    """See `HostsReport`."""

    def are_swept(self, workload: Workload) -> bool:
        """Whether a workload is swept over guests a node."""
        return of_guests(workload)

    def headlines(self, study: Study, points: Sequence[PointSummary]) -> tuple[Headline, ...]:
        """Each mix."""
        groups = fleet_groups(study, points)
        return tuple(one for group in groups for one in group_headlines(group, study))

    def charts(self, brief: Brief, looks: Looks) -> Charts:
        """The curves of each mix, with what is to be known of the guests before what they show."""
        caveat = subtitle(fleets_of(brief).values(), brief.facts)
        curves = findings(brief.study, brief.results).curves
        found: dict[str, list[ChartGroup]] = {}
        for group in fleet_groups(brief.study, brief.points):
            made = fleet_charts(group, looks, curves, caveat)
            found.setdefault(group.workload.id, []).extend([made] if made else [])
        return found

    def told_runs(
        self, study: Study, points: Sequence[PointSummary], results: Sequence[Result]
    ) -> tuple[DetailKey, ...]:
        """Of each curve the runs with the fewest and the most guests."""
        return told_runs(fleet_groups(study, points), results)

    def inside_run(self, plan: Plan, points: Sequence[PointSummary]) -> Result | None:
        """As published at the most guests, else of the most."""
        return inside_run(plan, points)

    def inside(
        self,
        record: RunRecord,
        result: Result,
        telemetry: Sequence[Series],
        facts: Mapping[str, HostFacts],
        window: Window | None,
    ) -> Inside | None:
        """The node with the most outliers."""
        return node_inside(record, result, telemetry, facts, window)

    def inside_charts(self, brief: Brief) -> tuple[ChartGroup, ...]:
        """A panel for each quantity."""
        if brief.inside is None:
            return ()
        caveat = subtitle(fleets_of(brief).values(), brief.facts)
        charts = inside_charts(brief.inside, caveat, run_name(brief.inside.result))
        return (charts,) if charts else ()

    def caveats(self, brief: Brief) -> tuple[str, ...]:
        """Emulated processors, modelled and limited disks."""
        return caveats(fleets_of(brief).values(), brief.facts)

    def tables(self, brief: Brief) -> tuple[Table, ...]:
        """See `guest_tables`."""
        return guest_tables(brief)

    def run_tables(self, result: Result) -> tuple[Table, ...]:
        """What each node did, where latency arose, bytes, and what stands out."""
        named = [("", result)]
        accounts = list(accounts_of(result, run_name(result)))
        found = (
            nodes_table(named),
            layers_table(accounts) if accounts else None,
            written_table(named),
            outliers_table(named),
        )
        return tuple(table for table in found if table is not None)

    def fleet_tables(self, brief: Brief, result: Result) -> tuple[Table, ...]:
        """See `guests_table`."""
        fleet = fleets_of(brief).get((result.digest, result.repeat))
        table = guests_table(fleet) if fleet else None
        return (table,) if table else ()

    def node_metrics(self, study: Study, points: Sequence[PointSummary]) -> NodeMetrics:
        """See `nodes_of_points`."""
        return nodes_of_points(points, study)
