"""`iolab studies`, `init`, `check` and `plan`: a study before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer
from msgspec.structs import replace

from iolab.cli.options import (
    AsJson,
    EngineNameOption,
    HostsFile,
    OutputFormat,
    Scale,
    ServerOption,
    Sets,
    StudyName,
    StudyOptions,
    TargetPath,
    load_study,
    with_output_format,
    with_study_options,
)
from iolab.cli.output import (
    open_session,
    print_document,
    print_json,
    print_message,
    print_renderables,
    print_result,
    wrap_for_terminal,
    write_new_file,
)
from iolab.cli.studies import bundled_studies
from iolab.core.regular_file import read_regular_file
from iolab.errors import MAKE_ROOM, IolabError, StudyError, UsageError
from iolab.text import counted_noun, one_line, quote_value

if TYPE_CHECKING:
    from iolab.core.host import HostFacts
    from iolab.core.run import Plan
    from iolab.core.study import Study
    from iolab.errors import Fault, IolabError
    from iolab.importers.job_files import StudyDraft
    from iolab.session.discovery import DiscoveredHosts
    from iolab.store.reader import SessionReader

SMALL_SCALE: Final = "small"
"""The scale of bundled studies that needs little room and time."""


@with_output_format
def studies(*, output_format: OutputFormat) -> None:
    """List the bundled studies."""
    from iolab.study.parse import scale_names

    listed = bundled_studies()
    scales = {study.id: scale_names(study.path.read_text(encoding="utf-8")) for study in listed}
    if output_format is not OutputFormat.TABLE:
        listing = [
            {
                "id": study.id,
                "title": study.title,
                "question": study.question,
                "scales": list(scales[study.id]),
            }
            for study in listed
        ]
        print_document(output_format, {"format": 1, "studies": listing}, listing)
        return
    from iolab.report.table import Column
    from iolab.report.terminal import literal_text, terminal_table

    rows = [
        [
            literal_text(study.id, "bold"),
            literal_text(study.question),
            literal_text(", ".join(scales[study.id])),
        ]
        for study in listed
    ]
    headings = [Column("study"), Column("question", can_wrap=True), Column("scales")]
    print_renderables(terminal_table(headings, rows))


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The study file to write.")] = Path(
        "study.toml"
    ),
    *,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="JOB",
            help="Convert a job file or report of fio, or a parameter file of vdbench.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a commented study to begin with."""
    from iolab.cli.invocation import quoted_iolab_command
    from iolab.cli.template import study_template

    if file.suffix != ".toml":
        raise UsageError(
            f"{quote_value(str(file))} does not end in .toml, as a study's file does.",
            f"Write {quote_value(str(file) + '.toml')}.",
        )
    text = study_template(file.stem)
    draft = None if source is None else _draft_from_job_file(file.stem, source)
    write_new_file(file, text if draft is None else draft.text)
    notes = [] if draft is None else [str(note) for note in draft.notes]
    if as_json:
        document = {"format": 1, "written": str(file)}
        print_json(document if draft is None else {**document, "notes": notes})
        return
    for note in notes:
        print_message(wrap_for_terminal(note))
    print_result(str(file))
    for fault in () if draft is None else _job_file_study_faults(draft.text, str(file)):
        print_message(wrap_for_terminal(f"To correct: {fault}"))
    check_line, plan_line = (quoted_iolab_command(name, str(file)) for name in ("check", "plan"))
    print_message(f"Next: change it, then '{check_line}' and '{plan_line} --path DIR'.")


def _job_file_study_faults(study_text: str, file_name: str) -> tuple[Fault, ...]:
    """What is wrong with a study drawn from a job file, which may ask for more than one may."""
    from iolab.registry import read_study
    from iolab.study.parse import StudyOverrides

    try:
        read_study(study_text, file_name, StudyOverrides(requires_path=False))
    except StudyError as error:
        return error.faults
    return ()


def _draft_from_job_file(study_id: str, source: Path) -> StudyDraft:
    """The study of a job file; UsageError where it cannot be read or is none."""
    from iolab.core.limits import FILE_BYTES_MAX
    from iolab.importers.job_files import draft_study

    try:
        content = read_regular_file(source, FILE_BYTES_MAX)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(
            f"{quote_value(str(source))} cannot be read: {why}.", "Name a job file."
        ) from error
    return draft_study(study_id, source.name, content.decode("utf-8-sig", "replace"))


