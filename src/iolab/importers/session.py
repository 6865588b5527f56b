"""Imported runs as an ordinary session: a study that says so, its plan, and a record a run."""

from __future__ import annotations

import hashlib
import math
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.kinds import ANALYSIS_VERSION
from iolab.core.compressed import CompressedBytes
from iolab.core.configuration import Configuration
from iolab.core.engine import EngineName
from iolab.core.events import SessionStatus
from iolab.core.host import HostSpec, HostTransport
from iolab.core.metric import RunResult
from iolab.core.run import (
    EngineOutput,
    HostRun,
    Plan,
    PlanDemand,
    PlannedRun,
    Point,
    RunRecord,
    RunStatus,
)
from iolab.core.samples import BinTable, IntervalTable, empty_counter_table
from iolab.core.study import (
    Method,
    MethodKind,
    RunOrder,
    Study,
    TargetSettings,
    TelemetrySettings,
)
from iolab.core.workload import HOSTS_AXIS, VMS_PER_NODE_AXIS, Axis, Indicator, Workload
from iolab.errors import StoreError
from iolab.importers.files import (
    NAME_CHARACTERS,
    ForeignFile,
    RunWithFiles,
    sanitized_host_name,
    short_distinct_name,
)
from iolab.importers.foreign_run import ForeignRun, ImportedClient, ImportedJob
from iolab.importers.object_requests import ENDPOINT_OPTIONS, redact_secrets
from iolab.record import Record
from iolab.store.durable import RESUME_CLAUSE
from iolab.store.writer import SessionWriter, require_no_session
from iolab.study.schedule import content_digest
from iolab.text import counted_noun, excerpt
from iolab.units import NS_PER_S

STUDY_ID: Final = "imported"

RESERVED_AXES: Final = (HOSTS_AXIS, VMS_PER_NODE_AXIS)
"""Axes of iolab's own, which no tool's setting is."""

POINTS_MAX: Final = 2000
"""Points that the axes of a workload span; files tell of few of them, and all are gone through."""

TITLES_MAX: Final = 2
"""Workloads that the title of a session names."""

Values = tuple[tuple[str, int | str], ...]

_SHOWN: Final = {"rw": "", "bs": "bs", "iodepth": "iodepth", "numjobs": "numjobs", "ioengine": ""}
"""What says most of a load, each with the word before it."""


class PlannedImport(Record):
    """A run with its place in the plan, and the files that tell of it."""

    planned_run: PlannedRun
    foreign_run: ForeignRun
    files: tuple[ForeignFile, ...]


class ImportedSession(Record):
    """All that a session of imported runs is made of."""

    study: Study
    plan: Plan
    runs: tuple[PlannedImport, ...]


def plan_imported_session(
    runs: Sequence[RunWithFiles], *, configuration_id: str, title: str
) -> ImportedSession:
    """The runs as points of workloads: one a job's name, its axes all that differs in its load.

    Runs of one workload in which nothing differs but what cannot matter are repeats of one point.
    """
    groups: dict[tuple[str, str, str], list[RunWithFiles]] = {}
    for files, run in runs:
        groups.setdefault((run.details.tool, run.name, run.access_kind), []).append((files, run))
    kinds = Counter((tool, name) for tool, name, _ in groups)
    hosts = dict.fromkeys(name for _, run in runs for name in _distinct_client_names(run.clients))
    workloads: list[Workload] = []
    placed: list[PlannedImport] = []
    ids: set[str] = set()
    for (tool, own, kind), group in groups.items():
        name = f"{own} {kind}".strip() if kinds[tool, own] > 1 else own
        job = _imported_job(tool, [run for _, run in group])
        rows, varied = _point_rows_and_axes([_axis_values_of_run(run) for _, run in group])
        workload = Workload(
            id=_reserve_unused_workload_id(name, tool, ids),
            title=", ".join(
                filter(
                    None,
                    (
                        excerpt(name, NAME_CHARACTERS),
                        _unvaried_load_settings_text(group[0][1], name, varied),
                    ),
                )
            ),
            job=job,
            sweep=tuple(Axis(axis, values) for axis, values in varied.items()),
            indicator=Indicator(group[0][1].indicator),
        )
        workloads.append(workload)
        repeats: dict[Values, int] = {}
        for (files, run), load in zip(group, rows, strict=True):
            axis = tuple((name, load[name]) for name in varied if name in load)
            repeats[axis] = repeats.get(axis, 0) + 1
            point = Point(
                content_digest([configuration_id, workload.id, axis, tool, name]),
                configuration_id,
                workload.id,
                axis,
                replace(
                    job,
                    settings=_settings_without_ignored(run),
                    in_flight=run.in_flight,
                    paced=run.details.paced,
                ),
                "",
            )
            placed.append(
                PlannedImport(PlannedRun(len(placed) + 1, repeats[axis], point), run, files)
            )
    title = f"{title}: {'; '.join(workload.title for workload in workloads[:TITLES_MAX])}"
    title += " ..." if len(workloads) > TITLES_MAX else ""
    study = _imported_study(configuration_id, title, tuple(hosts), tuple(workloads), placed)
    planned = tuple(each.planned_run for each in placed)
    digest = content_digest([run.point.digest for run in planned])
    budget = PlanDemand(0.0, (), 0, 0, 0)
    return ImportedSession(study, Plan(STUDY_ID, digest, (), planned, budget, ()), tuple(placed))


