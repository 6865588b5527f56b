"""The files of one submitted result: found by name, read within bounds, and never executed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from iolab.core import limits
from iolab.core.regular_file import read_regular_file
from iolab.importers.files import ForeignFileError
from iolab.importers.submissions.yaml_scalars import yaml_scalar_key_paths_and_texts
from iolab.record import DECODE_ERRORS, Record
from iolab.text import excerpt

PRUNED_BYTES: Final = 16
"""A file that was too large for the published tree holds `PRUNED BY STAFF` and a new line."""

ENTRIES_MAX: Final = 400_000
"""Files and folders of a tree of submissions: the largest one that is public has 60,000."""

READ_BYTES_MAX: Final = 4 << 30
"""Of all files that are read of such a tree, one after the other: 150 results have some 1 GB."""

SUMMARY: Final = "summary.json"

_NAME_CHARACTERS: Final = 120
_CODE_FOLDERS: Final = re.compile(r"code|code-\w+|.*_code|\.git|datagen|datasize|.*-gen", re.I)
"""Folders that hold no result: programs, and how data were made."""

_EPOCHS: Final = re.compile(r"(?:(\d{1,7})_)?per_epoch_stats\.json")
_METADATA: Final = re.compile(r"[\w.-]+_metadata\.json")
_RANK_RESULT: Final = re.compile(
    r"option_(\d{1,3})/trial_(\d{1,3})/rank_(\d{1,6})/kvcache_results_\w+\.json"
)
_CONFIGURATIONS: Final = ("dlio_config/config.yaml", "configs/config.yaml")
_OVERRIDE: Final = re.compile(r"\+*workload\.([\w.]+)=([^\s'\"]+)")

Document = Mapping[str, Any]


class TreeReader(Struct):
    """Reads files of one tree until its bytes are used up; OSError beyond that."""

    bytes_left: int = READ_BYTES_MAX

    def read(self, path: Path) -> bytes:
        """All of a file."""
        content = read_regular_file(path, min(limits.FILE_BYTES_MAX, self.bytes_left))
        self.bytes_left -= len(content)
        return content


class OptionTrialAndRankNumbers(NamedTuple):
    """One rank of one trial of an option of the KV cache benchmark, by their numbers."""

    option: int
    trial: int
    rank: int


class ResultFolder(Record, dict=True):
    """A folder with the summary of one run of a benchmark.

    `label` is its path in the tree, `file_sizes` are of all files below it, by their path in it.
    """

    path: Path
    label: str
    file_sizes: Mapping[str, int]
    reader: TreeReader
    unreadable_files: list[str]

    def read_json_or_note_unreadable(self, name: str) -> Document:
        """A JSON object; empty for a file that is none, which `unreadable_files` then names."""
        try:
            content = self.reader.read(self.path / name)
            document = msgspec.json.decode(content)
        except (OSError, *DECODE_ERRORS):
            self.unreadable_files.append(name)
            return {}
        return document if isinstance(document, dict) else {}

    def read_text_or_note_unreadable(self, name: str) -> str:
        """A text file; empty for one that is not there."""
        if name not in self.file_sizes:
            return ""
        try:
            return self.reader.read(self.path / name).decode("utf-8", "replace")
        except OSError:
            self.unreadable_files.append(name)
            return ""

    def file_label(self, name: str) -> str:
        """A file of it, by its path in the tree."""
        return excerpt(f"{self.label}/{name}", 4 * _NAME_CHARACTERS)

    @cached_property
    def summary(self) -> Document:
        """Its `summary.json`."""
        return self.read_json_or_note_unreadable(SUMMARY)

    @cached_property
    def metadata_file_name(self) -> str:
        """The file that holds parameters and commands; empty where there is none."""
        return next((name for name in sorted(self.file_sizes) if _METADATA.fullmatch(name)), "")

    @cached_property
    def metadata(self) -> Document:
        """Parameters, commands, and the state of hosts before and after; empty if it has none."""
        return (
            self.read_json_or_note_unreadable(self.metadata_file_name)
            if self.metadata_file_name
            else {}
        )

    @cached_property
    def epoch_files_by_rank(self) -> Mapping[int, str]:
        """The file of each rank with the times of its epochs and checkpoints."""
        matches = ((name, _EPOCHS.fullmatch(name)) for name in self.file_sizes)
        return {int(match[1] or 0): name for name, match in sorted(matches) if match}

    @cached_property
    def epoch_documents_by_rank(self) -> Mapping[int, Document]:
        """The times of each rank's epochs and checkpoints."""
        read = {
            rank: self.read_json_or_note_unreadable(name)
            for rank, name in self.epoch_files_by_rank.items()
        }
        return {rank: document for rank, document in read.items() if document}

    @cached_property
    def rank_result_file_by_option_trial_rank(self) -> Mapping[OptionTrialAndRankNumbers, str]:
        """The file of each option, trial and rank of the KV cache benchmark."""
        matches = ((name, _RANK_RESULT.fullmatch(name)) for name in sorted(self.file_sizes))
        return {
            OptionTrialAndRankNumbers(int(m[1]), int(m[2]), int(m[3])): name
            for name, m in matches
            if m
        }

    @cached_property
    def commands(self) -> Sequence[str]:
        """Every command that its metadata hold."""
        return tuple(dict.fromkeys(_commands_in(self.metadata)))

    @cached_property
    def command_parameters(self) -> Mapping[str, str]:
        """Parameters that a command sets beside those that are stored."""
        return {key: value for each in self.commands for key, value in _OVERRIDE.findall(each)}

    @cached_property
    def configuration_file_name(self) -> str:
        """The file with its benchmark's configuration; empty where there is none."""
        return next((name for name in _CONFIGURATIONS if name in self.file_sizes), "")

    @cached_property
    def configuration_values(self) -> Mapping[str, str]:
        """The values of that file by their path."""
        return dict(
            yaml_scalar_key_paths_and_texts(
                self.read_text_or_note_unreadable(self.configuration_file_name)
            )
        )

    def numeric_parameter_at_paths(self, *paths: str) -> float | None:
        """A parameter of the workload: as the command sets it, else as it is stored."""
        for path in paths:
            stored: Any = self.metadata.get("parameters")
            for key in path.split("."):
                stored = stored.get(key) if isinstance(stored, dict) else None
            values = (
                self.command_parameters.get(path),
                stored,
                self.configuration_values.get(f"workload.{path}"),
            )
            for value in values:
                if (parsed := parse_finite_number(value)) is not None:
                    return parsed
        return None

    @property
    def start_and_end_times(self) -> tuple[datetime, datetime] | None:
        """When it began and ended, by its summary."""
        first, last = (
            parse_datetime(self.summary.get("start")),
            parse_datetime(self.summary.get("end")),
        )
        return None if first is None or last is None else (first, last)

    @property
    def command_start_time(self) -> datetime | None:
        """When its command began, by its folder's name; None where that is no moment."""
        try:
            return datetime.strptime(self.path.name, "%Y%m%d_%H%M%S")  # noqa: DTZ007 - no zone
        except ValueError:
            return None

    @property
    def pruned_files(self) -> list[str]:
        """Files whose content was taken out before the tree was published."""
        return [
            name
            for name, size in sorted(self.file_sizes.items())
            if size == PRUNED_BYTES and name.endswith((".json", ".log"))
        ]


