"""What the guests of each node did together, and what their node saw of it, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.metrics import is_percentile_supported, metrics_of_host_group
from iolab.analysis.points import PointSummary, summarise_points
from iolab.analysis.service_time import host_concurrency
from iolab.analysis.storage_bytes import deltas_of_devices_on_no_other, nearest_device_names
from iolab.analysis.sums import DIRECTIONS
from iolab.analysis.view import NO_IO_TIME, IoTime, RunView, io_time_in_window
from iolab.analysis.window import Window
from iolab.core.bins import PERCENTILES
from iolab.core.host import HostRole
from iolab.core.metric import (
    HypervisorResult,
    LatencyLayer,
    LayerLatency,
    Metric,
    Outlier,
    RunResult,
    VerdictLevel,
)
from iolab.core.resources import Resource, ResourceUse
from iolab.core.study import Study
from iolab.core.workload import Direction
from iolab.guests.guest import Accelerator, booted_guest_settings_of_run
from iolab.guests.nodes import (
    Guest,
    HypervisorRun,
    are_disks_modelled,
    guests_of_run,
    hypervisor_runs,
    vcpu_count_of_guest,
    written_bytes_of_node_by_layer,
)
from iolab.hosts.counter_names import GUESTS
from iolab.hosts.rates import ALL_CORES
from iolab.record import Record

LIKES_MIN: Final = 3
"""Of two that differ nobody can say which is the odd one."""

OUTLIER_SCORE: Final = 3.5
"""Modified z-score from which a value is told, as its authors advise."""

SCORE_FACTOR: Final = 0.6745
"""Makes the median absolute deviation of normal values their standard deviation."""

OUTLIER_RATIO: Final = 1.5
"""Times the median: what is closer needs no looking after, however alike the others are."""

NAMED_MAX: Final = 3
"""Of one metric; where more stand out, they are no exception."""

_LOOPBACK: Final = "lo"

_LATENCIES: Final = {"read_lat_ns": Direction.READ, "write_lat_ns": Direction.WRITE}

RHO_MIN: Final = 0.8
"""Of the requested I/Os, in flight: a guest with processors to spare keeps 0.85 and more on
modelled disks, one without 0.04 to 0.22."""

LATENCY_TIMES: Final = 2.0
"""The generator's mean latency over the hypervisor's: from here on more than half of it was spent
inside the guest."""

LATENCY_FLOOR_NS: Final = 50_000
"""Least difference of the two that is told: entering and leaving a guest takes tens of us by
itself, which is more than a fast device."""

IOS_MIN: Final = 50
"""Of fewer I/Os a mean latency at either place is chance."""

PROCESSORS_USED_SHARE: Final = 0.9
"""Share of the time that a guest's processors ran or waited for one of their node's from which it
has none left."""

OPEN_NS: Final = 2**63 - 1
"""The end of a bin that has none."""


class OutlierMetric(Record):
    """A metric that is looked at: the least difference that is told is in its unit.

    With `has_low_outliers` also what does less than its like is told, as a slow disk among fast
    ones does.
    """

    scope: str
    metric: str
    min_difference: float
    has_low_outliers: bool


WATCHED: Final = (
    OutlierMetric("disk", "read_iops", 50.0, has_low_outliers=True),
    OutlierMetric("disk", "write_iops", 50.0, has_low_outliers=True),
    OutlierMetric("disk", "read_lat_ns", 50_000.0, has_low_outliers=False),
    OutlierMetric("disk", "write_lat_ns", 50_000.0, has_low_outliers=False),
    OutlierMetric("cpu", "busy_share", 0.25, has_low_outliers=False),
    OutlierMetric("nic", "rx_bytes_per_s", 1e6, has_low_outliers=False),
    OutlierMetric("nic", "tx_bytes_per_s", 1e6, has_low_outliers=False),
    OutlierMetric("nic", "rx_frames_per_s", 1000.0, has_low_outliers=False),
    OutlierMetric("nic", "tx_frames_per_s", 1000.0, has_low_outliers=False),
)
"""Floors are what an idle system does by itself: 50 I/Os and a thousand frames a second, 1 MB/s; a
quarter of a core; 50 us, less than which drives of one kind differ in."""


def outlying_devices_of_node(view: RunView, node: HypervisorRun) -> tuple[Outlier, ...]:
    """What stood out on a node in the window that all hosts share."""
    window = view.load.measured_part.common_window
    if window is None or node.monitored_host is None:
        return ()
    return tuple(
        outlier
        for watched in WATCHED
        for outlier in find_device_outliers(
            watched, _window_mean_by_device(view, node, watched, window)
        )
    )


def find_device_outliers(
    outlier_metric: OutlierMetric, value_by_device: dict[str, float]
) -> tuple[Outlier, ...]:
    """Those of the values, by name, that stand out; the furthest first."""
    if len(value_by_device) < LIKES_MIN:
        return ()
    rows = np.array(list(value_by_device.values()))
    usual = float(np.median(rows))
    spread = float(np.median(np.abs(rows - usual)))
    outliers = []
    for name, value in value_by_device.items():
        gap = abs(value - usual)
        above = value > OUTLIER_RATIO * usual
        below = outlier_metric.has_low_outliers and value * OUTLIER_RATIO < usual
        if (
            gap > outlier_metric.min_difference
            and (above or below)
            and SCORE_FACTOR * gap > OUTLIER_SCORE * spread
        ):
            outliers.append(
                Outlier(outlier_metric.scope, name, outlier_metric.metric, value, usual)
            )
    outliers.sort(key=lambda outlier: -abs(outlier.value - outlier.median_value))
    return tuple(outliers) if len(outliers) <= NAMED_MAX else ()


def guest_iops_limit_uses(view: RunView) -> Iterator[ResourceUse]:
    """How much each guest used of the limit that the study puts on its disk."""
    settings = booted_guest_settings_of_run(view.record)
    limit = settings.iops_limit if settings else None
    if limit is None or not view.has_measured_load:
        return
    for guest in guests_of_run(view.record):
        rate = float(view.load.ios[guest.host_index].sum()) / max(
            float(view.load.seconds[guest.host_index]), 1e-9
        )
        yield ResourceUse(
            Resource.DISK_LIMIT, guest.name, HostRole.CLIENT, "", rate / limit, rate=rate
        )


def _window_mean_by_device(
    view: RunView, node: HypervisorRun, outlier_metric: OutlierMetric, window: Window
) -> dict[str, float]:
    """The means over the window of everything of one kind that the node has."""
    means: dict[str, float] = {}
    for name in _node_device_names(view, node, outlier_metric):
        mean = _mean_of_outlier_metric(view, node, outlier_metric, name, window)
        if mean is not None:
            means[name] = mean
    return means


def _mean_of_outlier_metric(
    view: RunView,
    node: HypervisorRun,
    outlier_metric: OutlierMetric,
    device_name: str,
    window: Window,
) -> float | None:
    """Over time; of latencies over I/Os, each of which weighs the same."""
    if outlier_metric.metric not in _LATENCIES:
        return view.mean_telemetry_of_named_host(
            node.name, outlier_metric.scope, device_name, outlier_metric.metric, window
        )
    latency = io_time_in_window(
        view,
        (node.name, outlier_metric.scope),
        [device_name],
        _LATENCIES[outlier_metric.metric],
        window,
    )
    return None if latency is None else latency.mean_ns


def _node_device_names(
    view: RunView, node: HypervisorRun, outlier_metric: OutlierMetric
) -> list[str]:
    names = [
        series.name
        for series in view.counter_series(node.name, outlier_metric.scope, outlier_metric.metric)
    ]
    if outlier_metric.scope == "disk" and node.monitored_host is not None:
        leaves = deltas_of_devices_on_no_other(node.monitored_host, view.facts.get(node.name))
        return [delta.device for delta in leaves]
    if outlier_metric.scope == "cpu":
        return [name for name in names if "@" in name]
    return [name for name in names if name != _LOOPBACK]


def hypervisor_results(view: RunView) -> tuple[HypervisorResult, ...]:
    """One for each node that guests of the run live on; the run's job is I/O on files.

    Metrics of a node are those of a result over the guests of that node alone: rates add up within
    the window that all hosts of the run share, latencies are merged bin by bin.
    """
    return tuple(
        HypervisorResult(
            name=node.name,
            guests=tuple(guest.name for guest in node.guests),
            metrics=metrics_of_host_group(
                view.load, node.guest_host_indexes, view.job.data_directions
            ),
            layers=layer_latencies_of_node(view, node),
            outliers=outlying_devices_of_node(view, node),
            bytes_written=written_bytes_of_node_by_layer(view, node),
            hypervisor_latencies=latency_percentiles_of_node_guests(node),
        )
        for node in hypervisor_runs(view.record)
    )


def points_by_hypervisor(
    results: Sequence[RunResult], study: Study
) -> Mapping[str, tuple[PointSummary, ...]]:
    """Every point as each node had it, by the node's name: published values over its repeats.

    They are made as those of the fleet (`points`), from the runs in which the node had guests.
    """
    of_node: dict[str, list[RunResult]] = {}
    for result in results:
        for node in result.nodes:
            alone = replace(result, metrics=node.metrics, nodes=(node,))
            of_node.setdefault(node.name, []).append(alone)
    return {name: summarise_points(runs, study) for name, runs in of_node.items()}


class GuestCpuShares(Record):
    """What each of a guest's processors had of the node's, as shares of the time."""

    run_share: float
    wait_share: float


class GuestBottleneckEvidence(Record):
    """How far a guest was its own limit, and what tells; None for what is not known.

    `reached_depth_share` is the share of the I/Os asked for that were in flight, of a closed loop;
    `tolerance` what the window's edges may hide of it. `busy_share` is the share of the time that a
    guest on KVM says its processors worked.
    """

    verdict_level: VerdictLevel
    reached_depth_share: float | None
    tolerance: float
    engine_latency_ns: float | None
    hypervisor_latency_ns: float | None
    cpu_shares: GuestCpuShares | None
    busy_share: float | None = None

    @property
    def is_below_requested_depth(self) -> bool:
        """Whether the loop was not kept full."""
        return (
            self.reached_depth_share is not None
            and self.reached_depth_share + self.tolerance < RHO_MIN
        )

    @property
    def is_latency_inside_guest(self) -> bool:
        """Whether most of the latency was spent above the hypervisor's own count."""
        if self.engine_latency_ns is None or self.hypervisor_latency_ns is None:
            return False
        excess_ns = self.engine_latency_ns - self.hypervisor_latency_ns
        return (
            excess_ns > LATENCY_FLOOR_NS
            and self.engine_latency_ns > LATENCY_TIMES * self.hypervisor_latency_ns
        )