def _unvaried_load_settings_text(
    foreign_run: ForeignRun, name: str, varied: Mapping[str, object]
) -> str:
    """What all runs of a workload did, as far as its axes do not say: access, block, depth."""
    axis = {
        **{name: str(value) for name, value in foreign_run.settings},
        "rw": foreign_run.access_kind,
    }
    parts = [
        f"{word} {axis[name]}".strip()
        for name, word in _SHOWN.items()
        if axis.get(name) and name not in varied
    ]
    return ", ".join(
        part for part in parts if part not in (excerpt(name, NAME_CHARACTERS), *name.split(" ")[1:])
    )


def _imported_job(tool: str, group: Sequence[ForeignRun]) -> ImportedJob:
    operations = dict.fromkeys(operation for run in group for operation in run.operation_names)
    first = group[0]
    return ImportedJob(
        EngineName(f"{tool}, imported"),
        tuple(operations),
        _settings_without_ignored(first),
        first.in_flight,
        all(run.details.paced for run in group),
    )


def _settings_without_ignored(foreign_run: ForeignRun) -> tuple[tuple[str, str], ...]:
    """The settings of a load as its job has them."""
    return tuple(
        (name, str(value))
        for name, value in foreign_run.settings
        if name not in foreign_run.ignored_setting_reasons
    )


def _axis_values_of_run(foreign_run: ForeignRun) -> dict[str, int | str]:
    """The settings of a load by the names that axes can have, their values no longer than labels.

    Unlike values stay unlike. Runs of other stores are no repeats of each other.
    """
    tool = foreign_run.details.tool
    endpoints = {
        name: value
        for name, value in foreign_run.settings
        if name in ENDPOINT_OPTIONS and name in foreign_run.ignored_setting_reasons
    }
    return {
        re.sub(r"\s+", "_", f"{tool} {name}" if name in RESERVED_AXES else name): _axis_value(value)
        for name, value in {**foreign_run.load_settings, **endpoints}.items()
    }


def _axis_value(value: int | str) -> int | str:
    return value if isinstance(value, int) else short_distinct_name(value)


_Row = Mapping[str, int | str]
_Axes = Mapping[str, tuple[int | str, ...]]


def _point_rows_and_axes(rows: Sequence[_Row]) -> tuple[Sequence[_Row], _Axes]:
    """What tells each run apart, and the axes of it: one of all where they make too many points."""
    varied = _varied_axes(rows)
    if math.prod(len(values) for values in varied.values()) <= POINTS_MAX:
        return rows, varied
    joined = [
        {"options": ", ".join(f"{name}={row[name]}" for name in varied if name in row)}
        for row in rows
    ]
    return joined, _varied_axes(joined)


def _varied_axes(rows: Sequence[_Row]) -> _Axes:
    """What does, each with its values in order."""
    names = dict.fromkeys(name for row in rows for name in row)
    # A name that some runs do not tell of may be the only thing that tells them apart.
    values = {
        name: tuple(dict.fromkeys(row[name] for row in rows if name in row)) for name in names
    }
    counts = {name: sum(name in row for row in rows) for name in names}
    return {
        name: _sorted_if_integers(each)
        for name, each in values.items()
        if len(each) > 1 or counts[name] < len(rows)
    }


