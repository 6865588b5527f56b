"""What a check may look at: the record, the hosts' facts, the measured load and the telemetry."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from iolab.analysis.steady import SteadinessView
from iolab.analysis.sums import DIRECTIONS, LoadSums, OperationSums
from iolab.analysis.window import MeasuredPart, Window, to_controller_clock_ns
from iolab.core.bins import BIN_COUNT
from iolab.core.host import HostFacts, TargetFacts
from iolab.core.metric import HypervisorResult, ScenarioFigures
from iolab.core.resources import ResourceUse
from iolab.core.run import HostRun, RunRecord
from iolab.core.samples import Floats, Ints, row_indexes_by_host
from iolab.core.workload import AnyJob, Direction, ServiceTimeDirection
from iolab.record import Record
from iolab.units import NS_PER_S

if TYPE_CHECKING:
    from iolab.hosts.rates import CounterSeries

_Place = tuple[str, str, str]
"""Host, scope and metric of a series."""

_COUNTED_DIRECTIONS: Final = (*Direction, *ServiceTimeDirection)
"""The rows of a host's bins of the whole run: directions, then their service times."""


class HostKindQueries(Protocol):
    """What a kind of host knows of those of a run that are of its kind."""

    def hosts_that_were_own_bottleneck(self, view: RunView) -> frozenset[str]:
        """Those that were their own limit."""

    def hosts_with_externally_counted_cpu_use(self, view: RunView) -> frozenset[str]:
        """Those whose processors' use something else counts."""

    def hypervisor_results(self, view: RunView) -> tuple[HypervisorResult, ...]:
        """What those of each node did together, and what their node saw from inside."""

    def kind_specific_resource_uses(self, view: RunView) -> Iterable[ResourceUse]:
        """How much they used of limits that only their kind of host has."""


