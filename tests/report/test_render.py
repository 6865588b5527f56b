from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from iolab.report.charts.lines import ChartLine
from iolab.report.charts.palette import SERIES
from iolab.report.charts.svg import draw_inline_svg, svg_document
from tests.report.charts.outcomes import WORKLOAD, rate_chart
from tests.report.charts.specs import figures, lines

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'


@pytest.mark.parametrize("name", figures())
def test_a_drawing_has_the_pages_colours_and_nothing_that_a_policy_forbids(name: str) -> None:
    svg = draw_inline_svg(figures()[name]).svg
    assert set(re.findall(r'(?:fill|stroke)="(#[^"]*)"', svg)) == set()
    assert "var(--" in svg
    assert not re.search(r"\sstyle=|\sclass=\"(?!chart)|font-family|href|<script|<image", svg)


@pytest.mark.parametrize("name", figures())
def test_a_drawing_scales_and_says_what_it_shows(name: str) -> None:
    figure = figures()[name]
    svg = draw_inline_svg(figure).svg
    assert f'viewBox="0 0 {figure.width} {figure.height}"' in svg
    assert 'role="img"' in svg
    assert f'aria-label="{figure.heading}. ' in svg


def test_every_panel_of_a_timeline_is_drawn_within_the_picture() -> None:
    figure = figures()["timeline"]
    svg = draw_inline_svg(figure).svg
    tops = [float(y) for _, y in re.findall(r"translate\((-?[\d.]+),(-?[\d.]+)\)", svg)]
    assert max(tops) < figure.height
    assert "Processors busy, %" in svg


@pytest.mark.parametrize("name", figures())
def test_a_document_has_the_colours_of_paper_and_asks_for_nothing(name: str) -> None:
    svg = svg_document(figures()[name])
    assert "var(--" not in svg
    assert not re.search(r"href|<script|<image|style=", svg)
    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - ours


@pytest.mark.parametrize("name", figures())
def test_every_mark_that_is_told_of_is_drawn_with_as_many_places(name: str) -> None:
    drawn = draw_inline_svg(figures()[name])
    told = json.loads(drawn.marks_json) if drawn.marks_json else {"marks": [], "axes": []}
    root = ET.fromstring(drawn.svg)  # noqa: S314 - ours
    groups = {one.get("data-m"): one for one in root.iter("g")}
    for index, mark in enumerate(told["marks"]):
        leaves = list(groups[str(index)].iter("path"))
        at = told["axes"][mark["x"]]
        lines = sum(len(re.findall("[ML]", one.get("d", ""))) for one in leaves)
        assert (lines if len(leaves) == 1 and not leaves[0].get("transform") else len(leaves)) == (
            len(at)
        )
        for key in ("y", "e", "s"):
            assert len(mark.get(key, at)) == len(at)
        assert len(mark.get("v", at)) in (1, len(at))


def test_a_hostile_name_is_text_in_the_drawing() -> None:
    many = [ChartLine(HOSTILE, SERIES[0], (), lines()[0].points), lines()[1]]
    figure = rate_chart(replace(WORKLOAD, title=HOSTILE), "iodepth", many)
    svg = draw_inline_svg(figure).svg
    assert "<script" not in svg
    assert "<img" not in svg
    assert "&lt;script" in svg
