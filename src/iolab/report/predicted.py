"""What curves predict of loads that were not measured, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from iolab.analysis.bottleneck.watch import view_of, watch
from iolab.analysis.prediction import Predicted, Watch, predictions
from iolab.core.metric import Level, Metric, worst_level
from iolab.core.resources import ResourceUse, RunResources
from iolab.dataclass import dataclass
from iolab.errors import StoreError
from iolab.report.brief import Brief
from iolab.report.charts.bars import Bar, BarGroup, charts_by_unit, group_by, horizontal_bars
from iolab.report.charts.chart import ChartGroup, Looks, ReportSection
from iolab.report.gather import SessionSource, record_of
from iolab.report.maxima import sentence
from iolab.report.numbers import NOTHING, axis_label, axis_word, show_value
from iolab.report.table import Cell, Table, columns, row

if TYPE_CHECKING:
    from iolab.analysis.kinds import Analyses
    from iolab.report.charts.chart import Figure
    from iolab.stats.scaling import Prediction

ANCHOR: Final = "predicted"

_LEDE: Final = (
    "Computed from measured points of the same workload and configuration, each curve by itself; "
    "measure before you rely on it. The interval holds nine of ten loads that were held out."
)
_NOTE: Final = "Hatched: predicted, not measured. Lines: the 90 % interval."


@dataclass(frozen=True, slots=True)
class AskedLoad:
    """A load to predict, on an axis by its name in studies; `extrapolate` allows any distance."""

    axis: str
    load: int
    extrapolate: bool

    def of(self, brief: Brief, look: Watch) -> tuple[Predicted, ...]:
        """What every curve over that axis says of it."""
        return predictions(
            brief.study, brief.points, self.axis, self.load, look, extrapolate=self.extrapolate
        )


def predicted(
    asked: Sequence[AskedLoad],
    look: Watch,
    brief: Brief,
) -> ReportSection | None:
    """The section on these loads; None where no workload varies any of the axes."""
    groups = []
    for asked_load in asked:
        outcomes = asked_load.of(brief, look)
        if outcomes:
            title = f"{axis_word(asked_load.axis)} {asked_load.load}"
            table = _basis(title, asked_load, outcomes, brief)
            figures = _figures(title, outcomes, brief)
            groups.append(ChartGroup(title, figures, table))
    if not groups:
        return None
    return ReportSection(ANCHOR, "Predicted, not measured", _LEDE, tuple(groups), in_appendix=False)


def watch_of(source: SessionSource, analyses: Analyses) -> Watch:
    """What the first run of a point tells of its resources; None where it is damaged.

    Each record is read once, of however many loads a prediction is asked.
    """

    @cache
    def first_run(key: tuple[str, int]) -> RunResources | None:
        try:
            record = record_of(source, key, source.manifest(*key), with_counters=True)
        except StoreError:
            return None
        return watch(view_of(record, source.facts, analyses))

    return lambda point: first_run((point.results[0].digest, point.results[0].repeat))


def resource_name(use: ResourceUse) -> str:
    """A resource as the limit of a prediction: what it is, its name, and whose."""
    return " ".join(filter(None, (use.resource.value, use.name, "of", use.host)))


def interval_text(prediction: Prediction, unit: str) -> str:
    """From where to where a predicted rate is, in nine of ten cases."""
    return f"[{show_value(prediction.low, unit)}, {show_value(prediction.high, unit)}]"


def caveat(outcome: Predicted, load: int) -> str:
    """What limits a prediction, how far it goes beyond what was measured, or why there is none."""
    prediction = outcome.prediction
    if prediction is None:
        return f"{outcome.reason}."
    parts = []
    if (
        prediction.limit is not None
        and outcome.limited_by is not None
        and prediction.high >= prediction.limit
    ):
        limit = show_value(prediction.limit, outcome.unit)
        parts.append(f"at most {limit} by {resource_name(outcome.limited_by)}")
    if load > (last := outcome.measured[-1].load):
        parts.append(
            f"{load / last:.2g} times the largest measured load: a bend or fall there is not seen"
        )
    return "; ".join(parts)


def _basis(
    title: str,
    asked: AskedLoad,
    outcomes: Sequence[Predicted],
    brief: Brief,
) -> Table:
    """What each prediction is made of, and what to know of it."""
    heads = columns(
        ("Workload", "Configuration", "Measured"),
        ("Predicted", "90 % interval", "Runs a load"),
        ("Law", "To know"),
    )
    rows = tuple(
        (
            Cell(_title(outcome, brief)),
            Cell(brief.looks[outcome.configuration].title),
            Cell(
                f"{outcome.measured[0].load:g} to {outcome.measured[-1].load:g}"
                if outcome.measured
                else NOTHING
            ),
            *_rate(outcome),
            Cell(str(outcome.runs) if outcome.runs else NOTHING),
            Cell(outcome.prediction.law.value if outcome.prediction else NOTHING),
            Cell(caveat(outcome, asked.load)),
        )
        for outcome in outcomes
    )
    return Table(f"What is predicted from, at {title}", heads, rows)


def _rate(outcome: Predicted) -> tuple[Cell, ...]:
    prediction = outcome.prediction
    if prediction is None:
        return row(NOTHING, NOTHING)
    ends = interval_text(prediction, outcome.unit)
    return row(show_value(prediction.rate, outcome.unit), ends)


def _rates(title: str, outcomes: Sequence[Predicted], brief: Brief) -> Table:
    """The figures behind a chart's bars."""
    heads = columns(("Workload", "Configuration"), ("Predicted", "90 % interval"))
    rows = tuple(
        (
            Cell(_title(outcome, brief)),
            Cell(brief.looks[outcome.configuration].title),
            *_rate(outcome),
        )
        for outcome in outcomes
    )
    return Table(f"Predicted at {title}", heads, rows)


