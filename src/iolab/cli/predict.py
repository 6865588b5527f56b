"""`iolab predict`: what a session's points say of a load that it did not measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from iolab.cli.options import OutputFormat, SessionDirectory, Workloads, with_output_format
from iolab.cli.output import open_session, print_document, print_renderables
from iolab.errors import UsageError
from iolab.text import list_text, quote_value

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.analysis.prediction import CurvePrediction

NAMED_MAX: Final = 6
"""Workloads named with what is said of all of them; the table has all."""

FORMAT: Final = 1
"""The number of the JSON document's format; it changes when a reader would have to."""

AXES: Final = {
    "hosts": "hosts",
    "depth": "iodepth",
    "concurrency": "concurrency",
    "threads": "threads",
    "vms": "vms_per_node",
}
"""What loads are called on the command line, and the axis of each in a study."""


@with_output_format
def predict(
    session: SessionDirectory,
    *,
    hosts: Annotated[
        int | None, typer.Option("--hosts", min=1, help="Hosts that make load.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", min=1, help="I/Os in flight per job.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, help="Operations on objects at a time.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Threads of a database.")
    ] = None,
    vms: Annotated[
        int | None, typer.Option("--vms", min=1, help="Virtual machines per node.")
    ] = None,
    workload: Workloads = None,
    extrapolate: Annotated[
        bool,
        typer.Option("--extrapolate", help="Also beyond twice the largest measured load."),
    ] = False,
    output_format: OutputFormat,
) -> None:
    """Predict the rate at a load that was not measured.

    With a 90 % interval. It needs at least four sound loads of the axis, each with at least two
    repeats, better three.
    """
    from iolab.analysis.points import summarise_points
    from iolab.analysis.prediction import predict_curves
    from iolab.analysis.stored_results import study_and_results_with_session_checks
    from iolab.registry import analysis_kinds
    from iolab.report.predicted import create_first_run_resources_reader

    loads = (hosts, depth, concurrency, threads, vms)
    wanted = [
        (axis, load) for axis, load in zip(AXES.values(), loads, strict=True) if load is not None
    ]
    if len(wanted) != 1:
        raise UsageError(
            f"A prediction is along one axis, {len(wanted)} were given.",
            "Give one of --hosts, --depth, --concurrency, --threads and --vms.",
        )
    axis, load = wanted[0]
    reader = open_session(session)
    study, results = study_and_results_with_session_checks(reader)
    points = [
        point
        for point in summarise_points(results, study)
        if not workload or point.key.workload in workload
    ]
    predicted = predict_curves(
        study,
        points,
        axis,
        load,
        create_first_run_resources_reader(reader, analysis_kinds()),
        allow_any_distance=extrapolate,
    )
    if not predicted:
        raise UsageError(
            f"No workload of the session varies {quote_value(axis)}.",
            "Ask for an axis that its study has.",
        )
    if output_format is not OutputFormat.TABLE:
        document = prediction_document(axis, load, predicted)
        rows = [
            {"axis": axis, "load": load, **{k: v for k, v in row.items() if k != "measured"}}
            for row in document["predictions"]
        ]
        print_document(output_format, document, rows)
    else:
        print_renderables(*_predicted_rate_lines(axis, load, predicted))


def prediction_document(
    axis_name: str, load: int, predicted: Sequence[CurvePrediction]
) -> dict[str, Any]:
    """What `iolab predict --json` prints, made of JSON's own types only."""
    from iolab.report.predicted import limiting_resource_text
    from iolab.stats.scaling import COVERED

    return {
        "format": FORMAT,
        "axis": axis_name,
        "load": load,
        "covered": COVERED,
        "predictions": [
            {
                "configuration": curve.configuration,
                "workload": curve.workload,
                "fixed": dict(curve.fixed_axis_values),
                "metric": curve.metric,
                "unit": curve.unit,
                "level": curve.verdict_level.value,
                "n": len(curve.measured_loads),
                "runs": curve.min_run_count,
                "measured": [
                    {
                        "load": point.load,
                        "rate": point.rate,
                        "half_width": point.relative_half_width,
                    }
                    for point in curve.measured_loads
                ],
                "predicted": None
                if curve.prediction is None
                else {
                    "rate": curve.prediction.rate,
                    "low": curve.prediction.low,
                    "high": curve.prediction.high,
                    "law": curve.prediction.law.value,
                    "limit": curve.prediction.bottleneck_rate,
                    "limited_by": None
                    if curve.limiting_use is None
                    else limiting_resource_text(curve.limiting_use),
                },
                "reason": curve.reason,
            }
            for curve in predicted
        ],
    }


def _predicted_rate_lines(
    axis_name: str, load: int, predicted: Sequence[CurvePrediction]
) -> Iterator[RenderableType]:
    from iolab.report.numbers import axis_name_text, axis_values_text, value_text
    from iolab.report.predicted import prediction_caveat, prediction_interval_text
    from iolab.report.table import Column
    from iolab.report.terminal import QUIET_STYLE, literal_text, section_title, terminal_table

    refused: dict[str, list[str]] = {}
    laws: dict[str, list[str]] = {}
    rows = []
    for curve in predicted:
        prediction = curve.prediction
        name = ", ".join(filter(None, (curve.workload, axis_values_text(curve.fixed_axis_values))))
        if prediction is None:
            refused.setdefault(curve.reason, []).append(name)
            continue
        ends = dict.fromkeys(curve.measured_loads[at].load for at in (0, -1))
        measured = " to ".join(f"{end:g}" for end in ends)
        span = prediction_interval_text(prediction, curve.unit)
        value = value_text(prediction.rate, curve.unit)
        rows.append([*map(literal_text, (name, curve.configuration, measured, value, span))])
        law = "; ".join(
            filter(
                None,
                (
                    prediction.law.value,
                    f"n={curve.min_run_count} a load",
                    prediction_caveat(curve, load),
                ),
            )
        )
        laws.setdefault(f"{law}.", []).append(name)
    place = f"{axis_name_text(axis_name)} {load}"
    for reason, names in refused.items():
        yield literal_text(f"No prediction for {place} of {_distinct_names_text(names)}: {reason}.")
    if not rows:
        return
    if refused:
        yield ""
    yield section_title(f"Predicted, not measured: {place}")
    heads = [
        Column("workload", can_wrap=True),
        Column("configuration", is_optional=True),
        Column("measured", is_number=True),
        Column("predicted", is_number=True),
        Column("90 %", is_number=True),
    ]
    yield terminal_table(heads, rows)
    for text, names in laws.items():
        yield literal_text(f"{_distinct_names_text(names)}: {text}")
    yield literal_text("From measured points alone; measure before you rely on it.", QUIET_STYLE)


def _distinct_names_text(names: Sequence[str]) -> str:
    return list_text(list(dict.fromkeys(names)), NAMED_MAX)
