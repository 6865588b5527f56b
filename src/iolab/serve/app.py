"""Which address shows what: the list, reports, sessions that run, comparisons, documents.

Addresses name sessions by an opaque id that the search gave them; no path of any file is made from
what a request says.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Final
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from iolab.analysis.comparison import compare_sides
from iolab.analysis.differences import ComparisonSide, read_comparison_side
from iolab.analysis.points import summarise
from iolab.dataclass import dataclass
from iolab.errors import IolabError, UsageError
from iolab.report.brief import LoadKinds
from iolab.report.formats.openmetrics import CONTENT_TYPE
from iolab.report.results import session_document
from iolab.serve.limits import READING_S
from iolab.serve.metrics import LibraryMetrics
from iolab.serve.pages import (
    HTML,
    Choice,
    WebPage,
    choose_html,
    compare_html,
    compare_page,
    list_page,
    live_html,
    live_page,
    making_page,
    refusal_html,
    report_rules,
    without_way_back,
)
from iolab.serve.reports import Busy, CompressedPage, Reports
from iolab.serve.server import App, Gate, RequestRefusal, Terms, refusal_of
from iolab.serve.sessions import Library, LoadedSession, SessionFolder
from iolab.version import __version__

_TEXT_MAX: Final = 256
"""Characters of a value in an address; a configuration's id is shorter."""


@dataclass(frozen=True)
class ServerContext:
    """What the pages stand on, and how they call the directory that is served."""

    library: Library
    reports: Reports
    root: str
    kinds: LoadKinds

    @cached_property
    def monitor(self) -> LibraryMetrics:
        """What monitoring systems are told."""
        return LibraryMetrics(self.library, self.kinds.operation_key)


def make_app(context: ServerContext, terms: Terms, tell: Callable[[str], None]) -> App:
    """The application; `tell` gets a line for each fault of ours."""

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        yield
        await context.reports.close()

    routes = [
        _route("/", context, _list),
        _route("/compare", context, _compare),
        _route("/metrics", context, _metrics),
        _route("/sessions/{id}", context, _report),
        _route("/sessions/{id}/live", context, _live),
        _route("/sessions/{id}/report.html", context, _download),
        _route("/sessions/{id}/show.json", context, _document),
    ]
    app = Starlette(
        routes=routes,
        lifespan=life,
        exception_handlers={404: _missing, 405: _missing, HTTPException: _missing},
    )
    app.router.redirect_slashes = False
    return Gate(app, terms, _refuse, tell)


View = Callable[[ServerContext, Request], Awaitable[Response]]


def _route(path: str, context: ServerContext, view: View) -> Route:
    """The address of a view; what is wrong with a session, or takes too long, is told as a page."""

    async def answer(request: Request) -> Response:
        try:
            async with asyncio.timeout(READING_S):
                return await view(context, request)
        except Busy:
            return _refused(_BUSY)
        except TimeoutError:
            return _refused(_SLOW)
        except IolabError as error:
            status = 400 if isinstance(error, UsageError) else 500
            return _refused(refusal_of(_without_path(error, context), status))

    return Route(path, answer, methods=["GET"])


async def _list(context: ServerContext, _: Request) -> Response:
    listing = await asyncio.to_thread(context.library.listing)
    return _shown(list_page(listing, context.root, __version__))


async def _metrics(context: ServerContext, request: Request) -> Response:
    """What Prometheus scrapes; with a token it is asked as everything else is."""
    body = await asyncio.to_thread(lambda: context.monitor.text().encode())
    return await _packed(WebPage(body, {"content-type": CONTENT_TYPE}), request)


async def _report(context: ServerContext, request: Request) -> Response:
    place, report = await _made(context, request)
    if report is None:
        return _shown(making_page(place), 202)
    headers = {"content-type": HTML, "content-security-policy": report_rules()}
    if _takes_gzip(request):
        return Response(report.packed, headers={**headers, "content-encoding": "gzip"})
    return Response(await asyncio.to_thread(report.plain), headers=headers)


async def _download(context: ServerContext, request: Request) -> Response:
    """The report as `iolab report` writes it, to be kept."""
    place, report = await _made(context, request)
    if report is None:
        return _shown(making_page(place), 202)
    headers = {
        "content-type": HTML,
        "content-disposition": f'attachment; filename="report-{place.id}.html"',
    }
    body = await asyncio.to_thread(lambda: without_way_back(report.plain(), place))
    return await _packed(WebPage(body, headers), request)


async def _made(
    context: ServerContext, request: Request
) -> tuple[SessionFolder, CompressedPage | None]:
    """The session of an address, and its report as it stands now."""
    place = await _place(context, request)
    state = await asyncio.to_thread(context.library.state, place)
    return place, await context.reports.page(place, state.digest)


async def _live(context: ServerContext, request: Request) -> Response:
    place = await _place(context, request)
    page = await asyncio.to_thread(
        lambda: live_html(
            live_page(context.kinds, context.library.open(place), time.time_ns()), place
        )
    )
    return _shown(page)


