"""The device, core or port of a node that stands out among its like.

Something stands out when it is further from the median of its like than `SCORE` of their median
absolute deviations (the modified z-score, Iglewicz and Hoaglin 1993), and by half as much again as
the median, and by a floor below which nobody cares. It takes three to tell which is the odd one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.analyse.guests.disks import leaves_of
from iolab.analyse.guests.placement import Node
from iolab.analyse.guests.served import served
from iolab.analyse.view import RunView
from iolab.analyse.window import Window
from iolab.model.metric import Outlier
from iolab.model.sample import Direction

LIKES_LEAST: Final = 3
"""Of two that differ nobody can say which is the odd one."""

SCORE: Final = 3.5
"""Modified z-score from which a value is told, as its authors advise."""

SCORE_FACTOR: Final = 0.6745
"""Makes the median absolute deviation of normal values their standard deviation."""

APART: Final = 1.5
"""Times the median: what is closer needs no looking after, however alike the others are."""

NAMED_MOST: Final = 3
"""Of one metric; where more stand out, they are no exception."""

_LOOPBACK: Final = "lo"

_LATENCIES: Final = {"read_lat_ns": Direction.READ, "write_lat_ns": Direction.WRITE}


@dataclass(frozen=True, slots=True)
class Watched:
    """A metric that is looked at: `floor` is the least difference that is told, in its unit.

    With `low` also what does less than its like is told, as a slow disk among fast ones does.
    """

    scope: str
    metric: str
    floor: float
    low: bool


WATCHED: Final = (
    Watched("disk", "read_iops", 50.0, low=True),
    Watched("disk", "write_iops", 50.0, low=True),
    Watched("disk", "read_lat_ns", 50_000.0, low=False),
    Watched("disk", "write_lat_ns", 50_000.0, low=False),
    Watched("cpu", "busy_share", 0.25, low=False),
    Watched("nic", "rx_bytes_per_s", 1e6, low=False),
    Watched("nic", "tx_bytes_per_s", 1e6, low=False),
    Watched("nic", "rx_frames_per_s", 1000.0, low=False),
    Watched("nic", "tx_frames_per_s", 1000.0, low=False),
)
"""Floors are what an idle system does by itself: 50 I/Os and a thousand frames a second, 1 MB/s; a
quarter of a core; 50 us, less than which drives of one kind differ in."""


def outliers_of(view: RunView, node: Node) -> tuple[Outlier, ...]:
    """What stood out on a node in the window that all hosts share."""
    window = view.load.cut.common
    if window is None or node.watched is None:
        return ()
    return tuple(
        outlier
        for watched in WATCHED
        for outlier in standing_out(watched, _values(view, node, watched, window))
    )


def standing_out(watched: Watched, values: dict[str, float]) -> tuple[Outlier, ...]:
    """Those of the values, by name, that stand out; the furthest first."""
    if len(values) < LIKES_LEAST:
        return ()
    rows = np.array(list(values.values()))
    usual = float(np.median(rows))
    spread = float(np.median(np.abs(rows - usual)))
    found = []
    for name, value in values.items():
        off = abs(value - usual)
        above = value > APART * usual
        below = watched.low and value * APART < usual
        if off > watched.floor and (above or below) and SCORE_FACTOR * off > SCORE * spread:
            found.append(Outlier(watched.scope, name, watched.metric, value, usual))
    found.sort(key=lambda one: -abs(one.value - one.usual))
    return tuple(found) if len(found) <= NAMED_MOST else ()


def _values(view: RunView, node: Node, watched: Watched, window: Window) -> dict[str, float]:
    """The means over the window of everything of one kind that the node has."""
    found: dict[str, float] = {}
    for name in _names(view, node, watched):
        mean = _mean(view, node, watched, name, window)
        if mean is not None:
            found[name] = mean
    return found


def _mean(view: RunView, node: Node, watched: Watched, name: str, window: Window) -> float | None:
    """Over time; of latencies over I/Os, each of which weighs the same."""
    if watched.metric not in _LATENCIES:
        return view.mean_on(node.name, watched.scope, name, watched.metric, window)
    seen = served(view, (node.name, watched.scope), [name], _LATENCIES[watched.metric], window)
    return None if seen is None else seen.mean_ns


def _names(view: RunView, node: Node, watched: Watched) -> list[str]:
    told = [one.name for one in view.series_of(node.name, watched.scope, watched.metric)]
    if watched.scope == "disk" and node.watched is not None:
        leaves = leaves_of(node.watched, view.facts.get(node.name))
        return [delta.device for delta in leaves]
    if watched.scope == "cpu":
        return [name for name in told if "@" in name]
    return [name for name in told if name != _LOOPBACK]