def check(
    study: StudyName,
    *,
    path: TargetPath = None,
    hosts: HostsFile = None,
    scale: Scale = "full",
    sets: Sets = None,
    server: ServerOption = None,
    engine: EngineNameOption = None,
    as_json: AsJson = False,
) -> None:
    """Check a study file without hosts."""
    from iolab.cli.planning import run_count_or_range_text
    from iolab.registry import study_kinds_used_by
    from iolab.report.terminal import literal_text
    from iolab.study.forecast import forecast_verdicts
    from iolab.study.schedule import make_plan

    options = StudyOptions(
        study, path, hosts=hosts, scale=scale, sets=sets, server=server, engine=engine
    )
    read = load_study(options, is_path_required=False)
    plan = make_plan(read, study_kinds_used_by(read))
    forecast = forecast_verdicts(read, plan, study_kinds_used_by(read))
    if as_json:
        print_json(
            {
                "format": 1,
                "study": read.id,
                "title": read.title,
                "scale": read.scale,
                "configurations": len(read.configurations),
                "hosts": len(read.hosts),
                "workloads": len(read.workloads),
                "points": len(plan.points),
                "runs": len(plan.runs),
                "best_verdict": forecast.document(),
            }
        )
        return
    counted = ", ".join(
        (
            counted_noun(len(read.configurations), "configuration"),
            counted_noun(len(read.workloads), "workload"),
            f"{run_count_or_range_text(plan)} of {counted_noun(len(plan.points), 'point')}",
        )
    )
    name = "" if study == read.id else f"study {read.id}, "
    sentence = f"{study} is valid: {name}scale {read.scale}, {counted}."
    print_renderables(
        *(literal_text(one_line(text)) for text in (sentence, *forecast.text_lines()))
    )


@with_study_options
@with_output_format
def plan(
    options: StudyOptions,
    *,
    offline: Annotated[
        bool, typer.Option("--offline", help="Connect to no host; --path may be left out.")
    ] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="One row per workload instead of one per run.")
    ] = False,
    output_format: OutputFormat,
) -> None:
    """Show what a study would run, write and need, and for how long.

    STUDY may also be the directory of a session: bytes written are then estimated from its
    finished runs, without connecting to hosts.
    """
    from iolab.cli.planning import plan_document, plan_lines
    from iolab.registry import study_kinds_used_by
    from iolab.study.schedule import make_plan

    reader = _session_in_place_of_study(options)
    read = reader.study if reader else load_study(options, is_path_required=not offline)
    plan = (
        with_recomputed_demand(read, reader.plan)
        if reader
        else make_plan(read, study_kinds_used_by(read))
    )
    results = reader.results() if reader else ()
    # Pods that a session makes are not there yet.
    is_offline = offline or reader is not None or read.kubernetes is not None
    facts, refusal, host_notes = (
        _PlanReadiness(None, None, ()) if is_offline else _discover_readiness(read, plan)
    )
    if reader is None and read.kubernetes is not None:
        from iolab.cli.pods import volume_size_error

        refusal = volume_size_error(read, plan)
    if output_format is not OutputFormat.TABLE:
        if refusal is not None:
            raise refusal
        document = plan_document(read, plan, facts, results, host_notes)
        print_document(output_format, document, document["runs"])
        return
    print_renderables(
        *plan_lines(
            read,
            plan,
            facts,
            is_summary=summary,
            refusal=refusal,
            results=results,
            event_notes=host_notes,
        )
    )
    if refusal is not None:
        _add_smaller_scale_to_hints(refusal, options)
        raise refusal


def _add_smaller_scale_to_hints(refusal: IolabError, options: StudyOptions) -> None:
    """Where room is missing, name the scale of the study that needs less of it."""
    from iolab.cli.studies import read_study_source
    from iolab.study.parse import scale_names

    if options.scale == SMALL_SCALE or Path(options.study).is_dir():
        return
    if SMALL_SCALE in scale_names(read_study_source(options.study).text):
        refusal.faults = tuple(
            replace(fault, hint=f"{fault.hint} Or take --scale {SMALL_SCALE}.")
            if fault.hint.startswith(MAKE_ROOM)
            else fault
            for fault in refusal.faults
        )


