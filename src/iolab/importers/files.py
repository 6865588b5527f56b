"""Files of others: read within bounds, recognised by what is in them, and never executed."""

from __future__ import annotations

import codecs
import csv
import hashlib
import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from iolab.core import limits
from iolab.core.compressed import ZSTD_MAGIC, decompress_frames
from iolab.core.regular_file import read_regular_file
from iolab.errors import Fault
from iolab.importers.duplicate_runs import DuplicateRuns, distinct_and_duplicate_runs
from iolab.importers.foreign_run import ForeignRun
from iolab.importers.line_coverage import LineCoverage, UnreadLines
from iolab.record import Record
from iolab.text import excerpt
from iolab.units import NS_PER_S

FAULTS_MAX: Final = 20
"""Files of no format that are named one by one."""

HEAD_BYTES: Final = 64 << 10
"""By so much of its beginning a file is recognised: text before fio's JSON has a few lines."""

SENTENCE_CHARACTERS: Final = 240
"""Of what a tool says of an error as much is kept."""

NAME_CHARACTERS: Final = 80
"""Of a longer name only the beginning is kept."""

MARK_CHARACTERS: Final = len("... (123456)")
"""What stands for the rest of it."""

_MEMORY: Final = re.compile(r"^MemTotal:\s+(\d+) kB", re.MULTILINE)
_THOUSANDS: Final = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")

_PACKED: Final = {b"\x1f\x8b": "gzip", b"\xfd7zXZ": "xz", b"BZh": "bzip2", b"PK\x03\x04": "zip"}
"""How files that others compressed begin; those of zstd are read."""


class ForeignFileError(Exception):
    """A file that was recognised and cannot be used; the message is a sentence, as is `hint`."""

    def __init__(self, message: str, hint: str = "Leave it out, or mend it.") -> None:
        super().__init__(message)
        self.hint = hint


def broken_csv_error(error: csv.Error) -> ForeignFileError:
    """The refusal of a file of columns; what Python adds for programmers is left out."""
    return ForeignFileError(f"it is no table: {str(error).partition(' - ')[0]}.")


class ForeignFile(Record, dict=True):
    """One file of an import; `first_bytes` is its beginning."""

    path: Path
    was_named_by_user: bool = True

    @property
    def name(self) -> str:
        """Its name, safe to print."""
        return excerpt(self.path.name, NAME_CHARACTERS)

    @property
    def printable_path(self) -> str:
        """Its path as it was named, safe to print."""
        return excerpt(str(self.path), SENTENCE_CHARACTERS)

    @cached_property
    def raw_bytes(self) -> bytes:
        """All of it, byte for byte; OSError where it cannot be read or is too large."""
        return read_regular_file(self.path, limits.FILE_BYTES_MAX)

    @cached_property
    def utf8_bytes(self) -> bytes:
        """All of it in UTF-8 without a mark of that; PowerShell redirects as UTF-16.

        What zstd compressed is unpacked; OSError where that is damaged or too large.
        """
        content = self.raw_bytes
        if content.startswith(ZSTD_MAGIC):
            content = decompress_frames(content, limits.UNPACKED_BYTES_MAX)
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return content.decode("utf-16", "replace").encode()
        return content.removeprefix(codecs.BOM_UTF8)

    @property
    def first_bytes(self) -> bytes:
        """Its first bytes."""
        return self.utf8_bytes[:HEAD_BYTES]

    @cached_property
    def text(self) -> str:
        """All of it as text; what is no UTF-8 is replaced."""
        return self.utf8_bytes.decode("utf-8", "replace")

    @cached_property
    def lines(self) -> list[str]:
        """Its lines without their ends, numbered as editors do; what a return overprints is one."""
        lines = self.text.split("\n")
        return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])][
            : limits.LINES_MAX
        ]

    @cached_property
    def line_coverage(self) -> LineCoverage:
        """What became of each of its lines; the importer that reads it fills this."""
        return LineCoverage(self.name, self.lines)

    def line_number_at(self, offset: int) -> int:
        """The number, from 1 on, of the line in which a place of its text is."""
        return bisect_right(self._line_starts, offset)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *accumulate(len(line) + 1 for line in self.text.split("\n"))]

    @property
    def modified_ns(self) -> int:
        """When it was last written."""
        return self.path.stat().st_mtime_ns


