"""The `iolab` command: all commands under one app, and one door for every error.

Modules that take time to load are imported inside the commands, so that `iolab --help` is quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from iolab.cli import (
    calibrate,
    choose,
    clean,
    compare,
    doctor,
    exchange,
    plan,
    predict,
    reference,
    report,
    run,
    serve,
    show,
)
from iolab.cli.output import guarded, result

app = typer.Typer(
    name="iolab",
    help="Measure storage and stand behind every number.",
    epilog="Results on stdout, progress and errors on stderr. See also: iolab COMMAND --help.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
"""Every command; a test holds it against docs/reference/cli.md."""

for _command, _name in (
    (plan.init, "init"),
    (plan.check, "check"),
    (plan.plan, "plan"),
    (run.run, "run"),
    (run.demo, "demo"),
    (run.resume, "resume"),
    (exchange.import_, "import"),
    (show.show, "show"),
    (show.explain, "explain"),
    (report.report, "report"),
    (exchange.export, "export"),
    (serve.serve, "serve"),
    (compare.compare, "compare"),
    (compare.history, "history"),
    (reference.reference, "reference"),
    (reference.audit, "audit"),
    (predict.predict, "predict"),
    (choose.choose, "choose"),
    (doctor.doctor, "doctor"),
    (clean.clean, "clean"),
    (calibrate.calibrate, "calibrate"),
    (plan.studies, "studies"),
):
    app.command(_name)(_command)


def conclude(argv: Sequence[str]) -> int:
    """Run one command line; the exit code, with every error told and none escaping."""
    return guarded(lambda: app(args=list(argv), prog_name="iolab", standalone_mode=False), argv)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if asked:
        from iolab import __version__

        result(f"iolab {__version__}")
        raise typer.Exit


@app.callback()
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
