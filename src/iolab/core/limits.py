"""The upper bounds of what hosts, engines and files of other tools may claim.

What comes from outside decides how large tables and series get. A claim beyond its bound is refused
with a sentence, or cut, before anything is made of it. `tests/core/test_limits.py` drives each
bound, and fails for one without a case.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from iolab.units import NS_PER_S

if TYPE_CHECKING:
    from iolab.core.samples import Ints

RUN_S_MOST: Final = 30 * 86_400.0
"""How long a run may have lasted by what a file says: series have a value for each second."""

CLOCK_SLACK_S: Final = 3600.0
"""By how much a host's own time may differ from the controller's over one run: its clock is set,
or it was suspended."""

INTERVALS_MOST: Final = 4_000_000
"""Intervals of one host in one run: ten a second for four days."""

COUNT_MOST: Final = 2**62
"""Operations or bytes of one run, so that sums fit the columns of its tables."""

MOMENT_NS_MOST: Final = 2**62
"""The latest moment since 1970, in the year 2116, to which the longest run can be added."""

REFUSED_HINT: Final = "Look for a fault of its agent or engine, or leave this host out."

ENTRIES_MOST: Final = 20_000
"""Files and folders that are looked at below one folder: ten for each file that is read of it, and
not a whole machine."""

NESTED_MOST: Final = 40
"""Folders inside each other that are looked through."""

HEADER_BYTES_MOST: Final = 4 << 20
"""Of a frame's JSON: facts of a host with a thousand disks are under 1 MiB."""

PAYLOAD_BYTES_MOST: Final = 1 << 20
"""Of a frame's bytes: larger things are sent in several frames."""

PATH_CHARACTERS_MOST: Final = 4096
"""Of a path on a host: the kernel's own limit. Sentences of agents, too."""

REASON_CHARACTERS_MOST: Final = 8192
"""Of why something stays on a host: two paths and an error."""

WORD_CHARACTERS_MOST: Final = 400
"""Of names and commands that agents tell."""

REMNANTS_MOST: Final = 1000
"""Things that stay on a host; an agent names a hundred."""

LISTED_MOST: Final = 100_000
"""Processes, groups and faults of one host: the kernel has few more processes."""

FOLDERS_MOST: Final = 10_000
"""Scratch folders, loop devices and agents of one host; an agent names a thousand folders."""

FOREIGN_FOLDERS_MOST: Final = 100
"""Folders of other users that are named; an agent names ten."""

ERROR_KINDS_MOST: Final = 200
"""Kinds of errors that are told apart; a kernel has some 130."""

TRACED_SIZES_MOST: Final = 65
"""Sizes of I/Os that an agent tells of a direction of a sample."""

TRACED_SECTORS_MOST: Final = 4096
"""Places of I/Os that it tells."""

LINE_BYTES_MOST: Final = 2 << 20
"""Of an engine's line: every bin of three directions, twice, is some 200 kB."""

NUMBER_MOST: Final = (1 << 63) - 1
"""What the columns of a record hold; three centuries in nanoseconds."""

SENTENCE_CHARACTERS_MOST: Final = 300
"""Of each text that an engine tells; what is longer is cut."""

NOTES_MOST: Final = 20
"""Notes of an engine that are kept; it has a handful."""

RETRY_KINDS_MOST: Final = 100
"""Kinds of failed or repeated I/Os that are kept, the rest is dropped."""

WRONG_BLOCKS_MOST: Final = 8
"""Sentences on wrong blocks that an engine tells, and that are kept."""

FILE_BYTES_MOST: Final = 64 << 20
"""Of a file to import: json+ of a hundred jobs has 20 MB; a larger log of every I/O is averaged."""

FILES_MOST: Final = 2000
"""Files of one import: a sweep of a cluster leaves hundreds; a whole disk is a mistake."""

TOTAL_BYTES_MOST: Final = 512 << 20
"""Of all files of one import: they are looked at in memory."""

LINES_MOST: Final = 2_000_000
"""Lines of one file that are looked at."""

SETTING_CHARACTERS_MOST: Final = 4096
"""Of a setting that a file tells; what is longer is cut."""


def duration_fault(seconds: float, most_s: float = RUN_S_MOST) -> str:
    """Why a duration is refused; empty for one that is possible."""
    if 0 <= seconds <= most_s:
        return ""
    return f"a duration of {seconds:.6g} s, where at most {most_s:.6g} s are possible"


def moment_fault(at_ns: int) -> str:
    """Why a moment since 1970 is refused; empty for one that is possible."""
    if 0 <= at_ns <= MOMENT_NS_MOST:
        return ""
    return f"a moment {at_ns / NS_PER_S:.6g} s after 1970"


def count_fault(name: str, counts: Iterable[int]) -> str:
    """Why counts of operations or bytes are refused; empty where their sum is possible."""
    total = 0
    for count in counts:
        total += count
        if not 0 <= count <= COUNT_MOST or total > COUNT_MOST:
            return f"{count:.6g} {name}, where at most {COUNT_MOST:.6g} are possible"
    return ""


def series_fault(end_ns: Ints, span_ns: Ints, most_s: float = RUN_S_MOST) -> str:
    """Why the intervals of one host are refused; empty where they are possible.

    `most_s` is how long the run can have lasted.
    """
    if not end_ns.size:
        return ""
    if end_ns.size > INTERVALS_MOST:
        return f"{end_ns.size} intervals, where at most {INTERVALS_MOST} are possible"
    shortest, longest = int(span_ns.min()) / NS_PER_S, int(span_ns.max()) / NS_PER_S
    message = duration_fault(shortest, most_s) or duration_fault(longest, most_s)
    message = message or moment_fault(int(end_ns.min())) or moment_fault(int(end_ns.max()))
    if message:
        return message
    return duration_fault(int(end_ns.max() - (end_ns - span_ns).min()) / NS_PER_S, most_s)
