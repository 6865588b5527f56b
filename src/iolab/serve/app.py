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
from iolab.analysis.points import summarise_points
from iolab.errors import IolabError, UsageError
from iolab.record import Record
from iolab.report.brief import LoadReportKinds
from iolab.report.formats.openmetrics import CONTENT_TYPE
from iolab.report.results import session_document
from iolab.serve.limits import READING_S
from iolab.serve.metrics import SessionLibraryMetrics
from iolab.serve.pages import (
    HTML,
    ConfigurationChoice,
    WebPage,
    comparison_html,
    comparison_page,
    configuration_choice_html,
    live_page,
    live_session_html,
    refusal_html,
    report_csp,
    report_in_progress_html,
    session_list_html,
    without_report_navigation,
)
from iolab.serve.reports import CompressedPage, ReportCache, TooManyReportsError
from iolab.serve.server import (
    AccessMiddleware,
    AccessPolicy,
    App,
    RequestRefusal,
    refusal_from_error,
)
from iolab.serve.sessions import LoadedSession, SessionFolder, SessionLibrary
from iolab.version import __version__

_TEXT_MAX: Final = 256
"""Characters of a value in an address; a configuration's id is shorter."""

_NO_PAGE_REFUSAL: Final = RequestRefusal(
    404, "There is no such page.", "Begin at the list of sessions."
)

_NO_SESSION_REFUSAL: Final = RequestRefusal(
    404,
    "There is no such session here.",
    "It may have been moved or removed; see the list of sessions.",
)

_BUSY_REFUSAL: Final = RequestRefusal(
    503, "Many reports are being made.", "Come again in a minute.", (("retry-after", "60"),)
)

_SLOW_REFUSAL: Final = RequestRefusal(
    503, "That took too long.", "The machine is busy; come again.", (("retry-after", "30"),)
)


class ServerContext(Record, dict=True):
    """What the pages stand on, and how they call the directory that is served."""

    library: SessionLibrary
    report_cache: ReportCache
    root_label: str
    kinds: LoadReportKinds

    @cached_property
    def session_library_metrics(self) -> SessionLibraryMetrics:
        """What monitoring systems are told."""
        return SessionLibraryMetrics(self.library, self.kinds.operation_json_key)


def create_app(
    context: ServerContext, policy: AccessPolicy, log_fault: Callable[[str], None]
) -> App:
    """The application; `log_fault` gets a line for each fault of ours."""

    @asynccontextmanager
    async def close_report_cache_at_end(_: Starlette) -> AsyncIterator[None]:
        yield
        await context.report_cache.close()

    routes = [
        _route_with_error_pages("/", context, _list_view),
        _route_with_error_pages("/compare", context, _compare_view),
        _route_with_error_pages("/metrics", context, _metrics_view),
        _route_with_error_pages("/sessions/{id}", context, _report_view),
        _route_with_error_pages("/sessions/{id}/live", context, _live_view),
        _route_with_error_pages("/sessions/{id}/report.html", context, _download_report_view),
        _route_with_error_pages("/sessions/{id}/show.json", context, _session_json_view),
    ]
    app = Starlette(
        routes=routes,
        lifespan=close_report_cache_at_end,
        exception_handlers={
            404: _not_found_response,
            405: _not_found_response,
            HTTPException: _not_found_response,
        },
    )
    app.router.redirect_slashes = False
    return AccessMiddleware(app, policy, _refusal_body_and_headers, log_fault)


View = Callable[[ServerContext, Request], Awaitable[Response]]


def _route_with_error_pages(path: str, context: ServerContext, view: View) -> Route:
    """The address of a view; what is wrong with a session, or takes too long, is told as a page."""

    async def respond_with_error_page(request: Request) -> Response:
        try:
            async with asyncio.timeout(READING_S):
                return await view(context, request)
        except TooManyReportsError:
            return _refusal_response(_BUSY_REFUSAL)
        except TimeoutError:
            return _refusal_response(_SLOW_REFUSAL)
        except IolabError as error:
            status = 400 if isinstance(error, UsageError) else 500
            return _refusal_response(
                refusal_from_error(_error_without_root_path(error, context), status)
            )

    return Route(path, respond_with_error_page, methods=["GET"])