def _title(outcome: Predicted, brief: Brief) -> str:
    title = brief.study.workload(outcome.workload).title
    return ", ".join(filter(None, (title, axis_label(outcome.fixed))))


def _figures(title: str, outcomes: Sequence[Predicted], brief: Brief) -> tuple[Figure, ...]:
    """Bars that are hatched as those of points that are not valid."""
    looks = brief.looks

    def draw(own: list[Predicted]) -> Figure | None:
        groups = group_by(own, lambda outcome: _title(outcome, brief))
        figure = horizontal_bars(
            "Predicted",
            f"Predicted at {title}",
            [
                BarGroup(name, tuple(_bar(outcome, looks) for outcome in rows))
                for name, rows in groups.items()
            ],
            finding=sentence([_sentence(outcome, brief) for outcome in own]),
            table=_rates(title, own, brief),
            named=len(looks) > 1,
        )
        return figure and replace(figure, note=_NOTE)

    drawn = (
        outcome
        for outcome in outcomes
        if outcome.prediction is not None and outcome.configuration in looks
    )
    return charts_by_unit(drawn, lambda outcome: outcome.unit, draw)


def _sentence(outcome: Predicted, brief: Brief) -> str:
    looks = brief.looks
    prediction = outcome.prediction
    if prediction is None:
        return ""
    who = f" by {looks[outcome.configuration].title}" if len(looks) > 1 else ""
    rate, low, high = (
        show_value(value, outcome.unit)
        for value in (prediction.rate, prediction.low, prediction.high)
    )
    return f"{_title(outcome, brief)}: {rate}{who}, 90 % interval {low} to {high}"


def _bar(outcome: Predicted, looks: Looks) -> Bar:
    look, prediction = looks[outcome.configuration], outcome.prediction
    value = (
        Metric(None, outcome.unit)
        if prediction is None
        else Metric(prediction.rate, outcome.unit, prediction.low, prediction.high, outcome.runs)
    )
    level = worst_level((outcome.level, Level.INDICATIVE))
    return Bar(look.name, look.token, value, level, "predicted", look.title)
