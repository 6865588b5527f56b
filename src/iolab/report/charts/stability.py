"""Whether the ground of a study was still: rounds before it (SNIA), the sentinel all through it."""

from __future__ import annotations

from typing import Final

from iolab.analysis.points import SentinelAlarm, sentinel_alarm_sentence
from iolab.core.metric import RunResult
from iolab.core.target_state import PreconditioningRounds, SteadyStateVerdict
from iolab.record import Record
from iolab.report.charts.chart import (
    Chart,
    Line,
    LineEndLabel,
    Mark,
    Markers,
    MarkerStyle,
    MarkTooltip,
    Plot,
    Rectangles,
)
from iolab.report.charts.palette import INK, MUTED, RAISED, ColorToken
from iolab.report.charts.scale import ChartAxis, Scale, integer_axis, linear_scale
from iolab.report.numbers import value_text
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.stats.rounds import DATA_EXCURSION_MAX, SLOPE_EXCURSION_MAX, WINDOW
from iolab.text import counted_noun, percent_text
from iolab.units import format_duration_s

HEIGHT: Final = 150
LABELS: Final = 8
"""Rounds or runs named on the axis at most."""

_BAND: Final = 0.14

_HALF: Final = DATA_EXCURSION_MAX / 2
"""The band of the rule, which bounds the distance of highest and lowest."""


class SentinelRuns(Record):
    """The sentinel's runs in the order in which they were made; `metric` is what is watched."""

    metric: str
    runs: tuple[RunResult, ...]
    alarms: tuple[SentinelAlarm, ...]
    last_run_order: int
    """The order of the session's last run."""

    @property
    def metric_values(self) -> tuple[float, ...]:
        """What each run gave."""
        return tuple(run.metrics[self.metric].value or 0.0 for run in self.runs)

    @property
    def unit(self) -> str:
        """The unit of the values."""
        return self.runs[0].metrics[self.metric].unit


def steady_state_rounds_chart(
    subject: str, series: PreconditioningRounds, color: ColorToken
) -> Chart:
    """The rate of each round; over the last window its average, ±10 % of it, and its slope."""
    verdict = series.verdict
    band = [] if verdict is None else [verdict.average * (1 + side) for side in (-_HALF, _HALF)]
    scale = linear_scale("1/s", [*series.iops, *band])
    places = [(float(at), scale.to_scale_unit(rate)) for at, rate in enumerate(series.iops, 1)]
    marks: list[Mark] = [
        Line(color=color, places=places),
        Markers(color=color, places=places, marker_style=MarkerStyle.PLAIN, tip=MarkTooltip()),
    ]
    ends = [LineEndLabel("IOPS", places[-1][1], color)] if places else []
    if verdict is not None:
        marks = [*_steady_window_marks(verdict, scale), *marks]
        ends.append(LineEndLabel("average", scale.to_scale_unit(verdict.average), MUTED))
    return Chart(
        subject=subject,
        title="Rounds until the steady state",
        finding=_preconditioning_rounds_sentence(series),
        note=(
            f"Each round is {format_duration_s(series.round_s)}. Band: "
            f"±{percent_text(_HALF)} of the "
            f"average of the last {WINDOW} rounds; dotted: the line fitted through them."
        ),
        plots=(
            Plot(HEIGHT, marks, _integer_axis_from_one(len(series.iops), "round"), scale, ends),
        ),
        table=_preconditioning_rounds_table(subject, series),
    )


def _steady_window_marks(verdict: SteadyStateVerdict, scale: Scale) -> list[Mark]:
    """The band, the average and the fitted line over the last window."""
    first, last = float(verdict.first_round), float(verdict.first_round + WINDOW - 1)
    low, high = (scale.to_scale_unit(verdict.average * (1 + side)) for side in (-_HALF, _HALF))
    level = scale.to_scale_unit(verdict.average)
    fitted = [
        (at, scale.to_scale_unit(verdict.intercept + verdict.slope * at)) for at in (first, last)
    ]
    return [
        Rectangles(color=MUTED, boxes=[(first, low, last, high)], opacity=_BAND),
        Line(
            color=MUTED,
            places=[(first, level), (last, level)],
            width=1.2,
            tip=MarkTooltip("average"),
        ),
        Line(color=INK, places=fitted, width=1.2, dash=(1.5, 3), tip=MarkTooltip("fitted line")),
    ]


