"""Where a session stands, for a person who watches: a pure state that events move on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from msgspec import field
from msgspec.structs import replace

from iolab.analysis.metrics import ios_needed_for_percentile
from iolab.core.events import (
    CpuUseReported,
    Event,
    GuestBooted,
    IntervalReported,
    RunFinished,
    RunPreparing,
    ScenarioNotice,
    SessionPhase,
    SessionPhaseStarted,
    SessionStarted,
    StoppingRuleStatus,
)
from iolab.core.histogram import Histogram, dense_counts
from iolab.core.metric import RunResult
from iolab.core.run import PlannedRun
from iolab.record import Record
from iolab.study.cost import RUN_OVERHEAD_S
from iolab.text import counted_noun
from iolab.units import format_duration_s

SECONDS_KEPT: Final = 120
"""A sparkline is no wider than this, and a run of hours must not grow the state."""

RESULTS_KEPT: Final = 5
"""The last results on the screen; all of them stand in the summary at the end."""


MIN_REMAINING_S: Final = 0.1
"""Of a host's load or telemetry the time need not be known more closely: a thousand tell of both
every second, and a new state for each would cost more than to read it."""

P99: Final = 99.0
"""The percentile that a follower of a run sees."""

NO_LOAD_HOSTS: Final[Mapping[PointHostCounts, LoadGenerators]] = {}


class LoadSecond(Record):
    """All hosts' load in one second of a run: 1/s, bytes/s, mean and 99th percentile in ns."""

    elapsed_s: float
    iops: float
    bw_bytes_per_s: float
    lat_ns_mean: float | None
    lat_ns_p99: float | None = None


class LoadSecondsWindow:
    """The last seconds of a run, by second and host; each is summed up once, when it is whole.

    Its intervals are let go of then: those of a thousand hosts would be most of what a run holds.
    """

    def __init__(self) -> None:
        self._by_second: dict[int, dict[str, IntervalReported]] = {}
        self._summed: dict[int, LoadSecond] = {}
        self._completed: tuple[LoadSecond, ...] = ()

    def add_interval(self, event: IntervalReported) -> None:
        """Take one host's interval; a second one of the same host and second replaces it.

        What comes when its second was summed up is too late.
        """
        second = round(event.elapsed_s)
        if second in self._summed:
            return
        self._by_second.setdefault(second, {})[event.host] = event
        if len(self._by_second) > SECONDS_KEPT:
            del self._by_second[min(self._by_second)]

    def merge_complete_seconds_and_get_newest(self, host_count: int) -> tuple[LoadSecond, ...]:
        """The load of each second that so many hosts have told of, oldest first."""
        full = [second for second, by_host in self._by_second.items() if len(by_host) >= host_count]
        for second in full:
            self._summed[second] = _merge_host_intervals(second, self._by_second.pop(second))
        if full:
            kept = sorted(self._summed)[-SECONDS_KEPT:]
            self._summed = {second: self._summed[second] for second in kept}
            self._completed = tuple(self._summed.values())
        return self._completed


class PointHostCounts(NamedTuple):
    """What decides who makes the load of a point."""

    configuration: str
    guests_per_node: int
    host_count: int


class LoadGenerators(Record):
    """Who makes the load of a point, and the nodes of those that are guests."""

    host_names: tuple[str, ...]
    hypervisor_names: tuple[str, ...] = ()

    @property
    def guests_on_hypervisors_text(self) -> str:
        """`6 guests on 2 nodes`; empty where hosts are no guests."""
        if not self.hypervisor_names:
            return ""
        nodes = counted_noun(len(self.hypervisor_names), "node")
        return f"{counted_noun(len(self.host_names), 'guest')} on {nodes}"