async def _document(context: ServerContext, request: Request) -> Response:
    place = await _place(context, request)
    body = await asyncio.to_thread(lambda: _json(context.kinds, context.library.open(place)))
    return await _packed(WebPage(body, {"content-type": "application/json"}), request)


def _json(kinds: LoadKinds, opened: LoadedSession) -> bytes:
    """What `iolab show --json` prints, byte for byte."""
    points = summarise(opened.results, opened.study)
    document = session_document(
        kinds, opened.study, opened.results, points, opened.reader.damaged()
    )
    return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()


async def _compare(context: ServerContext, request: Request) -> Response:
    asked = request.query_params
    sides = []
    for name in ("baseline", "candidate"):
        session = asked.get(name, "")[:_TEXT_MAX]
        if not session:
            raise UsageError(f"No {name} is chosen.", "Choose two sessions in the list.")
        place = await asyncio.to_thread(context.library.place, session)
        if place is None:
            return _refused(_NO_SESSION)
        sides.append((name, place, asked.get(f"{name}-configuration", "")[:_TEXT_MAX]))
    allow = asked.get("allow-differences") == "yes"
    return await asyncio.to_thread(lambda: _compared(context, sides, allow=allow))


def _compared(
    context: ServerContext, asked: list[tuple[str, SessionFolder, str]], *, allow: bool
) -> Response:
    """The comparison, or the choice of configurations where a session has several."""
    opened = [context.library.open(place) for _, place, _ in asked]
    choices = [_choice(session, *side) for session, side in zip(opened, asked, strict=True)]
    if any(not choice.chosen and len(choice.configurations) > 1 for choice in choices):
        return _shown(choose_html(tuple(choices)))
    baseline, candidate = (_side(*pair) for pair in zip(opened, choices, strict=True))
    compared = compare_sides(baseline, candidate)
    if not compared.rows:
        raise UsageError("The two sessions have no point in common.", "Compare others.")
    again = {name: place.id for name, place, _ in asked}
    again |= {f"{name}-configuration": text for name, _, text in asked if text}
    address = f"/compare?{urlencode({**again, 'allow-differences': 'yes'})}"
    damaged = tuple(
        f"{session.place.name}: {damage}"
        for session in opened
        for damage in session.reader.damaged()
    )
    page = compare_page(compared, allow_differences=allow, damaged=damaged)
    return _shown(compare_html(page, address))


def _choice(opened: LoadedSession, name: str, place: SessionFolder, chosen: str) -> Choice:
    configurations = tuple(
        (configuration.id, configuration.title) for configuration in opened.study.configurations
    )
    return Choice(name, place.id, opened.session.title, configurations, chosen)


def _side(opened: LoadedSession, choice: Choice) -> ComparisonSide:
    return read_comparison_side(opened.place.name, opened.reader, choice.chosen or None)


async def _place(context: ServerContext, request: Request) -> SessionFolder:
    place = await asyncio.to_thread(context.library.place, request.path_params["id"])
    if place is None:
        raise HTTPException(404)
    return place


async def _missing(request: Request, error: Exception) -> Response:
    """No such page; also where a path ends in a slash."""
    path = request.url.path
    if path != "/" and path.startswith("/sessions/") and path.endswith("/"):
        return RedirectResponse(path.rstrip("/"), 308)
    status = error.status_code if isinstance(error, HTTPException) else 404
    return _refused(_NO_SESSION if path.startswith("/sessions/") else _NO_PAGE, status)


async def _packed(page: WebPage, request: Request) -> Response:
    """A large page, compressed for whoever takes it so."""
    headers = dict(page.headers)
    if not _takes_gzip(request):
        return Response(page.body, headers=headers)
    body = await asyncio.to_thread(gzip.compress, page.body, 1)
    return Response(body, headers={**headers, "content-encoding": "gzip"})


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _shown(page: WebPage, status: int = 200) -> Response:
    return Response(page.body, status, headers=dict(page.headers))


def _refused(refusal: RequestRefusal, status: int | None = None) -> Response:
    page = refusal_html(refusal)
    headers = {**page.headers, **dict(refusal.headers)}
    return Response(page.body, status or refusal.status, headers=headers)


def _refuse(refusal: RequestRefusal) -> tuple[bytes, Mapping[str, str]]:
    page = refusal_html(refusal)
    return page.body, page.headers


def _without_path(error: IolabError, context: ServerContext) -> IolabError:
    """The error told of places below the directory served, not of where that lies."""
    root = f"{context.library.root}/"
    return type(error)(error.message.replace(root, ""), error.hint.replace(root, ""), error.faults)


_NO_PAGE: Final = RequestRefusal(404, "There is no such page.", "Begin at the list of sessions.")
_NO_SESSION: Final = RequestRefusal(
    404,
    "There is no such session here.",
    "It may have been moved or removed; see the list of sessions.",
)
_BUSY: Final = RequestRefusal(
    503, "Many reports are being made.", "Come again in a minute.", (("retry-after", "60"),)
)
_SLOW: Final = RequestRefusal(
    503, "That took too long.", "The machine is busy; come again.", (("retry-after", "30"),)
)
