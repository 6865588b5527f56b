"""Predicted loads in a chart: told apart from measured ones, with their band, in the table too."""

from __future__ import annotations

from iolab.analysis.curves import findings
from iolab.analysis.points import summarise
from iolab.report.charts.chart import Figure
from iolab.report.charts.choose import axis_figures, looks_of
from iolab.report.palette import PAPER
from tests.analysis.adaptive.systems import whole_session
from tests.analysis.adaptive.test_course import CURVE, SOFT
from tests.study.studies import load


def charts(*, with_curves: bool) -> list[Figure]:
    study = load(CURVE)
    _, results = whole_session(study, SOFT)
    curves = findings(study, results).curves if with_curves else ()
    points = summarise(results, study)
    return axis_figures(study.workloads[0], points, looks_of(study), curves)


def test_predicted_loads_are_open_circles_over_a_band() -> None:
    throughput = charts(with_curves=True)[0]
    layers = throughput.spec["vconcat"][0]["layer"]
    (band,) = [layer for layer in layers if layer["mark"]["type"] == "area"]
    assert len(band["data"]["values"]) == 24
    (dots,) = [
        layer
        for layer in layers
        if layer["mark"].get("shape") == "circle" and layer["mark"]["fill"] == PAPER.stand_in
    ]
    assert len(dots["data"]["values"]) == 14
    assert "Open circles: predicted, not measured" in throughput.note
    assert "the knee, at 10 (" in throughput.note


def test_predicted_loads_stand_in_the_table_as_such() -> None:
    table = charts(with_curves=True)[0].table
    assert table is not None
    assert all(len(row) == len(table.columns) for row in table.rows)
    predicted = [row for row in table.rows if row[2].text == "predicted"]
    assert len(predicted) == 14
    assert all(row[-1].text == "not measured" for row in predicted)


def test_latency_has_no_predictions() -> None:
    with_curves, without = charts(with_curves=True)[0].spec, charts(with_curves=False)[0].spec
    assert with_curves["vconcat"][1] == without["vconcat"][1]
    assert with_curves["vconcat"][0] != without["vconcat"][0]
