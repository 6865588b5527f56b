"""Whether the ground of a study was still: rounds before it (SNIA), the sentinel all through it."""

from __future__ import annotations

from typing import Final

from iolab.analysis.points import Alarm, alarm_text
from iolab.core.metric import Result
from iolab.core.target_state import RoundsSeries, RoundsVerdict
from iolab.dataclass import dataclass
from iolab.report.charts.chart import (
    Boxes,
    DotStyle,
    End,
    Figure,
    Line,
    Mark,
    MarkTip,
    Plot,
    Points,
)
from iolab.report.charts.palette import INK, MUTED, RAISED, Token
from iolab.report.charts.scale import ChartAxis, Scale, counted_axis, linear_scale
from iolab.report.numbers import count, show_value
from iolab.report.table import Table, columns, row
from iolab.stats.rounds import DATA_EXCURSION_MAX, SLOPE_EXCURSION_MAX, WINDOW
from iolab.units import format_duration_s

HEIGHT: Final = 150
LABELS: Final = 8
"""Rounds or runs named on the axis at most."""

_BAND: Final = 0.14


@dataclass(frozen=True, slots=True)
class SentinelRuns:
    """The sentinel's runs in the order in which they were made; `metric` is what is watched."""

    metric: str
    runs: tuple[Result, ...]
    alarms: tuple[Alarm, ...]
    last: int
    """The order of the session's last run."""

    @property
    def values(self) -> tuple[float, ...]:
        """What each run gave."""
        return tuple(run.metrics[self.metric].value or 0.0 for run in self.runs)

    @property
    def unit(self) -> str:
        """The unit of the values."""
        return self.runs[0].metrics[self.metric].unit


def rounds_figure(subject: str, series: RoundsSeries, token: Token) -> Figure:
    """The rate of each round; over the last window its average, ±10 % of it, and its slope."""
    verdict = series.verdict
    band = [] if verdict is None else [verdict.average * (1 + side) for side in (-_HALF, _HALF)]
    scale = linear_scale("1/s", [*series.iops, *band])
    places = [(float(at), scale.of(rate)) for at, rate in enumerate(series.iops, 1)]
    marks: list[Mark] = [
        Line(token=token, places=places),
        Points(token=token, places=places, dot=DotStyle.PLAIN, tip=MarkTip()),
    ]
    ends = [End("IOPS", places[-1][1], token)] if places else []
    if verdict is not None:
        marks = [*_window(verdict, scale), *marks]
        ends.append(End("average", scale.of(verdict.average), MUTED))
    return Figure(
        subject=subject,
        title="Rounds until the steady state",
        finding=_rounds_finding(series),
        note=(
            f"Each round is {format_duration_s(series.round_s)}. Band: ±{100 * _HALF:.0f} % of the "
            f"average of the last {WINDOW} rounds; dotted: the line fitted through them."
        ),
        plots=(Plot(HEIGHT, marks, _counted(len(series.iops), "round"), scale, ends),),
        table=_rounds_table(subject, series),
    )


_HALF: Final = DATA_EXCURSION_MAX / 2
"""The band of the rule, which bounds the distance of highest and lowest."""


def _window(verdict: RoundsVerdict, scale: Scale) -> list[Mark]:
    """The band, the average and the fitted line over the last window."""
    first, last = float(verdict.first_round), float(verdict.first_round + WINDOW - 1)
    low, high = (scale.of(verdict.average * (1 + side)) for side in (-_HALF, _HALF))
    level = scale.of(verdict.average)
    fitted = [(at, scale.of(verdict.intercept + verdict.slope * at)) for at in (first, last)]
    return [
        Boxes(token=MUTED, boxes=[(first, low, last, high)], opacity=_BAND),
        Line(
            token=MUTED,
            places=[(first, level), (last, level)],
            width=1.2,
            tip=MarkTip("average"),
        ),
        Line(token=INK, places=fitted, width=1.2, dash=(1.5, 3), tip=MarkTip("fitted line")),
    ]


def _rounds_finding(series: RoundsSeries) -> str:
    rounds = count(len(series.iops), "round")
    verdict = series.verdict
    if verdict is None:
        return f"After {rounds} of the {WINDOW} that a window has nothing can be said."
    word = "Steady" if verdict.achieved else "Not steady"
    return (
        f"{word} after {rounds}: the last {WINDOW} lie within {100 * verdict.data_excursion:.1f} % "
        f"of their average of {show_value(verdict.average, '1/s')} "
        f"({100 * DATA_EXCURSION_MAX:.0f} % may), their line moves by "
        f"{100 * verdict.slope_excursion:.1f} % ({100 * SLOPE_EXCURSION_MAX:.0f} % may)."
    )


def _rounds_table(subject: str, series: RoundsSeries) -> Table:
    verdict = series.verdict
    rows = tuple(
        row(
            str(at),
            show_value(rate, "1/s"),
            _to_average(rate, verdict) if verdict and at >= verdict.first_round else "",
        )
        for at, rate in enumerate(series.iops, 1)
    )
    return Table(subject, columns(("Round",), ("IOPS", "To the window’s average")), rows)


def _to_average(rate: float, verdict: RoundsVerdict) -> str:
    return f"{100 * (rate / verdict.average - 1):+.1f} %" if verdict.average > 0 else ""


def sentinel_figure(subject: str, watched: SentinelRuns, token: Token) -> Figure:
    """The sentinel's runs against their place in the session; runs in doubt are shaded."""
    scale = linear_scale(watched.unit, watched.values)
    places = [
        (float(run.order), scale.of(value))
        for run, value in zip(watched.runs, watched.values, strict=True)
    ]
    doubted = [(float(alarm.after), None, float(alarm.at), None) for alarm in watched.alarms]
    marks: list[Mark] = [Boxes(token=RAISED, boxes=doubted)] if doubted else []
    levels = [run.verdict.level for run in watched.runs]
    marks += [
        Line(token=token, places=places, width=1.2),
        Points(token=token, places=places, levels=levels, tip=MarkTip()),
    ]
    return Figure(
        subject=subject,
        title="The sentinel through the session",
        finding=_sentinel_finding(watched),
        note="One point measured again and again. Shaded: runs that are in doubt.",
        plots=(Plot(HEIGHT, marks, _counted(watched.last, "run of the session"), scale),),
        table=_sentinel_table(subject, watched),
    )


def _sentinel_finding(watched: SentinelRuns) -> str:
    low, high = (
        show_value(end, watched.unit) for end in (min(watched.values), max(watched.values))
    )
    spread = f"{count(len(watched.runs), 'run')} between {low} and {high}."
    if not watched.alarms:
        return f"{spread} No more than runs of a point differ anyway."
    return " ".join([spread, *(alarm_text(alarm) for alarm in watched.alarms)])


def _sentinel_table(subject: str, watched: SentinelRuns) -> Table:
    rows = tuple(
        row(
            str(run.order),
            show_value(value, watched.unit),
            f"{100 * (value / watched.values[0] - 1):+.1f} %",
            run.verdict.level,
        )
        for run, value in zip(watched.runs, watched.values, strict=True)
    )
    heads = columns(("Run",), ("Rate", "To the first"), ("Verdict",))
    return Table(subject, heads, rows)


def _counted(last: int, title: str) -> ChartAxis:
    """Whole numbers from 1, as many of them named as have room."""
    step = max(1, -(-last // LABELS))
    return counted_axis(last + 0.5, title, range(1, last + 1, step), low=0.5)
