"""The latency account: what each layer saw of the same I/Os, from the generator to the device.

Each layer's mean holds that of the layer below it. What is between two neighbours is the time that
the upper one spent by itself: docs/reference/metrics.md says what that is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from iolab.analyse.guests.disks import leaves_of
from iolab.analyse.guests.placement import Guest, Node, is_modelled
from iolab.analyse.guests.served import NOTHING, Served, served
from iolab.analyse.load import DIRECTIONS
from iolab.analyse.view import RunView
from iolab.analyse.window import Window
from iolab.model.metric import Layer, LayerLatency
from iolab.model.sample import Direction
from iolab.run.telemetry.decode import GUESTS


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
