"""The page as a browser shows it: quiet, within the window, in both colours, and on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.axe import faults
from tests.report import shared

WIDTHS = (375, 768, 1280, 1920)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def written(folder: Path, name: str) -> Path:
    path = folder / f"{name}.html"
    if not path.exists():
        path.write_text(shared.html(name), encoding="utf-8")
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


@pytest.mark.parametrize(
    ("name", "at_least"), [("two", 30), ("hostile", 10), ("two keys", 10), ("crowded", 15)]
)
def test_a_page_asks_for_nothing_fits_its_window_and_keeps_its_labels_apart(
    browser: Browser, folder: Path, name: str, at_least: int
) -> None:
    page, said = shown(browser, written(folder, name), viewport={"width": 1440, "height": 900})
    assert [line for line in said if not line.startswith("request: data:,")] == []
    assert page.evaluate("window.hurt") is None
    charts = page.evaluate(CHARTS)
    assert len(charts) > at_least
    assert [chart for chart in charts if not chart["paths"]] == []
    if name != "hostile":
        assert [chart["overlaps"] for chart in charts if chart["overlaps"]] == []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": WIDTHS[0], "height": 800})
    sizes = page.evaluate(
        """[...document.querySelectorAll('svg.chart')].filter(svg => svg.checkVisibility()).map(
             svg => 12 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"""
    )
    assert min(sizes) >= 9.5, "type can be read on a phone"
    drawings = [drawing for drawing in page.evaluate(DRAWINGS) if drawing["size"]]
    assert len(drawings) == (name != "hostile"), "one of both drawings, where a host was reached"
    assert all(drawing["fits"] and drawing["size"] >= 9.5 for drawing in drawings)
    page.context.close()


DRAWINGS = """[...document.querySelectorAll('.topology')].map(svg => {
  const {right, width} = svg.getBoundingClientRect();
  const size = 11 * width / svg.viewBox.baseVal.width;
  const texts = [...svg.querySelectorAll('text')].map(t => t.getBoundingClientRect().right);
  const {scrollWidth, clientWidth} = svg.parentElement;
  return {fits: Math.max(right, ...texts) <= innerWidth && scrollWidth <= clientWidth, size};
})"""

CHARTS = """[...document.querySelectorAll('svg.chart')].filter(svg => svg.checkVisibility())
  .map(svg => {
  const texts = [...svg.querySelectorAll('text')];
  const boxes = texts.map(t => t.getBoundingClientRect());
  let overlaps = [];
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
    // The rim of a label is the same text below it.
    if (texts[i].textContent === texts[i + 1 + j].textContent) return;
    const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (x > 1 && y > 4) overlaps.push([texts[i].textContent, texts[i + 1 + j].textContent]);
  }));
  const paths = [...svg.querySelectorAll('path')];
  return {paths: paths.filter(p => p.getTotalLength() > 0).length, overlaps};
})"""


def test_dark_and_light_differ_and_paper_is_light(browser: Browser, folder: Path) -> None:
    page, _ = shown(browser, written(folder, "pair"))
    colours = """[getComputedStyle(document.body).backgroundColor,
      getComputedStyle(document.querySelector('svg.chart text')).fill,
      getComputedStyle(document.querySelector('svg.chart path[stroke]')).stroke]"""
    page.emulate_media(color_scheme="light")
    light = page.evaluate(colours)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(colours)
    assert all(a != b for a, b in zip(light, dark, strict=True))
    page.emulate_media(media="print")
    assert page.evaluate(colours)[0] == "rgb(255, 255, 255)"
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.context.close()


def test_what_to_do_next_stands_on_a_phone_without_scrolling(
    browser: Browser, folder: Path
) -> None:
    page, _ = shown(browser, written(folder, "two"), viewport={"width": 375, "height": 800})
    edges = page.evaluate(
        """[...document.querySelectorAll('#limits td:last-child')].map(
             cell => cell.getBoundingClientRect().right)"""
    )
    assert edges
    assert max(edges) <= 375
    page.context.close()


CUT = """[...document.querySelectorAll('main > section .scroll')]
  .filter(table => !table.closest('.appendix') && table.scrollWidth > table.clientWidth + 1)
  .map(table => table.innerText.slice(0, 80))"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["two", "two keys", "kpi", "guests"])
