"""Everything that a report says, gathered once: the session, its results, and the detail of some.

`build_brief` reads from whatever has the shape of a `StoredSessionReader`; what comes after it is
pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from iolab.analysis.bottleneck.decision import RESOURCES_ANALYSIS_VERSION
from iolab.analysis.bottleneck.resource_use import run_resources, view_with_all_resource_telemetry
from iolab.analysis.points import summarise_points
from iolab.analysis.slow_ios import SlowIoContext, has_slow_ios, slow_ios_of_run
from iolab.analysis.steady import rule_measured_window
from iolab.analysis.storage_bytes import boot_ids_by_host, storage_byte_balance
from iolab.analysis.stored_results import study_and_results_with_session_checks
from iolab.analysis.sums import sum_measured_window
from iolab.core.host import HostFacts
from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.resources import RunResources
from iolab.core.run import Plan, RunKey, RunRecord, RunStatus
from iolab.core.samples import BinTable, CounterTable, IntervalTable, empty_counter_table
from iolab.core.study import Study
from iolab.core.target_state import PreconditioningRounds, TargetLedger
from iolab.errors import StoreError
from iolab.hosts.rates import derive_counter_series
from iolab.record import Record
from iolab.report.best import BestPointHeadline
from iolab.report.brief import (
    NO_UNION,
    BootedHostsReport,
    Brief,
    LoadReport,
    LoadReportKinds,
    PublishedResultTables,
    SectionMaker,
    SessionUnion,
)
from iolab.report.charts.choose import run_curve_label
from iolab.report.charts.run_series import build_heat_map, build_timeline
from iolab.report.charts.series import NodeTimeline, RunChartData
from iolab.store.documents import HostFactsAtStart, Manifest, SessionDocument
from iolab.store.verify import Damage

TIMELINES_MAX: Final = 16
"""Runs with their series drawn: each costs about 50 ms and 80 KiB of page."""

HEAT_MAPS_MAX: Final = 10
"""Runs whose latency over time is drawn: each costs about 20 KiB of page."""

DISTRIBUTIONS_MAX: Final = 64
"""Runs whose latency bins are read and drawn as a curve: each costs about 10 ms."""

BOTTLENECK_RUNS_MAX: Final = 48
"""Runs whose telemetry is read for what limits them: each costs about 50 ms, and more in fleets."""

_PATH_IN_MESSAGE: Final = re.compile(r"'/.*/(points/[^']*)'", re.DOTALL)
"""A file of a session; where that lies is nothing to whom a report is handed."""


class ChartedRuns(Record):
    """Runs in the order of their importance; those with a timeline are also drawn as curves.

    Those with a heat map, all of I/O on files, have a timeline too.
    """

    with_heat_map: tuple[RunKey, ...]
    with_timeline: tuple[RunKey, ...]
    with_distribution: tuple[RunKey, ...]


def select_charted_runs(
    load_kinds: LoadReportKinds,
    results: Sequence[RunResult],
    headlines: Iterable[BestPointHeadline],
) -> ChartedRuns:
    """The runs that get charts, at most the limits of this module."""
    best = [headline.best.median_run.key for headline in headlines if headline.best is not None]
    measured = [
        result for result in results if load_kinds.report_of_result(result).has_measurements(result)
    ]
    bad = sorted(
        (result for result in measured if result.verdict.level is not VerdictLevel.VALID),
        key=lambda result: (result.status is RunStatus.DONE, -result.verdict.level.rank),
    )
    order = dict.fromkeys([*best, *(r.key for r in bad), *(r.key for r in measured)])
    keys = tuple(order)
    io = {r.key for r in measured if load_kinds.report_of_result(r).is_single_figure}
    heat_maps = tuple(key for key in keys[:TIMELINES_MAX] if key in io)[:HEAT_MAPS_MAX]
    return ChartedRuns(heat_maps, keys[:TIMELINES_MAX], keys[:DISTRIBUTIONS_MAX])


class StoredSessionReader(Protocol):
    """A stored session as a report reads it; `iolab.store.reader.SessionReader` is one."""

    @property
    def session(self) -> SessionDocument:
        """What the session is and how it stands."""

    @property
    def study(self) -> Study:
        """The study as it was run, with its text."""

    @property
    def plan(self) -> Plan:
        """The plan that the session executes."""

    @property
    def facts(self) -> dict[str, HostFacts]:
        """The facts of each host by name."""

    @property
    def facts_of_all_starts(self) -> tuple[HostFactsAtStart, ...]:
        """The hosts as each start of the session found them."""

    def results(self) -> tuple[RunResult, ...]:
        """The results of all committed runs in the plan's order."""

    def damage_of_documents_and_manifests(self) -> tuple[Damage, ...]:
        """The committed runs that cannot be read."""

    def target_ledger(self) -> TargetLedger:
        """What the session did to its targets."""

    def manifest(self, digest: str, repeat: int) -> Manifest:
        """A committed run's manifest."""

    def intervals(self, digest: str, repeat: int) -> IntervalTable:
        """The intervals of a committed run."""

    def bins(self, digest: str, repeat: int) -> BinTable:
        """The latency bins of a committed run."""

    def counters(self, digest: str, repeat: int) -> CounterTable:
        """The telemetry of a committed run."""


