"""`iolab serve`: the sessions of a directory in a browser, read-only."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from iolab.cli.output import print_message, print_result
from iolab.errors import UsageError
from iolab.text import counted_noun, one_line, quote_value

if TYPE_CHECKING:
    from iolab.serve.server import ListeningSocket

LOOPBACK: Final = "127.0.0.1"

TOKEN_MIN: Final = 16
"""Characters of a token in a file: fewer can be guessed."""

TOKEN_BYTES_MAX: Final = 4096
"""A larger file holds no token."""

_TOKEN_BYTES: Final = 24
"""Of a token that is made: beyond guessing, and short enough to type."""


def serve(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Directory of sessions, up to four levels deep."),
    ] = Path(),
    *,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDR",
            help="Listen at this address; any but loopback needs the token that is printed.",
        ),
    ] = LOOPBACK,
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, help="Listen at this port; 0: a free one."),
    ] = 0,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Require the token in this file, also on loopback.",
        ),
    ] = None,
) -> None:
    """Show sessions in a browser, also running ones."""
    if not directory.is_dir():
        raise UsageError(
            f"There is no directory {quote_value(str(directory))}.",
            "Give one that holds sessions, or will.",
        )
    token = None if token_file is None else read_token(token_file)
    from iolab.serve.server import open_listener

    _serve_until_signal(directory, open_listener(host, port), token)


def _serve_until_signal(
    directory: Path, listener: ListeningSocket, chosen_token: str | None
) -> None:
    """Say where the pages are, and answer until a signal comes."""
    from iolab.registry import report_kinds
    from iolab.serve.app import ServerContext, create_app
    from iolab.serve.pages import with_report_navigation
    from iolab.serve.reports import ReportCache
    from iolab.serve.server import run_server as answer
    from iolab.serve.sessions import SessionLibrary

    token = generate_token() if chosen_token is None and not listener.is_loopback else chosen_token
    library = SessionLibrary(directory.resolve(), time.monotonic, report_kinds())
    context = ServerContext(
        library,
        ReportCache(html_report_argv, with_report_navigation),
        str(directory),
        report_kinds(),
    )
    app = create_app(
        context,
        listener.access_policy(token),
        lambda text: print_message(one_line(f"iolab: {text}")),
    )

    def print_address_and_token() -> None:
        print_result(listener.address)
        if token is not None and chosen_token is None:
            print_message(f"Token (as password, with any name): {token}")
        if not listener.is_loopback:
            print_message("The token and all pages cross the network in the clear.")
        count = library.session_count()
        print_message(
            f"{_session_count_text(count)} in {quote_value(str(directory))}. Stop with Ctrl-C."
        )

    answer(listener, app, print_address_and_token)


def html_report_argv(session: Path, path: Path) -> Sequence[str]:
    """The argument list that writes a session's report to a file, and tells a fault as JSON.

    With `-P` it imports nothing from the current directory, which is often the one that is served
    and may hold files of others.
    """
    return (
        *(sys.executable, "-P", "-m", "iolab", "report"),
        *(str(session), "--html", str(path), "--json"),
    )


def generate_token() -> str:
    """A token that nobody knows yet."""
    import secrets

    return secrets.token_urlsafe(_TOKEN_BYTES)


def read_token(path: Path) -> str:
    """The token in a file; UsageError where there is none that would keep anybody out."""
    name = quote_value(str(path))
    try:
        with path.open("rb") as file:
            content = file.read(TOKEN_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(
            f"The token in {name} cannot be read: {error.strerror}.", "Give a file that can be."
        ) from error
    token = content.decode("ascii", "replace").strip()
    plain = token.isascii() and token.isprintable() and " " not in token
    if len(content) > TOKEN_BYTES_MAX or len(token) < TOKEN_MIN or not plain:
        raise UsageError(
            f"{name} holds no token.",
            f"Put {TOKEN_MIN} or more letters, digits or signs on one line of it.",
        )
    return token


def _session_count_text(number: int) -> str:

    return counted_noun(number, "session") if number else "No session yet"
