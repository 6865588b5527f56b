"""What charts answer to pointer, fingers and keys, and that they answer nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from iolab.report.charts.lines import ChartLine, latency_chart
from iolab.report.charts.palette import SERIES
from iolab.report.charts.svg import draw_inline_svg
from iolab.report.formats.html import page_script
from tests.report import shared
from tests.report.hostile import SCRIPT

SHOWN_TICKS = """one => [...one.querySelectorAll('[data-x=label] text')]
  .filter(text => getComputedStyle(text).display !== 'none').map(text => text.textContent)"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("interaction") / "report.html"
    path.write_text(shared.html("pair"), encoding="utf-8")
    return path


def opened(browser: Browser, path: Path, **options: Any) -> tuple[Page, list[str]]:
    page = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}).new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    return page, said


def chart(page: Page, title: str) -> Locator:
    """The stage of the first chart with that title, in the middle of the window."""
    page.evaluate("document.getElementById('appendix').open = true")
    found = page.locator("figure", has_text=title).locator(".stage").first
    found.evaluate("one => one.scrollIntoView({block: 'center'})")
    return found


def rate_and_latency_chart(page: Page) -> Locator:
    """Likewise of the first chart of rate and latency over the load."""
    found = page.locator("#charts .stage").first
    found.evaluate("one => one.scrollIntoView({block: 'center'})")
    return found


def middle(one: Locator) -> tuple[float, float]:
    box = one.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page: Page, stage: Locator, start: float, end: float, top: float) -> None:
    """Drag with the mouse over shares of the stage's width at a share of its height."""
    box = stage.bounding_box()
    assert box is not None
    y = box["y"] + top * box["height"]
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], y, steps=4)
    page.mouse.up()


def numbers(path: str | None) -> list[float]:
    return [float(one) for one in re.findall(r"-?[\d.]+", path or "")]


def test_a_marker_tells_its_values_under_the_pointer(browser: Browser, report: Path) -> None:
    page, said = opened(browser, report)
    stage = rate_and_latency_chart(page)
    marker = stage.locator("[data-c=series-1][data-m] path[transform]").nth(1)
    page.mouse.move(*middle(marker))
    told = page.locator(".tip").inner_text().splitlines()
    assert told[0] == "One"
    assert "iodepth: 4" in told
    assert any(line.endswith((" µs", " ms")) for line in told)
    assert "indicative" in told
    assert not [line for line in told if line.startswith("Here too")]
    page.mouse.move(2, 2)
    assert not page.locator(".tip").is_visible()
    assert said == []
    page.context.close()


def test_points_that_a_marker_covers_are_told_with_it(browser: Browser, tmp_path: Path) -> None:
    points = tuple(point for point in shared.brief("pair").points if point.key.axis_values)[:2]
    lines = [ChartLine(name, SERIES[at], (), points) for at, name in enumerate(("One", "Two"))]
    drawing = draw_inline_svg(latency_chart("s", points[0].key.axis_values[0][0], lines))
    path = tmp_path / "covered.html"
    path.write_text(
        f"<!DOCTYPE html><body><header class='masthead'></header><figure><h4>s</h4>{drawing.svg}"
        f'<script type="application/json">{drawing.marks_json}</script></figure>'
        f"<script>{page_script()}</script>",
        encoding="utf-8",
    )
    page, _ = opened(browser, path)
    page.mouse.move(*middle(page.locator("[data-m] path[transform]").first))
    told = page.locator(".tip").inner_text().splitlines()
    assert told[-1].startswith("Here too: Two, ")
    page.context.close()


def test_every_verdict_is_told(browser: Browser, report: Path) -> None:
    page, _ = opened(browser, report)
    rate_and_latency_chart(page).focus()
    told = []
    page.keyboard.press("Home")
    for _ in range(3):
        told.append(page.locator(".tip").inner_text())
        page.keyboard.press("ArrowRight")
    words = " ".join(told)
    assert "\nvalid" in words
    assert "\nindicative" in words
    assert "\ninvalid" in words
    page.context.close()


