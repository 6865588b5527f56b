"""The sums that an engine of I/O which is built into the agent tells in its last line."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import Any, Final

from iolab.core import limits
from iolab.core.generator import GeneratorTotals, SlowIo, SubmissionLateness, VerifyTotals
from iolab.core.histogram import Histogram, dense_counts
from iolab.core.run import DirectionTotals, EngineTotals
from iolab.core.samples import Ints
from iolab.core.workload import Direction, ServiceTimeDirection
from iolab.hosts.engine_lines import (
    LineError,
    count_or_zero,
    number_or_zero,
    parse_bins,
    parse_operation_interval,
    printable_sentences,
    require_count,
    require_operation_table,
    table_or_empty,
)
from iolab.hosts.intervals import DirectionInterval
from iolab.text import excerpt
from iolab.units import NS_PER_S

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.5, 99.9, 99.95, 99.99)
"""What is taken from the bins as the engine's own percentiles; it prints none."""

SHORT_IO_KIND: Final = "short"
"""What stands in place of an errno for an I/O that moved fewer bytes than asked."""

_CPU: Final = ("user_s", "system_s")


def parse_engine_totals(
    first_line: Mapping[str, Any],
    last_line: Mapping[str, Any],
    directions: Sequence[Direction],
    job_count: int,
) -> EngineTotals:
    """The totals; LineError when the line lacks what every run has."""
    measured_ns = require_count(last_line, "measured_ns")
    drain_ns = require_count(last_line, "drain_ns")
    wall_ns = measured_ns + drain_ns
    errors = _error_counts_by_direction_and_errno(
        {**table_or_empty(last_line, "errors"), "thread": table_or_empty(last_line, "broken")}
    )
    short = {
        way: count_or_zero(
            table_or_empty(table_or_empty(last_line, "errors"), way.key), SHORT_IO_KIND
        )
        for way in directions
    }
    ways = {
        way: _parse_direction_totals(
            require_operation_table(last_line, way.key), wall_ns, short[way]
        )
        for way in Direction
        if way in directions
    }
    cpu = table_or_empty(last_line, "cpu")
    # It was used until nothing more was submitted, so what was waited for at the end is no part.
    use = [
        number_or_zero(cpu, key) * NS_PER_S / measured_ns if measured_ns else 0.0 for key in _CPU
    ]
    return EngineTotals(
        read=ways.get(Direction.READ),
        write=ways.get(Direction.WRITE),
        trim=ways.get(Direction.TRIM),
        depth_percent=(),
        user_cpu_percent=100 * use[0] / job_count,
        system_cpu_percent=100 * use[1] / job_count,
        error=_most_frequent_errno(errors),
        jobs=job_count,
        generator=_parse_generator_totals(first_line, last_line, errors),
    )


def _parse_generator_totals(
    first_line: Mapping[str, Any], last_line: Mapping[str, Any], errors: tuple[tuple[str, int], ...]
) -> GeneratorTotals:
    switches = table_or_empty(last_line, "context_switches")
    probes = table_or_empty(table_or_empty(first_line, "probes"), "read")
    unsubmitted = table_or_empty(last_line, "unsubmitted")
    return GeneratorTotals(
        method=excerpt(str(first_line.get("method", "")), limits.SENTENCE_CHARACTERS_MAX),
        threads=count_or_zero(first_line, "threads"),
        clock=excerpt(str(first_line.get("clock", "")), limits.SENTENCE_CHARACTERS_MAX),
        notes=printable_sentences(first_line.get("notes"))[: limits.NOTES_MAX],
        errors=errors,
        retries=_retries_by_reason(table_or_empty(last_line, "retries")),
        lateness=_parse_lateness(table_or_empty(last_line, "lateness")),
        unreached=last_line.get("unreached") is True,
        measured_ns=require_count(last_line, "measured_ns"),
        drain_ns=require_count(last_line, "drain_ns"),
        drained_ios=count_or_zero(last_line, "drained_ios"),
        verify=_parse_verify_totals(table_or_empty(last_line, "verify")),
        voluntary_switches=count_or_zero(switches, "voluntary"),
        involuntary_switches=count_or_zero(switches, "involuntary"),
        steal_ticks=count_or_zero(last_line, "steal_ticks"),
        depth_asked=count_or_zero(table_or_empty(last_line, "depth"), "asked"),
        depth_used=count_or_zero(table_or_empty(last_line, "depth"), "used"),
        probe_reads=count_or_zero(probes, "ios"),
        probe_read_bytes=count_or_zero(probes, "bytes"),
        unsubmitted=count_or_zero(unsubmitted, "count"),
        oldest_unsubmitted_ns=count_or_zero(unsubmitted, "oldest_ns"),
        hung_ios=count_or_zero(last_line, "hung"),
        begun_first_ns=count_or_zero(table_or_empty(last_line, "begun_ns"), "first"),
        begun_last_ns=count_or_zero(table_or_empty(last_line, "begun_ns"), "last"),
        slow_ios=_parse_slow_ios(last_line.get("slow_ios")),
    )