def build_brief(
    load_kinds: LoadReportKinds,
    source: StoredSessionReader,
    published: PublishedResultTables | None = None,
    session_union: SessionUnion = NO_UNION,
    section_makers: tuple[SectionMaker, ...] = (),
) -> Brief:
    """Everything a report needs; a run whose tables are damaged is told and keeps its result.

    `session_union` are those that `source` unites, where there are several.
    """
    study, results = study_and_results_with_session_checks(source)
    points = summarise_points(results, study)
    best = load_kinds.best_point_headlines(study, points)
    chosen = select_charted_runs(load_kinds, results, best)
    reader = _StoredRunReader(
        source, list(source.damage_of_documents_and_manifests()), session_union
    )
    rounds = reader.preconditioning_rounds()
    of_loads = (
        key
        for kind, own in load_kinds.results_by_report(results).items()
        for key in kind.runs_needing_manifests(own)
    )
    manifests = reader.read_manifests(
        (*of_loads, *load_kinds.booted_hosts.runs_needing_manifests(study, points, results))
    )
    by_key = {result.key: result for result in results}
    titles = study.configuration_titles
    kernels = boot_ids_by_host(source.facts)
    chart_data_by_run: dict[RunKey, RunChartData] = {}
    best_runs, watched = _first_best_point_median_run_keys(best), dict[RunKey, RunResources]()
    for key in chosen.with_distribution:
        with_timeline = key in chosen.with_timeline
        read = reader.read_run(key, with_counters=with_timeline or key in best_runs)
        if read is None:
            continue
        manifests[key], record = read
        if key in best_runs:
            is_current = manifests[key].analysis.version >= RESOURCES_ANALYSIS_VERSION
            stored = by_key[key].resources if is_current else None
            watched[key] = stored or run_resources(
                view_with_all_resource_telemetry(record, source.facts, load_kinds.analyses)
            )
        if len(record.intervals):
            result = by_key[key]
            name = run_curve_label(result, titles[result.configuration] if len(titles) > 1 else "")
            chart_data = _run_chart_data(
                load_kinds.report_of_result(result),
                result,
                record,
                name,
                kernels if with_timeline else None,
                with_heat_map=key in chosen.with_heat_map,
            )
            chart_data_by_run[key] = replace(
                chart_data,
                byte_balance=storage_byte_balance(record, source.facts),
                slow_ios=read_slow_ios(source, key),
            )
    return Brief(
        kinds=load_kinds,
        session=source.session,
        study=study,
        plan=source.plan,
        facts=source.facts,
        results=results,
        points=points,
        chart_data_by_run=chart_data_by_run,
        manifests=manifests,
        node_timeline=reader.node_timeline(
            load_kinds.booted_hosts,
            load_kinds.booted_hosts.select_node_timeline_run(source.plan, points),
        ),
        damaged_runs=tuple(dict.fromkeys(reader.damaged_runs)),
        published=published,
        sections=section_makers,
        segment_starts_ns=tuple(start.real_ns for start in source.facts_of_all_starts),
        session_union=session_union,
        run_resources=watched,
        preconditioning_rounds=rounds,
    )


