"""I/Os and the time they took within a window, from series of rates and mean latencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from iolab.analysis.metrics import NANOSECONDS, PERCENTILES, is_supported
from iolab.analysis.storage_bytes import leaves_of
from iolab.analysis.sums import DIRECTIONS
from iolab.analysis.view import NOTHING, RunView, Served, served
from iolab.analysis.window import Window
from iolab.core.metric import Layer, LayerLatency, Metric
from iolab.core.samples import Direction
from iolab.guests.nodes import Guest, Node, is_modelled
from iolab.hosts.telemetry import GUESTS

Bins = Sequence[tuple[int, int, int]]
"""(low ns, high ns, count), ascending, low included and high not."""

OPEN_NS: Final = 2**63 - 1
"""The end of a bin that has none."""


def hypervisor_metrics(node: Node) -> dict[str, Metric]:
    """Percentiles by direction of all guests of a node over the whole run, bins added exactly.

    Keys are those of a result; one without enough I/Os is left out, and all where the hypervisor of
    any guest keeps no bins.
    """
    found: dict[str, Metric] = {}
    if not all(guest.run.blocks for guest in node.guests):
        return found
    for way in DIRECTIONS:
        counts = [one for guest in node.guests for one in guest.run.blocks if one.direction is way]
        bins = merged([one.bins for one in counts])
        if all(one.bins or not one.ios for one in counts):
            total = sum(count for *_, count in bins)
            found |= {
                f"{way.name.lower()}_lat_ns_{name}": bounded(bins, percent)
                for name, percent in PERCENTILES
                if is_supported(total, percent)
            }
    return found


def merged(several: Sequence[Bins]) -> Bins:
    """The bins together; those with the same edges add up."""
    counts: dict[tuple[int, int], int] = {}
    for bins in several:
        for low, high, count in bins:
            counts[low, high] = counts.get((low, high), 0) + count
    return tuple((*edges, count) for edges, count in sorted(counts.items()))


def bounded(bins: Bins, percent: float) -> Metric:
    """The percentile by a straight line through its bin, with the bin's edges and no n.

    In a bin without an end only "more than" is known. ValueError for bins of nothing.
    """
    rank = sum(count for *_, count in bins) * percent / 100
    below = 0
    for low, high, count in bins:
        if count and below + count >= rank:
            if high >= OPEN_NS:
                return Metric(None, NANOSECONDS, low=float(low))
            value = low + (high - low) * (rank - below) / count
            return Metric(value, NANOSECONDS, float(low), float(high))
        below += count
    raise ValueError("no latency has no percentile")


def layers_of(view: RunView, node: Node) -> tuple[LayerLatency, ...]:
    """What every layer of a node saw in the window that all hosts share; nothing without one.

    It is told in the directions that the engines worked in, with their latencies as of a result. A
    layer of which any guest's or device's counters are missing is left out. Devices serve
    everybody: theirs is the mean of all their I/Os.
    """
    window = view.load.cut.common
    if window is None:
        return ()
    return tuple(
        found
        for way in DIRECTIONS
        if view.load.ios[node.hosts, way].any()
        for layer, see in _SEEN.items()
        if (found := _latency(layer, way, see(view, node, way, window))) is not None
    )


def guest_latency(view: RunView, guest: Guest, layer: Layer) -> float | None:
    """The mean latency of one guest's reads and writes at one layer; None where it is not known."""
    window = view.load.cut.common
    if window is None:
        return None
    alone = Node(guest.run.node, (guest,), None)
    found = NOTHING
    for way in DIRECTIONS:
        seen = _SEEN[layer](view, alone, way, window)
        if seen is None:
            return None
        found += seen
    return found.mean_ns


def _by_engine(view: RunView, node: Node, way: Direction, _window: Window) -> Served | None:
    load = view.load
    return Served(
        float(load.ios[node.hosts, way].sum()), float(load.lat_sum_ns[node.hosts, way].sum())
    )


def _by_guests(view: RunView, node: Node, way: Direction, window: Window) -> Served | None:
    """At the target's device in each guest."""
    total = NOTHING
    for guest in node.guests:
        target = view.target(view.hosts[guest.host])
        if target is None or target.device is None:
            return None
        seen = served(view, (guest.name, "disk"), [target.device], way, window)
        if seen is None:
            return None
        total += seen
    return total


def _by_hypervisor(view: RunView, node: Node, way: Direction, window: Window) -> Served | None:
    """In the window by the node's samples; where there are none, in the whole run."""
    names = [guest.name for guest in node.guests]
    seen = served(view, (node.name, GUESTS), names, way, window)
    if seen is not None or not all(guest.run.blocks for guest in node.guests):
        return seen
    counts = [one for guest in node.guests for one in guest.run.blocks if one.direction is way]
    return Served(float(sum(one.ios for one in counts)), float(sum(c.total_ns for c in counts)))


def _by_devices(view: RunView, node: Node, way: Direction, window: Window) -> Served | None:
    if node.watched is None or is_modelled(view.record):
        return None
    disks = [delta.device for delta in leaves_of(node.watched, view.facts.get(node.name))]
    return served(view, (node.name, "disk"), disks, way, window)


_SEEN: Final[Mapping[Layer, Callable[[RunView, Node, Direction, Window], Served | None]]] = {
    Layer.ENGINE: _by_engine,
    Layer.GUEST: _by_guests,
    Layer.HYPERVISOR: _by_hypervisor,
    Layer.DEVICE: _by_devices,
}
"""How each layer is seen, from the top."""


def _latency(layer: Layer, way: Direction, seen: Served | None) -> LayerLatency | None:
    mean = None if seen is None else seen.mean_ns
    if seen is None or mean is None:
        return None
    return LayerLatency(layer, way, mean, round(seen.ios))