def _parse_slow_ios(rows: object) -> tuple[SlowIo, ...]:
    """Its slowest I/Os; LineError where one lacks what each has."""
    if not isinstance(rows, list):
        return ()
    return tuple(
        SlowIo(
            at_ns=require_count(row, "at_ns"),
            latency_ns=require_count(row, "latency_ns"),
            service_ns=require_count(row, "service_ns"),
            operation=excerpt(str(row.get("do", "")), limits.SENTENCE_CHARACTERS_MAX),
            path=excerpt(str(row.get("path", "")), limits.SENTENCE_CHARACTERS_MAX),
            offset=require_count(row, "offset"),
            bytes=require_count(row, "bytes"),
        )
        for row in rows[: limits.SLOW_IOS_MAX]
        if isinstance(row, dict)
    )


def _parse_direction_totals(
    table: Mapping[str, Any], wall_ns: int, short_io_count: int
) -> DirectionTotals:
    ios, moved = require_count(table, "ios"), require_count(table, "bytes")
    lowest, highest = count_or_zero(table, "min_ns"), count_or_zero(table, "max_ns")
    histogram = Histogram(_dense_bin_counts_or_raise(table, ios), lowest, highest)
    values = ((rank, histogram.percentile_ns(rank)) for rank in PERCENTILES)
    mean = number_or_zero(table, "lat_sum_ns") / ios if ios else 0.0
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
        short_ios=short_io_count,
        dropped_ios=0,
    )


def _dense_bin_counts_or_raise(table: Mapping[str, Any], io_count: int) -> Ints:
    """Dense counts; LineError where they are not those of the I/Os."""
    bins, counts = parse_bins(table)
    if int(counts.sum()) != io_count:
        raise LineError(f"it counts {io_count} I/Os of the whole run and bins {counts.sum()}")
    return dense_counts(bins, counts)


def _error_counts_by_direction_and_errno(table: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """I/Os that failed, by direction and errno, most first; short ones are counted elsewhere."""
    counts = [
        (
            excerpt(f"{way} {name}", limits.SENTENCE_CHARACTERS_MAX),
            count_or_zero(table_or_empty(table, way), name),
        )
        for way in table
        for name in table_or_empty(table, way)
        if name != SHORT_IO_KIND
    ]
    counts = sorted(
        (error for error in counts if error[1]), key=lambda error: (-error[1], error[0])
    )
    return tuple(counts[: limits.RETRY_KINDS_MAX])


def _retries_by_reason(table: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    reasons = [
        (excerpt(reason, limits.SENTENCE_CHARACTERS_MAX), count_or_zero(table, reason))
        for reason in table
    ]
    return tuple(reasons[: limits.RETRY_KINDS_MAX])


def _most_frequent_errno(errors: tuple[tuple[str, int], ...]) -> int:
    """The number of the error that was met most often, 0 for none; EIO for one without a number."""
    if not errors:
        return 0
    name = errors[0][0].rpartition(" ")[2]
    numbers = {symbol: number for number, symbol in errno.errorcode.items()}
    return numbers.get(name, errno.EIO)


def _parse_lateness(table: Mapping[str, Any]) -> SubmissionLateness | None:
    if not count_or_zero(table, "count"):
        return None
    machine = table_or_empty(table, "machine")
    return SubmissionLateness(
        count=count_or_zero(table, "count"),
        p50_ns=count_or_zero(table, "p50_ns"),
        p99_ns=count_or_zero(table, "p99_ns"),
        max_ns=count_or_zero(table, "max_ns"),
        machine_p99_ns=count_or_zero(machine, "p99_ns")
        if count_or_zero(machine, "count")
        else None,
    )


def _parse_verify_totals(table: Mapping[str, Any]) -> VerifyTotals | None:
    if "checked" not in table:
        return None
    kinds = ("checked", "torn", "stale", "misplaced", "corrupt")
    checked, torn, stale, misplaced, corrupt = (count_or_zero(table, kind) for kind in kinds)
    first = printable_sentences(table.get("first"))[: limits.WRONG_BLOCKS_MAX]
    return VerifyTotals(checked, torn, stale, misplaced, corrupt, first)


def parse_io_and_service_time_intervals(
    direction: Direction, table: dict[str, Any]
) -> tuple[DirectionInterval, ...]:
    """What an interval's line tells of a direction, and under a rate its times from submission."""
    interval = parse_operation_interval(direction, table)
    service = table.get("service")
    if not isinstance(service, dict):
        return (interval,)
    return interval, _parse_service_time_interval(direction, interval, service)


def _parse_service_time_interval(
    direction: Direction, io_interval: DirectionInterval, table: dict[str, Any]
) -> DirectionInterval:
    """The same I/Os from their submission."""
    bins, counts = parse_bins(table)
    way = ServiceTimeDirection(direction + ServiceTimeDirection.READ)
    sum_ns = float(require_count(table, "lat_sum_ns"))
    return DirectionInterval(way, io_interval.ios, io_interval.bytes, sum_ns, bins, counts)