def guest_bottleneck_evidence(view: RunView, guest: Guest) -> GuestBottleneckEvidence:
    """What is known of one guest; its job is I/O on files."""
    job = view.record.run.point.job_on_host(guest.name)
    flight = (
        host_concurrency(view.load, guest.host_index, job.iodepth_per_client)
        if job.is_closed_loop
        else None
    )
    enough = int(view.load.ios[guest.host_index].sum()) >= IOS_MIN
    kvm = guest.run.accelerator is Accelerator.KVM
    evidence = GuestBottleneckEvidence(
        verdict_level=VerdictLevel.VALID,
        reached_depth_share=flight.reached_depth_share if flight else None,
        tolerance=flight.window_edge_tolerance_share if flight else 0.0,
        engine_latency_ns=guest_mean_latency_ns(view, guest, LatencyLayer.ENGINE)
        if enough
        else None,
        hypervisor_latency_ns=guest_mean_latency_ns(view, guest, LatencyLayer.HYPERVISOR)
        if enough
        else None,
        cpu_shares=guest_cpu_shares(view, guest),
        busy_share=view.mean_telemetry(guest.host_index, "cpu", ALL_CORES, "busy_share")
        if kvm
        else None,
    )
    return replace(evidence, verdict_level=_guest_bottleneck_verdict_level(evidence))


