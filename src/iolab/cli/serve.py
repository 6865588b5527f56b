"""`iolab serve`: the sessions of a directory in a browser, read-only."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from iolab.text import counted_noun, one_line, quote_value

if TYPE_CHECKING:
    from iolab.serve.server import Listener

LOOPBACK: Final = "127.0.0.1"

TOKEN_LEAST: Final = 16
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
    from iolab.errors import UsageError

    if not directory.is_dir():
        raise UsageError(
            f"There is no directory {quote_value(str(directory))}.",
            "Give one that holds sessions, or will.",
        )
    token = None if token_file is None else read_token(token_file)
    from iolab.serve.server import bind

    _answer(directory, bind(host, port), token)


def _answer(directory: Path, bound: Listener, chosen: str | None) -> None:
    """Say where the pages are, and answer until a signal comes."""
    import time

    from iolab.cli.output import result, say
    from iolab.registry import reported
    from iolab.serve.app import ServerContext, make_app
    from iolab.serve.pages import with_way_back
    from iolab.serve.reports import Reports
    from iolab.serve.server import serve as answer
    from iolab.serve.sessions import Library

    token = new_token() if chosen is None and not bound.local else chosen
    library = Library(directory.resolve(), time.monotonic, reported())
    context = ServerContext(
        library, Reports(report_command, with_way_back), str(directory), reported()
    )
    app = make_app(context, bound.terms(token), lambda text: say(one_line(f"iolab: {text}")))

    def ready() -> None:
        result(bound.address)
        if token is not None and chosen is None:
            say(f"Token (as password, with any name): {token}")
        if not bound.local:
            say("The token and all pages cross the network in the clear.")
        count = library.count()
        say(f"{_counted(count)} in {quote_value(str(directory))}. Stop with Ctrl-C.")

    answer(bound, app, ready)


def report_command(session: Path, path: Path) -> Sequence[str]:
    """The argument list that writes a session's report to a file, and tells a fault as JSON.

    With `-P` it imports nothing from the current directory, which is often the one that is served
    and may hold files of others.
    """
    return (
        *(sys.executable, "-P", "-m", "iolab", "report"),
        *(str(session), "--html", str(path), "--json"),
    )


def new_token() -> str:
    """A token that nobody knows yet."""
    import secrets

    return secrets.token_urlsafe(_TOKEN_BYTES)


def read_token(path: Path) -> str:
    """The token in a file; UsageError where there is none that would keep anybody out."""
    from iolab.errors import UsageError

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
    if len(content) > TOKEN_BYTES_MAX or len(token) < TOKEN_LEAST or not plain:
        raise UsageError(
            f"{name} holds no token.",
            f"Put {TOKEN_LEAST} or more letters, digits or signs on one line of it.",
        )
    return token


def _counted(number: int) -> str:

    return counted_noun(number, "session") if number else "No session yet"
