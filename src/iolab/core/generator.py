"""What the native engine tells of its own work: errors, lateness, verification, the end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from iolab.record import Record

RECORDED_FILE: Final = "recorded.iolog"
"""The file of the I/Os that an engine recorded: in its folder on the host, and in the session."""


class SubmissionLateness(Record):
    """How much later than intended a generator submitted I/Os that it had room for.

    `machine_p99_ns` is of those before which it did nothing but wait, up to its next look at the
    clock: so late the machine alone makes any program.
    """

    count: int
    p50_ns: int
    p99_ns: int
    max_ns: int
    machine_p99_ns: int | None = None


class VerifyTotals(Record):
    """Blocks that were looked at after they were read, and how many held something else.

    `first_mismatch_texts` are sentences on the first of them.
    """

    checked: int
    torn: int
    stale: int
    misplaced: int
    corrupt: int
    first_mismatch_texts: tuple[str, ...]

    @property
    def mismatched_blocks(self) -> int:
        """Blocks that did not hold what was last written there."""
        return self.torn + self.stale + self.misplaced + self.corrupt


_WRITE_NUMBERS: Final = re.compile(r": it holds (?:the write (\d+),|sectors of the writes ).*")
_KIND: Final = re.compile(r" is (\w+)")


def first_mismatch_of_each_kind_text(texts: Sequence[str]) -> str:
    """The first of each kind in a sentence each, without the numbers of writes."""
    first_texts: dict[str, str] = {}
    for text in texts:
        kind = _KIND.search(text)
        short = _WRITE_NUMBERS.sub(lambda m: " (zeros)." if m[1] == "0" else ".", text)
        first_texts.setdefault(kind[1] if kind else "", short)
    return " ".join(first_texts.values())


class SlowIo(Record):
    """One of the slowest I/Os of a host: `at_ns` after the start it was due, or submitted.

    `latency_ns` counts from then, `service_ns` from its submission; `operation` is read, write,
    trim or sync; `path` is the file or device as the job names it.
    """

    at_ns: int
    latency_ns: int
    service_ns: int
    operation: str
    path: str
    offset: int
    bytes: int


class GeneratorTotals(Record):
    """What the native engine says of its own work on one host.

    `method` is how it spoke to the kernel (io_uring, libaio or sync), `threads` how many of its
    threads did, `clock` what it timed by, `notes` what it did otherwise than asked. `errors` are
    I/Os that failed, by direction and the errno's name ("read EIO"); `retries` those that were
    submitted anew, by reason. After `measured_ns` nothing was submitted; `drained_ios` ended in the
    `drain_ns` after it. `unreached` says that an asked rate was not kept; `unsubmitted` I/Os were
    due by then and never begun, the oldest of them for `oldest_unsubmitted_ns`. `hung_ios` were
    begun and given up, as nothing had ended for long. Of the I/Os that were to be in flight,
    `depth_asked`, it had room for `depth_used`. Before the start `probe_reads` read
    `probe_read_bytes`, which are in no other count, to see how the target is best asked. Its first
    thread began `begun_first_ns` after the start that it was told, its last one `begun_last_ns`.
    `slow_ios` are its slowest, the slowest first, where they were requested.
    """

    method: str
    threads: int
    clock: str
    notes: tuple[str, ...]
    errors: tuple[tuple[str, int], ...]
    retries: tuple[tuple[str, int], ...]
    lateness: SubmissionLateness | None
    unreached: bool
    measured_ns: int
    drain_ns: int
    drained_ios: int
    verify: VerifyTotals | None
    voluntary_switches: int
    involuntary_switches: int
    steal_ticks: int
    depth_asked: int = 0
    depth_used: int = 0
    probe_reads: int = 0
    probe_read_bytes: int = 0
    unsubmitted: int = 0
    oldest_unsubmitted_ns: int = 0
    hung_ios: int = 0
    begun_first_ns: int = 0
    begun_last_ns: int = 0
    slow_ios: tuple[SlowIo, ...] = ()

    @property
    def failed_ios(self) -> int:
        """I/Os that failed."""
        return sum(count for _, count in self.errors)
