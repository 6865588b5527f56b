"""Two channels: results on standard output, talk on standard error; foreign text made harmless.

Nothing else in the command line writes to either, so a pipe gets results alone, and a reader that
has seen enough (`iolab show S | head`) ends nothing but the output.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Final, TextIO

from iolab.errors import ReportError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PIPE_WIDTH: Final = 1000
"""Off a terminal nothing is wrapped: a program, a pager or a file has its own idea of width."""


def result(text: str) -> None:
    """Print a result; text of hosts and files in it must have been cleaned."""
    _write(sys.stdout, text + "\n")


def result_json(document: object) -> None:
    """Print a document as JSON, in ASCII, so that no terminal is moved by what it holds."""
    _write(sys.stdout, json.dumps(document, indent=2, allow_nan=False) + "\n")


def raw_result(text: str) -> None:
    """Print a result exactly as it is: a file that goes through a pipe."""
    _write(sys.stdout, text)


def result_screen(*parts: RenderableType) -> None:
    """Print tables and text as wide as the terminal, or unwrapped into a pipe."""
    from io import StringIO

    drawn = StringIO()
    screen = console(sys.stdout, drawn)
    for part in parts:
        screen.print(part, crop=False)
    lines = (line.rstrip() for line in drawn.getvalue().splitlines())
    _write(sys.stdout, "".join(f"{line}\n" for line in lines))


def say(text: str) -> None:
    """Tell the user something, on standard error."""
    _write(sys.stderr, text + "\n")


def console(stream: TextIO, canvas: TextIO | None = None) -> Console:
    """A console that takes nothing in a text for markup, a link or a smiley.

    It draws for `stream`, and on `canvas` instead where one is given.
    """
    from rich.console import Console

    on_terminal = stream.isatty()
    return Console(
        file=canvas or stream,
        force_terminal=on_terminal,
        markup=False,
        emoji=False,
        highlight=False,
        width=None if on_terminal or os.environ.get("COLUMNS") else PIPE_WIDTH,
    )


def settle_streams() -> None:
    """Let no character that the terminal cannot show end the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _write(stream: TextIO, text: str) -> None:
    """Write at once; when the reader has gone, the rest of the output goes nowhere.

    ReportError when results cannot be written for another reason; talk is then lost in silence,
    for there is no place left to complain.
    """
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        _write_nowhere(stream)
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            raise ReportError(
                f"Standard output cannot be written: {error.strerror}.",
                "Give it a place that has room.",
            ) from error


def check_output() -> None:
    """ReportError when standard output still holds what it could not get rid of."""
    _write(sys.stdout, "")


def _write_nowhere(stream: TextIO) -> None:
    """Let what is still in the stream's buffer, and all that comes, be dropped."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
