"""Guests in reports and exports: sections and tables.

What most sessions have not is imported where it is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from iolab.analysis.curves import session_load_findings
from iolab.analysis.points import PointSummary
from iolab.core.host import HostFacts, is_emulator
from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.study import Study
from iolab.guests.groups import (
    guest_scaling_groups,
    is_swept_over_guests,
    run_shown_in_node_timeline,
    runs_needing_manifests,
    scaling_group_headlines,
)
from iolab.guests.guest import (
    Accelerator,
    GuestDiskKind,
    GuestFleet,
    GuestRun,
    GuestSettings,
    booted_guest_settings,
)
from iolab.report.best import BestPointHeadline
from iolab.report.brief import Charts, NodeMetrics
from iolab.report.numbers import value_text
from iolab.report.phrases import result_run_name_text
from iolab.report.table import Table
from iolab.text import capitalised
from iolab.units import format_count

if TYPE_CHECKING:
    from iolab.analysis.window import Window
    from iolab.core.host import HostFacts
    from iolab.core.run import RunKey, RunRecord
    from iolab.hosts.rates import CounterSeries
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import ChartGroup
    from iolab.report.charts.series import NodeTimeline
    from iolab.report.terminal import Screen


EMULATED: Final = (
    "The guests were emulated, without KVM: these figures measure the emulator as much as the "
    "storage."
)


EMULATED_CHECK: Final = "emulated-guest"
"""The check that tells of emulated processors."""

Facts = Mapping[str, HostFacts]
"""What hosts told of themselves: of guests that the session did not boot, all that is known."""


def fleet_caveat_texts(fleets: Iterable[GuestFleet], facts: Facts) -> tuple[str, ...]:
    """A sentence for each: emulated guests, modelled disks, limited disks; none where all is real.

    Settings are those of the session, so the first fleet that has any tells them.
    """
    all_fleets = list(fleets)
    return tuple(
        text
        for text in (
            _emulated_guests_caveat(all_fleets, facts),
            *_settings_caveat_texts(_first_guest_settings(all_fleets)),
        )
        if text
    )


def study_caveat_texts(
    settings: GuestSettings | None, results: Iterable[RunResult]
) -> tuple[str, ...]:
    """The same by a study's settings of its guests and by what the checks of its runs found."""
    emulated = any(
        check.code == EMULATED_CHECK and check.level is not VerdictLevel.VALID
        for result in results
        for check in result.verdict.checks
    )
    return (*((EMULATED,) if emulated else ()), *_settings_caveat_texts(settings))


def has_emulated_guest(fleets: Iterable[GuestFleet], facts: Facts) -> bool:
    """Whether any guest's processors were emulated, as its node or the guest itself tells."""
    return any(_is_guest_emulated(guest, facts) for fleet in fleets for guest in fleet.guests)


def _is_guest_emulated(guest: GuestRun, facts: Facts) -> bool:
    guest_facts = facts.get(guest.guest)
    itself = guest_facts is not None and is_emulator(guest_facts.kernel.hypervisor)
    return guest.accelerator is Accelerator.TCG or itself


def short_fleet_caveat_text(fleets: Iterable[GuestFleet], facts: Facts) -> str:
    """The same in a few words, to stand before what a chart shows; empty where all is real."""
    all_fleets = list(fleets)
    settings = _first_guest_settings(all_fleets)
    parts = ["guests emulated"] if has_emulated_guest(all_fleets, facts) else []
    if settings is not None:
        if settings.disk is GuestDiskKind.MODELLED:
            parts.append(f"disks modelled{_modelled_latency_text(settings, ' at ')}")
        if settings.iops_limit is not None:
            parts.append(f"each disk limited to {format_count(settings.iops_limit)} IOPS")
    text = ", ".join(parts)
    return f"{capitalised(text)}. " if text else ""


def _emulated_guests_caveat(fleets: list[GuestFleet], facts: Facts) -> str:
    return EMULATED if has_emulated_guest(fleets, facts) else ""


def _settings_caveat_texts(settings: GuestSettings | None) -> Iterable[str]:
    if settings is None:
        return
    if settings.disk is GuestDiskKind.MODELLED:
        yield (
            "The guests’ disks were "
            f"modelled{_modelled_latency_text(settings, ': every I/O takes ')}, and no "
            "storage is behind them."
        )
    if settings.iops_limit is not None:
        limit = format_count(settings.iops_limit)
        yield f"Each guest’s disk was limited to {limit} IOPS by its hypervisor."


def _modelled_latency_text(settings: GuestSettings, prefix: str) -> str:
    latency = settings.latency_ns
    return "" if latency is None else f"{prefix}{value_text(latency, 'ns')}"


def _first_guest_settings(fleets: list[GuestFleet]) -> GuestSettings | None:
    return next((fleet.settings for fleet in fleets if fleet.settings is not None), None)


