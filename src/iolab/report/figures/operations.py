"""Metadata load: the rate of each operation, one marker an iteration, and latency by percentile.

Rates of operations differ by orders of magnitude, so their axis is logarithmic. Each operation has
a row with its name over it; the marker tells the verdict by its shape, as on the other charts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from iolab.analyse.iterations import OperationStatistics, PointStatistics
from iolab.model.metadata import Operation
from iolab.model.metric import Level
from iolab.model.study import Study
from iolab.report.detail import RunDetail
from iolab.report.figures.axis import shape_of
from iolab.report.figures.distribution import Drawn, distribution_figure
from iolab.report.figures.frame import (
    BOTTOM,
    LEFT,
    RIGHT,
    WIDTH,
    Figure,
    Scale,
    Spec,
    label,
    log_scale,
    top_level,
)
from iolab.report.operations import NAMES, over, point_name, rate_text
from iolab.report.palette import FAINT, INK, MUTED, PAPER, Token, series_token
from iolab.report.table import Cell, Table, columns, verdict_cell
from iolab.report.wording import NOTHING, count

NAME_ROOM: Final = 24
"""Units over a row's markers for the operation's name."""

LINE: Final = 15
"""Units of each point's markers in a row."""

MAX_POINTS: Final = 4
"""Points drawn in a row; the others stand in the table alone."""

HEAD: Final = 8
PLOT: Final = WIDTH - LEFT - RIGHT
END: Final = PLOT + 10
_AXIS: Final = "operations a second"


class Coloured(Protocol):
    """A configuration's look on every chart."""

    @property
    def token(self) -> Token:
        """Its colour."""


def operation_token(operation: Operation) -> Token:
    """The colour of an operation where lines are told apart by it."""
    return series_token(list(Operation).index(operation) - 1)


def rates_figure(
    subject: str, points: Sequence[PointStatistics], study: Study, looks: Mapping[str, Coloured]
) -> Figure:
    """The rate of every iteration, a row for each operation, and beside it the mean."""
    drawn = points[:MAX_POINTS]
    operations = [op for op in Operation if any(_of(point, op) for point in drawn)]
    step = NAME_ROOM + LINE * len(drawn)
    height = step * len(operations)
    values = [v for point in drawn for one in point.operations for v in one.values]
    scale = _scale(values)
    layers: list[Spec] = []
    for index, operation in enumerate(operations):
        top = index * step
        layers.append(_text(NAMES[operation], 0, top + 16, INK))
        for line, point in enumerate(drawn):
            one = _of(point, operation)
            if one is not None:
                y = top + NAME_ROOM + LINE * line + LINE / 2 - 3
                token = looks[point.configuration].token
                name = _end(one, point, points)
                layers += [*_markers(one, point, y, scale, token), _text(name, END, y + 4, token)]
    left_out = len(points) - len(drawn)
    note = (
        "One marker is one iteration; beside it stands the mean of a row, in operations a second."
    )
    note += f" {count(left_out, 'point')} more in the table." if left_out > 0 else ""
    return Figure(
        subject=subject,
        title="Rate of each operation",
        finding=_finding(drawn, study),
        note=note,
        spec={**top_level(PLOT, height, top=HEAD), "layer": layers},
        width=WIDTH,
        height=HEAD + height + BOTTOM,
        table=_table(points, study),
    )


def _scale(values: Sequence[float]) -> Scale:
    """In plain operations a second: rates of operations share no unit that reads well."""
    scale = log_scale("ops/s", values, most=6)
    low, high, ticks = scale.low, scale.high, tuple(tick * scale.divisor for tick in scale.ticks)
    return Scale(1.0, _AXIS, low * scale.divisor, high * scale.divisor, ticks, log=True)


def _of(point: PointStatistics, operation: Operation) -> OperationStatistics | None:
    return next((one for one in point.operations if one.operation is operation), None)


