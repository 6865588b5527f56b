"""The command: it looks at this machine or at a fleet, shows what it found, and ends by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from iolab.cli.doctor.findings import LEFT, OTHER_LOAD, Finding, FindingState, machine_findings
from iolab.cli.options import AsJson, OtherHosts
from iolab.text import counted_noun, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence


def doctor(
    *,
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="DIR",
            help="The directory to measure; default: the current one.",
        ),
    ] = None,
    hosts: OtherHosts = None,
    cloud_metadata: Annotated[
        bool,
        typer.Option(
            "--cloud-metadata",
            help="Also ask the cloud's metadata service (169.254.169.254) for the instance type "
            "and the volumes.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check whether this machine, or a fleet, is ready to measure."""
    if hosts is None:
        findings = _this_machine(path or ".", cloud=cloud_metadata, as_json=as_json)
    else:
        findings = _fleet(hosts, path, cloud=cloud_metadata, as_json=as_json)
    conclude(findings, clean_command(path, hosts))


def clean_command(path: str | None, hosts: str | None) -> str:
    """What shows what killed sessions left where this command has looked."""
    import shlex

    words = ["iolab", "clean"]
    for option, value in (("--path", path), ("--hosts", hosts)):
        words += [] if value is None else [option, value]
    return shlex.join(words)


def _this_machine(path: str, *, cloud: bool, as_json: bool) -> Sequence[Finding]:
    import asyncio
    from pathlib import Path

    from rich.text import Text

    from iolab.cli.output import result_json, result_screen
    from iolab.report.table import Column
    from iolab.report.terminal import QUIET_STYLE, literal_text, terminal_table

    findings = asyncio.run(machine_findings(str(Path(path).absolute()), cloud=cloud))
    if as_json:
        answers = [
            {
                "what": item.what,
                "state": item.state.value,
                "message": item.message,
                "hint": item.hint,
            }
            for item in findings
        ]
        result_json({"format": 1, "findings": answers})
        return findings
    styles = {FindingState.OK: "green", FindingState.NOTE: "yellow", FindingState.FAULT: "bold red"}
    rows: list[list[Text | str]] = []
    for item in findings:
        rows.append(
            [
                literal_text(item.what),
                literal_text(item.state, styles[item.state]),
                literal_text(item.message),
            ]
        )
        if item.hint:
            rows.append(["", "", literal_text(item.hint, QUIET_STYLE)])
    headings = (Column(""), Column("state"), Column("found, and what to do", can_wrap=True))
    result_screen(terminal_table(headings, rows))
    return findings


def _fleet(hosts: str, path: str | None, *, cloud: bool, as_json: bool) -> Sequence[Finding]:
    import asyncio

    from iolab.cli.doctor.fleet import (
        fleet_document,
        fleet_findings,
        fleet_screen,
        inspect_fleet,
    )
    from iolab.cli.options import read_hosts, refuse_relative
    from iolab.cli.output import result_json, result_screen

    refuse_relative(path)
    specs = read_hosts(hosts)
    inspected = asyncio.run(inspect_fleet(specs, path, cloud=cloud))
    if as_json:
        result_json(fleet_document(specs, inspected))
    else:
        result_screen(*fleet_screen(specs, inspected))
    return [item.finding for item in fleet_findings(inspected)]


def conclude(findings: Sequence[Finding], clean: str) -> None:
    """Say whether all is ready, with the command that cleans; typer.Exit where it is not."""
    from iolab.cli.output import say
    from iolab.errors import ExitCode

    if any(item.what == LEFT for item in findings):
        say(f"Left by killed sessions; to see and remove it: {one_line(clean)}")
    faults = [item for item in findings if item.state is FindingState.FAULT]
    busy = next(
        (
            finding
            for finding in findings
            if finding.what == OTHER_LOAD and finding.state is FindingState.NOTE
        ),
        None,
    )
    if not faults and busy is not None:
        say(f"Not fit to measure now, for {busy.what}. All else is ready.")
        raise typer.Exit(ExitCode.VERDICT)
    if not faults:
        say("Ready.")
        return
    say(f"Not ready: {counted_noun(len(faults), 'fault')}.")
    raise typer.Exit(ExitCode.ENGINE if all(item.engine for item in faults) else ExitCode.HOST)
