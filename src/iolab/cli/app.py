"""The `iolab` command: its subcommands under one app, with one handler for every error.

A command that is not run is not imported, so that help, completion and refusals are quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Final

import typer

from iolab.cli.commands import COMMANDS, CommandKind, command_from_argv
from iolab.cli.help import GroupedCommands, command_list_text
from iolab.cli.memory_limit import require_address_space_for_load
from iolab.cli.output import (
    page_output,
    print_raw,
    print_result,
    print_transient_message,
    run_with_error_handling,
)
from iolab.cli.settings import read_settings

if TYPE_CHECKING:
    from typer._click import Command as ClickCommand

NO_COLOR: Final = "--no-color"

SLOW_COMMAND_S: Final = 2.0
"""Seconds after which a command without output prints that it is working."""


def create_app() -> typer.Typer:
    """The app with every command of the table; a test holds them against docs/reference/cli.md."""
    app = typer.Typer(
        name="iolab",
        cls=GroupedCommands,
        help="Measure storage and stand behind every number.",
        epilog="iolab --list lists every command, iolab COMMAND --help explains one.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root_callback)
    return app


def run_command_line(argv: Sequence[str]) -> int:
    """Run one command line; the exit code, with every error told and none escaping."""

    def run_app_with_settings() -> object:
        require_address_space_for_load(argv)
        words = [word for word in argv if word != NO_COLOR]
        command = command_from_argv(words)
        settings = read_settings(tuple(COMMANDS))
        if len(words) < len(argv) or not settings.has_color:
            os.environ["NO_COLOR"] = "1"  # rich and the engines follow it
        defaults = {name: settings.option_defaults(name) for name in COMMANDS}
        # The pager shows results once they are all there.
        with (
            page_output(settings.pager, is_wanted=command is not None and command.is_paged),
            notice_for_slow_command(argv),
        ):
            return _root_command()(
                args=words, prog_name="iolab", standalone_mode=False, default_map=defaults
            )

    return run_with_error_handling(run_app_with_settings, argv)


@cache
def _root_command() -> ClickCommand:
    """The app's command, made once for all command lines of this process."""
    return typer.main.get_command(create_app())


@contextmanager
def notice_for_slow_command(
    argv: Sequence[str], silent_s: float = SLOW_COMMAND_S
) -> Iterator[None]:
    """Print a line on a terminal while a reading command takes longer than `silent_s`."""
    command = command_from_argv(argv)
    if not sys.stderr.isatty() or command is None or command.kind is not CommandKind.READS:
        yield
        return
    timer = Timer(silent_s, lambda: print_transient_message("Working: this takes a while."))
    timer.daemon = True
    # Where no further thread can be started, the line is left out.
    with suppress(RuntimeError, MemoryError):
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _print_version(is_requested: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if is_requested:
        from iolab.version import __version__

        print_result(f"iolab {__version__}")
        raise typer.Exit


def _print_man_page(is_requested: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if is_requested:
        from iolab.cli.man import man_page

        print_raw(man_page(create_app()))
        raise typer.Exit


def _print_command_list(is_requested: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if is_requested:
        print_result(command_list_text())
        raise typer.Exit


def _root_callback(
    *,
    list_: Annotated[
        bool,
        typer.Option(
            "--list", callback=_print_command_list, is_eager=True, help="List every command."
        ),
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    man: Annotated[
        bool,
        typer.Option(
            "--man", callback=_print_man_page, is_eager=True, help="Print the manual page and exit."
        ),
    ] = False,
    no_color: Annotated[
        bool, typer.Option(NO_COLOR, help="No colours, as with NO_COLOR=1; anywhere in the line.")
    ] = False,
) -> None:
    """Measure storage and stand behind every number."""