class SessionProgress(Record):
    """A session as a person follows it; moments are seconds of a monotonic clock.

    `run_count` are all runs of the plan, `ended_run_count` how many of them have ended, in earlier
    starts of the session too; results may ask for up to `runs_most`. `load_s` is how long a run
    loads its target on average over the plan, warm-up included; with `run_loaded` the current run
    had to fill a store first, and is no measure of the others. `seconds` are what was seen of the
    current run, `cpu_busy_share_by_host` each host's newest share: these two grow in place, for a
    copy of them with each of a thousand hosts' events would cost more than the session itself.
    `load_generators_by_host_counts` are, by configuration and guests a node, who makes a point's
    load; `booted_guests` of `guest_count` that the session boots are up. `present_hosts` are the
    hosts that answered when the session began, and were not left out since. `overhead_s` is what a
    run takes beside its load and its rest. Runs that `can_end_early` are foretold by their limit
    until one was timed. `max_phase_s_by_id` has a run's phases with the longest each takes.
    """

    study: str
    run_count: int
    ended_run_count: int
    host_count: int
    warmup_s: float
    load_s: float
    settle_s: float
    now_s: float
    run: PlannedRun | None = None
    run_since_s: float = 0.0
    phase: SessionPhase | None = None
    phase_detail: str = ""
    phase_since_s: float = 0.0
    phase_expected_s: float | None = None
    seconds: LoadSecondsWindow = field(default_factory=LoadSecondsWindow)
    cpu_busy_share_by_host: dict[str, float] = field(default_factory=dict)
    results: tuple[RunResult, ...] = ()
    message: str = ""
    timed_runs: int = 0
    timed_s: float = 0.0
    runs_most: int = 0
    run_loaded: bool = False
    load_generators_by_host_counts: Mapping[PointHostCounts, LoadGenerators] = field(
        default_factory=lambda: NO_LOAD_HOSTS
    )
    guest_count: int = 0
    booted_guests: frozenset[str] = frozenset()
    present_hosts: frozenset[str] = frozenset()
    overhead_s: float = RUN_OVERHEAD_S
    can_end_early: bool = False
    max_phase_s_by_id: Mapping[str, float] = field(default_factory=dict)
    scenario_phase: str = ""
    scenario_phase_since_s: float = 0.0
    scenario_event_text: str = ""

    def after_event(self, event: Event, now_s: float) -> SessionProgress:
        """The state when `event` came at that moment."""
        if isinstance(event, IntervalReported | CpuUseReported):
            self._add_interval_or_cpu_use(event)
            return self if now_s - self.now_s < MIN_REMAINING_S else self.at_time(now_s)
        moved = replace(self, now_s=now_s)
        match event:
            case SessionStarted():
                names = frozenset(name for name, _ in event.facts)
                return replace(moved, host_count=len(event.facts), present_hosts=names)
            case GuestBooted():
                return replace(moved, booted_guests=self.booted_guests | {event.guest})
            case RunPreparing():
                makers = self.load_generators_of_run(event.run)
                return replace(
                    moved,
                    run=event.run,
                    host_count=self._present_generator_count(makers) if makers else self.host_count,
                    run_since_s=now_s,
                    run_loaded=False,
                    seconds=LoadSecondsWindow(),
                    message="",
                    scenario_phase="",
                    scenario_event_text="",
                    # Results may ask for more runs than the plan is sure of.
                    run_count=max(self.run_count, self.ended_run_count + 1),
                )
            case SessionPhaseStarted():
                return replace(
                    moved,
                    run_loaded=self.run_loaded or self._has_phase_filled_store(now_s),
                    phase=event.phase,
                    phase_detail=event.detail,
                    phase_since_s=now_s,
                    phase_expected_s=event.expected_s,
                )
            case ScenarioNotice():
                return moved._after_scenario_notice(event)
            case StoppingRuleStatus():
                return replace(moved, message=event.message)
            case RunFinished():
                there = self.present_hosts - set(event.record.excluded_hosts)
                ended = replace(
                    moved,
                    run=None,
                    phase=None,
                    ended_run_count=self.ended_run_count + 1,
                    present_hosts=there,
                )
                if self.run_loaded or self._has_phase_filled_store(now_s):
                    return ended
                return replace(
                    ended,
                    timed_runs=self.timed_runs + 1,
                    timed_s=self.timed_s + max(now_s - self.run_since_s, 0.0),
                )
            case _:
                return moved

    def _after_scenario_notice(self, notice: ScenarioNotice) -> SessionProgress:
        if notice.phase:
            return replace(self, scenario_phase=notice.phase, scenario_phase_since_s=self.now_s)
        return replace(self, scenario_event_text=notice.text)

    def _add_interval_or_cpu_use(self, event: IntervalReported | CpuUseReported) -> None:
        if isinstance(event, IntervalReported):
            self.seconds.add_interval(event)
        else:
            self.cpu_busy_share_by_host[event.host] = event.cpu_busy

    def with_result(self, result: RunResult) -> SessionProgress:
        """The state when a run was judged."""
        return replace(self, results=(*self.results, result)[-RESULTS_KEPT:])

    def at_time(self, now_s: float) -> SessionProgress:
        """The same a moment later."""
        return replace(self, now_s=now_s)

    def _present_generator_count(self, load_generators: LoadGenerators) -> int:
        """How many of them are there; all of them where nothing is known of any."""
        return len(self.present_hosts.intersection(load_generators.host_names)) or len(
            load_generators.host_names
        )

    def load_generators_of_run(self, run: PlannedRun | None) -> LoadGenerators | None:
        """Who makes a run's load; None where that is not known."""
        if run is None:
            return None
        point = run.point
        key = PointHostCounts(point.configuration, point.per_node, point.host_count)
        return self.load_generators_by_host_counts.get(key)

    @property
    def current_guest_count_text(self) -> str:
        """`6 guests on 2 nodes` of the current run; empty where hosts are no guests."""
        makers = self.load_generators_of_run(self.run)
        return "" if makers is None else makers.guests_on_hypervisors_text

    @property
    def boot_progress_text(self) -> str:
        """`4 of 6 guests up` while they boot; empty before, after, and without guests."""
        up = len(self.booted_guests)
        if self.run is not None or not self.guest_count or not 0 < up <= self.guest_count:
            return ""
        return f"{up} of {counted_noun(self.guest_count, 'guest')} up"

    @property
    def phase_elapsed_s(self) -> float:
        """Seconds since the phase began."""
        return max(self.now_s - self.phase_since_s, 0.0)

    @property
    def has_warmup(self) -> bool:
        """Whether the first seconds of the current run's load do not count."""
        return self.run is not None and self.run.point.job.has_warmup

    @property
    def has_operation_rates(self) -> bool:
        """Whether rates of the current run are of operations, on metadata or on keys."""
        return self.run is not None and not self.run.point.data_set

    @property
    def is_latency_reported_live(self) -> bool:
        """Whether the current run's engine tells latencies while it runs; db_bench does not."""
        return self.run is None or self.run.point.job.reports_live_latency

    @property
    def completed_load_seconds(self) -> tuple[LoadSecond, ...]:
        """The seconds that every host has told of, oldest first."""
        return self.seconds.merge_complete_seconds_and_get_newest(max(self.host_count, 1))

    @property
    def _planned_run_s(self) -> float:
        """How long a run should take."""
        return self.load_s + self.settle_s + self.overhead_s

    def _has_phase_filled_store(self, now_s: float) -> bool:
        """Whether the phase until now filled a store, which further runs find filled.

        A copy of one is as much a phase of laying out, but takes no longer than a run.
        """
        of_keys = self.run is not None and self.run.point.job.fills_data_store
        lasted_s = now_s - self.phase_since_s
        return of_keys and self.phase is SessionPhase.LAY_OUT and lasted_s > self._planned_run_s

    @property
    def _mean_run_s(self) -> float:
        """As the runs so far took, else as expected."""
        return self.timed_s / self.timed_runs if self.timed_runs else self._planned_run_s

    @property
    def completed_share_of_runs(self) -> float:
        """Which share of the plan's runs is over, with the part of the current one."""
        if not self.run_count:
            return 0.0
        in_run_s = self.now_s - self.run_since_s if self.run is not None else 0.0
        part = min(in_run_s / self._mean_run_s, 1.0) if self._mean_run_s > 0 else 0.0
        return min((self.ended_run_count + part) / self.run_count, 1.0)

    @property
    def remaining_text(self) -> str:
        """The time that is left, and whether it is the least or the most."""
        bound = "at most " if self.can_end_early and not self.timed_runs else ""
        # Results may ask for more runs than the plan is sure of.
        bound = "at least " if self.runs_most > self.run_count else bound
        return f"{bound}{format_duration_s(round(self.remaining_s))}"

    @property
    def remaining_s(self) -> float:
        """Seconds until the plan is through: by the runs timed so far, else as foretold."""
        each = self._mean_run_s
        left = self.run_count - self.ended_run_count
        if self.run is not None and left > 0:
            current = max(each - (self.now_s - self.run_since_s), 0.0)
            if self.scenario_phase in self.max_phase_s_by_id:
                current = min(current, self._scenario_remaining_s)
            return (left - 1) * each + current
        preparing = max((self.phase_expected_s or 0.0) - self.phase_elapsed_s, 0.0)
        return left * each + (preparing if self.phase is not None else 0.0)

    @property
    def _scenario_remaining_s(self) -> float:
        """What is left of a run in one of its phases, of which earlier ones may have ended soon."""
        names = list(self.max_phase_s_by_id)
        left = names[names.index(self.scenario_phase) :]
        lasted_s = self.now_s - self.scenario_phase_since_s
        phases_s = sum(self.max_phase_s_by_id[name] for name in left) - lasted_s
        return max(phases_s, 0.0) + self.settle_s + self.overhead_s


def _merge_host_intervals(
    second: int, interval_by_host: Mapping[str, IntervalReported]
) -> LoadSecond:
    """The hosts together: rates add up, latency is weighted by the I/Os that had it."""
    iops = sum(interval.iops for interval in interval_by_host.values())
    weighed = [
        (interval.iops, interval.lat_ns_mean)
        for interval in interval_by_host.values()
        if interval.lat_ns_mean is not None
    ]
    weight = sum(rate for rate, _ in weighed)
    mean = sum(rate * latency for rate, latency in weighed) / weight if weight > 0 else None
    moved = sum(interval.bw_bytes_per_s for interval in interval_by_host.values())
    return LoadSecond(float(second), iops, moved, mean, _merged_p99_ns(interval_by_host.values()))


def _merged_p99_ns(host_intervals: Iterable[IntervalReported]) -> float | None:
    """Of all hosts' latencies together; None where these are too few, or not told by all."""
    counted = [interval.bins for interval in host_intervals]
    if not all(counted):
        return None
    bins, counts = (np.concatenate(parts) for parts in zip(*chain(*counted), strict=True))
    if int(counts.sum()) < ios_needed_for_percentile(P99):
        return None
    return Histogram(dense_counts(bins, counts)).percentile_ns(P99)