def _commands_in(metadata: Document) -> Iterator[str]:
    for key, value in metadata.items():
        if "command" not in key:
            continue
        for entry in value if isinstance(value, list) else [value]:
            text = entry.get("command") if isinstance(entry, dict) else entry
            if isinstance(text, str):
                yield text[: limits.FILE_BYTES_MAX]


def parse_finite_number(value: object) -> float | None:
    """A finite number, also of text; None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < limits.NUMBER_MAX else None


def number_at_keys(document: Document, *keys: str) -> float | None:
    """The number below those keys; None where there is none."""
    value: Any = document
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return parse_finite_number(value)


def numbers_at_keys(document: Document, *keys: str) -> list[float]:
    """The numbers of the list below those keys."""
    value: Any = document
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    parsed = [parse_finite_number(each) for each in value] if isinstance(value, list) else []
    return [each for each in parsed if each is not None]


def parse_datetime(value: object) -> datetime | None:
    """A date and time, which files of the suite write without a zone."""
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value).replace(tzinfo=None)
    except ValueError:
        return None


def find_result_folders(root: Path, *, entries_max: int = ENTRIES_MAX) -> list[ResultFolder]:
    """The folders of a tree that hold a result, in order.

    ForeignFileError for a tree of more files and folders than are looked at.
    """
    reader, entry_count = TreeReader(), 0
    found: list[ResultFolder] = []
    waiting: list[tuple[Path, int]] = [(root, 1)]
    while waiting:
        folder, depth = waiting.pop()
        files, folders = _file_sizes_and_folders(folder)
        entry_count += len(files) + len(folders)
        if SUMMARY in files:
            entry_count += _add_files_below_and_count_entries(folder, folders, files)
            label = folder.relative_to(root).as_posix()
            result = ResultFolder(folder, excerpt(label, 4 * _NAME_CHARACTERS), files, reader, [])
            if benchmark_name_of_result(result):
                found.append(result)
        elif depth < limits.NESTED_MAX:
            waiting += [
                (folder / name, depth + 1) for name in folders if not _CODE_FOLDERS.fullmatch(name)
            ]
        if entry_count > entries_max:
            if not found:
                return []
            name = excerpt(root.name, _NAME_CHARACTERS)
            message = f"'{name}' has more than {entries_max} files and folders in it."
            raise ForeignFileError(message, "Name the folder of one organization.")
    return sorted(found, key=lambda result: result.label)


def benchmark_name_of_result(result: ResultFolder) -> str:
    """`training`, `checkpointing` or `kv_cache`, by the keys of its summary; empty for others."""
    metric = result.summary.get("metric")
    if isinstance(metric, dict):
        if "train_au_mean_percentage" in metric:
            return "training"
        if any(f"{way}_checkpoint_io_mean_GB_per_second" in metric for way in ("save", "load")):
            return "checkpointing"
    options = result.summary.get("options")
    return "kv_cache" if isinstance(options, dict) and "total_ranks" in result.summary else ""


def _file_sizes_and_folders(folder: Path) -> tuple[dict[str, int], list[str]]:
    """The files of a folder with their sizes, and its folders; links are passed over."""
    files: dict[str, int] = {}
    folders: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False) and not entry.name.startswith("._"):
                    files[entry.name] = entry.stat(follow_symlinks=False).st_size
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
    except OSError:
        return {}, []
    return files, sorted(folders, reverse=True)


def _add_files_below_and_count_entries(
    folder: Path, folders: Sequence[str], size_by_path_to_fill: dict[str, int]
) -> int:
    """Add the files of the folders in it by their path; the number of entries that were met."""
    waiting, count = [(name, 1) for name in folders], 0
    while waiting and count <= ENTRIES_MAX:
        name, depth = waiting.pop()
        more, deeper = _file_sizes_and_folders(folder / name)
        count += len(more) + len(deeper)
        size_by_path_to_fill.update({f"{name}/{file}": size for file, size in more.items()})
        if depth < limits.NESTED_MAX:
            waiting += [(f"{name}/{each}", depth + 1) for each in deeper]
    return count