class _StoredRunReader(Record):
    """Reads runs of a session; `damaged_runs` grows by those that cannot be read."""

    source: StoredSessionReader
    damaged_runs: list[Damage]
    session_union: SessionUnion

    def read_manifests(self, run_keys: Iterable[RunKey]) -> dict[RunKey, Manifest]:
        """Those runs' manifests, of those that are not damaged."""
        manifests = {}
        for key in run_keys:
            try:
                manifests[key] = self.source.manifest(*key)
            except StoreError as error:
                self._record_damaged_run(key, error)
        return manifests

    def read_run(
        self, run_key: RunKey, *, with_counters: bool
    ) -> tuple[Manifest, RunRecord] | None:
        """A run's evidence without the engine's own output, which a report does not show."""
        try:
            manifest = self.source.manifest(*run_key)
            return manifest, read_run_record(
                self.source, run_key, manifest, with_counters=with_counters
            )
        except StoreError as error:
            self._record_damaged_run(run_key, error)
            return None

    def preconditioning_rounds(self) -> tuple[PreconditioningRounds, ...]:
        """The rounds in which targets were brought to their steady state; none where damaged."""
        return self.source.target_ledger().rounds

    def node_timeline(
        self, booted_hosts: BootedHostsReport, result: RunResult | None
    ) -> NodeTimeline | None:
        """A node from inside over that run."""
        read = result and self.read_run(result.key, with_counters=True)
        if result is None or not read or not len(read[1].intervals):
            return None
        _, record = read
        series = derive_counter_series(record.counters, record.host_names)
        window = sum_measured_window(
            record, rule_measured_window(record)
        ).measured_part.common_window
        return booted_hosts.node_timeline(record, result, series, self.source.facts, window)

    def _record_damaged_run(self, run_key: RunKey, error: StoreError) -> None:
        message = _PATH_IN_MESSAGE.sub(r"'\1'", error.message)
        trace = self.session_union.run_source(run_key)
        run = f"{trace.digest}, repeat {trace.repeat}"
        self.damaged_runs.append(Damage(f"{trace.label}: {run}" if trace.label else run, message))


def _first_best_point_median_run_keys(headlines: Sequence[BestPointHeadline]) -> frozenset[RunKey]:
    """Of the best points the runs that are shown, the first of them."""
    shown = (headline.best.median_run for headline in headlines if headline.best is not None)
    return frozenset([run.key for run in shown][:BOTTLENECK_RUNS_MAX])


def read_run_record(
    source: StoredSessionReader, run_key: RunKey, manifest: Manifest, *, with_counters: bool
) -> RunRecord:
    """A run's evidence but for what its engine wrote; StoreError where it is damaged."""
    return RunRecord(
        **manifest.manifest_fields(),
        intervals=source.intervals(*run_key),
        bins=source.bins(*run_key),
        counters=source.counters(*run_key) if with_counters else empty_counter_table(),
        outputs=(),
    )


def read_slow_ios(source: StoredSessionReader, run_key: RunKey) -> tuple[SlowIoContext, ...]:
    """The slowest I/Os of a run with what its hosts did then; StoreError where it is damaged."""
    manifest = source.manifest(*run_key)
    if not has_slow_ios(manifest.hosts):
        return ()
    record = read_run_record(source, run_key, manifest, with_counters=True)
    return slow_ios_of_run(record, source.facts)


BootIds = Mapping[str, str] | None
"""Hosts' boots for a run that is to be drawn over time, None for one that is not."""


def _run_chart_data(
    load_report: LoadReport,
    result: RunResult,
    record: RunRecord,
    whole_curve_name: str,
    boot_ids_if_timeline: BootIds,
    *,
    with_heat_map: bool,
) -> RunChartData:
    """The run's latency curves, and its series if it is to be drawn over time."""
    latencies = load_report.latency_curves(record, whole_curve_name)
    timeline = None
    if boot_ids_if_timeline is not None:
        series = derive_counter_series(record.counters, record.host_names)
        drawn = build_timeline(
            record, series, latencies.window, boot_ids_if_timeline, load_report.timeline_panels
        )
        timeline = drawn if drawn.panels else None
    return RunChartData(
        result=result,
        all_operations=latencies.all_operations,
        per_operation=latencies.per_operation,
        timeline=timeline,
        heat_map=build_heat_map(record, latencies.window) if with_heat_map else None,
    )
