"""A workload as the jobs of another tool give it, with what became of every option."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

from msgspec import Struct, field

from iolab.importers.files import SENTENCE_CHARACTERS
from iolab.loads.fileio.workload import SECTOR_BYTES
from iolab.record import Record
from iolab.text import excerpt
from iolab.units import GIB

VALUE_CHARACTERS: Final = 4096
"""Of an option as much is read; a list of some hundred devices is shorter."""

FILE_BYTES: Final = GIB
"""What a job without a size gets."""

REASONS: Final = ("refused", "changed", "kept", "not needed")
"""What a note's reason begins with; what matters most comes first."""

NO_OPTION: Final = "refused: studies do not have this option"

DEFAULT_BLOCK_BYTES: Final = 4096
"""What fio and vdbench take where no block is named."""


class OptionNote(Record):
    """What became of one option of one job: refused, changed, kept or not needed, and why."""

    job_name: str
    option: str
    reason: str

    def __str__(self) -> str:
        return f"[{self.job_name}] {self.option}: {self.reason}"


class Duration(Record):
    """A time as a study has it, and what it comes to."""

    text: str
    seconds: Fraction


class JobDraft(Struct):
    """One workload as its keys are found; one without keys cannot be a workload.

    `runtime` and `warmup` are the job's own: a study has one of each for all of its workloads.
    """

    name: str
    workload_keys: dict[str, object] = field(default_factory=dict)
    fio_options: dict[str, str] = field(default_factory=dict)
    runtime: Duration | None = None
    warmup: Duration | None = None
    notes: list[OptionNote] = field(default_factory=list)

    def add_note(self, option: str, reason: str) -> None:
        """Tell what became of an option; the reason begins with one of `REASONS`."""
        self.notes.append(OptionNote(self.name, excerpt(option, SENTENCE_CHARACTERS), reason))

    def refuse_job(self, option: str, reason: str) -> None:
        """Tell why the job cannot be a workload."""
        self.add_note(option, f"refused, and the whole job with it: {reason}")
        self.workload_keys.clear()


def noted_whole_block_size_text(
    job: JobDraft, option: str, byte_count: int, block_bytes: int
) -> str:
    """A file's size in whole blocks, the largest that fits."""
    fitting = max(byte_count // block_bytes, 1) * block_bytes
    if fitting != byte_count:
        job.add_note(option, f"changed: whole blocks only, {fitting} bytes of each file")
    return size_with_unit_text(fitting)


def block_bytes_or_noted_default(job: JobDraft, option: str, byte_count: int | None) -> int:
    """The size of a block where it is one, else 4 KiB with a note."""
    if byte_count is not None and byte_count >= SECTOR_BYTES and byte_count % SECTOR_BYTES == 0:
        return byte_count
    job.add_note(option, "changed: 4k, as a block is a multiple of 512 bytes")
    return DEFAULT_BLOCK_BYTES


def size_with_unit_text(size_bytes: int) -> str:
    """A size as studies and fio have it."""
    for unit, step in (("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)):
        if size_bytes and size_bytes % step == 0:
            return f"{size_bytes // step}{unit}"
    return str(size_bytes)


def study_bssplit_text(fio_bssplit: str, parse_size: Callable[[str], int | None]) -> str | None:
    """A `bssplit` of fio with its sizes as studies have them; None where one of them is none."""
    parts = []
    for part in fio_bssplit.split(":"):
        size, slash, share = part.strip().partition("/")
        count = parse_size(size)
        if count is None or (share and not share.isdigit()):
            return None
        parts.append(f"{size_with_unit_text(count)}{slash if share else ''}{share}")
    return ":".join(parts)