async def _list_view(context: ServerContext, request: Request) -> Response:
    listing = await asyncio.to_thread(context.library.list_sessions)
    words = request.query_params.get("filter", "")[:_TEXT_MAX]
    return _page_response(session_list_html(listing, words, context.root_label, __version__))


async def _metrics_view(context: ServerContext, request: Request) -> Response:
    """What Prometheus scrapes; with a token it is asked as everything else is."""
    body = await asyncio.to_thread(
        lambda: context.session_library_metrics.openmetrics_text().encode()
    )
    return await _compressed_response(WebPage(body, {"content-type": CONTENT_TYPE}), request)


async def _report_view(context: ServerContext, request: Request) -> Response:
    place, report = await _find_folder_and_report_or_start_making(context, request)
    if report is None:
        return _page_response(report_in_progress_html(place), 202)
    headers = {"content-type": HTML, "content-security-policy": report_csp()}
    if _accepts_gzip(request):
        return Response(report.gzip_bytes, headers={**headers, "content-encoding": "gzip"})
    return Response(await asyncio.to_thread(report.decompress), headers=headers)


async def _download_report_view(context: ServerContext, request: Request) -> Response:
    """The report as `iolab report` writes it, to be kept."""
    place, report = await _find_folder_and_report_or_start_making(context, request)
    if report is None:
        return _page_response(report_in_progress_html(place), 202)
    headers = {
        "content-type": HTML,
        "content-disposition": f'attachment; filename="report-{place.id}.html"',
    }
    body = await asyncio.to_thread(lambda: without_report_navigation(report.decompress(), place))
    return await _compressed_response(WebPage(body, headers), request)


async def _find_folder_and_report_or_start_making(
    context: ServerContext, request: Request
) -> tuple[SessionFolder, CompressedPage | None]:
    """The session of an address, and its report as it stands now."""
    place = await _session_folder_or_404(context, request)
    stamp = await asyncio.to_thread(context.library.session_stamp, place)
    return place, await context.report_cache.report_page_or_start_making(place, stamp.digest)


async def _live_view(context: ServerContext, request: Request) -> Response:
    place = await _session_folder_or_404(context, request)
    page = await asyncio.to_thread(
        lambda: live_session_html(
            live_page(context.kinds, context.library.load_session(place), time.time_ns()), place
        )
    )
    return _page_response(page)


async def _session_json_view(context: ServerContext, request: Request) -> Response:
    place = await _session_folder_or_404(context, request)
    body = await asyncio.to_thread(
        lambda: _session_json(context.kinds, context.library.load_session(place))
    )
    return await _compressed_response(WebPage(body, {"content-type": "application/json"}), request)


def _session_json(load_kinds: LoadReportKinds, session: LoadedSession) -> bytes:
    """What `iolab show --json` prints, byte for byte."""
    points = summarise_points(session.results, session.study)
    document = session_document(
        load_kinds,
        session.study,
        session.results,
        points,
        session.reader.damage_of_documents_and_manifests(),
    )
    return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()


async def _compare_view(context: ServerContext, request: Request) -> Response:
    asked = request.query_params
    sides = []
    for name in ("baseline", "candidate"):
        session = asked.get(name, "")[:_TEXT_MAX]
        if not session:
            raise UsageError(f"No {name} is chosen.", "Choose two sessions in the list.")
        place = await asyncio.to_thread(context.library.session_folder, session)
        if place is None:
            return _refusal_response(_NO_SESSION_REFUSAL)
        sides.append((name, place, asked.get(f"{name}-configuration", "")[:_TEXT_MAX]))
    allow = asked.get("allow-differences") == "yes"
    return await asyncio.to_thread(
        lambda: _comparison_response(context, sides, allow_differences=allow)
    )