def _markers(
    one: OperationStatistics, point: PointStatistics, y: float, scale: Scale, token: Token
) -> list[Spec]:
    """A guide and the markers by verdict."""
    layers: list[Spec] = [
        {
            "data": {"values": [{}]},
            "mark": {"type": "rule", "stroke": FAINT.stand_in, "strokeWidth": 1},
            "encoding": {"x": {"value": 0}, "x2": {"value": PLOT}, "y": {"value": y}},
        }
    ]
    for level in Level:
        rows = [
            {"x": scale.of(value)}
            for value, found in _values(one, point)
            if found is level and value > 0
        ]
        if rows:
            layers.append(_points(rows, level, y, scale, token))
    return layers


def _end(
    one: OperationStatistics, point: PointStatistics, points: Sequence[PointStatistics]
) -> str:
    """The mean, before it what tells the points of a configuration apart."""
    several = len({other.axis for other in points}) > 1
    values = " ".join(str(value) for _, value in point.axis)
    return label(f"{values}: {rate_text(one.mean)}" if several else rate_text(one.mean))


def _values(one: OperationStatistics, point: PointStatistics) -> list[tuple[float, Level]]:
    """(rate, verdict) of each iteration."""
    return [
        (value, result.verdict.level)
        for result in point.results
        if (value := result.metrics[one.metric].value) is not None
    ]


def _points(
    rows: list[dict[str, float]], level: Level, y: float, scale: Scale, token: Token
) -> Spec:
    filled = level is Level.VALID
    return {
        "data": {"values": rows},
        "mark": {
            "type": "point",
            "shape": shape_of(level),
            "size": 42 if filled else 70,
            "filled": False,
            "fill": token.stand_in if filled else PAPER.stand_in,
            "stroke": token.stand_in,
            "strokeWidth": 1.6,
            "opacity": 1,
        },
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "scale": scale.spec(),
                "axis": {
                    "values": list(scale.ticks),
                    "format": "~s",
                    "title": scale.unit,
                    "grid": True,
                    "tickSize": 4,
                },
            },
            "y": {"value": y},
        },
    }


def _text(text: str, x: float, y: float, token: Token) -> Spec:
    return {
        "data": {"values": [{"text": text}]},
        "mark": {"type": "text", "align": "left", "baseline": "alphabetic", "fill": token.stand_in},
        "encoding": {
            "x": {"value": x},
            "y": {"value": y},
            "text": {"field": "text", "type": "nominal"},
        },
    }


def _finding(points: Sequence[PointStatistics], study: Study) -> str:
    """The mean of every operation; of several points that of creates; with the worst verdict."""
    sentences = []
    for point in points:
        name = point_name(point, study)
        told = ", ".join(
            f"{NAMES[one.operation].lower()} {rate_text(one.mean)}"
            for one in point.operations
            if len(points) == 1 or one.operation is Operation.FILE_CREATE
        )
        worst = max((one.level for one in point.operations), key=lambda level: level.rank)
        before = f"{name}: " if name else ""
        sentences.append(f"{before}mean operations a second: {told}; at worst {worst.value}.")
    return " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)


def _table(points: Sequence[PointStatistics], study: Study) -> Table:
    heads = columns(("Operation", "Point", "Rate over"), ("Repeat", "Operations/s"))
    rows = tuple(
        (
            Cell(NAMES[one.operation]),
            Cell(point_name(point, study) or NOTHING),
            Cell(over(one)),
            Cell(str(result.repeat)),
            Cell(rate_text(result.metrics[one.metric].value)),
            verdict_cell(result.verdict.level),
        )
        for point in points
        for one in point.operations
        for result in point.results
    )
    return Table("Rate of each operation", (*heads, *columns(("Verdict",))), rows)


def operations_distribution(subject: str, title: str, detail: RunDetail) -> Figure | None:
    """One run's latency by percentile, a curve for each operation; None without any."""
    tokens = {name: operation_token(operation) for operation, name in NAMES.items()}
    drawn = [
        Drawn(curve, curve.name.removeprefix("File "), tokens.get(curve.name, MUTED))
        for curve in detail.curves
        if curve.tail
    ]
    return distribution_figure(subject, title, drawn, "operations") if drawn else None
