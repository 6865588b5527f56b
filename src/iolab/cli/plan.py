"""`iolab plan`: what a study would do, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.cli.options import (
    AsJson,
    DevicePath,
    DeviceSerial,
    EngineOption,
    HostsFile,
    MethodOption,
    Scale,
    ServerOption,
    Sets,
    StudyName,
    TargetPath,
    load_study,
)

if TYPE_CHECKING:
    from iolab.core.host import HostFacts
    from iolab.core.run import Plan
    from iolab.core.study import Study
    from iolab.errors import IolabError


def plan(
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
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no host: the plan alone, with no refusal.")
    ] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="A row for each workload instead of each run.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print what a study would run, write, take and need."""
    from iolab.cli.output import result_json, result_screen
    from iolab.cli.planning import plan_document, plan_screen
    from iolab.cli.study_kinds import STUDY_KINDS
    from iolab.study.schedule import make_plan

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
        path_required=not offline,
    )
    made = make_plan(read, STUDY_KINDS)
    facts, refusal = (None, None) if offline else _survey(read, made)
    if as_json:
        if refusal is not None:
            raise refusal
        result_json(plan_document(read, made, facts))
        return
    result_screen(*plan_screen(read, made, facts, summary=summary))
    if refusal is not None:
        raise refusal


def _survey(study: Study, plan: Plan) -> tuple[Mapping[str, HostFacts], IolabError | None]:
    """What the hosts say, and why the plan cannot run there."""
    import asyncio

    from iolab.cli.study_kinds import STUDY_KINDS
    from iolab.cli.survey import discover_hosts
    from iolab.errors import IolabError
    from iolab.study.guard import check_ready

    surveyed = asyncio.run(discover_hosts(study))
    try:
        if study.guests is not None:
            # Guests are there when a session has booted them; their nodes are asked.
            STUDY_KINDS.hosts.check_nodes(study, plan, surveyed.facts, surveyed.probes)
        else:
            check_ready(
                study, plan, STUDY_KINDS, surveyed.facts, surveyed.probes, devices=surveyed.devices
            )
    except IolabError as error:
        return surveyed.facts, error
    return surveyed.facts, None
