"""What curves predict of loads that were not measured, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.analysis.bottleneck.resource_use import run_resources, view_with_all_resource_telemetry
from iolab.analysis.prediction import CurvePrediction, ResourceReader, predict_curves
from iolab.core.metric import Metric, VerdictLevel, worst_verdict_level
from iolab.core.resources import ResourceUse, RunResources
from iolab.errors import StoreError
from iolab.record import Record
from iolab.report.brief import Brief
from iolab.report.charts.chart import ChartGroup, ReportSection, SeriesStyles
from iolab.report.charts.rows import Dot, DotRow, charts_by_unit, dot_chart, rows_by_key
from iolab.report.gather import StoredSessionReader, read_run_record
from iolab.report.maxima import first_statements_sentence
from iolab.report.numbers import DASH, axis_name_text, axis_values_text, value_text
from iolab.report.table import Cell, Table, row_of_cells, text_and_number_columns

if TYPE_CHECKING:
    from iolab.analysis.kinds import AnalysisKinds
    from iolab.report.charts.chart import Chart
    from iolab.stats.scaling import Prediction

ANCHOR: Final = "predicted"

_SECTION_INTRODUCTION: Final = (
    "Computed from measured points of the same workload and configuration, each curve by itself; "
    "measure before you rely on it. The interval holds nine of ten loads that were held out."
)
_CHART_NOTE: Final = "Hollow: predicted, not measured. Lines: the 90 % interval."


class RequestedLoad(Record):
    """A load to predict, on an axis by its name in studies; at any distance if allowed."""

    axis_name: str
    load: int
    allow_any_distance: bool

    def predict_curves_of_brief(
        self, brief: Brief, read_resources: ResourceReader
    ) -> tuple[CurvePrediction, ...]:
        """What every curve over that axis says of it."""
        return predict_curves(
            brief.study,
            brief.points,
            self.axis_name,
            self.load,
            read_resources,
            allow_any_distance=self.allow_any_distance,
        )


def predictions_section(
    requested_loads: Sequence[RequestedLoad],
    read_resources: ResourceReader,
    brief: Brief,
) -> ReportSection | None:
    """The section on these loads; None where no workload varies any of the axes."""
    groups = []
    for asked_load in requested_loads:
        outcomes = asked_load.predict_curves_of_brief(brief, read_resources)
        if outcomes:
            title = f"{axis_name_text(asked_load.axis_name)} {asked_load.load}"
            table = _prediction_evidence_table(title, asked_load, outcomes, brief)
            figures = _prediction_charts(title, outcomes, brief)
            groups.append(ChartGroup(title, figures, table))
    if not groups:
        return None
    return ReportSection(
        ANCHOR, "Predicted, not measured", _SECTION_INTRODUCTION, tuple(groups), in_appendix=False
    )


def create_first_run_resources_reader(
    source: StoredSessionReader, analyses: AnalysisKinds
) -> ResourceReader:
    """What the first run of a point tells of its resources; None where it is damaged.

    Each record is read once, of however many loads a prediction is asked.
    """

    @cache
    def read_first_run_resources(run_key: tuple[str, int]) -> RunResources | None:
        try:
            record = read_run_record(source, run_key, source.manifest(*run_key), with_counters=True)
        except StoreError:
            return None
        return run_resources(view_with_all_resource_telemetry(record, source.facts, analyses))

    return lambda point: read_first_run_resources(
        (point.results[0].digest, point.results[0].repeat)
    )


def limiting_resource_text(resource_use: ResourceUse) -> str:
    """A resource as the limit of a prediction: what it is, its name, and whose."""
    return " ".join(
        filter(None, (resource_use.resource.value, resource_use.name, "of", resource_use.host))
    )


def prediction_interval_text(prediction: Prediction, unit: str) -> str:
    """From where to where a predicted rate is, in nine of ten cases."""
    return f"[{value_text(prediction.low, unit)}, {value_text(prediction.high, unit)}]"


def prediction_caveat(outcome: CurvePrediction, load: int) -> str:
    """What limits a prediction, how far it goes beyond what was measured, or why there is none."""
    prediction = outcome.prediction
    if prediction is None:
        return f"{outcome.reason}."
    parts = []
    if (
        prediction.bottleneck_rate is not None
        and outcome.limiting_use is not None
        and prediction.high >= prediction.bottleneck_rate
    ):
        limit = value_text(prediction.bottleneck_rate, outcome.unit)
        parts.append(f"at most {limit} by {limiting_resource_text(outcome.limiting_use)}")
    if load > (last := outcome.measured_loads[-1].load):
        parts.append(
            f"{load / last:.2g} times the largest measured load: a bend or fall there is not seen"
        )
    return "; ".join(parts)


def _prediction_evidence_table(
    title: str,
    requested_load: RequestedLoad,
    outcomes: Sequence[CurvePrediction],
    brief: Brief,
) -> Table:
    """What each prediction is made of, and what to know of it."""
    heads = text_and_number_columns(
        ("Workload", "Configuration", "Measured"),
        ("Predicted", "90 % interval", "Runs a load"),
        ("Law", "To know"),
    )
    rows = tuple(
        (
            Cell(_predicted_curve_title(outcome, brief)),
            Cell(brief.series_styles[outcome.configuration].title),
            Cell(
                f"{outcome.measured_loads[0].load:g} to {outcome.measured_loads[-1].load:g}"
                if outcome.measured_loads
                else DASH
            ),
            *_predicted_rate_and_interval_cells(outcome),
            Cell(str(outcome.min_run_count) if outcome.min_run_count else DASH),
            Cell(outcome.prediction.law.value if outcome.prediction else DASH),
            Cell(prediction_caveat(outcome, requested_load.load)),
        )
        for outcome in outcomes
    )
    return Table(f"What is predicted from, at {title}", heads, rows)


def _predicted_rate_and_interval_cells(outcome: CurvePrediction) -> tuple[Cell, ...]:
    prediction = outcome.prediction
    if prediction is None:
        return row_of_cells(DASH, DASH)
    ends = prediction_interval_text(prediction, outcome.unit)
    return row_of_cells(value_text(prediction.rate, outcome.unit), ends)


def _predicted_rates_table(title: str, outcomes: Sequence[CurvePrediction], brief: Brief) -> Table:
    """The figures behind a chart's bars."""
    heads = text_and_number_columns(("Workload", "Configuration"), ("Predicted", "90 % interval"))
    rows = tuple(
        (
            Cell(_predicted_curve_title(outcome, brief)),
            Cell(brief.series_styles[outcome.configuration].title),
            *_predicted_rate_and_interval_cells(outcome),
        )
        for outcome in outcomes
    )
    return Table(f"Predicted at {title}", heads, rows)


