from __future__ import annotations

import re
from dataclasses import replace

import pytest

from iolab.errors import ReportError
from iolab.report.charts.lines import Line
from iolab.report.palette import SERIES, TOKENS
from iolab.report.render import draw
from tests.report.charts.outcomes import WORKLOAD, rate_figure
from tests.report.charts.specs import figures, lines

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'


@pytest.mark.parametrize("name", figures())
def test_a_drawing_has_the_pages_colours_and_nothing_that_a_policy_forbids(name: str) -> None:
    svg = draw(figures()[name], "f1")
    assert not [token for token in TOKENS if token.stand_in in svg]
    assert set(re.findall(r'(?:fill|stroke)="(#[^"]*)"', svg)) == set()
    assert "var(--" in svg
    assert not re.search(r"\sstyle=|\sclass=\"(?!chart)|font-family|href|<script|<image", svg)


@pytest.mark.parametrize("name", figures())
def test_a_drawing_scales_and_says_what_it_shows(name: str) -> None:
    figure = figures()[name]
    svg = draw(figure, "f1")
    assert f'viewBox="0 0 {figure.width} {figure.height}"' in svg
    assert 'role="img"' in svg
    assert f'aria-label="{figure.subject}: {figure.title}. ' in svg


def test_every_panel_of_a_timeline_is_drawn_within_the_picture() -> None:
    figure = figures()["timeline"]
    svg = draw(figure, "f1")
    tops = [float(y) for _, y in re.findall(r"translate\((-?[\d.]+),(-?[\d.]+)\)", svg)]
    assert max(tops) < figure.height
    assert "Processors busy, %" in svg


def test_equal_specs_are_drawn_once_and_keep_ids_of_their_own() -> None:
    cache: dict[str, str] = {}
    figure = figures()["throughput"]
    one, other = draw(figure, "f1", cache), draw(figure, "f2", cache)
    assert len(cache) == 1
    ids = re.findall(r'\sid="([^"]+)"', one + other)
    assert len(ids) == len(set(ids))


def test_a_hostile_name_is_text_in_the_drawing() -> None:
    many = [Line(HOSTILE, SERIES[0], (), lines()[0].points), lines()[1]]
    figure = rate_figure(replace(WORKLOAD, title=HOSTILE), "iodepth", many)
    svg = draw(figure, "f1")
    assert "<script" not in svg
    assert "<img" not in svg
    assert "&lt;script" in svg


def test_a_chart_that_cannot_be_drawn_is_an_error_with_its_name() -> None:
    broken = replace(figures()["throughput"], spec={"mark": "nonsense", "data": 5})
    with pytest.raises(ReportError, match="IOPS against iodepth"):
        draw(broken, "f1")