class ImportFileSet(Struct):
    """The files of an import beside each other.

    `used_paths` are those that were read into a run.
    """

    files: Sequence[ForeignFile]
    used_paths: set[Path] = field(default_factory=set)

    def matching_files_in_same_folder(
        self, file: ForeignFile, pattern: re.Pattern[str]
    ) -> list[ForeignFile]:
        """Files in the same folder whose whole name fits, by name."""
        neighbours = [
            other
            for other in self.files
            if other.path.parent == file.path.parent and pattern.fullmatch(other.path.name)
        ]
        return sorted(neighbours, key=lambda other: other.path.name)

    def mark_used_and_read(self, file: ForeignFile) -> ForeignFile:
        """That file, which belongs to a run and is read as a whole."""
        self.used_paths.add(file.path)
        file.line_coverage.mark_all_read()
        return file

    def mark_left_out(self, file: ForeignFile, reason: str) -> None:
        """That file is known, and nothing of it is read."""
        self.used_paths.add(file.path)
        file.line_coverage.mark_all_left_out(reason)


RunWithFiles = tuple[tuple[ForeignFile, ...], ForeignRun]
"""A run with the files that tell of it."""


class Importer(Protocol):
    """One format.

    Its runs have every setting of the load that the file tells in `ForeignRun.settings`, and in
    `ignored_setting_reasons` those that cannot matter, each with the reason. Runs of one name whose
    other settings are equal are repeats; all others are points of their own.
    """

    @property
    def tool(self) -> str:
        """What writes it."""

    def recognises(self, file: ForeignFile) -> bool:
        """Whether a file is of this format, be it one that `read` refuses with what to do."""

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """The runs that it tells of, with what lies beside it. ForeignFileError with a sentence.

        It marks every line in `file.line_coverage`, see `iolab.importers.line_coverage`; of files
        beside it those that it uses by `file_set.mark_used_and_read`, those that it does not by
        `file_set.mark_left_out`.
        """


class _CollectedFiles(Record):
    """The files of an import, what keeps it from being made, and what is passed over."""

    files: list[ForeignFile]
    faults: list[Fault]
    skipped_file_faults: list[Fault]


def collect_files(paths: Iterable[Path]) -> _CollectedFiles:
    """Every file that is named or lies in a folder that is; what cannot be read as faults."""
    files: dict[Path, ForeignFile] = {}
    faults: list[Fault] = []
    passed_over: list[Fault] = []
    for path in paths:
        if path.is_dir():
            inside = _list_files_below_folder(path, faults, passed_over)
            if not inside:
                faults.append(
                    Fault(
                        f"There is no file in '{excerpt(path.name, NAME_CHARACTERS)}'.",
                        "Leave it out.",
                    )
                )
            for child in inside:
                files.setdefault(child.absolute(), ForeignFile(child, was_named_by_user=False))
                if len(files) > limits.FILES_MAX:
                    break
        elif path.exists():
            files.setdefault(path.absolute(), ForeignFile(path))
        else:
            faults.append(
                Fault(
                    f"There is no file '{excerpt(path.name, NAME_CHARACTERS)}'.",
                    "Name one that is.",
                )
            )
    if sum(file.path.stat().st_size for file in files.values()) > limits.TOTAL_BYTES_MAX:
        faults.append(
            Fault(
                f"These are more than {limits.TOTAL_BYTES_MAX} bytes.",
                "Import fewer files at once.",
            )
        )
        return _CollectedFiles([], faults, passed_over)
    if len(files) > limits.FILES_MAX:
        faults.append(
            Fault(f"These are more than {limits.FILES_MAX} files.", "Import fewer at once.")
        )
    # Whatever order they were named in, the same files give the same points.
    ordered = sorted(files.values(), key=lambda file: _natural_sort_key(str(file.path.absolute())))
    return _CollectedFiles(ordered, faults, passed_over)


