"""The pages as HTML: one style sheet and at most one script, both named by their digests.

Foreign text is escaped by the template engine, after what cannot be seen in it was written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment
from markupsafe import Markup

from iolab.model.event import SessionStatus
from iolab.report.html import digest_source, style_sheet, template_engine
from iolab.report.html import policy as report_policy
from iolab.report.html import script as report_script
from iolab.report.wording import count
from iolab.serve.comparing import ComparePage
from iolab.serve.find import Place
from iolab.serve.gate import Refusal
from iolab.serve.library import Listing
from iolab.serve.live import LivePage

REFRESH_S: Final = 3
"""How often a page that changes asks for itself again."""

_HERE: Final = Path(__file__).parent
_TOP: Final = b'<body>\n<div class="page">\n'
"""Where a report begins, below which the way back is put."""

HTML: Final = "text/html; charset=utf-8"
"""The kind of content of every page."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page and the headers of its content."""

    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Choice:
    """A side of a comparison of which a configuration is to be chosen."""

    name: str
    value: str
    session: str
    configurations: tuple[tuple[str, str], ...]
    chosen: str


def list_page(listing: Listing, root: str, version: str) -> Page:
    """The sessions of a directory."""
    return _page("list.html.j2", refresh=not listing.whole, listing=listing, root=root, v=version)


def live_html(page: LivePage, place: Place) -> Page:
    """A session as it runs; it asks for itself again as long as it does."""
    running = page.status is SessionStatus.RUNNING
    return _page("live.html.j2", refresh=running, page=page, place=place)


def making_page(title: str, place: Place) -> Page:
    """In place of a report that is being made."""
    return _page("making.html.j2", refresh=True, title=title, place=place)


def compare_html(page: ComparePage, again: str) -> Page:
    """A comparison; `again` is the address of it with what forbids it allowed."""
    return _page("compare.html.j2", page=page, again=again)


def choose_html(choices: tuple[Choice, ...]) -> Page:
    """Which configurations are to be compared."""
    return _page("choose.html.j2", choices=choices)


def refusal_html(refusal: Refusal) -> Page:
    """Why there is no page."""
    return _page("refusal.html.j2", refusal=refusal)


def with_way_back(report: bytes, place: Place) -> bytes:
    """A report with the way back to the list above it."""
    return report.replace(_TOP, _TOP + _links(place), 1)


def without_way_back(page: bytes, place: Place) -> bytes:
    """The report as it was, of a page that `with_way_back` made."""
    return page.replace(_TOP + _links(place), _TOP, 1)


def _links(place: Place) -> bytes:
    return _environment().get_template("above.html.j2").render(place=place).encode()


@cache
def report_rules() -> str:
    """The policy of a report: its one style sheet, its one script, and no frame around it."""
    return f"{report_policy(style_sheet(), report_script())}; frame-ancestors 'none'"


@cache
def _style() -> str:
    return style_sheet() + (_HERE / "serve.css").read_text(encoding="utf-8")


@cache
def _script() -> str:
    text = (_HERE / "refresh.js").read_text(encoding="utf-8")
    return text.replace("SECONDS", str(REFRESH_S))


def _page(template: str, *, refresh: bool = False, **content: object) -> Page:
    """A page under the policy that lets its own style, and its own script if it has one, in."""
    text = (
        _environment()
        .get_template(template)
        .render(
            style=Markup(_style()),  # noqa: S704 - ours, and its digest stands in the policy
            script=Markup(_script()) if refresh else "",  # noqa: S704 - the same
            refresh_s=REFRESH_S,
            **content,
        )
    )
    rules = [
        "default-src 'none'",
        f"style-src '{digest_source(_style())}'",
        "img-src data:",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
    if refresh:
        rules += [f"script-src '{digest_source(_script())}'", "connect-src 'self'"]
    return Page(text.encode(), {"content-type": HTML, "content-security-policy": "; ".join(rules)})


@cache
def _environment() -> Environment:
    environment = template_engine(_HERE / "templates")
    environment.globals["count"] = count
    environment.filters["time"] = _time
    return environment


def _time(real_ns: int) -> str:
    return datetime.fromtimestamp(real_ns / 1e9, tz=UTC).strftime("%Y-%m-%d %H:%M")