class RunView(Record, dict=True):
    """One run as the checks see it; `telemetry` is derived from the record's counters.

    Kinds of load that measure more have a view of their own. `steadiness_view` is what the run's
    seconds say of it, None where they are too few. `service_times` are the service times of an open
    loop, None where `load` has all there is. `host_kinds` know hosts that are more than machines.
    """

    record: RunRecord
    facts: Mapping[str, HostFacts]
    load: LoadSums
    telemetry: tuple[CounterSeries, ...]
    steadiness_view: SteadinessView | None = None
    service_times: OperationSums | None = None
    host_kinds: tuple[HostKindQueries, ...] = ()

    @cached_property
    def _series_by_place(self) -> Mapping[_Place, tuple[CounterSeries, ...]]:
        """The telemetry of each place: several checks ask for each host's, and searched it all."""
        places: dict[_Place, list[CounterSeries]] = {}
        for series in self.telemetry:
            places.setdefault((series.host, series.scope, series.metric), []).append(series)
        return {place: tuple(several) for place, several in places.items()}

    @cached_property
    def _clock_offset_ns_by_host(self) -> Mapping[str, int]:
        """How far each host's clock is ahead of the controller's."""
        offsets = {host.host: host.clock_offset_ns for host in self.record.hosts}
        return offsets | {host.host: host.clock_offset_ns for host in self.record.monitored_hosts}

    @cached_property
    def _interval_rows_by_host(self) -> Sequence[Ints]:
        return row_indexes_by_host(self.record.intervals.host, len(self.record.hosts))

    @cached_property
    def _unsummed_bins(self) -> Sequence[Ints]:
        return _unsummed_bin_groups_by_host(self.load.measured_part, len(self.record.hosts))

    @cached_property
    def hosts_that_were_own_bottleneck(self) -> frozenset[str]:
        """Hosts that were their own limit: checks that would say it again leave it at that."""
        return frozenset().union(
            *(kind.hosts_that_were_own_bottleneck(self) for kind in self.host_kinds)
        )

    @cached_property
    def hosts_with_externally_counted_cpu_use(self) -> frozenset[str]:
        """Hosts whose processors' use is counted from outside: what they say of it counts less."""
        return frozenset().union(
            *(kind.hosts_with_externally_counted_cpu_use(self) for kind in self.host_kinds)
        )

    @property
    def has_one_io_in_flight_per_client(self) -> bool:
        """Whether a host has a single I/O in flight, whose latency then is what matters."""
        return self.job.iodepth_per_client == 1

    @cached_property
    def scenario_figures(self) -> ScenarioFigures | None:
        """What each phase of the run was like; None of a run without phases."""
        from iolab.analysis.scenario import scenario_figures  # which asks of views

        return scenario_figures(self)

    @property
    def job(self) -> AnyJob:
        """What each host was asked to do."""
        return self.record.run.point.job

    @property
    def hosts(self) -> tuple[HostRun, ...]:
        """The hosts of the run, in the order of the load's first axis."""
        return self.record.hosts

    @property
    def has_measured_load(self) -> bool:
        """Whether anything was measured in the window."""
        return bool(self.load.ios.sum() > 0)

    def measured_whole_operation_count(self, host_index: int) -> int:
        """How much a host completed in the window: I/Os, or what its load has in their place."""
        return int(self.load.ios[host_index].sum())

    def target_of_host(self, host: HostRun) -> TargetFacts | None:
        """The host's target, None where its facts are not known."""
        facts = self.facts_of_host(host)
        return None if facts is None else facts.target

    def facts_of_host(self, host: HostRun) -> HostFacts | None:
        """The host's facts with the target that this run used: a host may have several."""
        return self.facts.get(host.facts_key)

    def on_host_if_several(self, host: HostRun) -> str:
        """` on NAME` where a run has several hosts, else nothing: for a sentence."""
        return f" on {host.host}" if len(self.hosts) > 1 else ""

    def claimed_run_bytes(self, host_index: int, direction: Direction) -> int:
        """What the engine says it moved in the whole run, warm-up included."""
        return int(self.record.intervals.bytes[self.interval_rows(host_index, direction)].sum())

    def application_written_bytes(self, host_index: int) -> int | None:
        """What operations wrote on a host in the whole run; None where nothing tells it."""
        return self.claimed_run_bytes_with_neighbours(host_index, Direction.WRITE)

    def engine_written_bytes(self, host_index: int) -> int | None:  # noqa: ARG002 - of engines that store
        """What an engine wrote for that: None of one that writes what operations do."""
        return None

    def claimed_run_bytes_with_neighbours(self, host_index: int, direction: Direction) -> int:
        """The same of all loads on that host: a neighbour's as well."""
        name = self.hosts[host_index].host
        places = [
            place
            for place, neighbour in enumerate(self.record.neighbours)
            if neighbour.host.host == name
        ]
        return (
            self.claimed_run_bytes(host_index, direction)
            + self.neighbour_run_ios_and_bytes(places, direction)[1]
        )

    def neighbour_run_ios_and_bytes(
        self, neighbour_indexes: Collection[int], direction: Direction
    ) -> tuple[int, int]:
        """What the engines of those of the record's neighbours say they did, and moved."""
        table = self.record.neighbour_intervals
        if table is None:
            return 0, 0
        rows = np.isin(table.host, list(neighbour_indexes)) & (table.direction == direction)
        return int(table.ios[rows].sum()), int(table.bytes[rows].sum())

    def claimed_bytes_per_s_by_direction(self, host_index: int) -> dict[Direction, float]:
        """The rate of each direction in the window, as the engine says; empty without a window."""
        seconds = float(self.load.seconds[host_index])
        if seconds <= 0:
            return {}
        moved = self.load.bytes[host_index]
        return {way: float(moved[way]) / seconds for way in self.job.data_directions}

    def claimed_run_ios(self, host_index: int, direction: Direction) -> int:
        """How many I/Os the engine says it did in the whole run, warm-up included."""
        return int(self.record.intervals.ios[self.interval_rows(host_index, direction)].sum())

    def interval_rows(self, host_index: int, direction: Direction | None = None) -> Ints:
        """The rows of the intervals that tell of a host, of that direction or all; in order."""
        rows = self._interval_rows_by_host[host_index]
        if direction is None:
            return rows
        return np.asarray(rows[self.record.intervals.direction[rows] == direction])

    def run_bin_counts(self, host_index: int) -> Ints:
        """A host's counts (6, BIN_COUNT) of its run by `Direction`, then `ServiceTimeDirection`."""
        counts = np.zeros((len(_COUNTED_DIRECTIONS), BIN_COUNT), dtype=np.int64)
        # Most rows were added up already, and are not added up a second time.
        counts[: len(DIRECTIONS)] = self.load.bins[host_index]
        if self._unsummed_bins[host_index].size:
            parts = self.load.measured_part.bin_groups.select_groups(
                self._unsummed_bins[host_index]
            )
            self.record.bins.add_counts_to(
                counts, parts, np.searchsorted(_COUNTED_DIRECTIONS, parts.direction)
            )
        return counts

    def measured_window(self, host_index: int) -> Window | None:
        """The part of the run that counts for this host, on the controller's clock."""
        if self.load.measured_part.common_window is not None:
            return self.load.measured_part.common_window
        window = self.load.measured_part.whole_run_windows[host_index]
        if window is None:
            return None
        start = min(window.start_ns + round(self.record.warmup_s * 1e9), window.end_ns)
        return Window(start, window.end_ns)

    def mean_telemetry(
        self,
        host_index: int,
        scope: str,
        device_name: str | None,
        metric_key: str,
        window: Window | None = None,
    ) -> float | None:
        """The mean over the measured window of one host's telemetry, None where it is not known.

        `window` is looked at in place of the measured one. `device_name` None takes every device of
        the scope. Each step weighs as much as it shares with the window: a sample of ten seconds
        that began before it tells mostly of what came before.
        """
        window = window or self.measured_window(host_index)
        return self.mean_telemetry_of_named_host(
            self.hosts[host_index].host, scope, device_name, metric_key, window
        )

    def mean_telemetry_of_named_host(
        self,
        host_name: str,
        scope: str,
        device_name: str | None,
        metric_key: str,
        window: Window | None,
    ) -> float | None:
        """The same of any host by its name, watched ones too; None without a window."""
        values: list[Floats] = []
        weights: list[Floats] = []
        for series in self.counter_series(host_name, scope, metric_key):
            if window is None or (device_name is not None and series.name != device_name):
                continue
            shared = self.step_overlap_ns(series, window)
            counted = (shared > 0) & np.isfinite(series.value)
            values.append(series.value[counted])
            weights.append(shared[counted].astype(np.float64))
        if not any(part.size for part in values):
            return None
        return float(np.average(np.concatenate(values), weights=np.concatenate(weights)))

    def counter_series(
        self, host_name: str, scope: str, metric_key: str
    ) -> tuple[CounterSeries, ...]:
        """A host's series of one metric, of every device, core, port or guest that has it."""
        return self._series_by_place.get((host_name, scope, metric_key), ())

    def step_overlap_ns(self, series: CounterSeries, window: Window) -> Ints:
        """How much of each step of a series lies in the window, 0 for those beside it."""
        ends = to_controller_clock_ns(
            series.real_ns, self._clock_offset_ns_by_host.get(series.host, 0)
        )
        starts = ends - series.span_ns
        shared = np.minimum(ends, window.end_ns) - np.maximum(starts, window.start_ns)
        return np.asarray(np.maximum(shared, 0), dtype=np.int64)