def _list_files_below_folder(
    folder: Path, faults_to_extend: list[Fault], skipped_file_faults_to_extend: list[Fault]
) -> list[Path]:
    """The files below a folder. Links that lead out of it are passed over."""
    root = folder.resolve()
    found: list[Path] = []
    waiting, entry_count = [(folder, 1)], 0
    while waiting and len(found) <= limits.FILES_MAX:
        parent, depth = waiting.pop()
        if depth > limits.NESTED_MAX:
            name = excerpt(folder.name, NAME_CHARACTERS)
            faults_to_extend.append(
                Fault(
                    f"'{name}' has more than {limits.NESTED_MAX} folders inside each other.",
                    "Name the folder that holds the files.",
                )
            )
            break
        try:
            children = sorted(
                itertools.islice(parent.iterdir(), limits.ENTRIES_MAX + 1 - entry_count)
            )
        except OSError as error:
            faults_to_extend.append(_unreadable_file_fault(ForeignFile(parent), error))
            continue
        entry_count += len(children)
        if entry_count > limits.ENTRIES_MAX:
            name = excerpt(str(folder), NAME_CHARACTERS)
            message = f"'{name}' has more than {limits.ENTRIES_MAX} files and folders in it."
            faults_to_extend.append(Fault(message, "Name the folder that holds results."))
            break
        for child in children:
            if child.is_symlink() and not child.resolve().is_relative_to(root):
                name = excerpt(child.name, NAME_CHARACTERS)
                message = f"{name} is a link that leads out of the folder."
                skipped_file_faults_to_extend.append(
                    Fault(message, "Name its target if it belongs to the import.")
                )
            elif child.is_file():
                found.append(child)
            elif child.is_dir() and not child.is_symlink():
                waiting.append((child, depth + 1))
    return sorted(found)


def _natural_sort_key(path: str) -> list[tuple[int, str]]:
    """What sorts `run-2` before `run-10`."""
    parts = re.findall(r"(\d{1,18})|(\D+|\d+)", path)
    return [(int(digits or -1), text) for digits, text in parts]


class ImportOutcome(Record):
    """What an import found: runs with the files of each, files that nobody knows, and faults.

    `skipped_file_faults` are faults of files that were not named but lay in a folder,
    `left_out_lines` what is in no run of the files that were read, `duplicate_runs` runs that were
    told twice and count once.
    """

    runs: tuple[RunWithFiles, ...]
    unknown_files: tuple[ForeignFile, ...]
    faults: tuple[Fault, ...]
    skipped_file_faults: tuple[Fault, ...] = ()
    left_out_lines: tuple[UnreadLines, ...] = ()
    duplicate_runs: tuple[DuplicateRuns, ...] = ()