def with_recomputed_demand(study: Study, plan: Plan) -> Plan:
    """A session's plan with what it takes as this version knows it."""
    from iolab.registry import study_kinds_used_by
    from iolab.study.cost import plan_demand

    demand = plan_demand(
        study,
        study_kinds_used_by(study),
        plan.data_sets,
        plan.runs,
        extra_run_count=plan.extra_run_count,
    )
    return replace(plan, demand=demand)


def _session_in_place_of_study(options: StudyOptions) -> SessionReader | None:
    """The session that stands for a study, None where a study is named.

    UsageError for options that a session has already.
    """
    place, named = Path(options.study), quote_value(options.study)
    if not place.is_dir():
        return None
    if options != StudyOptions(options.study):
        raise UsageError(
            f"{named} is a session, whose study has its path and values already.",
            "Leave the options of a study out, or name a study.",
        )
    reader = open_session(place)
    if not all(workload.job.is_measured_by_iolab for workload in reader.study.workloads):
        raise UsageError(
            f"{quote_value(options.study)} was imported: it has no plan.",
            "Name a study or a session.",
        )
    return reader


class _PlanReadiness(NamedTuple):
    """Facts of the hosts, why a plan cannot run there, and what should be known of its events."""

    facts: Mapping[str, HostFacts] | None
    error: IolabError | None
    event_notes: tuple[str, ...]


def _discover_readiness(study: Study, plan: Plan) -> _PlanReadiness:
    """What the hosts say to a plan; an error of theirs is given, not raised."""
    import asyncio

    from iolab.errors import HostError
    from iolab.registry import study_kinds_used_by
    from iolab.study.readiness import NOTHING_WRITTEN, refusal_headline, require_plan_ready

    kinds = study_kinds_used_by(study)
    discovery, faults, notes = asyncio.run(_discover_hosts(study))
    try:
        if study.guests is not None:
            # Guests are there when a session has booted them; their nodes are asked.
            kinds.hosts.require_capable_nodes(
                study, plan, discovery.facts_by_target, discovery.probes_by_target
            )
            if faults:
                raise HostError(refusal_headline(faults), NOTHING_WRITTEN, faults)
        else:
            require_plan_ready(
                study,
                plan,
                kinds,
                discovery.facts_by_target,
                discovery.probes_by_target,
                devices=discovery.devices_by_target,
                more_faults=faults,
            )
    except IolabError as error:
        return _PlanReadiness(discovery.facts_by_target, error, notes)
    return _PlanReadiness(discovery.facts_by_target, None, notes)


class _HostDiscovery(NamedTuple):
    """What hosts told, and of the study's meters and events what speaks against them."""

    hosts: DiscoveredHosts
    meter_and_event_faults: tuple[Fault, ...]
    event_notes: tuple[str, ...]


async def _discover_hosts(study: Study) -> _HostDiscovery:
    """Connect every host of the study, ask and try it, and let go; HostError with every fault.

    Of guests that a session would boot their nodes are asked.
    """
    from iolab.core.host import HostTransport
    from iolab.hosts.connect import open_hosts
    from iolab.hosts.meters import read_meters_and_get_faults
    from iolab.registry import study_kinds_used_by
    from iolab.session.discovery import DiscoveryQueries, discover_hosts_and_targets
    from iolab.session.preflight import event_preflight
    from iolab.study.targets import reached_host_specs

    specs = [spec for spec in reached_host_specs(study) if spec.transport is not HostTransport.VM]
    async with open_hosts(specs) as hosts:
        discovery = await discover_hosts_and_targets(
            study, hosts, DiscoveryQueries.for_study(study, study_kinds_used_by(study))
        )
        events = await event_preflight(study, hosts)
        faults = (*await read_meters_and_get_faults(study.hosts), *events.faults)
        return _HostDiscovery(discovery, faults, events.notes)
