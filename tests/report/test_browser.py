"""The page as a browser shows it: quiet, within the window, in both colours, and on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from iolab.report.brief import build_brief
from iolab.report.html import render_html
from tests.report.guest_session import EMULATED, MIXES, fleet
from tests.report.hostile import hostile
from tests.report.key_value_session import rocksdb
from tests.report.studies import sweep

WIDTHS = (375, 768, 1280, 1920)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_html(build_brief(sweep(("one", "two"), seconds=6))), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    path.write_text(render_html(build_brief(hostile())), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def keys_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "report.html"
    source = rocksdb(("one", "two"), repeats=2, seconds=2, workload_count=2)
    path.write_text(render_html(build_brief(source)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fleet_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet") / "report.html"
    nodes = ("node-1", "node-2", "node-3", "node-4")
    source = fleet(nodes, (1, 2, 4, 8, 16, 24), (8,), seconds=2, mixes=MIXES[1:], settings=EMULATED)
    source.disks = tuple(f"nvme{number}n1" for number in range(12))
    path.write_text(render_html(build_brief(source)), encoding="utf-8")
    return path


def shown(browser: Browser, path: Path, **options: Any) -> tuple[Page, list[str]]:
    """The page opened with every section open, and all that it said or asked for."""
    page = browser.new_context(**options).new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", lambda request: said.append(f"request: {request.url}"))
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    return page, [line for line in said if line != f"request: {path.as_uri()}"]


@pytest.mark.parametrize("name", ["report", "hostile_report", "keys_report", "fleet_report"])
def test_nothing_is_asked_for_and_nothing_goes_wrong(
    browser: Browser, name: str, request: pytest.FixtureRequest
) -> None:
    page, said = shown(browser, request.getfixturevalue(name))
    assert [line for line in said if not line.startswith("request: data:,")] == []
    assert page.evaluate("window.hurt") is None
    page.context.close()


@pytest.mark.parametrize("name", ["report", "hostile_report", "keys_report", "fleet_report"])
def test_no_page_is_wider_than_its_window(
    browser: Browser, name: str, request: pytest.FixtureRequest
) -> None:
    page, _ = shown(browser, request.getfixturevalue(name))
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()


def test_type_in_charts_can_be_read_on_a_phone(browser: Browser, report: Path) -> None:
    page, _ = shown(browser, report, viewport={"width": 375, "height": 800})
    sizes = page.evaluate(
        """[...document.querySelectorAll('svg.chart')].map(
             svg => 12 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"""
    )
    assert min(sizes) >= 9.5
    page.context.close()


@pytest.mark.parametrize(("name", "at_least"), [("report", 30), ("fleet_report", 15)])
def test_every_chart_is_drawn_and_no_labels_overlap(
    browser: Browser, name: str, at_least: int, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(name)
    page, _ = shown(browser, path, viewport={"width": 1440, "height": 900})
    charts = page.evaluate(
        """[...document.querySelectorAll('svg.chart')].map(svg => {
             const boxes = [...svg.querySelectorAll('text')].map(t => t.getBoundingClientRect());
             let overlaps = [];
             boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
               const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
               const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
               if (x > 1 && y > 4) overlaps.push([i, i + 1 + j]);
             }));
             const paths = [...svg.querySelectorAll('path')];
             return {paths: paths.filter(p => p.getTotalLength() > 0).length, overlaps};
           })"""
    )
    assert len(charts) > at_least
    assert [chart for chart in charts if not chart["paths"] or chart["overlaps"]] == []
    page.context.close()


def test_dark_and_light_differ_in_page_and_charts(browser: Browser, report: Path) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        page, _ = shown(browser, report, color_scheme=scheme)
        seen[scheme] = page.evaluate(
            """[getComputedStyle(document.body).backgroundColor,
                getComputedStyle(document.querySelector('svg.chart text')).fill,
                getComputedStyle(document.querySelector('svg.chart path[stroke]')).stroke]"""
        )
        page.context.close()
    assert all(a != b for a, b in zip(seen["light"], seen["dark"], strict=True))


def test_paper_is_light_and_prints(browser: Browser, report: Path) -> None:
    page, _ = shown(browser, report, color_scheme="dark")
    page.emulate_media(media="print")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.context.close()


def test_a_verdict_leads_to_its_run_and_opens_it(browser: Browser, report: Path) -> None:
    page = browser.new_context().new_page()
    page.goto(report.as_uri())
    page.locator("#results a.badge").last.click()
    target = page.evaluate("location.hash.slice(1)")
    opened = page.evaluate("id => document.getElementById(id).closest('details').open", target)
    assert opened
    page.context.close()