class GuestsReport:
    """See `BootedHostsReport`."""

    is_swept_over_hosts_per_node = staticmethod(is_swept_over_guests)
    select_node_timeline_run = staticmethod(run_shown_in_node_timeline)

    def best_point_headlines(
        self, study: Study, points: Sequence[PointSummary]
    ) -> tuple[BestPointHeadline, ...]:
        """Each mix."""
        groups = guest_scaling_groups(study, points)
        return tuple(line for group in groups for line in scaling_group_headlines(group, study))

    def charts_by_workload(self, brief: Brief) -> Charts:
        """The curves of each mix, with what is to be known of the guests before what they show."""
        from iolab.guests.charts import guest_count_chart_group
        from iolab.guests.tables import guest_fleets_by_run

        caveat = short_fleet_caveat_text(guest_fleets_by_run(brief).values(), brief.facts)
        curves = session_load_findings(brief.study, brief.results).curves
        charts: dict[str, list[ChartGroup]] = {}
        for group in guest_scaling_groups(brief.study, brief.points):
            chart = guest_count_chart_group(group, brief.series_styles, curves, caveat)
            charts.setdefault(group.workload.id, []).extend([chart] if chart else [])
        return charts

    def runs_needing_manifests(
        self, study: Study, points: Sequence[PointSummary], results: Sequence[RunResult]
    ) -> tuple[RunKey, ...]:
        """Of each curve the runs with the fewest and the most guests."""
        return runs_needing_manifests(guest_scaling_groups(study, points), results)

    def nodes_terminal_screen(self, study: Study, points: Sequence[PointSummary]) -> Screen:
        """See `guest_node_lines`."""
        runs = (run for point in points for run in point.runs)
        if any(run.nodes for run in runs):
            from iolab.guests.terminal import guest_node_lines

            yield from guest_node_lines(study, points)

    def nodes_terminal_screen_of_run(self, result: RunResult) -> Screen:
        """See `node_detail_lines`."""
        from iolab.guests.terminal import node_detail_lines

        return node_detail_lines(result)

    def booted_host_tables(self, brief: Brief) -> tuple[Table, ...]:
        """See `guest_tables`."""
        from iolab.guests.tables import guest_tables

        return guest_tables(brief)

    def node_timeline(
        self,
        record: RunRecord,
        result: RunResult,
        telemetry: Sequence[CounterSeries],
        facts_by_host: Mapping[str, HostFacts],
        window: Window | None,
    ) -> NodeTimeline | None:
        """See `build_node_timeline`."""
        from iolab.guests.node_chart import build_node_timeline

        return build_node_timeline(record, result, telemetry, facts_by_host, window)

    def node_timeline_charts(self, brief: Brief) -> tuple[ChartGroup, ...]:
        """A panel for each quantity."""
        from iolab.guests.charts import node_timeline_charts
        from iolab.guests.tables import guest_fleets_by_run

        if brief.node_timeline is None:
            return ()
        caveat = short_fleet_caveat_text(guest_fleets_by_run(brief).values(), brief.facts)
        charts = node_timeline_charts(
            brief.node_timeline, caveat, result_run_name_text(brief.node_timeline.result)
        )
        return (charts,) if charts else ()

    def caveat_texts(self, brief: Brief) -> tuple[str, ...]:
        """Emulated processors, modelled and limited disks, other I/O on the node that is drawn."""
        from iolab.guests.tables import guest_fleets_by_run

        texts = fleet_caveat_texts(guest_fleets_by_run(brief).values(), brief.facts)
        if brief.node_timeline is None:
            return texts
        from iolab.guests.charts import node_other_load_text

        others = node_other_load_text(brief.node_timeline)
        run = result_run_name_text(brief.node_timeline.result)
        return (*texts, f"{others.removesuffix('.')} ({run}).") if others else texts

    def study_caveat_texts(self, study: Study, results: Sequence[RunResult]) -> tuple[str, ...]:
        """See `study_caveat_texts`."""
        return study_caveat_texts(booted_guest_settings(study), results)

    def node_tables_of_run(self, result: RunResult) -> tuple[Table, ...]:
        """What each node did, where latency arose, bytes, and what stands out."""
        from iolab.guests.latency_breakdown import latency_layers_table
        from iolab.guests.tables import (
            hypervisors_table,
            latency_breakdowns,
            outliers_table,
            written_bytes_table,
        )

        named = [("", result)]
        accounts = list(latency_breakdowns(result, result_run_name_text(result)))
        tables = (
            hypervisors_table(named),
            latency_layers_table(accounts) if accounts else None,
            written_bytes_table(named),
            outliers_table(named),
        )
        return tuple(table for table in tables if table is not None)

    def guest_tables_of_run(self, brief: Brief, result: RunResult) -> tuple[Table, ...]:
        """See `guests_table`."""
        from iolab.guests.tables import guest_fleets_by_run, guests_table

        fleet = guest_fleets_by_run(brief).get((result.digest, result.repeat))
        table = guests_table(fleet) if fleet else None
        return (table,) if table else ()

    def node_metrics(self, study: Study, points: Sequence[PointSummary]) -> NodeMetrics:
        """See `metrics_by_point_and_node`."""
        if not any(run.nodes for point in points for run in point.runs):
            return {}
        from iolab.guests.tables import metrics_by_point_and_node

        return metrics_by_point_and_node(points, study)
