"""`iolab run`, `demo` and `resume`: a session from its start, or from where it was stopped."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.cli.options import (
    IoEngine,
    OutputFormat,
    QuietOption,
    SessionDirectory,
    StudyOptions,
    TargetPath,
    load_study,
    with_output_format,
    with_study_options,
)
from iolab.cli.output import print_message, require_directory_or_nothing, require_valid_output_path
from iolab.cli.show import FailOnOption
from iolab.errors import HostError, StoreError, UsageError
from iolab.text import counted_noun, one_line, quote_value, suggestion

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from iolab.cli.session import SessionRequest
    from iolab.core.host import HostFacts
    from iolab.core.run import Plan, RunKey
    from iolab.core.study import Study
    from iolab.store.reader import SessionReader
    from iolab.store.writer import SessionWriter


ReportOption = Annotated[
    bool, typer.Option("--report", help="Write SESSION/report.html at the end.")
]

OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="The new session directory; default: ./iolab-STUDY-TIME.",
    ),
]


EventsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--event",
        metavar="EVENT@HOST",
        help="Consent to an event of the study on that host; each one must be named.",
    ),
]

DestroyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--destroy",
        metavar="EVENT@HOST",
        help="Consent to a destructive event, which nothing undoes; each one must be named.",
    ),
]


@with_study_options
@with_output_format
def run(
    options: StudyOptions,
    *,
    event: EventsOption = None,
    destroy: DestroyOption = None,
    out: OutOption = None,
    report: ReportOption = False,
    fail_on: FailOnOption = None,
    quiet: QuietOption = False,
    output_format: OutputFormat,
) -> None:
    """Measure a study into a session."""
    if out is not None:
        require_valid_output_path(out)
        require_directory_or_nothing(out)
    study = load_study(options)

    from iolab.cli.session import RunOptions, run_session_and_print_results

    if study.kubernetes is not None:
        from iolab.cli.pods import pod_fleet_identity_overrides

        names = asyncio.run(pod_fleet_identity_overrides(study.kubernetes))
        study = load_study(options, assignments=names)
    require_event_consent(study, event or (), destroy or ())
    directory, request = new_session_directory_and_request(study, out)
    run_options = RunOptions(
        directory, quiet=quiet, output_format=output_format, report=report, fail_on=fail_on
    )
    raise typer.Exit(run_session_and_print_results(request, run_options))


def demo(*, path: TargetPath = None, out: OutOption = None, quiet: QuietOption = False) -> None:
    """Measure this directory for some minutes, as an example.

    It runs cluster-kpi at scale small (3 GiB), with the native engine where fio is missing, and
    writes a report.
    """
    from iolab.loads.fileio.engines.fio import local_fio_unusable_reason

    lacks = local_fio_unusable_reason()
    if lacks:
        print_message(
            f"{lacks}, so iolab's native engine makes the load. fio is in the package 'fio' of "
            "Debian, Ubuntu, Fedora, Rocky, Alma, SUSE, Arch and Alpine."
        )
    engine = IoEngine.NATIVE if lacks else None
    where = path or str(Path.cwd())
    run(
        study="cluster-kpi",
        path=where,
        scale="small",
        engine=engine,
        out=out,
        report=True,
        quiet=quiet,
    )


def require_event_consent(
    study: Study, event_option_names: Collection[str], destroy_option_names: Collection[str]
) -> None:
    """UsageError unless just the events of the study are named, each with its host and option."""
    scenario = study.scenario
    options = {
        name: option
        for option, is_destructive in (("--event", False), ("--destroy", True))
        for name in (
            scenario.event_consent_names(is_destructive=is_destructive) if scenario else ()
        )
    }
    for option, texts in (("--event", event_option_names), ("--destroy", destroy_option_names)):
        for text in texts:
            _require_event_option(options, option, text)
    consented = {*event_option_names, *destroy_option_names}
    missing = [f"{option} {name}" for name, option in options.items() if name not in consented]
    if missing:
        message = f"{counted_noun(len(missing), 'event')} would happen without your consent."
        raise UsageError(message, f"See 'iolab plan', and consent with {' '.join(missing)}.")


def _require_event_option(
    option_by_event_name: Mapping[str, str], option: str, event_name: str
) -> None:
    """UsageError unless `event_name` is an event that is consented to by that option."""
    if event_name not in option_by_event_name:
        message = f"The study has no event {quote_value(event_name)} that needs a consent."
        likely = next(
            (name for name in option_by_event_name if name.partition("@")[0] == event_name), None
        )
        if likely is not None:
            raise UsageError(
                message, f"Name its host, too: {option_by_event_name[likely]} {likely}."
            )
        raise UsageError(message, suggestion(event_name, tuple(option_by_event_name), "events"))
    if option_by_event_name[event_name] != option:
        is_destructive = option_by_event_name[event_name] == "--destroy"
        why = "is destructive: nothing undoes it" if is_destructive else "is not destructive"
        message = f"Event {quote_value(event_name)} {why}."
        raise UsageError(
            message,
            f"Consent with {option_by_event_name[event_name]} {event_name}, and not {option}.",
        )


def new_session_directory_and_request(
    study: Study, out: Path | None
) -> tuple[Path, SessionRequest]:
    """A new session of the whole plan, and the directory that it is kept in: `out`, if named."""
    from iolab.analysis.adaptive import adaptive_queue_factory
    from iolab.cli.session import SessionRequest
    from iolab.registry import study_kinds_used_by
    from iolab.session.session import NO_EARLIER_SEGMENTS
    from iolab.store.writer import SessionWriter, require_no_session
    from iolab.study.schedule import make_plan

    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    directory = out or Path(f"iolab-{study.id}-{stamp}")
    require_no_session(
        directory
    )  # before anything is shown that might be taken for a result of now
    plan = make_plan(study, study_kinds_used_by(study))
    session_id = _new_session_id(study.id, stamp)
    return directory, SessionRequest(
        study=study,
        plan=plan,
        session_id=session_id,
        earlier_segments=NO_EARLIER_SEGMENTS,
        open_writer=lambda _: SessionWriter.create(directory, study, plan, session_id, sys.argv),
        queue_factory=adaptive_queue_factory(study, plan),
    )


def _new_session_id(study_id: str, stamp: str) -> str:
    """A name that a person recognises and no second session has."""
    import secrets

    return f"{study_id}-{stamp}-{secrets.token_hex(3)}"


@with_output_format
def resume(
    session: SessionDirectory,
    *,
    event: EventsOption = None,
    destroy: DestroyOption = None,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes",
            help="Continue on changed hosts or versions; curves of both are indicative.",
        ),
    ] = False,
    report: ReportOption = False,
    fail_on: FailOnOption = None,
    quiet: QuietOption = False,
    output_format: OutputFormat,
) -> None:
    """Measure the missing and failed runs of a session."""
    from iolab.analysis.adaptive import adaptive_queue_factory
    from iolab.cli.session import RunOptions, SessionRequest, run_session_and_print_results
    from iolab.session.session import EarlierSegments
    from iolab.store.reader import SessionReader

    reader = SessionReader(session)
    _require_not_running(reader)
    _require_undamaged_documents(reader)
    _require_not_imported(reader)
    damaged = _report_and_get_damaged_runs(reader)
    done = reader.done_runs() - damaged
    study, plan = _reparsed_study_and_plan(reader, done)
    if any(run.key not in done for run in plan.runs):
        require_event_consent(study, event or (), destroy or ())
    earlier = EarlierSegments(
        done, reader.attempt_count_by_run(), _excluded_host_names(reader), reader.target_ledger()
    )
    left = sum(1 for run in plan.runs if run.key not in done)
    stored = [run for run in reader.results() if run.key in done]
    queue = adaptive_queue_factory(study, plan, stored)
    if not quiet and queue is not None:
        print_message(f"{len(stored)} runs are done; their results decide what is left.")
    elif not quiet:
        print_message(
            f"{len(plan.runs) - left} of {len(plan.runs)} runs are done, {left} are left."
        )
    request = SessionRequest(
        study=study,
        plan=plan,
        session_id=reader.session.id,
        earlier_segments=earlier,
        open_writer=lambda facts: reopen_and_set_damaged_runs_aside(
            reader, facts, damaged, accept_changes=accept_changes
        ),
        queue_factory=queue,
        done_results=tuple(stored),
    )
    run_options = RunOptions(
        session, quiet=quiet, output_format=output_format, report=report, fail_on=fail_on
    )
    raise typer.Exit(run_session_and_print_results(request, run_options))


def _require_not_imported(reader: SessionReader) -> None:
    """UsageError for a session that another tool measured."""
    if not all(workload.job.is_measured_by_iolab for workload in reader.study.workloads):
        raise UsageError(
            f"'{reader.directory}' was imported: nothing of it is left to be measured.",
            "Measure with a study, as 'iolab init --from FILE' writes one.",
        )


def _require_not_running(reader: SessionReader) -> None:
    from iolab.core.events import SessionStatus

    if reader.session.status is SessionStatus.RUNNING:
        raise StoreError(
            f"Another iolab is measuring in {quote_value(str(reader.directory))}.",
            "Wait for it, or look at it with 'iolab show'.",
        )


def _require_undamaged_documents(reader: SessionReader) -> None:
    """StoreError where a document of the session itself is damaged: hosts are compared by it."""
    from iolab.store.layout import INDEX

    for damage in reader.damage_of_documents_except_plan():
        if damage.path == INDEX:
            continue  # it is made again of the runs that are there
        raise StoreError(f"'{reader.directory}': {damage.message}", damage.hint)


def _reparsed_study_and_plan(
    reader: SessionReader, done_runs: frozenset[RunKey]
) -> tuple[Study, Plan]:
    """The study read again and its plan; UsageError when it is not the plan of the session.

    Another version need not read a study alike of which all is done.
    """
    from iolab.registry import read_study, study_kinds_used_by
    from iolab.store.layout import STUDY
    from iolab.study.parse import overrides_for_resume
    from iolab.study.readiness import study_change_faults, version_change_faults
    from iolab.study.schedule import make_plan

    planned = {run.key for run in reader.plan.runs}
    fixed = not reader.plan.extra_run_count
    if fixed and planned <= done_runs and version_change_faults(reader.session.iolab_version):
        return reader.study, reader.plan
    name = str(reader.directory / STUDY)
    study = read_study(reader.study_text, name, overrides_for_resume(reader.study))
    plan = make_plan(study, study_kinds_used_by(study))
    if plan.digest != reader.plan.digest:
        raise UsageError(
            f"The session's study now gives another plan ({plan.digest}) than the one that it "
            f"began with ({reader.plan.digest}); it was made by iolab "
            f"{reader.session.iolab_version}.",
            "Continue it with that version of iolab and an unchanged study.toml, or run again.",
            study_change_faults(reader.study, study),
        )
    return study, plan


def _report_and_get_damaged_runs(reader: SessionReader) -> frozenset[RunKey]:
    """The runs that are no longer what was committed, each told; they are measured again."""
    unsound = reader.damage_by_run()
    for damage in unsound.values():
        text = f"{damage.run_name} ({damage.path}): {damage.message}"
        print_message(one_line(f"Damaged, to be set aside and measured again: {text}"))
    return frozenset(unsound)


def _excluded_host_names(reader: SessionReader) -> frozenset[str]:
    """The hosts that the session went on without, and goes on without."""
    return frozenset(name for result in reader.results() for name in result.excluded_hosts)


def reopen_and_set_damaged_runs_aside(
    reader: SessionReader,
    facts_by_target: Mapping[str, HostFacts],
    damaged_runs: Collection[RunKey],
    *,
    accept_changes: bool,
) -> SessionWriter:
    """The session's writer, with damaged runs set aside; HostError where the hosts changed.

    Without facts nothing will be measured, and so nothing be mixed.
    """
    from iolab.store.writer import SessionWriter
    from iolab.study.readiness import host_change_faults, version_change_faults

    began = reader.session.iolab_version
    faults = (
        (
            *version_change_faults(began),
            *host_change_faults(reader.facts_found_at_last_start, facts_by_target),
        )
        if facts_by_target
        else ()
    )
    if faults and not accept_changes:
        raise HostError(
            "The hosts or versions are not what they were when the session began.",
            "Put them back as they were, run the study again, or give --accept-changes.",
            faults,
        )
    for fault in faults:
        print_message(f"Accepted: {fault.message}")
    writer = SessionWriter.reopen(reader.directory, sys.argv)
    try:
        writer.move_runs_to_earlier_attempts(damaged_runs)
    except BaseException:
        writer.close()
        raise
    return writer
