"""The report for readers who do not see it, use no mouse, or read it on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from iolab.report.brief import build_brief
from iolab.report.html import render_html
from tests.axe import faults
from tests.report.hostile import hostile
from tests.report.studies import pair

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 375, "height": 800}, "has_touch": True},
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("accessible")
    made = {}
    for name, source in (("report", pair()), ("hostile", hostile(pair()))):
        made[name] = folder / f"{name}.html"
        made[name].write_text(render_html(build_brief(source)), encoding="utf-8")
    return made


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_axe_finds_no_grave_fault(browser: Browser, reports: dict[str, Path], look: str) -> None:
    page = browser.new_context(bypass_csp=True, **LOOKS[look]).new_page()
    page.goto(reports["report"].as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    page.locator("#charts .stage").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".tip").is_visible()
    assert faults(page) == []
    page.context.close()


def test_axe_finds_none_with_configurations_hidden_nor_in_hostile_text(
    browser: Browser, reports: dict[str, Path]
) -> None:
    for path in reports.values():
        page = browser.new_context(bypass_csp=True).new_page()
        page.goto(path.as_uri())
        page.locator(".toggle").first.click()
        assert faults(page) == []
        page.context.close()


def test_axe_sees_a_fault_where_there_is_one(browser: Browser, reports: dict[str, Path]) -> None:
    page = browser.new_context(bypass_csp=True).new_page()
    page.goto(reports["report"].as_uri())
    page.evaluate("document.querySelector('svg.chart').removeAttribute('aria-label')")
    assert any(one.startswith("svg-img-alt") for one in faults(page))
    page.context.close()