def _comparison_response(
    context: ServerContext, sides: list[tuple[str, SessionFolder, str]], *, allow_differences: bool
) -> Response:
    """The comparison, or the choice of configurations where a session has several."""
    opened = [context.library.load_session(place) for _, place, _ in sides]
    choices = [
        _configuration_choice(session, *side) for session, side in zip(opened, sides, strict=True)
    ]
    if any(
        not choice.chosen_configuration and len(choice.configurations) > 1 for choice in choices
    ):
        return _page_response(configuration_choice_html(tuple(choices)))
    baseline, candidate = (_comparison_side(*pair) for pair in zip(opened, choices, strict=True))
    compared = compare_sides(baseline, candidate)
    if not compared.compared_metrics:
        raise UsageError("The two sessions have no point in common.", "Compare others.")
    again = {name: place.id for name, place, _ in sides}
    again |= {f"{name}-configuration": text for name, _, text in sides if text}
    address = f"/compare?{urlencode({**again, 'allow-differences': 'yes'})}"
    damaged = tuple(
        f"{session.folder.name}: {damage}"
        for session in opened
        for damage in session.reader.damage_of_documents_and_manifests()
    )
    page = comparison_page(compared, allow_differences=allow_differences, damage_texts=damaged)
    return _page_response(comparison_html(page, address))


def _configuration_choice(
    session: LoadedSession, side_name: str, session_folder: SessionFolder, chosen_configuration: str
) -> ConfigurationChoice:
    configurations = tuple(
        (configuration.id, configuration.title) for configuration in session.study.configurations
    )
    return ConfigurationChoice(
        side_name, session_folder.id, session.session.title, configurations, chosen_configuration
    )


def _comparison_side(session: LoadedSession, choice: ConfigurationChoice) -> ComparisonSide:
    return read_comparison_side(
        session.folder.name, session.reader, choice.chosen_configuration or None
    )


async def _session_folder_or_404(context: ServerContext, request: Request) -> SessionFolder:
    place = await asyncio.to_thread(context.library.session_folder, request.path_params["id"])
    if place is None:
        raise HTTPException(404)
    return place


async def _not_found_response(request: Request, error: Exception) -> Response:
    """No such page; also where a path ends in a slash."""
    path = request.url.path
    if path != "/" and path.startswith("/sessions/") and path.endswith("/"):
        return RedirectResponse(path.rstrip("/"), 308)
    status = error.status_code if isinstance(error, HTTPException) else 404
    return _refusal_response(
        _NO_SESSION_REFUSAL if path.startswith("/sessions/") else _NO_PAGE_REFUSAL, status
    )


async def _compressed_response(page: WebPage, request: Request) -> Response:
    """A large page, compressed for whoever takes it so."""
    headers = dict(page.headers)
    if not _accepts_gzip(request):
        return Response(page.body, headers=headers)
    body = await asyncio.to_thread(gzip.compress, page.body, 1)
    return Response(body, headers={**headers, "content-encoding": "gzip"})


def _accepts_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _page_response(page: WebPage, status: int = 200) -> Response:
    return Response(page.body, status, headers=dict(page.headers))


def _refusal_response(refusal: RequestRefusal, status: int | None = None) -> Response:
    page = refusal_html(refusal)
    headers = {**page.headers, **dict(refusal.headers)}
    return Response(page.body, status or refusal.status, headers=headers)


def _refusal_body_and_headers(refusal: RequestRefusal) -> tuple[bytes, Mapping[str, str]]:
    page = refusal_html(refusal)
    return page.body, page.headers


def _error_without_root_path(error: IolabError, context: ServerContext) -> IolabError:
    """The error told of places below the directory served, not of where that lies."""
    root = f"{context.library.root}/"
    return type(error)(error.message.replace(root, ""), error.hint.replace(root, ""), error.faults)
