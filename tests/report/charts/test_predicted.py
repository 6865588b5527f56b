"""Predicted loads in a chart: told apart from measured ones, with their band, in the table too."""

from __future__ import annotations

from iolab.analysis.curves import session_load_findings
from iolab.analysis.points import summarise_points
from iolab.report.charts.chart import Band, Chart, Markers, MarkerStyle, series_styles
from iolab.report.charts.choose import charts_over_axis
from tests.analysis.adaptive.systems import whole_session
from tests.analysis.adaptive.test_queue import CURVE, SOFT
from tests.study.studies import load


def charts(*, with_curves: bool) -> list[Chart]:
    study = load(CURVE)
    _, results = whole_session(study, SOFT)
    curves = session_load_findings(study, results).curves if with_curves else ()
    points = summarise_points(results, study)
    return charts_over_axis(study.workloads[0], points, series_styles(study), curves)[0]


def test_predicted_loads_are_open_circles_over_a_band() -> None:
    throughput = charts(with_curves=True)[0]
    marks = throughput.plots[0].marks
    (band,) = [one for one in marks if isinstance(one, Band)]
    assert len(band.places) == 24
    (dots,) = [
        one for one in marks if isinstance(one, Markers) and one.marker_style is MarkerStyle.OPEN
    ]
    assert len(dots.places) == 14
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
    with_curves, without = charts(with_curves=True)[0].plots, charts(with_curves=False)[0].plots
    assert with_curves[1].marks == without[1].marks
    assert with_curves[0].marks != without[0].marks
