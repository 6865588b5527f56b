"""`iolab run`: measure a study and keep everything in a session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.cli.options import (
    AsJson,
    DevicePath,
    DeviceSerial,
    EngineOption,
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

if TYPE_CHECKING:
    from iolab.cli.session import Order
    from iolab.core.study import Study

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
    engine: EngineOption = None,
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
    from datetime import UTC, datetime

    from iolab.cli.output import refuse_no_directory, refuse_output

    if out is not None:
        refuse_output(out)
        refuse_no_directory(out)
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
        engine=engine,
    )

    from iolab.cli.session import Wishes, carry_out

    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    directory = out or Path(f"iolab-{read.id}-{stamp}")
    wishes = Wishes(directory, quiet=quiet, as_json=as_json, report=report, fail_on=fail_on)
    raise typer.Exit(carry_out(_order(read, directory, stamp), wishes))


def _order(study: Study, directory: Path, stamp: str) -> Order:
    """A new session of the whole plan, kept in that directory."""
    import sys

    from iolab.analysis.adaptive import agenda_maker
    from iolab.cli.session import Order
    from iolab.cli.study_kinds import STUDY_KINDS
    from iolab.session.session import NOTHING
    from iolab.store.writer import SessionWriter
    from iolab.study.schedule import make_plan

    made = make_plan(study, STUDY_KINDS)
    session_id = _session_id(study.id, stamp)
    return Order(
        study=study,
        plan=made,
        session_id=session_id,
        earlier=NOTHING,
        open_writer=lambda _: SessionWriter.create(directory, study, made, session_id, sys.argv),
        agenda=agenda_maker(study, made),
    )


def _session_id(study_id: str, stamp: str) -> str:
    """A name that a person recognises and no second session has."""
    import secrets

    return f"{study_id}-{stamp}-{secrets.token_hex(3)}"