def guests_that_were_own_bottleneck(view: RunView) -> frozenset[str]:
    """The guests of which guest-bound says that they were their own limit.

    Other checks that would say it of them again leave it at that.
    """
    if not view.job.iodepth_per_client:
        return frozenset()
    guests = guests_of_run(view.record)
    return frozenset(
        guest.name
        for guest in guests
        if guest_bottleneck_evidence(view, guest).verdict_level is VerdictLevel.INVALID
    )


def guests_with_node_counted_cpu(view: RunView) -> frozenset[str]:
    """The guests whose processors' use their node counts: guest-starved speaks of those."""
    return frozenset(
        guest.name
        for guest in guests_of_run(view.record)
        if guest_cpu_shares(view, guest) is not None
    )


def guest_cpu_shares(view: RunView, guest: Guest) -> GuestCpuShares | None:
    """What its processors had in the measured window, else in the whole run; None if unknown."""
    vcpus = vcpu_count_of_guest(view, guest)
    if not vcpus:
        return None
    window, node = view.measured_window(guest.host_index), guest.run.node
    run = view.mean_telemetry_of_named_host(node, GUESTS, guest.name, "vcpu_run_share", window)
    wait = view.mean_telemetry_of_named_host(node, GUESTS, guest.name, "vcpu_wait_share", window)
    if run is not None and wait is not None:
        return GuestCpuShares(run / vcpus, wait / vcpus)
    use = guest.run.use
    if use is None or use.wall_s <= 0:
        return None
    whole_s = use.wall_s * vcpus
    return GuestCpuShares(use.vcpu_run_s / whole_s, use.vcpu_wait_s / whole_s)


