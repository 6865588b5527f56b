"""Imported runs as analysis asks of them: their checks, and the figures that their files tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.check import Check, HostKindCheckSlot
from iolab.analysis.checks import bytes as moved
from iolab.analysis.checks import fleet, libraries, run, time
from iolab.analysis.evenness import host_evenness
from iolab.analysis.kinds import CHECKS as SHARED
from iolab.analysis.kinds import WHOLE_RUN, Facts, LoadAnalysis
from iolab.analysis.steady import SteadinessView, judge_steadiness
from iolab.analysis.sums import sum_measured_window
from iolab.analysis.view import HostKindQueries, RunView
from iolab.analysis.window import Window
from iolab.core.metric import HostEvenness, Metric
from iolab.core.run import RunRecord
from iolab.importers import checks
from iolab.importers.foreign_run import ImportedClientDetails, ImportedRunDetails
from iolab.importers.metrics import (
    ImportedView,
    client_start_and_end_times_ns,
    fleet_metrics,
    histograms_by_client_and_operation,
    host_metrics,
    shortest_client_measured_s,
)
from iolab.loads.fileio.checks import check_littles_law
from iolab.loads.keyvalue.checks import check_key_operations_failed
from iolab.loads.keyvalue.store_checks import check_reads_from_memory
from iolab.loads.metadata.checks import check_reported_rates

if TYPE_CHECKING:
    from iolab.hosts.rates import CounterSeries

SERIES_SPAN_NS: Final = 2_000_000_000
"""Only intervals of seconds tell whether a run was steady: longer ones are means of many."""

ANSWERABLE_CHECKS: Final[tuple[Check[ImportedView], ...]] = (
    run.check_run_unfinished,
    checks.check_imported_evidence,
    checks.check_files_contradict,
    run.check_engine_errors.override(checks.check_imported_engine_errors),
    libraries.check_preloaded_library.override(checks.check_imported_preloaded_library),
    check_key_operations_failed.override(checks.check_imported_key_operations_failed),
    checks.check_phases_added,
    time.check_no_common_window.override(checks.check_imported_no_common_window),
    fleet.check_start_skew.override(checks.check_imported_start_skew),
    fleet.check_uneven_fleet.override(checks.check_imported_uneven_fleet),
    run.check_totals_disagree.override(checks.check_imported_totals_disagree),
    check_reported_rates.override(checks.check_imported_reported_rates),
    check_littles_law.override(checks.check_imported_littles_law),
    time.check_run_too_short.override(checks.check_imported_run_too_short),
    time.check_startup_transient.override(checks.check_imported_startup_transient),
    time.check_percentile_support.override(checks.check_imported_percentile_support),
    checks.check_percentiles_contradicted,
    moved.check_buffered_io.override(checks.check_imported_buffered_io),
    check_reads_from_memory.override(checks.check_imported_reads_from_memory),
)
"""What files tell."""

SESSION_ONLY_CHECKS: Final[tuple[Check[RunView], ...]] = (
    run.check_versions_differ,
    time.check_hosts_left_out,
    time.check_missing_seconds,
    time.check_periodic_rate,
    time.check_wide_interval,
    fleet.check_monitored_node_lost,
)
"""Shared checks of what only a session of ours does."""

UNANSWERABLE_CHECKS: Final[tuple[Check[RunView], ...]] = (
    *(
        check
        for check in SHARED
        if isinstance(check, Check)
        and check not in SESSION_ONLY_CHECKS
        and check.code not in {answered.code for answered in ANSWERABLE_CHECKS}
    ),
    moved.check_cache_hits,
    moved.check_unwritten_extents,
    run.check_unequal_state,
)
"""What only who watched the run could answer."""


class ImportedAnalysis(LoadAnalysis[ImportedView]):
    """The figures that files tell, and what can be held against each other in them."""

    checks: Sequence[Check[ImportedView] | HostKindCheckSlot] = (
        *ANSWERABLE_CHECKS,
        *(checks.unanswerable_check(check) for check in UNANSWERABLE_CHECKS),
    )

    def build_view(
        self,
        record: RunRecord,
        facts: Facts,
        telemetry: tuple[CounterSeries, ...],
        host_kinds: tuple[HostKindQueries, ...],
    ) -> ImportedView:
        """With what the file tells, and of its seconds whether they were steady."""
        view = ImportedView(
            record,
            facts,
            sum_measured_window(record),
            telemetry,
            steadiness_view=_imported_steadiness_view(record),
            host_kinds=host_kinds,
            imported_run=ImportedRunDetails.require_type(record.details),
            clients=tuple(
                ImportedClientDetails.require_type(host.details) for host in record.hosts
            ),
            client_spans_ns=client_start_and_end_times_ns(record),
            histograms=histograms_by_client_and_operation(record),
        )
        seconds = shortest_client_measured_s(view) or 0.0
        load = replace(view.load, seconds=np.full(len(record.hosts), seconds))
        return replace(view, load=load)

    def fleet_metrics(self, view: ImportedView) -> dict[str, Metric]:
        """See `fleet_metrics`."""
        return fleet_metrics(view)

    def host_metrics(self, view: ImportedView, host_index: int) -> dict[str, Metric]:
        """See `host_metrics`."""
        return host_metrics(view, host_index)

    def window_s(self, view: ImportedView) -> float:
        """Of the client with the least; 0 where none is told, or clients ran apart."""
        return shortest_client_measured_s(view) or 0.0 if view.can_add_rates else 0.0

    def evenness_by_phase(self, view: ImportedView) -> Mapping[str, HostEvenness]:
        """By the clients' rates, where it is told when each of them ran."""
        spans = [None if span is None else Window(*span) for span in view.client_spans_ns]
        if len(spans) < 2 or None in spans:
            return {}
        rates = np.array(
            [sum(figure.rate_per_s or 0.0 for figure in client.figures) for client in view.clients]
        )
        spread = host_evenness(view.hosts, spans, rates)
        return {} if spread is None else {WHOLE_RUN: spread}


def _imported_steadiness_view(record: RunRecord) -> SteadinessView | None:
    """What its seconds say; None where the file has longer intervals, or none."""
    spans = record.intervals.span_ns
    if spans.size == 0 or int(np.median(spans)) > SERIES_SPAN_NS:
        return None
    return judge_steadiness(record)