def _sorted_if_integers(values: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Numbers ascend; texts are as they were told."""
    numbers = [value for value in values if isinstance(value, int)]
    return tuple(sorted(numbers)) if len(numbers) == len(values) else values


def _reserve_unused_workload_id(name: str, tool: str, used_ids: set[str]) -> str:
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or tool
    tries = (base, f"{tool}-{base}", *(f"{base}-{count}" for count in range(2, len(used_ids) + 3)))
    free = next(attempt for attempt in tries if attempt not in used_ids)
    used_ids.add(free)
    return free


def _imported_study(
    configuration_id: str,
    title: str,
    hosts: tuple[str, ...],
    workloads: tuple[Workload, ...],
    runs: Sequence[PlannedImport],
) -> Study:
    files = tuple(dict.fromkeys(file.name for placed in runs for file in placed.files))
    tools = ", ".join(dict.fromkeys(_tool_with_version(placed.foreign_run) for placed in runs))
    text = "# Imported: no study made these runs. They were read from\n"
    text += "".join(f"#   {name}\n" for name in files)
    seconds = max(
        (placed.foreign_run.details.requested_runtime_s or 0.0 for placed in runs), default=0.0
    )
    return Study(
        id=STUDY_ID,
        title=title,
        question=f"What are these results of {tools} worth?",
        source=f"imported from {counted_noun(len(files), 'file')}",
        configurations=(Configuration(configuration_id, title, hosts, ""),),
        hosts=tuple(HostSpec(name, HostTransport.COMMAND) for name in hosts),
        workloads=workloads,
        method=Method(
            MethodKind.FIXED, 0.0, seconds, 1, 0.0, RunOrder.AS_WRITTEN, 0, drop_caches=False
        ),
        telemetry=TelemetrySettings(1000),
        target=TargetSettings(keep_files=True, allow_memory=True),
        scale="",
        text=text,
        overrides=(),
    )


def _tool_with_version(foreign_run: ForeignRun) -> str:
    return f"{foreign_run.details.tool} {foreign_run.details.version}".strip()


def _distinct_client_names(clients: Sequence[ImportedClient]) -> tuple[str, ...]:
    """The clients' names, each once."""
    names: dict[str, None] = {}
    for client in clients:
        base = sanitized_host_name(client.name)
        tries = (base, *(f"{base}-{count}" for count in range(2, len(clients) + 2)))
        names[next(attempt for attempt in tries if attempt not in names)] = None
    return tuple(names)


def build_imported_run_record(
    planned_import: PlannedImport, kept_files: Sequence[ForeignFile] = ()
) -> RunRecord:
    """The evidence of one run as the store keeps it, with those of its files as they are."""
    run, job = (
        planned_import.foreign_run,
        ImportedJob.require_type(planned_import.planned_run.point.job),
    )
    names = _distinct_client_names(run.clients)
    details = run.details
    if run.ended_real_ns is None:
        details = replace(details, dated_by="the file's last change")
    dated, begins = (
        _run_end_or_file_change_ns(planned_import),
        _client_start_times_ns(planned_import),
    )
    ends = [
        begin + client_runtime_ns(client) for begin, client in zip(begins, run.clients, strict=True)
    ]
    failed = run.failure is not None
    # A file of several clients is kept with the first of them.
    owners = dict(
        reversed(
            [(client.file_index, name) for client, name in zip(run.clients, names, strict=True)]
        )
    )
    outputs = tuple(
        EngineOutput(
            owners[place], file.name, CompressedBytes.compress(redact_secrets(file.raw_bytes))
        )
        for place, file in enumerate(planned_import.files)
        if place in owners and file in kept_files
    )
    return RunRecord(
        run=planned_import.planned_run,
        status=RunStatus.FAILED if failed else RunStatus.DONE,
        failure=run.failure,
        started_real_ns=min(begins, default=dated),
        ended_real_ns=max(ends, default=dated),
        warmup_s=0.0,
        runtime_s=_longest_runtime_ns(run) / NS_PER_S,
        telemetry_interval_ms=1000,
        hosts=tuple(
            _host_run(name, client, run) for name, client in zip(names, run.clients, strict=True)
        ),
        details=details,
        intervals=_interval_table(job, run.clients, begins),
        bins=_bin_table(job, run.clients),
        counters=empty_counter_table(),
        outputs=outputs,
    )


def _run_end_or_file_change_ns(planned_import: PlannedImport) -> int:
    """The moment of a run as its tool says it, else the last change of its files."""
    if planned_import.foreign_run.ended_real_ns is not None:
        return planned_import.foreign_run.ended_real_ns
    return max(file.modified_ns for file in planned_import.files)


def _client_start_times_ns(planned_import: PlannedImport) -> list[int]:
    """When each client began; where that is not told, by the run's moment and how long it took."""
    usual = _run_end_or_file_change_ns(planned_import) - _longest_runtime_ns(
        planned_import.foreign_run
    )
    clients = planned_import.foreign_run.clients
    return [usual if client.start_ns is None else client.start_ns for client in clients]


def _longest_runtime_ns(foreign_run: ForeignRun) -> int:
    return max((client_runtime_ns(client) for client in foreign_run.clients), default=0)


def client_runtime_ns(client: ImportedClient) -> int:
    """How long a client ran, as its tool says; 0 where that is not told."""
    seconds = client.runtime_s
    if seconds is None:
        seconds = max((figure.seconds or 0.0 for figure in client.details.figures), default=0.0)
    return round(seconds * NS_PER_S)


def _host_run(name: str, client: ImportedClient, foreign_run: ForeignRun) -> HostRun:
    start = client.start_ns
    return HostRun(
        host=name,
        error=client.details.errors[0] if client.details.errors else None,
        argv=(),
        job_file="".join(f"{key}={value}\n" for key, value in foreign_run.settings),
        engine_version=_tool_with_version(foreign_run),
        start_real_ns=start,
        end_real_ns=None if start is None else start + client_runtime_ns(client),
        exit_code=None,
        exit_signal=None,
        stopped_early=False,
        totals=None,
        devices=(),
        extents=None,
        cache_drop=None,
        pre_run_activity=None,
        process=None,
        clock_offset_ns=0,
        clock_error_ns=0,
        stderr_tail="",
        details=client.details,
    )


def _interval_table(
    job: ImportedJob, clients: Sequence[ImportedClient], client_starts_ns: Sequence[int]
) -> IntervalTable:
    """The intervals that the file tells; of a client without any its whole run as one.

    Where the file does not tell how long that was, there is none.
    """
    rows: list[tuple[int, int, int, int, int, int, int, float]] = []
    for index, client in enumerate(clients):
        if client.intervals:
            ends = sorted({interval.end_ns for interval in client.intervals})
            places = {end: place for place, end in enumerate(ends)}
            rows += [
                (
                    index,
                    places[interval.end_ns],
                    client_starts_ns[index] + interval.end_ns,
                    interval.span_ns,
                    job.operation_code(interval.operation),
                    interval.count,
                    interval.bytes,
                    interval.lat_sum_ns,
                )
                for interval in client.intervals
            ]
            continue
        span = client_runtime_ns(client)
        rows += [
            (
                index,
                0,
                client_starts_ns[index] + span,
                span,
                job.operation_code(figure.operation),
                figure.count or 0,
                figure.bytes or 0,
                (figure.lat_mean_ns or 0.0) * (figure.count or 0),
            )
            for figure in client.details.figures
            if span
        ]
    columns = list(zip(*rows, strict=True)) or [()] * 8
    host, seq, ended, spans, way, ios, moved = (
        np.array(column, dtype=np.int64) for column in columns[:7]
    )
    waited = np.array(columns[7], dtype=np.float64)
    return IntervalTable(host, seq, ended, spans, way, ios, moved, waited)


def _bin_table(job: ImportedJob, clients: Sequence[ImportedClient]) -> BinTable:
    """The bins of each client's whole run, in its first interval."""
    rows = [
        (index, 0, job.operation_code(operation), place, count)
        for index, client in enumerate(clients)
        for operation, bins in client.bins.items()
        for place, count in sorted(bins.items())
        if count
    ]
    columns = list(zip(*rows, strict=True)) or [()] * 5
    return BinTable(*(np.array(column, dtype=np.int64) for column in columns))


def write_imported_session(
    session: ImportedSession,
    directory: Path,
    command: Sequence[str],
    run_judge: Callable[[RunRecord], RunResult],
) -> Mapping[str, RunResult]:
    """Make the session's directory; the results by digest and repeat. StoreError as of any."""
    names = "".join(file.name for run in session.runs for file in run.files)
    mark = hashlib.sha256((names + session.plan.digest).encode()).hexdigest()[:6]
    require_no_session(directory, is_resumable=False)
    is_new = not directory.exists()
    results: dict[str, RunResult] = {}
    begins = [
        min(_client_start_times_ns(run), default=_run_end_or_file_change_ns(run))
        for run in session.runs
    ]
    measured = min(begins, default=0)
    now = time.time_ns()
    # The session is of when was measured, not of when that was read.
    moment = measured if 0 < measured < now else now
    with _errors_with_import_hint():
        writer = SessionWriter.create(
            directory,
            session.study,
            session.plan,
            f"{STUDY_ID}-{mark}",
            command,
            clock=lambda: moment,
        )
    try:
        with _errors_with_import_hint(), writer:
            writer.record_host_facts_at_start({}, "none")
            kept: set[Path] = set()
            for placed in session.runs:
                record = build_imported_run_record(
                    placed, [file for file in placed.files if file.path not in kept]
                )
                kept.update(file.path for file in placed.files)
                result = run_judge(record)
                writer.commit_run(record, result, analysis_version=ANALYSIS_VERSION)
                results[f"{result.digest}-{result.repeat}"] = result
            writer.end_session_and_close(SessionStatus.DONE)
    except BaseException:
        _remove_session_files(directory, does_remove_directory=is_new)
        raise
    return results


@contextmanager
def _errors_with_import_hint() -> Iterator[None]:
    """Errors of the disk whose hint is to import again: nothing is left that could be resumed."""
    try:
        yield
    except StoreError as error:
        hint = error.hint.replace(RESUME_CLAUSE, "; nothing of the import was kept")
        raise StoreError(error.message, hint) from error


def _remove_session_files(directory: Path, *, does_remove_directory: bool) -> None:
    """Take back an import that was cut short: no tool could continue it."""
    for entry in directory.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    if does_remove_directory:
        directory.rmdir()