def _guest_bottleneck_verdict_level(guest_bottleneck: GuestBottleneckEvidence) -> VerdictLevel:
    if guest_bottleneck.is_below_requested_depth:
        return VerdictLevel.INVALID
    if not guest_bottleneck.is_latency_inside_guest:
        return VerdictLevel.VALID
    return (
        VerdictLevel.INVALID
        if _are_guest_vcpus_saturated(guest_bottleneck)
        else VerdictLevel.INDICATIVE
    )


def _are_guest_vcpus_saturated(guest_bottleneck: GuestBottleneckEvidence) -> bool:
    """Whether the guest's processors were in use, as its node and the guest itself count it.

    KVM polls for a while before a halted processor sleeps, and its node counts that as run: a guest
    that waits for fast devices would seem busy all the time.
    """
    if (
        guest_bottleneck.cpu_shares is None
        or guest_bottleneck.cpu_shares.run_share + guest_bottleneck.cpu_shares.wait_share
        < PROCESSORS_USED_SHARE
    ):
        return False
    return (
        guest_bottleneck.busy_share is None
        or guest_bottleneck.busy_share + guest_bottleneck.cpu_shares.wait_share
        >= PROCESSORS_USED_SHARE
    )


Bins = Sequence[tuple[int, int, int]]
"""(low ns, high ns, count), ascending, low included and high not."""


def latency_percentiles_of_node_guests(node: HypervisorRun) -> dict[str, Metric]:
    """Percentiles by direction of all guests of a node over the whole run, bins added exactly.

    Keys are those of a result; one without enough I/Os is left out, and all where the hypervisor of
    any guest keeps no bins.
    """
    metrics: dict[str, Metric] = {}
    for way in DIRECTIONS:
        counts = node.block_counts_of_guest_disks(way)
        if counts is not None and all(served.bins or not served.ios for served in counts):
            bins = merge_bins_with_equal_edges([served.bins for served in counts])
            total = sum(count for *_, count in bins)
            metrics |= {
                f"{way.key}_lat_ns_{name}": percentile_with_bin_bounds(bins, percent)
                for name, percent in PERCENTILES
                if is_percentile_supported(total, percent)
            }
    return metrics


def merge_bins_with_equal_edges(bin_sets: Sequence[Bins]) -> Bins:
    """The bins together; those with the same edges add up."""
    counts: dict[tuple[int, int], int] = {}
    for bins in bin_sets:
        for low, high, count in bins:
            counts[low, high] = counts.get((low, high), 0) + count
    return tuple((*edges, count) for edges, count in sorted(counts.items()))


def percentile_with_bin_bounds(bins: Bins, percent: float) -> Metric:
    """The percentile by a straight line through its bin, with the bin's edges and no n.

    In a bin without an end only "more than" is known. ValueError for bins of nothing.
    """
    rank = sum(count for *_, count in bins) * percent / 100
    below = 0
    for low, high, count in bins:
        if count and below + count >= rank:
            if high >= OPEN_NS:
                return Metric(None, "ns", low=float(low))
            value = low + (high - low) * (rank - below) / count
            return Metric(value, "ns", float(low), float(high))
        below += count
    raise ValueError("no latency has no percentile")


