"""The `iolab` command: its subcommands under one app, and one door for every error.

What a command line does not name is not imported, nor is what takes time to load at the top of a
command's module, so that help and refusals are quick.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, Final

import typer

from iolab.cli.output import guarded, result

COMMANDS: Final = {
    "init": "iolab.cli.plan:init",
    "check": "iolab.cli.plan:check",
    "plan": "iolab.cli.plan:plan",
    "run": "iolab.cli.run:run",
    "demo": "iolab.cli.run:demo",
    "resume": "iolab.cli.run:resume",
    "import": "iolab.cli.exchange:import_",
    "show": "iolab.cli.show:show",
    "explain": "iolab.cli.show:explain",
    "report": "iolab.cli.report:report",
    "export": "iolab.cli.exchange:export",
    "serve": "iolab.cli.serve:serve",
    "compare": "iolab.cli.compare:compare",
    "history": "iolab.cli.compare:history",
    "reference": "iolab.cli.reference:reference",
    "audit": "iolab.cli.reference:audit",
    "predict": "iolab.cli.predict:predict",
    "choose": "iolab.cli.choose:choose",
    "doctor": "iolab.cli.doctor.command:doctor",
    "clean": "iolab.cli.clean:clean",
    "calibrate": "iolab.cli.calibrate:calibrate",
    "studies": "iolab.cli.plan:studies",
}
"""Every command in the order of the help, and the function that it is."""


def app_of(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The app with those commands; a test holds all of them against docs/reference/cli.md."""
    app = typer.Typer(
        name="iolab",
        help="Measure storage and stand behind every number.",
        epilog="Results on stdout, progress and errors on stderr. See also: iolab COMMAND --help.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in names:
        module, function = COMMANDS[name].split(":")
        app.command(name)(getattr(import_module(module), function))
    return app


def conclude(argv: Sequence[str]) -> int:
    """Run one command line; the exit code, with every error told and none escaping."""

    def run() -> object:
        named = [name for name in argv[:1] if name in COMMANDS]
        app = app_of(named or COMMANDS)
        return app(args=list(argv), prog_name="iolab", standalone_mode=False)

    return guarded(run, argv)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if asked:
        from iolab.version import __version__

        result(f"iolab {__version__}")
        raise typer.Exit


def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Measure storage and stand behind every number."""