def test_keys_move_along_points_and_are_told_aloud(browser: Browser, report: Path) -> None:
    page, _ = opened(browser, report)
    stage = chart(page, "Latency by percentile")
    stage.focus()
    heard = page.locator("[aria-live=polite]")
    page.keyboard.press("ArrowRight")
    first = heard.text_content()
    page.keyboard.press("ArrowRight")
    second = heard.text_content()
    page.keyboard.press("End")
    last = heard.text_content()
    assert len({first, second, last}) == 3
    assert last is not None
    assert "percentile of the I/Os: 99.9" in last
    page.keyboard.press("Home")
    assert heard.text_content() == first
    page.keyboard.press("Escape")
    assert not page.locator(".tip").is_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "+"
    page.context.close()


def test_an_enlarged_part_comes_back_whole(browser: Browser, report: Path) -> None:
    page, _ = opened(browser, report)
    stage = rate_and_latency_chart(page)
    path = stage.locator("[data-m] path:not([transform])").first
    line = path.get_attribute("d")
    drag(page, stage, 0.15, 0.4, 0.4)
    assert path.get_attribute("d") != line
    assert stage.evaluate(SHOWN_TICKS) != ["1", "4", "16"]
    page.keyboard.press("Escape")
    stage.focus()
    page.keyboard.press("Escape")
    assert stage.evaluate(SHOWN_TICKS) == ["1", "4", "16"]
    drag(page, stage, 0.15, 0.4, 0.4)
    stage.dblclick(position={"x": 200, "y": 80})
    assert stage.evaluate(SHOWN_TICKS) == ["1", "4", "16"]
    assert numbers(path.get_attribute("d")) == pytest.approx(numbers(line), abs=0.01)
    page.context.close()


def test_enlarging_needs_ctrl_so_that_a_wheel_scrolls(browser: Browser, report: Path) -> None:
    page, _ = opened(browser, report)
    stage = rate_and_latency_chart(page)
    page.mouse.move(*middle(stage))
    start = page.evaluate("scrollY")
    page.mouse.wheel(0, 240)
    for _ in range(100):
        if page.evaluate("scrollY") > start + 100:
            break
        page.wait_for_timeout(20)
    assert page.evaluate("scrollY") > start + 100
    assert page.locator(".enlarged").count() == 0
    stage = rate_and_latency_chart(page)
    page.mouse.move(*middle(stage))
    start = page.evaluate("scrollY")
    page.keyboard.down("Control")
    page.mouse.wheel(0, -240)
    page.keyboard.up("Control")
    page.locator(".enlarged").wait_for()
    assert page.evaluate("scrollY") == start
    page.context.close()


def test_buttons_enlarge_and_show_all(browser: Browser, report: Path) -> None:
    page, _ = opened(browser, report)
    stage = rate_and_latency_chart(page)
    page.mouse.move(*middle(stage))
    stage.get_by_role("button", name="Enlarge").click()
    assert page.locator(".enlarged").count() == 1
    stage.get_by_role("button", name="Show more").click()
    assert page.locator(".enlarged").count() == 0
    stage.get_by_role("button", name="Enlarge").click()
    stage.get_by_role("button", name="Show all").click()
    assert page.locator(".enlarged").count() == 0
    page.context.close()


def test_two_fingers_enlarge_and_one_does_not(browser: Browser, report: Path) -> None:
    page, _ = opened(browser, report, has_touch=True, viewport={"width": 390, "height": 800})
    stage = rate_and_latency_chart(page)
    x, y = middle(stage)
    y -= 60  # on the upper of two plots
    touch = """(one, [kind, id, x, y]) => one.dispatchEvent(new PointerEvent(kind,
      {pointerId: id, pointerType: 'touch', clientX: x, clientY: y, bubbles: true, buttons: 1}))"""
    stage.evaluate(touch, ["pointerdown", 11, x - 20, y])
    stage.evaluate(touch, ["pointermove", 11, x - 60, y])
    assert page.locator(".enlarged").count() == 0
    assert page.locator(".tip").is_visible()
    stage.evaluate(touch, ["pointerdown", 12, x + 20, y])
    stage.evaluate(touch, ["pointermove", 12, x + 120, y])
    assert page.locator(".enlarged").count() == 1
    assert stage.evaluate("one => getComputedStyle(one.firstChild).touchAction") == "pan-y"
    page.context.close()


