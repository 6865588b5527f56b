"""What analysis asks of kinds of load and of host, and how runs are judged by what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast

from iolab.analysis.bottleneck.resource_use import EVERY_CORE_HOSTS_MAX, WATCHED, run_resources
from iolab.analysis.check import Check, CheckAnswer, HostKindCheckSlot
from iolab.analysis.checks.bytes import (
    check_bytes_moved,
    check_hidden_layer,
    check_target_in_memory,
)
from iolab.analysis.checks.client import (
    check_client_starved,
    check_client_throttled,
    check_cpu_bound_client,
    check_cpu_stolen,
    check_thermal_throttling,
    is_pinned_to_some_cores,
)
from iolab.analysis.checks.drives import (
    check_drive_counters,
    check_drive_power_state,
    check_drive_throttled,
    check_foreign_drive_writer,
)
from iolab.analysis.checks.fleet import (
    check_clock_drift,
    check_clock_step,
    check_monitored_node_lost,
    check_shared_target,
    check_start_skew,
)
from iolab.analysis.checks.idle import check_device_busy
from iolab.analysis.checks.libraries import check_preloaded_library
from iolab.analysis.checks.load_halts import check_engine_stopped
from iolab.analysis.checks.power import check_idle_power, check_meter_lag, check_meter_reading
from iolab.analysis.checks.run import (
    check_engine_errors,
    check_run_unfinished,
    check_totals_disagree,
    check_versions_differ,
)
from iolab.analysis.checks.storage_bytes import check_storage_bytes
from iolab.analysis.checks.time import (
    check_hosts_left_out,
    check_missing_seconds,
    check_no_common_window,
    check_percentile_support,
    check_periodic_rate,
    check_run_too_short,
    check_startup_transient,
    check_wide_interval,
)
from iolab.analysis.evenness import host_evenness_of_run
from iolab.analysis.metrics import (
    METRIC_KEYS,
    TRIM_KEYS,
    fleet_metrics,
    host_metrics,
    metrics_with_intervals,
)
from iolab.analysis.power import power_metrics_of_all_boundaries, power_use_of_each_meter
from iolab.analysis.scenario import baseline_window, record_cut_to_window, scenario_metrics
from iolab.analysis.service_time import (
    SERVICE_KEYS,
    SERVICE_TRIM_KEYS,
    service_latency_metrics,
    sum_service_times,
)
from iolab.analysis.steady import judge_steadiness
from iolab.analysis.sums import sum_measured_window
from iolab.analysis.view import HostKindQueries, RunView
from iolab.analysis.wear import drive_wear_of_run, write_amplification_metrics
from iolab.core.host import HostFacts
from iolab.core.metric import (
    HostEvenness,
    HostResult,
    HypervisorResult,
    Metric,
    RunResult,
    Verdict,
    worst_verdict_level,
)
from iolab.core.run import RunRecord
from iolab.core.tagged import type_tag_of
from iolab.core.workload import AnyJob, Direction
from iolab.hosts.counter_names import GUESTS, METERS
from iolab.hosts.rates import ALL_CORES, derive_counter_series
from iolab.record import Record

if TYPE_CHECKING:
    from iolab.hosts.rates import CounterSeries


Facts = Mapping[str, HostFacts]

View = TypeVar("View", bound=RunView)

WHOLE_RUN: Final = ""
"""The key of the spread that is of a whole run, and not of one of its parts."""


CHECKS: Final[tuple[Check[RunView] | HostKindCheckSlot, ...]] = (
    check_run_unfinished,
    check_hosts_left_out,
    check_versions_differ,
    check_engine_errors,
    check_engine_stopped,
    check_preloaded_library,
    check_totals_disagree,
    check_no_common_window,
    check_start_skew,
    check_clock_drift,
    check_clock_step,
    check_run_too_short,
    check_missing_seconds,
    check_startup_transient,
    check_periodic_rate,
    check_wide_interval,
    check_percentile_support,
    HostKindCheckSlot.PROCESSORS_REAL,
    HostKindCheckSlot.LIMITS,
    check_target_in_memory,
    check_hidden_layer,
    check_bytes_moved,
    check_storage_bytes,
    HostKindCheckSlot.BYTES,
    check_cpu_bound_client,
    check_client_throttled,
    check_client_starved,
    check_cpu_stolen,
    HostKindCheckSlot.PROCESSORS_FREE,
    check_thermal_throttling,
    check_drive_counters,
    check_foreign_drive_writer,
    check_drive_throttled,
    check_drive_power_state,
    check_meter_reading,
    check_meter_lag,
    check_idle_power,
    check_device_busy,
    check_shared_target,
    check_monitored_node_lost,
)
"""What can be asked of whatever reads and writes, in the order shown. A check that stands here is
asked of every kind of load that does not leave it out."""

CheckOrSlot: TypeAlias = Check[View] | HostKindCheckSlot

ANALYSIS_VERSION: Final = 50
"""Rises whenever the same record could get another number or another level."""

JUDGED_TELEMETRY: Final = {"cpu": ALL_CORES, "agent": None, "thermal": None, METERS: None}
"""The telemetry that checks ask for, by scope and name; no other is derived."""

JUDGED_WITH_RESOURCES: Final = {**JUDGED_TELEMETRY, **WATCHED}
"""The same with every core, disk and port, by which bottlenecks are told."""


def shared_checks_with_overrides(
    *,
    added_after: Mapping[CheckOrSlot[RunView], Sequence[CheckOrSlot[View]]],
    overrides: Mapping[Check[RunView], Callable[[View], CheckAnswer]] | None = None,
    excluded: Iterable[CheckOrSlot[RunView]] = (),
) -> tuple[CheckOrSlot[View], ...]:
    """The shared checks as a kind of load has them, in the order shown.

    `added_after` are its own checks by the shared one that they follow, `overrides` how it answers
    shared ones in ways of its own, `excluded` those that do not apply to it; ValueError for one of
    these that is not shared.
    """
    own, left_out = overrides or {}, set(excluded)
    if foreign := {*added_after, *own, *left_out}.difference(CHECKS):
        raise ValueError(f"these checks are not shared: {foreign}")
    checks: list[CheckOrSlot[View]] = []
    for check in CHECKS:
        if isinstance(check, Check) and check in own:
            checks.append(check.override(own[check]))
        elif check not in left_out:
            checks.append(check)
        checks += added_after.get(check, ())
    return tuple(checks)


class LoadAnalysis(Generic[View]):
    """One kind of load, as a judge sees it; it says what is different about it.

    Without more its operations are counted as reads and writes, over a window that all hosts share.
    """

    checks: Sequence[Check[View] | HostKindCheckSlot] = CHECKS
    """Its checks in the order shown, and where those of hosts stand among them."""

    directions: tuple[Direction, ...] = (Direction.READ, Direction.WRITE)
    """What its operations are counted as."""

    operation_metrics: Sequence[str] = (
        *METRIC_KEYS,
        *TRIM_KEYS,
        *SERVICE_KEYS,
        *SERVICE_TRIM_KEYS,
    )
    """The rates and latencies of operations that its results may have, in the order shown; all
    other metrics stand in `LoadKind.metrics`."""

    def directions_of_run(self, record: RunRecord) -> tuple[Direction, ...]:  # noqa: ARG002 - of varied jobs
        """What the operations of a run are counted as."""
        return self.directions

    def build_view(
        self,
        record: RunRecord,
        facts: Facts,
        telemetry: tuple[CounterSeries, ...],
        host_kinds: tuple[HostKindQueries, ...],
    ) -> View:
        """The record measured, as its checks look at it: with what its seconds say of it."""
        baseline = baseline_window(record)
        steady = judge_steadiness(
            record if baseline is None else record_cut_to_window(record, baseline)
        )
        window = steady.window if steady and record.rule else baseline
        load = sum_measured_window(record, window)
        service = sum_service_times(record, load)
        view: Any = RunView(record, facts, load, telemetry, steady, service, host_kinds)
        return cast("View", view)

    def fleet_metrics(self, view: View) -> dict[str, Metric]:
        """The metrics of all hosts together."""
        ways = self.directions_of_run(view.record)
        metrics = fleet_metrics(view.load, ways)
        metrics = metrics_with_intervals(
            metrics, view.record, view.load, view.steadiness_view, ways
        )
        shared = list(range(len(view.hosts))) if view.load.has_common_window else []
        return metrics | service_latency_metrics(view.service_times, shared)

    def host_metrics(self, view: View, host_index: int) -> dict[str, Metric]:
        """The metrics of one host, by its place in the record."""
        metrics = host_metrics(view.load, host_index, self.directions_of_run(view.record))
        return metrics | service_latency_metrics(view.service_times, [host_index])

    def window_s(self, view: View) -> float:
        """The least time that the measured intervals of any host cover; 0 without a window."""
        return view.load.window_s

    def evenness_by_phase(self, view: View) -> Mapping[str, HostEvenness]:
        """How evenly several hosts worked: of the whole run, or of parts that follow each other."""
        spread = host_evenness_of_run(view.record, view.load)
        return {} if spread is None else {WHOLE_RUN: spread}

    def hypervisor_results(self, view: View) -> tuple[HypervisorResult, ...]:  # noqa: ARG002 - of most
        """What the hosts of one node did together, for each node where the kind can tell that."""
        return ()


class HostKindAnalysis(HostKindQueries, Protocol):
    """A kind of host that is more than a machine, with its checks by the question they answer."""

    @property
    def checks(self) -> Mapping[HostKindCheckSlot, tuple[Check[RunView], ...]]:
        """In the order shown."""


class AnalysisKinds(Record):
    """Every kind of load by the names of its jobs, made when it is asked for, and of host.

    `load_declared_metric_keys` are those of all kinds that are no rate or latency of operations.
    """

    loads: Mapping[str, Callable[[], LoadAnalysis[Any]]]
    hosts: tuple[HostKindAnalysis, ...] = ()
    load_declared_metric_keys: tuple[str, ...] = ()

    def load_analysis_for_run(self, record: RunRecord) -> LoadAnalysis[Any]:
        """The kind of a run's load."""
        return self.loads[type_tag_of(record.run.point.job)]()

    @property
    def metric_keys(self) -> tuple[str, ...]:
        """Every metric that results may have."""
        of_loads = [key for kind in self.loads.values() for key in kind().operation_metrics]
        return tuple(dict.fromkeys((*of_loads, *self.load_declared_metric_keys)))

    def build_view(
        self, record: RunRecord, facts: Facts, telemetry: tuple[CounterSeries, ...]
    ) -> RunView:
        """The record measured as its kind of load does it."""
        view: RunView = self.load_analysis_for_run(record).build_view(
            record, facts, telemetry, self.hosts
        )
        return view

    def checks_for_job(self, job_class: type[AnyJob]) -> tuple[Check[Any], ...]:
        """Every check of what that job makes, in the order in which they are shown."""
        return tuple(self._checks_of_kind(self.loads[type_tag_of(job_class)]()))

    def _checks_of_kind(self, kind: LoadAnalysis[Any]) -> Iterator[Check[Any]]:
        for check in kind.checks:
            if isinstance(check, HostKindCheckSlot):
                for hosts in self.hosts:
                    yield from hosts.checks.get(check, ())
            else:
                yield check


