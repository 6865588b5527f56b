"""A tree of submissions as rows: read, judged by the rules, and made runs of a session."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC
from pathlib import Path
from typing import Final

from iolab.importers.files import NAME_CHARACTERS, ForeignFile, ForeignFileError, RunWithFiles
from iolab.importers.foreign_run import (
    EvidenceKind,
    FileEvidence,
    ForeignRun,
    ImportedClient,
    ImportedClientDetails,
    ImportedRunDetails,
    OperationFigures,
)
from iolab.importers.submissions.checkpoint_rules import evidence_on_checkpoint_row
from iolab.importers.submissions.kv_cache_rules import evidence_on_kv_cache_row
from iolab.importers.submissions.result_folder import (
    SUMMARY,
    ResultFolder,
    benchmark_name_of_result,
    find_result_folders,
    number_at_keys,
)
from iolab.importers.submissions.row import (
    Benchmark,
    PublishedRate,
    RowStatus,
    SubmittedRow,
    row_status,
)
from iolab.importers.submissions.shared_rules import (
    evidence_of_preloads_and_writeback,
    evidence_of_pruned_files,
    evidence_on_line_rate,
    evidence_on_program_in_tree,
)
from iolab.importers.submissions.training_rules import evidence_on_training_row
from iolab.record import Record
from iolab.text import counted_noun, excerpt
from iolab.units import NS_PER_S

TOOLS: Final = {
    Benchmark.TRAINING: "DLIO",
    Benchmark.CHECKPOINTING: "DLIO",
    Benchmark.KV_CACHE: "kv_cache_benchmark",
}

ROWS_MAX: Final = 1000
"""Results of one tree; the largest one that is public has 171."""

EVIDENCE_KEPT_MAX: Final = 60
"""Findings of one row that are kept: five runs have some ten each."""

_RUN_FOLDER: Final = re.compile(r"run[-_ ]?\d{1,3}|\d{8}_\d{6}", re.IGNORECASE)
_DIVISIONS: Final = ("closed", "open")
_WORST_FIRST: Final = (
    EvidenceKind.CONTRADICTS,
    EvidenceKind.QUESTIONS,
    EvidenceKind.SUPPORTS,
    EvidenceKind.EXPLAINS,
)


class JudgedRow(Record):
    """A row with what its files say, worst first."""

    name: str
    figure_text: str
    status: RowStatus
    evidence: tuple[FileEvidence, ...]
    runs: tuple[RunWithFiles, ...]


def read_submission_tree(root: Path) -> list[JudgedRow] | None:
    """The rows of a tree; None where it holds no result of the suite.

    ForeignFileError for one that is larger than what is read.
    """
    folders = find_result_folders(root)
    if not folders:
        return None
    # The documents of one row are let go before the next one's are read.
    return [_judged_row(row) for row in _submitted_rows(root, folders)]


def row_status_counts_text(rows: Sequence[JudgedRow]) -> str:
    """How many rows there are of each status."""
    counts = Counter(row.status for row in rows)
    parts = ", ".join(f"{counts[status]} {status.value}" for status in RowStatus)
    return f"Of {counted_noun(len(rows), 'row')}: {parts}."


def judged_rows_text(rows: Sequence[JudgedRow]) -> str:
    """Every row with its figure, its status and the reasons, each with its file; then how many."""
    lines: list[str] = []
    for row in rows:
        lines += [row.name, f"  {row.figure_text}", f"  {row.status.value}"]
        shown = _status_deciding_evidence(row)
        for each in shown:
            lines += [f"    {each.rule}: {each.message}", f"      {_evidence_location_text(each)}"]
    return "\n".join([*lines, row_status_counts_text(rows), ""])


def _status_deciding_evidence(row: JudgedRow) -> list[FileEvidence]:
    """What decides a row: contradictions, else what leaves it open, else what supports it."""
    wanted = {
        RowStatus.CONTRADICTED: EvidenceKind.CONTRADICTS,
        RowStatus.UNSUPPORTED: EvidenceKind.QUESTIONS,
        RowStatus.SUPPORTED: EvidenceKind.SUPPORTS,
    }[row.status]
    return [each for each in row.evidence if each.kind is wanted]


def _evidence_location_text(evidence: FileEvidence) -> str:
    return f"{evidence.file}: {evidence.key}" if evidence.key else evidence.file


def _submitted_rows(root: Path, folders: Sequence[ResultFolder]) -> Iterator[SubmittedRow]:
    groups: dict[tuple[Path, str], list[ResultFolder]] = {}
    for folder in folders:
        benchmark = benchmark_name_of_result(folder)
        own = folder.path if benchmark == Benchmark.KV_CACHE else _row_folder(folder.path)
        accelerators = number_at_keys(folder.summary, "num_accelerators") or 0
        groups.setdefault((own, f"{benchmark} {accelerators:g}"), []).append(folder)
    for number, ((own, kind), group) in enumerate(groups.items()):
        if number >= ROWS_MAX:
            name = excerpt(root.name, NAME_CHARACTERS)
            message = f"'{name}' has more than {ROWS_MAX} results."
            raise ForeignFileError(message, "Name the folder of one organization.")
        yield _submitted_row(root, own, Benchmark(kind.split(" ")[0]), group)


def _row_folder(path: Path) -> Path:
    """The folder of all runs of a row: above the first that is named as a run or by its moment."""
    parts = path.parts
    below = max((at for at, part in enumerate(parts) if part == "results"), default=-1)
    for place in range(below + 2, len(parts) if below >= 0 else 0):
        if _RUN_FOLDER.fullmatch(parts[place]):
            return Path(*parts[:place])
    return path.parent


def _submitted_row(
    root: Path, row_folder: Path, benchmark: Benchmark, folders: Sequence[ResultFolder]
) -> SubmittedRow:
    """Whose it is, by the folders above it."""
    parts = row_folder.resolve().parts
    division, organization, system, workload, tree = "", "", "", row_folder.name, None
    places = [place for place, part in enumerate(parts) if part == "results"]
    if places and places[-1] + 1 < len(parts):
        place = places[-1]
        organization, system = parts[place - 1], parts[place + 1]
        workload = " ".join(part for part in parts[place + 2 :] if part not in ("run", "runs"))
        if parts[place - 2].casefold() in _DIVISIONS:
            division, tree = parts[place - 2].casefold(), Path(*parts[: place - 2])
    elif row_folder == root:
        workload = benchmark.value
    names = [excerpt(each, NAME_CHARACTERS) for each in (division, organization, system, workload)]
    return SubmittedRow(names[0], names[1], names[2], names[3], benchmark, folders, tree)


def _judged_row(row: SubmittedRow) -> JudgedRow:
    evidence = list(_row_evidence(row))
    evidence.sort(key=lambda each: _WORST_FIRST.index(each.kind))
    kept = tuple(_merge_evidence_by_key(evidence))[:EVIDENCE_KEPT_MAX]
    runs = tuple(_foreign_runs(row, kept))
    return JudgedRow(
        row.name,
        row.figure_text,
        row_status(evidence) if row.published_rates else RowStatus.UNSUPPORTED,
        kept,
        runs,
    )


def _row_evidence(row: SubmittedRow) -> Iterator[FileEvidence]:
    match row.benchmark:
        case Benchmark.TRAINING:
            yield from evidence_on_training_row(row)
        case Benchmark.CHECKPOINTING:
            yield from evidence_on_checkpoint_row(row)
        case Benchmark.KV_CACHE:
            yield from evidence_on_kv_cache_row(row)
    yield from evidence_on_line_rate(row)
    yield from evidence_of_preloads_and_writeback(row)
    yield from evidence_on_program_in_tree(row)
    # The last one: it tells what the others could not read.
    yield from evidence_of_pruned_files(row)


def _merge_evidence_by_key(evidence: Sequence[FileEvidence]) -> Iterator[FileEvidence]:
    """What several runs say of one rule and key is said of the first, with how many there are."""
    groups: dict[tuple[str, EvidenceKind, str], list[FileEvidence]] = {}
    for each in evidence:
        groups.setdefault((each.rule, each.kind, each.key), []).append(each)
    for group in groups.values():
        first, more = group[0], len(group) - 1
        message = f"{first.message} ({more} more alike.)" if more else first.message
        yield FileEvidence(first.rule, first.kind, message, first.file, first.key)


def _foreign_runs(row: SubmittedRow, evidence: tuple[FileEvidence, ...]) -> Iterator[RunWithFiles]:
    """A run of a session for each option that the row has figures of."""
    folder = row.folders[0]
    options: dict[int | None, list[PublishedRate]] = {}
    for rate in row.published_rates:
        options.setdefault(rate.option, []).append(rate)
    start_and_end_times = folder.start_and_end_times
    for option, rates in options.items():
        file = ForeignFile(folder.path / SUMMARY, was_named_by_user=False)
        figures = {
            rate.operation: OperationFigures(
                operation=rate.operation,
                bw_bytes_per_s=rate.bytes_per_s,
                printed=((rate.key, rate.printed),),
            )
            for rate in rates
        }
        host = ImportedClientDetails(folder.file_label(SUMMARY), tuple(figures.values()))
        seconds = next((rate.seconds for rate in rates if rate.seconds), None)
        settings: list[tuple[str, int | str]] = [
            ("accelerators", int(number_at_keys(folder.summary, "num_accelerators") or 0)),
            ("hosts of the row", int(number_at_keys(folder.summary, "num_hosts") or 0)),
        ]
        if option is not None:
            settings.append(("option", option))
        details = ImportedRunDetails(
            tool=TOOLS[row.benchmark],
            version="",
            files=tuple(each.file_label(SUMMARY) for each in row.folders)[:EVIDENCE_KEPT_MAX],
            evidence=evidence,
        )
        ended = (
            start_and_end_times[1].replace(tzinfo=UTC).timestamp() if start_and_end_times else None
        )
        yield (
            (file,),
            ForeignRun(
                name=excerpt(row.name, 2 * NAME_CHARACTERS),
                details=details,
                clients=(ImportedClient("all hosts", host, runtime_s=seconds),),
                settings=tuple((name, value) for name, value in settings if value),
                ended_real_ns=None if ended is None else round(ended * NS_PER_S),
                indicator="bandwidth",
            ),
        )
