"""Two channels: results on standard output, talk on standard error; foreign text made harmless.

Nothing else in the command line writes to either, so a pipe gets results alone, and a reader that
has seen enough (`iolab show S | head`) ends nothing but the output.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Final, TextIO

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
    screen = console(sys.stdout)
    with screen.capture() as captured:
        for part in parts:
            screen.print(part)
    lines = (line.rstrip() for line in captured.get().splitlines())
    _write(sys.stdout, "".join(f"{line}\n" for line in lines))


def say(text: str) -> None:
    """Tell the user something, on standard error."""
    _write(sys.stderr, text + "\n")


def console(stream: TextIO) -> Console:
    """A console that takes nothing in a text for markup, a link or a smiley."""
    from rich.console import Console

    width = None if stream.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH
    return Console(file=stream, markup=False, emoji=False, highlight=False, width=width)


def settle_streams() -> None:
    """Let no character that the terminal cannot show end the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _write(stream: TextIO, text: str) -> None:
    """Write at once; when the reader has gone, the rest of the output goes nowhere."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
