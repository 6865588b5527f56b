"""`iolab predict`: what a session's points say of a load that it did not measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from iolab.cli.options import AsJson, SessionDirectory, Workloads

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.analysis.bottleneck import ResourceUse, RunResources
    from iolab.analysis.points import PointSummary
    from iolab.analysis.prediction import Predicted
    from iolab.store.reader import SessionReader

FORMAT: Final = 1
"""The number of the JSON document's format; it changes when a reader would have to."""


def predict(
    session: SessionDirectory,
    *,
    hosts: Annotated[
        int | None, typer.Option("--hosts", min=1, help="Hosts that make load.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", min=1, help="I/Os in flight per job.")
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
    as_json: AsJson = False,
) -> None:
    """Predict the rate at a load that was not measured, with a 90 % interval.

    It needs at least four trusted loads of the axis, each with at least two repeats, better three.
    """
    from iolab.analysis.points import summarise
    from iolab.analysis.prediction import predictions
    from iolab.analysis.resume_marks import shown_of
    from iolab.cli.output import open_session, result_json, result_screen
    from iolab.errors import UsageError
    from iolab.study.wording import shown

    asked = {"hosts": hosts, "iodepth": depth, "threads": threads, "vms_per_node": vms}
    wanted = [(axis, load) for axis, load in asked.items() if load is not None]
    if len(wanted) != 1:
        raise UsageError(
            f"A prediction is along one axis, {len(wanted)} were given.",
            "Give one of --hosts, --depth, --threads and --vms.",
        )
    axis, load = wanted[0]
    reader = open_session(session)
    study, results = shown_of(reader)
    points = [
        point
        for point in summarise(results, study)
        if not workload or point.key.workload in workload
    ]
    found = predictions(
        study,
        points,
        axis,
        load,
        lambda point: _watched(reader, point),
        extrapolate=extrapolate,
    )
    if not found:
        raise UsageError(
            f"No workload of the session varies {shown(axis)}.",
            "Ask for an axis that its study has.",
        )
    if as_json:
        result_json(prediction_document(axis, load, found))
    else:
        result_screen(*_screen(axis, load, found))


def _watched(reader: SessionReader, point: PointSummary) -> RunResources | None:
    """What the point's first run tells of its resources; None where it is damaged."""
    from iolab.analysis.bottleneck import view_of, watch
    from iolab.cli.kinds import analyses
    from iolab.errors import StoreError

    first = point.results[0]
    try:
        record = reader.record(first.digest, first.repeat)
    except StoreError:
        return None
    return watch(view_of(record, reader.facts, analyses()))


def prediction_document(axis: str, load: int, found: Sequence[Predicted]) -> dict[str, Any]:
    """What `iolab predict --json` prints, made of JSON's own types only."""
    from iolab.stats.scaling import COVERED

    return {
        "format": FORMAT,
        "axis": axis,
        "load": load,
        "covered": COVERED,
        "predictions": [
            {
                "configuration": one.configuration,
                "workload": one.workload,
                "fixed": dict(one.fixed),
                "metric": one.metric,
                "unit": one.unit,
                "level": one.level.value,
                "measured": [
                    {"load": point.load, "rate": point.rate, "half_width": point.half_width}
                    for point in one.measured
                ],
                "predicted": None
                if one.prediction is None
                else {
                    "rate": one.prediction.rate,
                    "low": one.prediction.low,
                    "high": one.prediction.high,
                    "law": one.prediction.law.value,
                    "limit": one.prediction.limit,
                    "limited_by": None if one.limited_by is None else _name(one.limited_by),
                },
                "reason": one.reason,
            }
            for one in found
        ],
    }


def _screen(axis: str, load: int, found: Sequence[Predicted]) -> Iterator[RenderableType]:
    from iolab.report.numbers import axis_label, show_value
    from iolab.report.terminal import QUIET_STYLE, Heading, plain, table, title

    yield title(f"Predicted, not measured: {axis} {load}")
    rows = []
    laws: dict[str, None] = {}
    for one in found:
        told = one.prediction
        name = ", ".join(filter(None, (one.workload, axis_label(one.fixed))))
        known = f"{one.measured[0].load:g} to {one.measured[-1].load:g}" if one.measured else "–"
        cells = [name, one.configuration, known]
        if told is None:
            rows.append([*map(plain, cells), plain("–"), plain("")])
            laws[f"{name}: {one.reason}."] = None
            continue
        ends = f"[{show_value(told.low, one.unit)}, {show_value(told.high, one.unit)}]"
        law = told.law.value
        if told.limit is not None and one.limited_by is not None and told.high >= told.limit:
            law += f", at most {show_value(told.limit, one.unit)} by {_name(one.limited_by)}"
        value = show_value(told.rate, one.unit)
        rows.append([*map(plain, (*cells, value, ends))])
        laws[f"{name}: {law}, n={one.runs} a load."] = None
    heads = [
        Heading("workload", main=True),
        Heading("configuration", spare=True),
        Heading("measured", number=True),
        Heading("predicted", number=True),
        Heading("90 %", number=True),
    ]
    yield table(heads, rows)
    yield from map(plain, laws)
    yield plain("From measured points alone; measure before you rely on it.", QUIET_STYLE)


def _name(use: ResourceUse) -> str:
    return " ".join(filter(None, (use.resource.value, use.name, "of", use.host)))
