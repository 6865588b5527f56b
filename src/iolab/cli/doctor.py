"""`iolab doctor`: whether this machine is ready to measure a directory."""

from __future__ import annotations

from typing import Annotated

import typer

from iolab.cli.options import AsJson


def doctor(
    *,
    path: Annotated[
        str, typer.Option("--path", metavar="DIR", help="The directory to be measured.")
    ] = ".",
    as_json: AsJson = False,
) -> None:
    """Say whether this machine is ready to measure."""
    import asyncio
    from pathlib import Path

    from rich.text import Text

    from iolab.cli.examine import State, examine
    from iolab.cli.screen import QUIET_STYLE, Heading, plain, table
    from iolab.cli.talk import result_json, result_screen, say
    from iolab.errors import ExitCode
    from iolab.report.wording import count

    findings = asyncio.run(examine(str(Path(path).absolute())))
    if as_json:
        answers = [
            {"what": item.what, "state": item.state.value, "says": item.says, "do": item.do}
            for item in findings
        ]
        result_json({"format": 1, "findings": answers})
    else:
        styles = {State.OK: "green", State.NOTE: "yellow", State.FAULT: "bold red"}
        rows: list[list[Text | str]] = []
        for item in findings:
            rows.append([plain(item.what), plain(item.state, styles[item.state]), plain(item.says)])
            if item.do:
                rows.append(["", "", plain(item.do, QUIET_STYLE)])
        headings = (Heading(""), Heading("state"), Heading("found, and what to do", main=True))
        result_screen(table(headings, rows))
    faults = [item for item in findings if item.state is State.FAULT]
    if not faults:
        say("Ready.")
        return
    say(f"Not ready: {count(len(faults), 'fault')}.")
    raise typer.Exit(ExitCode.ENGINE if all(item.engine for item in faults) else ExitCode.HOST)