def _unsummed_bin_groups_by_host(measured_part: MeasuredPart, host_count: int) -> list[Ints]:
    """The parts of each host's bins that are not among the sums of its load."""
    summed = measured_part.bin_group_mask & (measured_part.bin_groups.direction < len(DIRECTIONS))
    places = np.flatnonzero(
        ~summed & np.isin(measured_part.bin_groups.direction, _COUNTED_DIRECTIONS)
    )
    return [
        places[rows]
        for rows in row_indexes_by_host(measured_part.bin_groups.host[places], host_count)
    ]


class IoTime(Record):
    """So many I/Os, and the time of all of them together."""

    ios: float
    time_ns: float

    @property
    def mean_ns(self) -> float | None:
        """The mean latency; None of nothing."""
        return self.time_ns / self.ios if self.ios > 0 else None

    def __add__(self, other: IoTime) -> IoTime:
        return IoTime(self.ios + other.ios, self.time_ns + other.time_ns)


NO_IO_TIME = IoTime(0.0, 0.0)


def io_time_in_window(
    view: RunView,
    host_and_scope: tuple[str, str],
    series_names: Collection[str],
    direction: Direction,
    window: Window,
) -> IoTime | None:
    """What those disks or guests had in the window; `host_and_scope` is the host and the scope.

    A step that reaches out of the window counts by the share of it that lies inside. None where
    one of them has no sample there, or there are none.
    """
    host, scope = host_and_scope
    way = direction.key
    rates = {series.name: series for series in view.counter_series(host, scope, f"{way}_iops")}
    times = {series.name: series for series in view.counter_series(host, scope, f"{way}_lat_ns")}
    total = NO_IO_TIME
    for name in series_names:
        rate, time = rates.get(name), times.get(name)
        if rate is None or time is None:
            return None
        shared = view.step_overlap_ns(rate, window)
        if not shared.any():
            return None
        ios = rate.value * shared / NS_PER_S
        # No I/O has no mean latency; it took no time either.
        took = np.where(ios > 0, np.nan_to_num(time.value) * ios, 0.0)
        total += IoTime(float(ios.sum()), float(took.sum()))
    return total if series_names else None
