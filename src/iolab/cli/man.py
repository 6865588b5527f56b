"""The manual page, made of the help that every command prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from typer.core import TyperArgument, TyperGroup

from iolab.cli.help import commands_by_group, usage_with_plain_types
from iolab.version import __version__

if TYPE_CHECKING:
    from typer import Typer
    from typer._click import Command, Context

_SPECIAL: Final = re.compile(r"[\\\-]")

_EXIT_CODES: Final = (
    ("0", "Done. doctor: fit to measure, also where the machine is busy."),
    ("1", "--fail-on was met, or a comparison is worse."),
    ("2", "Wrong command line or study, or sessions that cannot be compared."),
    ("3", "A host, agent or target cannot serve or was lost; out of memory."),
    ("4", "An engine is missing or too old, or a run failed."),
    ("5", "A session cannot be read or written, or is damaged."),
    ("6", "A report or export cannot be written."),
    ("70", "A bug of iolab."),
    ("130", "Stopped by the user."),
)
_FILES: Final = (
    ("~/.config/iolab/config.toml", "Defaults of options, and settings of the screen."),
)
_ENVIRONMENT: Final = (
    ("NO_COLOR", "Any value: no colours."),
    ("PAGER", "Shows long results on a terminal; less is the default."),
    ("COLUMNS", "Width of tables without a terminal."),
    ("IOLAB_AGENT", "Another agent binary."),
    ("IOLAB_DEBUG", "1: traceback of a bug."),
)


def man_page(app: Typer) -> str:
    """The whole page as roff."""
    from typer.main import get_command

    root = get_command(app)
    if not isinstance(root, TyperGroup):
        raise TypeError(root)
    context = root.make_context("iolab", [], resilient_parsing=True)
    return "\n".join(_page_lines(root, context)) + "\n"


def _page_lines(app: TyperGroup, context: Context) -> Iterator[str]:
    yield f'.TH IOLAB 1 "" "iolab {__version__}" "User Commands"'
    yield from (".SH NAME", f"iolab \\- {_escape_roff(app.help or '').removesuffix('.').lower()}")
    yield from (".SH SYNOPSIS", ".B iolab", r"[\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGS\fR]...")
    yield from (".SH DESCRIPTION", _escape_roff(app.epilog or ""))
    yield ".SH OPTIONS"
    yield from _parameter_lines(app, context)
    for group, commands in commands_by_group().items():
        yield f'.SH "{group.value.upper()}"'
        for command in commands:
            yield from _command_lines(app.commands[command.name], context)
    for heading, pairs in (
        ("EXIT STATUS", _EXIT_CODES),
        ("ENVIRONMENT", _ENVIRONMENT),
        ("FILES", _FILES),
    ):
        yield f'.SH "{heading}"'
        for term, text in pairs:
            yield from _definition_lines(term, text)
    yield from (".SH SEE ALSO", r"\fBfio\fR(1)")


def _command_lines(command: Command, parent: Context) -> Iterator[str]:
    name = command.name or ""
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    arguments = [
        parameter.display_name_raw
        for parameter in command.get_params(context)
        if isinstance(parameter, TyperArgument)
    ]
    yield f'.SS "{" ".join(("iolab", name, "[OPTIONS]", *arguments))}"'
    for paragraph in (command.help or "").split("\n\n"):
        yield _escape_roff(" ".join(paragraph.split()))
        yield ".PP"
    yield from _parameter_lines(command, context)


def _parameter_lines(command: Command, context: Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            term = (
                parameter.display_name_raw
                if isinstance(parameter, TyperArgument)
                else usage_with_plain_types(record[0])
            )
            yield from _definition_lines(term, record[1])


def _definition_lines(term: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield f".B {_escape_roff(term)}"
    yield _escape_roff(" ".join(text.split()))


def _escape_roff(text: str) -> str:
    """Text of which nothing is a request of roff; hyphens can be copied as such."""
    text = _SPECIAL.sub(lambda match: "\\e" if match[0] == "\\" else r"\-", text)
    return f"\\&{text}" if text.startswith((".", "'")) else text
