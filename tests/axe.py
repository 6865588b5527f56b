"""What axe-core finds wrong with a page for readers who do not see it or use no mouse."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from playwright.sync_api import Page

GRAVE = {"serious", "critical"}


def faults(page: Page, part: str = "") -> list[str]:
    """The grave faults, each with its rule and where; the page's policy must have been bypassed.

    `part` is the selector of what alone is to be judged, the whole page without one.
    """
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_source())
    found = page.evaluate("part => axe.run(part || document, {resultTypes: ['violations']})", part)
    assert len(found["passes"]) > (0 if part else 10), "axe judged nothing"
    return [
        f"{one['id']} ({one['impact']}): {one['help']}: {node['target']} {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in GRAVE
        for node in one["nodes"]
    ]


@cache
def _source() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
