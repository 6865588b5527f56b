"""The last line of the agent's engine: the sums of the whole run in the record's terms."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from iolab.model.generator import GeneratorTotals, Lateness, VerifyTotals
from iolab.model.histogram import BIN_COUNT, Histogram, of_sparse
from iolab.model.run import DirectionTotals, EngineTotals
from iolab.model.sample import Direction, Ints, Whole
from iolab.run.hosts.text import printable

NS_PER_S: Final = 1_000_000_000

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.5, 99.9, 99.95, 99.99)
"""What is taken from the bins as the engine's own percentiles; it prints none."""

SHORT: Final = "short"
"""What stands in place of an errno for an I/O that moved fewer bytes than asked."""

FIRST_WRONG: Final = 8
"""Sentences on wrong blocks that the engine tells, and that are kept."""

TEXT_LIMIT: Final = 300
"""Characters of each."""

NOTES_LIMIT: Final = 20
"""Notes that are kept; an engine has a handful."""

KINDS_LIMIT: Final = 100
"""Kinds of errors, or of retries, that are kept; a kernel has some 130 errors."""

NUMBER_LIMIT: Final = 1 << 63
"""What the columns of a record hold; three centuries in nanoseconds."""


class LineFault(Exception):
    """A line cannot be used; the message says why."""


def object_of(value: object) -> dict[str, Any]:
    """A JSON object. LineFault for anything else."""
    if not isinstance(value, dict):
        raise LineFault("it printed a line that is no object")
    return value


def count_of(told: Mapping[str, Any], key: str) -> int:
    """A whole number that is not negative. LineFault for anything else, or nothing."""
    value = told.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < NUMBER_LIMIT:
        raise LineFault(f"it told no {key}")
    return value


