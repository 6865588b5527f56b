"""The upper bounds of what hosts, engines and files of other tools may claim.

What comes from outside decides how large tables and series get. A claim beyond its bound is refused
with a sentence, or cut, before anything is made of it. `tests/core/test_limits.py` drives each
bound, and fails for one without a case.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from iolab.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from iolab.core.samples import Ints

RUN_S_MAX: Final = 30 * 86_400.0
"""How long a run may have lasted by what a file says: series have a value for each second."""

CLOCK_SLACK_S: Final = 3600.0
"""By how much a host's own time may differ from the controller's over one run: its clock is set,
or it was suspended."""

INTERVALS_MAX: Final = 4_000_000
"""Intervals of one host in one run: ten a second for four days."""

COUNT_MAX: Final = 2**62
"""Operations or bytes of one run, so that sums fit the columns of its tables."""

MOMENT_NS_MAX: Final = 2**62
"""The latest moment since 1970, in the year 2116, to which the longest run can be added."""

REFUSED_HINT: Final = "Look for a fault of its agent or engine, or leave this host out."

ENTRIES_MAX: Final = 20_000
"""Files and folders that are looked at below one folder: ten for each file that is read of it, and
not a whole machine."""

NESTED_MAX: Final = 40
"""Folders inside each other that are looked through."""

HEADER_BYTES_MAX: Final = 4 << 20
"""Of a frame's JSON: facts of a host with a thousand disks are under 1 MiB."""

PAYLOAD_BYTES_MAX: Final = 1 << 20
"""Of a frame's bytes: larger things are sent in several frames."""

PATH_CHARACTERS_MAX: Final = 4096
"""Of a path on a host: the kernel's own limit. Sentences of agents, too."""

REASON_CHARACTERS_MAX: Final = 8192
"""Of why something stays on a host: two paths and an error."""

WORD_CHARACTERS_MAX: Final = 400
"""Of names and commands that agents tell."""

LEFTOVERS_MAX: Final = 1000
"""Things that stay on a host; an agent names a hundred."""

LOG_PAGE_CHARACTERS_MAX: Final = 2 * 4096
"""Of a drive's log page in hexadecimal: those that are read have at most 512 bytes."""

LOG_PAGES_MAX: Final = 16
"""Log pages of one drive: seven are read."""

DRIVES_MAX: Final = 256
"""Drives of one host whose pages are read at once."""

LISTED_MAX: Final = 100_000
"""Processes, groups and faults of one host: the kernel has few more processes."""

FOLDERS_MAX: Final = 10_000
"""Scratch folders, loop devices and agents of one host; an agent names a thousand folders."""

FOREIGN_FOLDERS_MAX: Final = 100
"""Folders of other users that are named; an agent names ten."""

ERROR_KINDS_MAX: Final = 200
"""Kinds of errors that are told apart; a kernel has some 130."""

TRACED_SIZES_MAX: Final = 65
"""Sizes of I/Os that an agent tells of a direction of a sample."""

TRACED_SECTORS_MAX: Final = 4096
"""Places of I/Os that it tells."""

ENDPOINTS_MAX: Final = 256
"""Of one object store; an agent takes no more."""

LINE_BYTES_MAX: Final = 2 << 20
"""Of an engine's line: every bin of three directions, twice, is some 200 kB."""

NUMBER_MAX: Final = (1 << 63) - 1
"""What the columns of a record hold; three centuries in nanoseconds."""

SENTENCE_CHARACTERS_MAX: Final = 300
"""Of each text that an engine tells; what is longer is cut."""

NOTES_MAX: Final = 20
"""Notes of an engine that are kept; it has a handful."""

RETRY_KINDS_MAX: Final = 100
"""Kinds of failed or repeated I/Os that are kept, the rest is dropped."""

WRONG_BLOCKS_MAX: Final = 8
"""Sentences on wrong blocks that an engine tells, and that are kept."""

FILE_BYTES_MAX: Final = 64 << 20
"""Of a file to import: json+ of a hundred jobs has 20 MB; a larger log of every I/O is averaged."""

UNPACKED_BYTES_MAX: Final = 192 << 20
"""Of a compressed file to import, unpacked: a log of a million requests has 150 MB."""

FILES_MAX: Final = 2000
"""Files of one import: a sweep of a cluster leaves hundreds; a whole disk is a mistake."""

TOTAL_BYTES_MAX: Final = 512 << 20
"""Of all files of one import: they are looked at in memory."""

LINES_MAX: Final = 2_000_000
"""Lines of one file that are looked at."""

SETTING_CHARACTERS_MAX: Final = 4096
"""Of a setting that a file tells; what is longer is cut."""

STREAM_BYTES_MAX: Final = 64 << 20
"""Of what a program prints or logs: db_bench prints 64 MiB with 64 threads in two hours, a YCSB log
has 10 kB a second, RocksDB's tables of 2 TiB take so much."""