def layer_latencies_of_node(view: RunView, node: HypervisorRun) -> tuple[LayerLatency, ...]:
    """What every layer of a node saw in the window that all hosts share; nothing without one.

    It is told in the directions that the engines worked in, with their latencies as of a result. A
    layer of which any guest's or device's counters are missing is left out. Devices serve
    everybody: theirs is the mean of all their I/Os.
    """
    window = view.load.measured_part.common_window
    if window is None:
        return ()
    return tuple(
        latency
        for way in DIRECTIONS
        if view.load.ios[node.guest_host_indexes, way].any()
        for layer, see in _IO_TIME_BY_LAYER.items()
        if (latency := _layer_latency(layer, way, see(view, node, way, window))) is not None
    )


def guest_mean_latency_ns(view: RunView, guest: Guest, layer: LatencyLayer) -> float | None:
    """The mean latency of one guest's reads and writes at one layer; None where it is not known."""
    window = view.load.measured_part.common_window
    if window is None:
        return None
    alone = HypervisorRun(guest.run.node, (guest,), None)
    total = NO_IO_TIME
    for way in DIRECTIONS:
        counted = _IO_TIME_BY_LAYER[layer](view, alone, way, window)
        if counted is None:
            return None
        total += counted
    return total.mean_ns


def _engine_io_time(
    view: RunView, node: HypervisorRun, direction: Direction, _window: Window
) -> IoTime | None:
    load = view.load
    return IoTime(
        float(load.ios[node.guest_host_indexes, direction].sum()),
        float(load.lat_sum_ns[node.guest_host_indexes, direction].sum()),
    )


def _guest_device_io_time(
    view: RunView, node: HypervisorRun, direction: Direction, window: Window
) -> IoTime | None:
    """At the target's device in each guest."""
    total = NO_IO_TIME
    for guest in node.guests:
        facts = view.facts_of_host(view.hosts[guest.host_index])
        if facts is None or facts.target is None:
            return None
        names = nearest_device_names(facts.target.devices, facts)
        counted = io_time_in_window(view, (guest.name, "disk"), names, direction, window)
        if counted is None:
            return None
        total += counted
    return total


def _hypervisor_io_time(
    view: RunView, node: HypervisorRun, direction: Direction, window: Window
) -> IoTime | None:
    """In the window by the node's samples; where there are none, in the whole run."""
    names = [guest.name for guest in node.guests]
    counted = io_time_in_window(view, (node.name, GUESTS), names, direction, window)
    counts = node.block_counts_of_guest_disks(direction)
    if counted is not None or counts is None:
        return counted
    return IoTime(float(sum(c.ios for c in counts)), float(sum(c.total_time_ns for c in counts)))


def _node_device_io_time(
    view: RunView, node: HypervisorRun, direction: Direction, window: Window
) -> IoTime | None:
    if node.monitored_host is None or are_disks_modelled(view.record):
        return None
    disks = [
        delta.device
        for delta in deltas_of_devices_on_no_other(node.monitored_host, view.facts.get(node.name))
    ]
    return io_time_in_window(view, (node.name, "disk"), disks, direction, window)


_IO_TIME_BY_LAYER: Final[
    Mapping[LatencyLayer, Callable[[RunView, HypervisorRun, Direction, Window], IoTime | None]]
] = {
    LatencyLayer.ENGINE: _engine_io_time,
    LatencyLayer.GUEST: _guest_device_io_time,
    LatencyLayer.HYPERVISOR: _hypervisor_io_time,
    LatencyLayer.DEVICE: _node_device_io_time,
}
"""How each layer is seen, from the top."""


def _layer_latency(
    layer: LatencyLayer, direction: Direction, io_time: IoTime | None
) -> LayerLatency | None:
    mean = None if io_time is None else io_time.mean_ns
    if io_time is None or mean is None:
        return None
    return LayerLatency(layer, direction, mean, round(io_time.ios))