def test_hidden_on_one_chart_is_hidden_on_all_but_not_on_paper(
    browser: Browser, report: Path
) -> None:
    page, _ = opened(browser, report)
    button = page.locator("#charts .toggle", has_text="One")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    own = page.locator("[data-c=series-1]")
    seen = "all => all.filter(one => getComputedStyle(one).display !== 'none').length"
    assert own.count() > 6
    assert own.evaluate_all(seen) == 0
    assert page.locator("[data-c=series-2]").evaluate_all(seen) > 6
    assert page.locator("#runs [data-c]").count() == 0, "a chart of one configuration stays whole"
    page.emulate_media(media="print")
    assert own.evaluate_all(seen) == own.count()
    page.emulate_media(media="screen")
    stage = rate_and_latency_chart(page)
    stage.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".tip .first").inner_text() == "Two"
    button.click()
    assert own.evaluate_all(seen) == own.count()
    page.context.close()


def test_paper_shows_whole_axes_and_nothing_of_the_pointer(browser: Browser, report: Path) -> None:
    page, _ = opened(browser, report)
    stage = rate_and_latency_chart(page)
    drag(page, stage, 0.15, 0.4, 0.4)
    page.mouse.move(*middle(stage))
    assert page.locator(".enlarged").count() == 1
    page.emulate_media(media="print")
    page.locator(".enlarged").wait_for(state="detached")
    for part in (".tip", ".tools", ".keys"):
        assert not page.locator(part).is_visible()
    page.context.close()


def test_panels_over_time_of_a_run_move_together(browser: Browser, report: Path) -> None:
    page, said = opened(browser, report)
    stage = chart(page, "Load and telemetry over time")
    stage.evaluate("one => one.scrollIntoView()")
    run = page.locator("details.run").first
    plots = run.locator("[data-plot]", has=page.locator("[data-x=grid]"))
    box = stage.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 50)
    over_time = run.locator(".cross").count()
    assert over_time == plots.count() - run.locator("figure", has_text="percentile of").count()
    assert over_time > 6
    assert page.locator(".tip .first").inner_text().endswith(" · Load")
    ticks = run.locator(".stage").evaluate_all(f"all => all.map({SHOWN_TICKS})")
    drag(page, stage, 0.3, 0.5, 0.08)
    after = run.locator(".stage").evaluate_all(f"all => all.map({SHOWN_TICKS})")
    moved = [one for one, two in zip(ticks, after, strict=True) if one != two]
    assert len(moved) == 2, "the panels, and the heat map beside them"
    assert moved[0] == moved[1]
    assert after[0] == after[1]
    other = page.locator("details.run").nth(1)
    other.locator("summary").first.click()
    assert other.locator(".enlarged").count() == 0
    assert said == []
    page.context.close()


def test_hostile_names_are_text_in_tips_and_buttons(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(shared.html("hostile"), encoding="utf-8")
    page, said = opened(browser, path)
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    for stage in page.locator(".stage").all():
        stage.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        assert page.locator(".tip").is_visible()
        inside = page.locator(".tip *").evaluate_all("all => all.map(one => one.localName)")
        assert set(inside) == {"div"}
    rate_and_latency_chart(page).focus()
    page.keyboard.press("ArrowRight")
    assert SCRIPT in page.locator(".tip .first").inner_text()
    page.locator(".toggle").first.click()
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hurt") is None
    assert said == []
    page.context.close()


def test_no_other_script_runs(browser: Browser, report: Path, tmp_path: Path) -> None:
    text = report.read_text(encoding="utf-8")
    hurt = f"{SCRIPT}<svg onload='window.hurt=2'></svg><img src='x' onerror='window.hurt=3'>"
    path = tmp_path / "injected.html"
    path.write_text(text.replace("<main>", f"<main>{hurt}"), encoding="utf-8")
    page, said = opened(browser, path)
    page.wait_for_timeout(100)
    assert page.evaluate("window.hurt") is None
    assert any("Content Security Policy" in line for line in said)
    assert page.locator(".stage").count() > 3, "the page's own script does"
    page.context.close()


def test_without_script_the_page_is_whole(browser: Browser, report: Path) -> None:
    page, said = opened(browser, report, java_script_enabled=False)
    assert page.locator("svg.chart path").count() > 100
    backing = page.locator("#appendix figure:has(svg.chart)").count()
    assert page.locator("#appendix figure table").count() == backing > 0
    for made in (".stage", ".tip", ".tools", ".toggle", ".keys"):
        assert page.locator(made).count() == 0
    assert said == []
    page.context.close()