def _preconditioning_rounds_sentence(series: PreconditioningRounds) -> str:
    rounds = counted_noun(len(series.iops), "round")
    verdict = series.verdict
    if verdict is None:
        return f"After {rounds} of the {WINDOW} that a window has nothing can be said."
    word = "Steady" if verdict.achieved else "Not steady"
    return (
        f"{word} after {rounds}: the last {WINDOW} lie within "
        f"{percent_text(verdict.data_excursion)} "
        f"of their average of {value_text(verdict.average, '1/s')} "
        f"({percent_text(DATA_EXCURSION_MAX)} may), their line moves by "
        f"{percent_text(verdict.slope_excursion)} ({percent_text(SLOPE_EXCURSION_MAX)} may)."
    )


def _preconditioning_rounds_table(subject: str, series: PreconditioningRounds) -> Table:
    verdict = series.verdict
    rows = tuple(
        row_of_cells(
            str(at),
            value_text(rate, "1/s"),
            _deviation_from_average_text(rate, verdict)
            if verdict and at >= verdict.first_round
            else "",
        )
        for at, rate in enumerate(series.iops, 1)
    )
    return Table(
        subject, text_and_number_columns(("Round",), ("IOPS", "To the window’s average")), rows
    )


def _deviation_from_average_text(rate: float, verdict: SteadyStateVerdict) -> str:
    return percent_text(rate / verdict.average - 1, is_signed=True) if verdict.average > 0 else ""


def sentinel_chart(subject: str, sentinel_runs: SentinelRuns, color: ColorToken) -> Chart:
    """The sentinel's runs against their place in the session; runs in doubt are shaded."""
    scale = linear_scale(sentinel_runs.unit, sentinel_runs.metric_values)
    places = [
        (float(run.order), scale.to_scale_unit(value))
        for run, value in zip(sentinel_runs.runs, sentinel_runs.metric_values, strict=True)
    ]
    doubted = [
        (float(alarm.last_trusted_order), None, float(alarm.moved_order), None)
        for alarm in sentinel_runs.alarms
    ]
    marks: list[Mark] = [Rectangles(color=RAISED, boxes=doubted)] if doubted else []
    levels = [run.verdict.level for run in sentinel_runs.runs]
    marks += [
        Line(color=color, places=places, width=1.2),
        Markers(color=color, places=places, verdict_levels=levels, tip=MarkTooltip()),
    ]
    return Chart(
        subject=subject,
        title="The sentinel through the session",
        finding=_sentinel_sentence(sentinel_runs),
        note="One point measured again and again. Shaded: runs that are in doubt.",
        plots=(
            Plot(
                HEIGHT,
                marks,
                _integer_axis_from_one(sentinel_runs.last_run_order, "run of the session"),
                scale,
            ),
        ),
        table=_sentinel_table(subject, sentinel_runs),
    )


def _sentinel_sentence(sentinel_runs: SentinelRuns) -> str:
    low, high = (
        value_text(end, sentinel_runs.unit)
        for end in (min(sentinel_runs.metric_values), max(sentinel_runs.metric_values))
    )
    spread = f"{counted_noun(len(sentinel_runs.runs), 'run')} between {low} and {high}."
    if not sentinel_runs.alarms:
        return f"{spread} No more than runs of a point differ anyway."
    return " ".join([spread, *(sentinel_alarm_sentence(alarm) for alarm in sentinel_runs.alarms)])


def _sentinel_table(subject: str, sentinel_runs: SentinelRuns) -> Table:
    rows = tuple(
        row_of_cells(
            str(run.order),
            value_text(value, sentinel_runs.unit),
            percent_text(value / sentinel_runs.metric_values[0] - 1, is_signed=True),
            run.verdict.level,
        )
        for run, value in zip(sentinel_runs.runs, sentinel_runs.metric_values, strict=True)
    )
    heads = text_and_number_columns(("Run",), ("Rate", "To the first"), ("Verdict",))
    return Table(subject, heads, rows)


def _integer_axis_from_one(last: int, title: str) -> ChartAxis:
    """Whole numbers from 1, as many of them named as have room."""
    step = max(1, -(-last // LABELS))
    return integer_axis(last + 0.5, title, range(1, last + 1, step), low=0.5)
