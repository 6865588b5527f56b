"""`iolab run`: measure a study and keep everything in a session."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iolab.cli.options import (
    AsJson,
    DevicePath,
    DeviceSerial,
    HostsFile,
    MethodOption,
    Quiet,
    Scale,
    ServerOption,
    Sets,
    StudyName,
    TargetPath,
    load_study,
)
from iolab.cli.show import FailOnOption

ReportOption = Annotated[
    bool, typer.Option("--report", help="Write SESSION/report.html at the end.")
]


def run(
    study: StudyName,
    *,
    path: TargetPath = None,
    device: DevicePath = None,
    serial: DeviceSerial = None,
    hosts: HostsFile = None,
    scale: Scale = "full",
    sets: Sets = None,
    method: MethodOption = None,
    server: ServerOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Keep the session here, in a new directory; ./iolab-STUDY-TIME by default.",
        ),
    ] = None,
    report: ReportOption = False,
    fail_on: FailOnOption = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure a study and keep everything in a session."""
    import sys
    from datetime import UTC, datetime

    from iolab.plan.schedule import make_plan

    read = load_study(
        study,
        path,
        scale,
        sets,
        hosts=hosts,
        device=device,
        serial=serial,
        method=method,
        server=server,
    )
    made = make_plan(read)

    from iolab.analyse.agenda.course import agenda_maker
    from iolab.cli.conduct import Order
    from iolab.cli.ending import Wishes, carry_out
    from iolab.run.session import NOTHING
    from iolab.store.writer import SessionWriter

    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    directory = out or Path(f"iolab-{read.id}-{stamp}")
    session_id = _session_id(read.id, stamp)
    order = Order(
        study=read,
        plan=made,
        session_id=session_id,
        earlier=NOTHING,
        open_writer=lambda _: SessionWriter.create(directory, read, made, session_id, sys.argv),
        agenda=agenda_maker(read, made),
    )
    wishes = Wishes(directory, quiet=quiet, as_json=as_json, report=report, fail_on=fail_on)
    raise typer.Exit(carry_out(order, wishes))


def _session_id(study_id: str, stamp: str) -> str:
    """A name that a person recognises and no second session has."""
    import secrets

    return f"{study_id}-{stamp}-{secrets.token_hex(3)}"
