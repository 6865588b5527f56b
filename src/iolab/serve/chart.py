"""The chart of a session that runs: the newest run, second by second. Pure."""

from __future__ import annotations

from html import escape
from typing import Final

import numpy as np

from iolab.core.metric import Result
from iolab.core.samples import Floats, IntervalTable
from iolab.report.kinds import LoadReport
from iolab.report.phrases import run_name
from iolab.units import format_count

WIDTH: Final = 420
HEIGHT: Final = 120
_LEFT: Final = 56
_FOOT: Final = 24
_TOP: Final = 10

POINTS_MAX: Final = 420
"""A point for each unit of the drawing; of more seconds the mean of some is drawn."""


def rates(kind: LoadReport, table: IntervalTable) -> Floats:
    """Operations a second of all hosts together, in each of their intervals from the first."""
    counted = sorted(kind.counted_once(np.unique(table.direction).tolist()))
    kept = np.isin(table.direction, counted) & (table.span_ns > 0)
    found = table.ios[kept] * 1e9 / table.span_ns[kept]
    return np.asarray(np.bincount(table.seq[kept], weights=found), dtype=np.float64)


def live_chart(kind: LoadReport, result: Result, table: IntervalTable) -> str:
    """An SVG element; nothing of a run with less than two intervals."""
    found = rates(kind, table)
    if found.size < 2:
        return ""
    step = -(-found.size // POINTS_MAX)
    ends = np.arange(0, found.size, step)
    drawn = np.add.reduceat(found, ends) / np.diff(np.append(ends, found.size))
    most = float(drawn.max()) or 1.0
    x = _LEFT + ends / max(found.size - 1, 1) * (WIDTH - _LEFT - 4)
    y = _TOP + (1 - drawn / most) * (HEIGHT - _TOP - _FOOT)
    line = " ".join(f"{across:.1f},{down:.1f}" for across, down in zip(x, y, strict=True))
    ground = HEIGHT - _FOOT
    unit = "IOPS" if "iops" in result.metrics else "ops/s"
    name = f"{result.configuration}: {run_name(result)}"
    says = f"{name}: {unit} in each of {found.size} s, at most {format_count(most)}"
    texts = (
        _text(f"{format_count(most)}", _LEFT - 6, _TOP + 5, "end"),
        _text(unit, _LEFT - 6, _TOP + 21, "end"),
        _text("0", _LEFT - 6, ground + 4, "end"),
        _text("1 s", _LEFT, HEIGHT - 6, "start"),
        _text(f"{found.size} s", WIDTH - 4, HEIGHT - 6, "end"),
    )
    return (
        f'<svg class="live" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" aria-label="{escape(says)}">'
        f'<path d="M{_LEFT} {_TOP}V{ground}H{WIDTH - 4}" fill="none" stroke="currentColor" '
        f'stroke-opacity="0.35"/><polyline points="{line}" fill="none" stroke="currentColor" '
        f'stroke-width="2" stroke-linejoin="round"/>{"".join(texts)}</svg>'
    )


def _text(text: str, x: float, y: float, anchor: str) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="12" text-anchor="{anchor}" '
        f'fill="currentColor">{escape(text)}</text>'
    )