ERROR_LINES_MAX: Final = 8
"""Error lines kept of one output: every thread and rank fails with the same words."""

LOGGED_SECONDS_MAX: Final = 100_000
"""Rows of a log with one a second: more than a day."""

PROGRESS_LINE_BYTES_MAX: Final = 16 << 10
"""Of a line of progress: YCSB's with all operations has about 1 kB."""

REPLY_BYTES_MAX: Final = 1 << 20
"""Of a reply of QEMU's monitor or of a tool of Cassandra, a line each: two histograms are 10 kB."""

DOCUMENT_BYTES_MAX: Final = 8 << 20
"""Of a document of fio: one with every bin of three directions has 0.3 MB."""

TEXT_LINES_MAX: Final = 20
"""Lines of text beside the documents of fio that are kept: the first ones name the cause."""

TEXT_LINE_BYTES_MAX: Final = 1000
"""Of such a line that are kept."""

MS_MAX: Final = NUMBER_MAX // NS_PER_MS
"""Milliseconds that still fit as nanoseconds: the year 2262."""

MDTEST_OUTPUT_BYTES_MAX: Final = 4 << 20
"""Of what mdtest prints: 3 KiB an iteration with `-v`."""

ITERATIONS_MAX: Final = 1000
"""Iterations of mdtest, which are more than anybody waits for."""

PRINTED_BINS_MAX: Final = 256
"""Bins of a histogram of db_bench: RocksDB has 109 up to 2^64."""

TICKERS_MAX: Final = 2000
"""Lines of RocksDB's statistics: 7.8 has 251, and every version adds some."""

RESULTS_MAX: Final = 64
"""Results of one db_bench."""

PROGRESS_LINES_MAX: Final = 500_000
"""Lines of progress of db_bench: 64 threads for two hours."""

SECTIONS_MAX: Final = 200
"""Sections of a summary of YCSB, which has about twenty."""

STATUSES_MAX: Final = 20
"""Counts of one section: all operations, and those of each status, of which bindings have ten."""

LOGGED_VALUES_MAX: Final = 16_000_000
"""Different latencies of each interval of an HDR log, added up: two hours of 2,200 a second. A line
of a hundred bytes may claim 57,344."""

HISTOGRAM_BYTES_MAX: Final = 1 << 20
"""Of an HDR histogram unpacked: three digits over 64 bits are 57,344 counts, mostly of a byte."""

LATENCY_US_MAX: Final = 1 << 52
"""Of an HDR histogram: what is longer is none in nanoseconds either."""

LEVELS_MAX: Final = 100
"""Levels of a RocksDB database, which has seven unless it is configured otherwise."""

UNREAD_BYTES_MAX: Final = 16 << 20
"""What a guest may send beyond what its reader takes, before it is cut off: half an hour of
telemetry."""

LIBRARIES_MAX: Final = 32
"""Libraries between a load and its kernel that an agent tells."""

LIBRARY_EXPORTS_MAX: Final = 128
"""Functions that it tells of one."""

SLOW_IOS_MAX: Final = 1000
"""Slow I/Os that an engine tells one by one."""

CPUS_MAX: Final = 8192
"""Processors of a host: NR_CPUS of the largest kernels."""


def duration_fault(seconds: float, max_s: float = RUN_S_MAX) -> str:
    """Why a duration is refused; empty for one that is possible."""
    if 0 <= seconds <= max_s:
        return ""
    return f"a duration of {seconds:.6g} s, where at most {max_s:.6g} s are possible"


def timestamp_fault(at_ns: int) -> str:
    """Why a moment since 1970 is refused; empty for one that is possible."""
    if 0 <= at_ns <= MOMENT_NS_MAX:
        return ""
    return f"a moment {at_ns / NS_PER_S:.6g} s after 1970"


def count_fault(name: str, counts: Iterable[int]) -> str:
    """Why counts of operations or bytes are refused; empty where their sum is possible."""
    total = 0
    for count in counts:
        total += count
        if not 0 <= count <= COUNT_MAX or total > COUNT_MAX:
            return f"{count:.6g} {name}, where at most {COUNT_MAX:.6g} are possible"
    return ""


def interval_series_fault(end_ns: Ints, span_ns: Ints, max_s: float = RUN_S_MAX) -> str:
    """Why the intervals of one host are refused; empty where they are possible.

    `max_s` is how long the run can have lasted.
    """
    if not end_ns.size:
        return ""
    if end_ns.size > INTERVALS_MAX:
        return f"{end_ns.size} intervals, where at most {INTERVALS_MAX} are possible"
    shortest, longest = int(span_ns.min()) / NS_PER_S, int(span_ns.max()) / NS_PER_S
    message = duration_fault(shortest, max_s) or duration_fault(longest, max_s)
    message = message or timestamp_fault(int(end_ns.min())) or timestamp_fault(int(end_ns.max()))
    if message:
        return message
    return duration_fault(int(end_ns.max() - (end_ns - span_ns).min()) / NS_PER_S, max_s)