def read_foreign_files(paths: Iterable[Path], importers: Sequence[Importer]) -> ImportOutcome:
    """Every file by the format that knows it."""
    collected = collect_files(paths)
    files, faults = collected.files, collected.faults
    file_set = ImportFileSet(files)
    runs: list[tuple[ForeignFile, ForeignRun]] = []
    recognised: list[ForeignFile] = []
    read: list[ForeignFile] = []
    refusals: list[tuple[ForeignFile, Fault]] = []
    for importer, file in _recognised_importers_and_files(files, importers, recognised, faults):
        if file.path in file_set.used_paths:
            continue
        try:
            read_runs = importer.read(file, file_set)
            for run in read_runs:
                _require_figures_within_limits(run)
            runs += [(file, run) for run in read_runs]
            read.append(file)
        except ForeignFileError as fault:
            refusals.append((file, Fault(f"{file.name}: {fault}", fault.hint)))
        except OSError as error:
            faults.append(_unreadable_file_fault(file, error))
        except (ArithmeticError, RecursionError):
            # A number that no float holds, or a document nested without end.
            message = f"{file.name}: a value in it is beyond what can be read."
            refusals.append((file, Fault(message, "Leave it out, or mend it.")))
    # What one tool wrote into a log is read, also where the output of another is not.
    refused = [fault for file, fault in refusals if file in read or not file.was_named_by_user]
    faults += [fault for _, fault in refusals if fault not in refused]
    refused += collected.skipped_file_faults[:FAULTS_MAX]
    sourced, copies = distinct_and_duplicate_runs(
        [((file,), _with_memory_from_meminfo(file, run, file_set)) for file, run in runs]
    )
    paths_known = {file.path for file in recognised} | file_set.used_paths
    unknown = tuple(file for file in files if file.path not in paths_known)
    accounts = [
        file.line_coverage for file in files if file in read or file.path in file_set.used_paths
    ]
    left_out = [
        entry
        for account in accounts
        if account.is_begun
        for entry in account.left_out_and_unmarked_lines()
    ]
    if not runs:
        faults += refused
        faults += [Fault(entry.message, "Leave it out.") for entry in left_out][:FAULTS_MAX]
    faults += [
        _unknown_format_fault(file) for file in unknown if file.was_named_by_user or not runs
    ][:FAULTS_MAX]
    return ImportOutcome(sourced, unknown, tuple(faults), tuple(refused), tuple(left_out), copies)


def _require_figures_within_limits(foreign_run: ForeignRun) -> None:
    """ForeignFileError where a run claims more than a run can be."""
    for message in _limit_fault_texts(foreign_run):
        if message:
            raise ForeignFileError(
                f"{excerpt(foreign_run.name, NAME_CHARACTERS)} claims {message}."
            )


def _limit_fault_texts(foreign_run: ForeignRun) -> Iterator[str]:
    """What is beyond a bound of `core.limits`; empty texts for what is not."""
    yield limits.timestamp_fault(foreign_run.ended_real_ns or 0)
    yield limits.duration_fault(foreign_run.details.requested_runtime_s or 0.0)
    yield limits.count_fault("operations in flight", [foreign_run.in_flight or 0])
    figures = [*foreign_run.details.claimed_totals]
    for client in foreign_run.clients:
        figures += client.details.figures
        yield limits.timestamp_fault(client.start_ns or 0)
        yield limits.duration_fault(client.runtime_s or 0.0)
        intervals = client.intervals
        for interval in intervals:
            yield limits.duration_fault(interval.end_ns / NS_PER_S)
            yield limits.duration_fault(interval.span_ns / NS_PER_S)
        yield limits.count_fault("operations", (interval.count for interval in intervals))
        yield limits.count_fault("bytes", (interval.bytes for interval in intervals))
        for bins in client.bins.values():
            yield limits.count_fault("operations", bins.values())
    for figure in figures:
        yield limits.duration_fault(figure.seconds or 0.0)
        yield limits.count_fault("operations", [figure.count or 0])
        yield limits.count_fault("bytes", [figure.bytes or 0])
    for name, value in foreign_run.settings:
        if isinstance(value, int) and abs(value) > limits.COUNT_MAX:
            yield f"{excerpt(name, NAME_CHARACTERS)} of more than {limits.COUNT_MAX:.6g}"