def test_no_table_of_the_brief_is_cut(
    browser: Browser, folder: Path, name: str, width: int
) -> None:
    page, _ = shown(browser, written(folder, name), viewport={"width": width, "height": 800})
    assert page.locator("#matrix table").count()
    assert page.evaluate(CUT) == []
    page.context.close()


FACTS_BEYOND_THEIR_TILE = """[...document.querySelectorAll('.fast li')].flatMap(tile => {
  const {left, right, bottom} = tile.getBoundingClientRect();
  return [...tile.children].filter(part => {
    const range = document.createRange();
    range.selectNodeContents(part);
    const text = range.getBoundingClientRect();
    return text.left < left - 1 || text.right > right + 1 || text.bottom > bottom + 1;
  }).map(part => part.textContent);
})"""

LINKS_OUT_OF_REACH = """[...document.querySelectorAll('.page > .contents a')].filter(link => {
  const {left, right, top, bottom} = link.getBoundingClientRect();
  const hit = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return left < 0 || right > innerWidth || hit !== link;
}).map(link => link.textContent)"""


@pytest.mark.parametrize("width", [390, 1280, 1920])
@pytest.mark.parametrize("name", ["two", "two keys", "kpi", "guests"])
def test_facts_and_links_are_whole_at_every_width(
    browser: Browser, folder: Path, name: str, width: int
) -> None:
    page, _ = shown(browser, written(folder, name), viewport={"width": width, "height": 1000})
    assert page.locator(".fast li").count()
    assert page.evaluate(FACTS_BEYOND_THEIR_TILE) == []
    page.locator(".page > .contents").scroll_into_view_if_needed()
    assert page.evaluate(LINKS_OUT_OF_REACH) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()


def test_a_wide_window_is_used_and_its_contents_stay_in_sight(
    browser: Browser, folder: Path
) -> None:
    page, _ = shown(browser, written(folder, "two"), viewport={"width": 1920, "height": 1000})
    edges = page.evaluate(
        """[...document.querySelectorAll('.page > *')].map(part => part.getBoundingClientRect())
             .map(({left, right}) => [left, right])"""
    )
    assert max(right for _, right in edges) - min(left for left, _ in edges) > 0.8 * 1920
    page.evaluate("document.getElementById('configuration').scrollIntoView()")
    assert page.evaluate(LINKS_OUT_OF_REACH) == []
    page.context.close()


def test_a_verdict_leads_to_its_run_and_opens_it(browser: Browser, folder: Path) -> None:
    page = browser.new_context().new_page()
    page.goto(written(folder, "pair").as_uri())
    page.locator("#appendix > summary").click()
    page.locator("#results a.badge").last.click()
    target = page.evaluate("location.hash.slice(1)")
    opened = page.evaluate("id => document.getElementById(id).closest('details').open", target)
    assert opened
    page.evaluate("document.getElementById('appendix').open = false")
    page.locator(".matrix a").first.click()
    assert page.evaluate("document.getElementById('appendix').open")
    page.context.close()


LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 375, "height": 800}},
    "dark": {"color_scheme": "dark"},
}


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_no_grave_fault(browser: Browser, folder: Path, look: str) -> None:
    """For readers who do not see the page, use no mouse, or read it on a phone."""
    page, _ = shown(browser, written(folder, "pair"), bypass_csp=True, **LOOKS[look])
    page.locator("#charts .stage").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".tip").is_visible()
    assert faults(page) == []
    page.evaluate(
        """() => {
             const drawings = [...document.querySelectorAll('svg.chart')];
             const one = drawings.find(svg => svg.checkVisibility());
             one.removeAttribute('aria-label');
             one.id = 'nameless';
           }"""
    )
    assert [one.split()[0] for one in faults(page, "#nameless")] == ["svg-img-alt"], "axe sees one"
    page.context.close()


def test_axe_finds_none_in_hostile_text_with_a_configuration_hidden(
    browser: Browser, folder: Path
) -> None:
    page = browser.new_context(bypass_csp=True).new_page()
    page.goto(written(folder, "hostile").as_uri())
    page.locator(".toggle").first.click()
    assert faults(page) == []
    page.context.close()