def judge_run(
    record: RunRecord, facts_by_target: Mapping[str, HostFacts], kinds: AnalysisKinds
) -> RunResult:
    """What a run is worth: pure, so the same record and facts always give the same result.

    `facts_by_target` has the keys of `HostRun.target_key`; a host without is judged as far as it
    can be. The result's `window_s` is the least time that the measured intervals of any host
    cover, 0 where the hosts had no window in common; of metadata load the shortest common window of
    its phases on files. Resources are kept of fleets whose every core is looked at: of larger ones
    a reader derives them from the telemetry, which would double the work at a run's end.
    """
    has_resources = record.fleet is not None or len(record.host_names) <= EVERY_CORE_HOSTS_MAX
    wanted: dict[str, str | None] = {
        **(JUDGED_WITH_RESOURCES if has_resources else JUDGED_TELEMETRY)
    }
    if record.fleet is not None:
        wanted[GUESTS] = None
    if any(
        is_pinned_to_some_cores(host, facts_by_target.get(host.facts_key)) for host in record.hosts
    ):
        # A load that may use some cores alone is judged by those, each by its name.
        wanted["cpu"] = None
    telemetry = derive_counter_series(record.counters, record.host_names, wanted)
    point, kind = record.run.point, kinds.load_analysis_for_run(record)
    view = kinds.build_view(record, facts_by_target, telemetry)
    spreads = dict(kind.evenness_by_phase(view))
    metrics, power = dict(kind.fleet_metrics(view)), power_use_of_each_meter(view)
    figures, drives = view.scenario_figures, drive_wear_of_run(view)
    metrics |= power_metrics_of_all_boundaries(power, metrics) | write_amplification_metrics(
        view, drives
    )
    return RunResult(
        configuration=point.configuration,
        workload=point.workload,
        axis_values=point.axis_values,
        repeat=record.run.repeat,
        digest=point.digest,
        status=record.status,
        failure=record.failure,
        failure_hint=record.failure_hint,
        window_s=kind.window_s(view),
        metrics={**metrics, **scenario_metrics(figures)},
        hosts=tuple(
            HostResult(host.host, kind.host_metrics(view, index))
            for index, host in enumerate(record.hosts)
        ),
        verdict=judge_view(view, kinds),
        spread=spreads.pop(WHOLE_RUN, None),
        operation_spreads=spreads,
        excluded_hosts=record.excluded_hosts,
        attempt=record.run.attempt,
        steadiness=view.steadiness_view.steadiness if view.steadiness_view else None,
        order=record.run.order,
        nodes=kind.hypervisor_results(view),
        load=type_tag_of(point.job),
        resources=run_resources(view) if has_resources else None,
        drives=drives,
        power=power,
        scenario=figures,
    )


def judge_view(view: RunView, kinds: AnalysisKinds) -> Verdict:
    """The worst check decides. Where no load was measured only the run itself is judged."""
    checks = kinds.checks_for_job(type(view.record.run.point.job))
    has_scenario = view.record.scenario is not None
    asked = [
        check
        for check in checks
        if (view.has_measured_load or not check.needs_load)
        and (has_scenario or not check.needs_phases)
    ]
    results = tuple(check(view) for check in asked)
    looked = (result.level for result in results if result.level is not None)
    level = worst_verdict_level(looked)
    return Verdict(level, results)