def part_of(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What a line says of a direction that the job has. LineFault where it says nothing."""
    part = told.get(name)
    if not isinstance(part, dict):
        raise LineFault(f"it told nothing of '{name}'")
    return part


def bins_of(told: Mapping[str, Any]) -> tuple[Whole, Ints]:
    """The bins in use and their counts, each a column. LineFault for what cannot be that."""
    rows = told.get("bins", [])
    try:
        table = np.array(rows)
    except (TypeError, ValueError, OverflowError):
        raise LineFault(_NO_BINS) from None
    if isinstance(rows, list) and not rows:
        table = table.astype(np.int64).reshape(0, 2)
    if table.dtype != np.int64 or table.ndim != 2 or table.shape[1] != 2:
        raise LineFault(_NO_BINS)
    bins, counts = table[:, 0], table[:, 1]
    if table.size and (bins.min() < 0 or bins.max() >= BIN_COUNT or counts.min() < 0):
        raise LineFault(_NO_BINS)
    return bins.astype(np.int16), counts.copy()


_NO_BINS: Final = "it told bins that are none"


def totals_of(
    head: Mapping[str, Any], end: Mapping[str, Any], directions: Sequence[Direction], jobs: int
) -> EngineTotals:
    """The totals; LineFault when the line lacks what every run has."""
    measured_ns = count_of(end, "measured_ns")
    drain_ns = count_of(end, "drain_ns")
    wall_ns = measured_ns + drain_ns
    errors = _errors({**_inner(end, "errors"), "thread": _inner(end, "broken")})
    ways = {
        direction: _direction(part_of(end, name), wall_ns, _short(_inner(end, "errors"), name))
        for direction, name in ((way, way.name.lower()) for way in Direction)
        if direction in directions
    }
    cpu = _inner(end, "cpu")
    # It was used until nothing more was submitted, so what was waited for at the end is no part.
    use = [_number(cpu, key) * NS_PER_S / measured_ns if measured_ns else 0.0 for key in _CPU]
    return EngineTotals(
        read=ways.get(Direction.READ),
        write=ways.get(Direction.WRITE),
        trim=ways.get(Direction.TRIM),
        depth_percent=(),
        user_cpu_percent=100 * use[0] / jobs,
        system_cpu_percent=100 * use[1] / jobs,
        error=_errno(errors),
        jobs=jobs,
        generator=_generator(head, end, errors),
    )


_CPU: Final = ("user_s", "system_s")


def _generator(
    head: Mapping[str, Any], end: Mapping[str, Any], errors: tuple[tuple[str, int], ...]
) -> GeneratorTotals:
    switches = _inner(end, "context_switches")
    probes = _inner(_inner(head, "probes"), "read")
    unsubmitted = _inner(end, "unsubmitted")
    return GeneratorTotals(
        method=printable(str(head.get("method", "")), TEXT_LIMIT),
        threads=_whole(head, "threads"),
        clock=printable(str(head.get("clock", "")), TEXT_LIMIT),
        notes=_sentences(head.get("notes"))[:NOTES_LIMIT],
        errors=errors,
        retries=_retries(_inner(end, "retries")),
        lateness=_lateness(_inner(end, "lateness")),
        unreached=end.get("unreached") is True,
        measured_ns=count_of(end, "measured_ns"),
        drain_ns=count_of(end, "drain_ns"),
        drained_ios=_whole(end, "drained_ios"),
        verify=_verify(_inner(end, "verify")),
        voluntary_switches=_whole(switches, "voluntary"),
        involuntary_switches=_whole(switches, "involuntary"),
        steal_ticks=_whole(end, "steal_ticks"),
        depth_asked=_whole(_inner(end, "depth"), "asked"),
        depth_used=_whole(_inner(end, "depth"), "used"),
        probe_reads=_whole(probes, "ios"),
        probe_read_bytes=_whole(probes, "bytes"),
        unsubmitted=_whole(unsubmitted, "count"),
        oldest_unsubmitted_ns=_whole(unsubmitted, "oldest_ns"),
        hung_ios=_whole(end, "hung"),
    )


def _direction(told: Mapping[str, Any], wall_ns: int, short: int) -> DirectionTotals:
    ios, moved = count_of(told, "ios"), count_of(told, "bytes")
    lowest, highest = _whole(told, "min_ns"), _whole(told, "max_ns")
    histogram = Histogram(_counts(told, ios), lowest, highest)
    values = ((rank, histogram.percentile_ns(rank)) for rank in PERCENTILES)
    mean = _number(told, "lat_sum_ns") / ios if ios else 0.0
    return DirectionTotals(
        ios=ios,
        bytes=moved,
        runtime_ms=wall_ns // 1_000_000,
        iops=ios * NS_PER_S / wall_ns if wall_ns else 0.0,
        bw_bytes_per_s=moved * NS_PER_S / wall_ns if wall_ns else 0.0,
        lat_min_ns=lowest if ios else 0,
        lat_max_ns=highest if ios else 0,
        lat_mean_ns=mean,
        slat_mean_ns=0.0,
        clat_mean_ns=mean,
        percentiles=tuple((rank, round(value)) for rank, value in values if value is not None),
        short_ios=short,
        dropped_ios=0,
    )


def _counts(told: Mapping[str, Any], ios: int) -> Ints:
    """Dense counts; LineFault where they are not those of the I/Os."""
    bins, counts = bins_of(told)
    if int(counts.sum()) != ios:
        raise LineFault(f"it counts {ios} I/Os of the whole run and bins {counts.sum()}")
    return of_sparse(bins, counts)


def _errors(told: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """I/Os that failed, by direction and errno, most first; short ones are counted elsewhere."""
    found = [
        (printable(f"{way} {name}", TEXT_LIMIT), _whole(_inner(told, way), name))
        for way in told
        for name in _inner(told, way)
        if name != SHORT
    ]
    found = sorted((one for one in found if one[1]), key=lambda one: (-one[1], one[0]))
    return tuple(found[:KINDS_LIMIT])


def _retries(told: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    found = [(printable(reason, TEXT_LIMIT), _whole(told, reason)) for reason in told]
    return tuple(found[:KINDS_LIMIT])


def _short(told: Mapping[str, Any], way: str) -> int:
    return _whole(_inner(told, way), SHORT)


def _errno(errors: tuple[tuple[str, int], ...]) -> int:
    """The number of the error that was met most often, 0 for none; EIO for one without a number."""
    if not errors:
        return 0
    name = errors[0][0].rpartition(" ")[2]
    numbers = {known: number for number, known in errno.errorcode.items()}
    return numbers.get(name, errno.EIO)


def _lateness(told: Mapping[str, Any]) -> Lateness | None:
    if not _whole(told, "count"):
        return None
    return Lateness(*(_whole(told, key) for key in ("count", "p50_ns", "p99_ns", "max_ns")))


def _verify(told: Mapping[str, Any]) -> VerifyTotals | None:
    if "checked" not in told:
        return None
    kinds = ("checked", "torn", "stale", "misplaced", "corrupt")
    checked, torn, stale, misplaced, corrupt = (_whole(told, kind) for kind in kinds)
    first = _sentences(told.get("first"))[:FIRST_WRONG]
    return VerifyTotals(checked, torn, stale, misplaced, corrupt, first)


def _sentences(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(printable(str(one), TEXT_LIMIT) for one in value)


def _inner(told: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = told.get(key)
    return inner if isinstance(inner, dict) else {}


def _whole(told: Mapping[str, Any], key: str) -> int:
    """A whole number, 0 where there is none. LineFault for anything else that stands there."""
    return 0 if told.get(key) is None else count_of(told, key)


def _number(told: Mapping[str, Any], key: str) -> float:
    """The same of a number of any kind."""
    value = told.get(key)
    if value is None:
        return 0.0
    # Nothing is compared with what is no number, and nothing is less than it.
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not 0 <= value < NUMBER_LIMIT:
        raise LineFault(f"it told no {key}")
    return float(value)