def _predicted_curve_title(outcome: CurvePrediction, brief: Brief) -> str:
    title = brief.study.workload(outcome.workload).title
    return ", ".join(filter(None, (title, axis_values_text(outcome.fixed_axis_values))))


def _prediction_charts(
    title: str, outcomes: Sequence[CurvePrediction], brief: Brief
) -> tuple[Chart, ...]:
    """Dots that are hollow, as those of points that are not valid."""
    styles = brief.series_styles

    def prediction_dot_chart(outcomes_of_unit: list[CurvePrediction]) -> Chart | None:
        groups = rows_by_key(
            outcomes_of_unit, lambda outcome: _predicted_curve_title(outcome, brief)
        )
        figure = dot_chart(
            "Predicted",
            f"Predicted at {title}",
            [
                DotRow(name, tuple(_prediction_dot(outcome, styles) for outcome in rows))
                for name, rows in groups.items()
            ],
            finding=first_statements_sentence(
                [_predicted_rate_sentence(outcome, brief) for outcome in outcomes_of_unit]
            ),
            table=_predicted_rates_table(title, outcomes_of_unit, brief),
        )
        return figure and replace(figure, note=_CHART_NOTE)

    drawn = (
        outcome
        for outcome in outcomes
        if outcome.prediction is not None and outcome.configuration in styles
    )
    return charts_by_unit(drawn, lambda outcome: outcome.unit, prediction_dot_chart)


def _predicted_rate_sentence(outcome: CurvePrediction, brief: Brief) -> str:
    styles = brief.series_styles
    prediction = outcome.prediction
    if prediction is None:
        return ""
    who = f" by {styles[outcome.configuration].title}" if len(styles) > 1 else ""
    rate, low, high = (
        value_text(value, outcome.unit)
        for value in (prediction.rate, prediction.low, prediction.high)
    )
    return f"{_predicted_curve_title(outcome, brief)}: {rate}{who}, 90 % interval {low} to {high}"


def _prediction_dot(outcome: CurvePrediction, styles: SeriesStyles) -> Dot:
    style, prediction = styles[outcome.configuration], outcome.prediction
    value = (
        Metric(None, outcome.unit)
        if prediction is None
        else Metric(
            prediction.rate, outcome.unit, prediction.low, prediction.high, outcome.min_run_count
        )
    )
    level = worst_verdict_level((outcome.verdict_level, VerdictLevel.INDICATIVE))
    return Dot(style.label, style.color, value, level, "predicted", style.title)