def _recognised_importers_and_files(
    files: Sequence[ForeignFile],
    importers: Sequence[Importer],
    recognised_files_to_fill: list[ForeignFile],
    faults_to_extend: list[Fault],
) -> list[tuple[Importer, ForeignFile]]:
    """The files with each format in them; `recognised_files_to_fill` gets those with faults, too.

    A log of a job has what several tools printed.
    """
    pairs: list[tuple[Importer, ForeignFile]] = []
    unpacked_bytes = 0
    for file in files:
        try:
            own = [importer for importer in importers if importer.recognises(file)]
            unpacked_bytes += len(file.utf8_bytes)
        except OSError as error:
            recognised_files_to_fill.append(file)
            faults_to_extend.append(_unreadable_file_fault(file, error))
            continue
        except (ArithmeticError, RecursionError):
            own = []
        if unpacked_bytes > limits.TOTAL_BYTES_MAX:
            message = f"These unpack to more than {limits.TOTAL_BYTES_MAX} bytes."
            faults_to_extend.append(Fault(message, "Import fewer files at once."))
            break
        if own:
            recognised_files_to_fill.append(file)
            pairs += [(importer, file) for importer in own]
    return sorted(pairs, key=lambda pair: importers.index(pair[0]))


def _with_memory_from_meminfo(
    file: ForeignFile, foreign_run: ForeignRun, file_set: ImportFileSet
) -> ForeignRun:
    """The run with the memory that a copy of `/proc/meminfo` beside its file tells."""
    if foreign_run.details.memory_bytes is not None:
        return foreign_run
    for meminfo in file_set.matching_files_in_same_folder(file, re.compile(r".*meminfo.*")):
        if match := _MEMORY.search(meminfo.first_bytes.decode("utf-8", "replace")):
            file_set.mark_used_and_read(meminfo)
            memory = int(match[1]) * 1024
            return replace(foreign_run, details=replace(foreign_run.details, memory_bytes=memory))
    return foreign_run


def _unknown_format_fault(file: ForeignFile) -> Fault:
    for magic, packer in _PACKED.items():
        if file.raw_bytes.startswith(magic):
            message = f"{file.name} is compressed by {packer}."
            return Fault(message, "Unpack it, or compress it by zstd, which is read.")
    state = "is in no format that is known" if file.utf8_bytes else "is empty"
    return Fault(f"{file.name} {state}.", "Leave it out.")


def _unreadable_file_fault(file: ForeignFile, error: OSError) -> Fault:
    return Fault(f"{file.name} cannot be read: {error.strerror or error}.", "Leave it out.")


def short_distinct_name(text: str) -> str:
    """A name in one printable line; of a long one the beginning, with a mark made of all of it.

    Unlike names stay unlike.
    """
    if len(text) <= NAME_CHARACTERS:
        return excerpt(text, NAME_CHARACTERS)
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{excerpt(text, NAME_CHARACTERS - MARK_CHARACTERS)}... ({mark})"


def sanitized_host_name(text: str) -> str:
    """A client's name as a session can have it."""
    return re.sub(r"[^A-Za-z0-9._:-]", "-", text)[:NAME_CHARACTERS].strip("-.:") or "client"


def finite_number(value: object) -> float | None:
    """A number of a document that is finite and fits 64 bits; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        converted = float(value)
    except OverflowError:
        return None
    return converted if math.isfinite(converted) and abs(converted) < 2**63 else None


def parse_number(text: str) -> float | None:
    """The number that a text is, commas only at its thousands; None for anything else."""
    text = text.strip()
    if "," in text and not _THOUSANDS.fullmatch(text):
        return None
    try:
        return finite_number(float(text.replace(",", "")))
    except ValueError:
        return None


def parse_time_as_utc_ns(text: str, strptime_format: str) -> int | None:
    """A moment of a host whose time zone is not told, as if it were UTC; None for anything else."""
    try:
        moment = datetime.strptime(text.strip(), strptime_format).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * NS_PER_S


def rounded_number(value: object) -> int | None:
    """The same as a whole number."""
    converted = finite_number(value)
    return None if converted is None else round(converted)


def dict_or_empty(value: object) -> Mapping[str, Any]:
    """A table of a document, empty for anything else."""
    return value if isinstance(value, dict) else {}


def printable_options(table: Mapping[str, Any]) -> dict[str, str]:
    """The options of a document as clean text."""
    return {
        excerpt(str(name), NAME_CHARACTERS): excerpt(str(value), limits.SETTING_CHARACTERS_MAX)
        for name, value in table.items()
    }
