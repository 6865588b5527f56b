"""A study that does what a job file of fio's, a report of fio's or a file of vdbench's says.

Nothing is read but that file, and nothing in it is executed or expanded. What a study cannot say is
named with the reason, and stands in the study as a comment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from iolab.errors import UsageError
from iolab.importers.files import NAME_CHARACTERS
from iolab.importers.fio_jobs import (
    is_fio_job_file,
    jobs_from_fio_reports,
    jobs_from_job_file,
)
from iolab.importers.job_draft import REASONS, Duration, JobDraft, OptionNote
from iolab.importers.vdbench_jobs import jobs_and_notes_of_parameter_file
from iolab.record import Record
from iolab.text import excerpt, quote_value

LINES_MAX: Final = 10_000
JOBS_MAX: Final = 500
"""More than any job file has that a person wrote."""

RUNTIME: Final = "30s"
"""What a study gets where no job has a runtime: its runs end by the clock."""

ALL_JOBS: Final = "all jobs"
"""Whom a note is about that each job has."""

JOBS_NAMED: Final = 3
"""Jobs that a note names; of more it tells how many there are."""

REASONS_MAX: Final = 3
"""Notes that an error names where no job can be a workload."""

_IS_LOST: Final = re.compile("whole job|no other file")
NO_WARMUP: Final = Duration("0s", Fraction(0))


class StudyDraft(Record):
    """A study's text, and what in the file it does not say; the same of many jobs is told once."""

    text: str
    notes: tuple[OptionNote, ...]


def draft_study(study_id: str, file_name: str, text: str) -> StudyDraft:
    """The study of a file. UsageError where it is none of those that are known."""
    notes: list[OptionNote] = []
    if '"fio version"' in text:
        jobs = jobs_from_fio_reports(text)
    elif text.count("\n") > LINES_MAX:
        raise UsageError(
            f"{quote_value(file_name)} has more than {LINES_MAX} lines.", "Give a shorter one."
        )
    elif text.startswith("#!") and "fio" not in text.split("\n", 1)[0]:
        raise UsageError(
            f"{quote_value(file_name)} is a script.", "Give the job file that it runs."
        )
    elif re.search(r"^\s*(?:sd|fsd|wd|rd)=", text, re.MULTILINE):
        jobs, notes = jobs_and_notes_of_parameter_file(text)
    elif is_fio_job_file(text):
        jobs = jobs_from_job_file(text)
    else:
        raise UsageError(
            f"{quote_value(file_name)} is no job file of fio's or vdbench's, "
            "and no report of fio's.",
            "Give one of these.",
        )
    if not jobs:
        raise UsageError(f"{quote_value(file_name)} has no job.", "Give a file that has one.")
    if len(jobs) > JOBS_MAX:
        raise UsageError(
            f"{quote_value(file_name)} has {len(jobs)} jobs.",
            f"Give a file with at most {JOBS_MAX}.",
        )
    return _study_from_jobs(study_id, file_name, jobs, notes)


def _study_from_jobs(
    study_id: str, file_name: str, jobs: Sequence[JobDraft], file_notes: Sequence[OptionNote]
) -> StudyDraft:
    notes = [*_distinct_notes_with_jobs(jobs), *file_notes]
    able = [job for job in jobs if job.workload_keys]
    if not able:
        reasons = [note for note in notes if _IS_LOST.search(note.reason)][:REASONS_MAX]
        raise UsageError(
            f"No job of {quote_value(file_name)} can be a workload: "
            f"{'; '.join(map(str, reasons))}.",
            "Give other jobs.",
        )
    runtime, changed = _longest_duration_and_notes(
        "runtime", [job.runtime for job in able if job.runtime], RUNTIME
    )
    notes += changed
    warmup, changed = _longest_duration_and_notes(
        "ramp_time", [job.warmup or NO_WARMUP for job in able], "0s"
    )
    notes += changed
    notes.sort(key=lambda note: REASONS.index(note.reason.split(":")[0].split(",")[0]))
    shown_name = excerpt(file_name, NAME_CHARACTERS)
    lines = [
        f"# A study that does what {shown_name} does, as far as a study can.",
        *_toml_comment_lines_of_notes(notes),
        "",
        "format = 1",
        f"id = {_toml_string(study_id)}",
        f"title = {_toml_string(f'As {shown_name}')}",
        f"question = {_toml_string(f'What does {shown_name} come to here?')}",
        "",
        "[method]",
        f"warmup = {_toml_string(warmup)}",
        f"runtime = {_toml_string(runtime)}",
        "repeats = 3",
    ]
    ids: set[str] = set()
    for job in able:
        lines += ["", "[[workload]]", f"id = {_toml_string(_reserve_unused_id(job.name, ids))}"]
        lines += [f"title = {_toml_string(job.name or 'job')}"]
        lines += [f"{key} = {_toml_value(value)}" for key, value in job.workload_keys.items()]
        if job.fio_options:
            settings = ", ".join(
                f"{name} = {_toml_string(value)}" for name, value in job.fio_options.items()
            )
            lines.append(f"fio = {{ {settings} }}")
    return StudyDraft("\n".join(lines) + "\n", tuple(notes))


def _longest_duration_and_notes(
    option: str, durations: Sequence[Duration], default: str
) -> tuple[str, list[OptionNote]]:
    """The longest of the jobs' times for all of them, with a note where they are not alike."""
    by_length = {duration.seconds: duration.text for duration in durations}
    if not by_length:
        return default, []
    text = by_length[max(by_length)]
    if len(by_length) == 1:
        return text, []
    reason = f"changed: {text} for all, of {', '.join(by_length.values())}"
    return text, [OptionNote(ALL_JOBS, option, reason)]


def _distinct_notes_with_jobs(jobs: Sequence[JobDraft]) -> Iterator[OptionNote]:
    """Every note once, with all jobs that it is about."""
    about: dict[tuple[str, str], list[str]] = {}
    for job in jobs:
        for note in job.notes:
            about.setdefault((note.option, note.reason), []).append(job.name)
    for (option, reason), names in about.items():
        name = ", ".join(names)
        if len(names) == len(jobs) > 1:
            name = ALL_JOBS
        elif len(names) > JOBS_NAMED:
            name = f"{len(names)} jobs, the first {names[0]}"
        yield OptionNote(name, option, reason)


def _toml_comment_lines_of_notes(notes: Sequence[OptionNote]) -> Iterator[str]:
    """The notes by what became of the options, each line by line."""
    if notes:
        yield "# Options that are not as they were, and why:"
        yield "#"
    for note in notes:
        yield f"#   {note}"


def _reserve_unused_id(name: str, used_ids: set[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._") or "job"
    tries = (base, *(f"{base}-{count}" for count in range(2, JOBS_MAX + 2)))
    free = next(attempt for attempt in tries if attempt not in used_ids)
    used_ids.add(free)
    return free


def _toml_string(value: str) -> str:
    """A TOML string."""
    return json.dumps(value, ensure_ascii=True)


def _toml_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_toml_value(part) for part in value)}]"
    return str(value) if isinstance(value, int) else _toml_string(str(value))
