"""The section that sets results beside published ones, and its chart."""

from __future__ import annotations

import math
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from iolab.cli.studies import read_published_set
from iolab.core.metric import Metric, VerdictLevel
from iolab.published.comparison import comparison_section, own_counterpart_text
from iolab.published.sets import PublishedReference
from iolab.report.brief import Brief
from iolab.report.charts.chart import Chart, LineSegments, Mark, Markers, ReportSection
from iolab.report.charts.palette import SERIES
from iolab.report.charts.rows import ROWS_MAX
from iolab.report.formats.markdown import render_markdown
from iolab.report.formats.render import chart_pngs
from iolab.report.table import Table
from iolab.text import list_text
from tests.report import shared
from tests.report.charts.specs import ratios


def indicators() -> Brief:
    return shared.brief("kpi")


def depths() -> Brief:
    return shared.brief("beside")


def section(brief: Brief, name: str, only: str = "") -> ReportSection:
    told = PublishedReference(read_published_set(name), only)
    return comparison_section(told, brief)


def cells(table: Table, first: str) -> list[str]:
    return next([cell.text for cell in row] for row in table.rows if row[0].text == first)


def test_each_owner_has_a_chart_and_all_its_figures() -> None:
    found = section(indicators(), "cluster-kpi")
    charts, _ = found.groups
    assert [figure.subject for figure in charts.charts] == [
        "sample-output",
        "aws-single-client",
        "supermicro-single-client",
        "aws-cluster",
        "supermicro-cluster",
    ]
    figure = charts.charts[1]
    assert "rates " in figure.finding
    assert "latencies " in figure.finding
    heads = [column.title for column in figure.table.columns]
    assert "Here, per host" in heads
    assert len(figure.table.rows) == 8  # two bandwidths, two rates, two latencies of two kinds
    cluster = charts.charts[3]
    assert "Here, per host" in [column.title for column in cluster.table.columns]


def test_a_row_has_both_figures_and_the_ratio_of_each_host() -> None:
    (figure,) = section(indicators(), "cluster-kpi", "sample-output").groups[0].charts
    row = cells(figure.table, "read-iops")
    here = (
        next(one for one in indicators().results if one.workload == "read-iops")
        .metrics["iops"]
        .value
    )
    assert here is not None
    assert row[6] == "16.5 M IOPS"
    assert row[7] == f"{here / 16526081:.3g}"
    assert row[10] == f"{(here / 2) / (16526081 / 16):.3g}"


def test_what_was_published_and_not_measured_is_named() -> None:
    *_, last = section(indicators(), "cluster-kpi", "mdtest").groups
    assert "Nothing that was published" in last.note
    *_, last = section(indicators(), "cluster-kpi", "aws-cluster").groups
    assert "metadata (file create ops" in last.note


def test_configurations_keep_their_colours_and_stand_apart() -> None:
    group, *_ = section(depths(), "ssd-cluster", "performance").groups
    (figure,) = group.charts
    names = [row[2].text for row in figure.table.rows]
    assert set(names) == {one.title for one in depths().study.configurations}
    assert {one.color for one in marks(figure, Markers)} == set(SERIES[:2])


def test_what_differs_in_hardware_and_method() -> None:
    *_, last = section(depths(), "ssd-cluster", "performance").groups
    assert last.table is not None
    assert cells(last.table, "NIC")[2] == "2x ConnectX-6 200Gb/s"
    assert cells(last.table, "clients")[2] == "12"
    assert cells(last.table, "engine")[1:] == [
        own_counterpart_text(depths(), "engine"),
        "fio 3.29",
    ]
    assert own_counterpart_text(depths(), "cpu").startswith("2x ")
    assert own_counterpart_text(depths(), "no such thing") == "–"


def test_every_form_has_the_section() -> None:
    told = replace(
        indicators(),
        sections=(
            partial(comparison_section, PublishedReference(read_published_set("cluster-kpi"))),
        ),
    )
    page = shared.drawn(shared.undrawn(told))
    assert '<section id="against">' in page
    assert '<a href="#against">Against cluster-kpi</a>' in page
    text = render_markdown(told)
    assert "## Against cluster-kpi" in text
    assert "WEKA documentation" in text


Kind = TypeVar("Kind", bound=Mark)


def marks(figure: Chart, kind: type[Kind]) -> list[Kind]:
    return [one for one in figure.plots[0].marks if isinstance(one, kind)]


def test_one_is_always_on_the_axis_and_named() -> None:
    for values in ((3.0, 9.0), (0.001, 0.002), (1e-4, 1e4), (1.0,)):
        (plot,) = ratios(*(Metric(value, "") for value in values)).plots
        assert plot.x is not None
        low, high = plot.x.scale.low, plot.x.scale.high
        assert low < 1 < high
        assert low <= min(values)
        assert high >= max(values)
        assert (1.0, "1") in plot.x.ticks
        assert len(plot.x.ticks) <= 8


def test_intervals_and_verdicts_are_drawn() -> None:
    made = ratios(Metric(0.5, "", 0.4, 0.6), Metric(2.0, ""), Metric(3.0, ""))
    assert [level for one in marks(made, Markers) for level in one.verdict_levels] == list(
        VerdictLevel
    )
    bars = [one.segments for one in marks(made, LineSegments) if one.color is SERIES[0]]
    assert [(x, x2) for ((x, _, x2, _),) in bars] == [(0.4, 0.6)]


def test_many_rows_stay_within_their_limit() -> None:
    made = ratios(*(Metric(1.0 + i, "") for i in range(ROWS_MAX + 5)))
    assert sum(len(one.places) for one in marks(made, Markers)) == ROWS_MAX


def test_a_chart_is_drawn_as_a_picture() -> None:
    assert chart_pngs([ratios(Metric(math.pi, ""))])[0].startswith(b"\x89PNG")


def test_hardware_that_the_study_tells_stands_beside_what_was_printed() -> None:
    """A host that makes the load has devices of its own; the storage's are the study's to tell."""
    owners = tuple(
        replace(one, hardware=(("ssd", f"SSD of {one.title}"),))
        for one in depths().study.configurations
    )
    told = replace(depths(), study=replace(depths().study, configurations=owners))
    assert own_counterpart_text(told, "ssd") == list_text(f"SSD of {one.title}" for one in owners)


def test_latencies_are_spoken_of_only_where_some_are_drawn() -> None:
    charts, _ = section(depths(), "ssd-cluster", "performance").groups
    assert not [figure for figure in charts.charts if "atenc" in figure.note]
