"""The axis of points: its scale by what is varied, and which of its values have a label."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from iolab.report.figures.frame import NUMBER_FORMAT, PLOT_WIDTH, Spec
from iolab.report.wording import axis_word

LABELS_MAX: Final = 8
"""Up to so many values are all labelled, as study files choose them."""

_SIZE_AXES: Final = frozenset({"bs", "filesize", "block_size"})
_LOG_AXES: Final = _SIZE_AXES | {"iodepth", "numjobs", "threads"}
_CHARACTER: Final = 6.6
"""Units of a digit at 12 units."""
_GAP: Final = 9.0
"""The least room between two labels."""
_PADDING: Final = 10


def x_encoding(axis: str, values: Iterable[float], nodes: int = 1) -> Spec:
    """The axis by its own scale: doublings for depths and sizes, even steps otherwise.

    With several `nodes` its values are of each of them: labels tell those of all, then of one.
    """
    found = sorted(set(values))
    log = axis in _LOG_AXES and min(found, default=0) > 0
    scale = {"type": "log", "base": 2} if log else {"type": "linear", "zero": False}
    return {
        "field": "x",
        "type": "quantitative",
        "scale": {**scale, "nice": False, "padding": _PADDING},
        "axis": {
            "values": _labelled(found, nodes, log=log),
            "grid": False,
            "title": _title(axis, nodes),
            "tickSize": 4,
            **(_of_nodes(nodes) if nodes > 1 else tick_labels(axis)),
        },
    }


def tick_labels(axis: str) -> Spec:
    """How values of the axis are written: sizes as study files have them, others as numbers."""
    return {"labelExpr": _SIZE_LABEL} if axis in _SIZE_AXES else {"format": NUMBER_FORMAT}


_SIZE_LABEL: Final = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, '.6~r') + 'g' : "
    "datum.value >= 1048576 ? format(datum.value / 1048576, '.6~r') + 'm' : "
    "datum.value >= 1024 ? format(datum.value / 1024, '.6~r') + 'k' : format(datum.value, '.6~r')"
)
"""Sizes on the axis as study files write them."""


def _of_nodes(nodes: int) -> Spec:
    """`12 (3)`: those of all nodes, and of each."""
    return {"labelExpr": f"datum.value * {nodes} + ' (' + datum.value + ')'"}


def _title(axis: str, nodes: int) -> str:
    return f"VMs on {nodes} nodes (on each)" if nodes > 1 else axis_word(axis)


def _labelled(values: Sequence[float], nodes: int, *, log: bool) -> list[float]:
    """The first, the last, and as many between them as have room."""
    if len(values) <= LABELS_MAX and nodes == 1:
        return list(values)
    if not values:
        return []
    places = [math.log2(value) if log else value for value in values]
    span = max(places[-1] - places[0], 1e-9)
    room = PLOT_WIDTH - 2 * _PADDING
    pixels = [room * (place - places[0]) / span for place in places]
    widths = [_CHARACTER * len(_text(value, nodes)) for value in values]
    last = len(values) - 1
    kept = [0]
    for index in range(1, last):
        before = pixels[index] - pixels[kept[-1]] - (widths[index] + widths[kept[-1]]) / 2
        after = pixels[last] - pixels[index] - (widths[index] + widths[last]) / 2
        if min(before, after) >= _GAP:
            kept.append(index)
    return [values[index] for index in dict.fromkeys([*kept, last])]


def _text(value: float, nodes: int) -> str:
    return f"{value * nodes:g} ({value:g})" if nodes > 1 else f"{value:,g}"
