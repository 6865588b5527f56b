"""Checks by samples of the block layer: block size, access pattern, and whether latencies fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    per_host,
    valid_answer,
    worst_answer,
)
from iolab.analysis.checks.bytes import (
    BACKGROUND_BYTES_PER_S,
    EXCESS_SHARE,
    DeviceByteCounts,
    counted_device_deltas,
    device_byte_counts,
    host_runs_on_device,
)
from iolab.analysis.storage_bytes import nearest_device_names
from iolab.analysis.sums import engine_totals_by_direction
from iolab.analysis.view import RunView
from iolab.core.bins import BIN_COUNT
from iolab.core.block_trace import BlockTrace, DirectionTrace
from iolab.core.histogram import LOWER_NS, UPPER_NS, Histogram
from iolab.core.metric import VerdictLevel
from iolab.core.run import DeviceDelta, HostRun
from iolab.core.samples import Ints
from iolab.core.workload import Direction
from iolab.loads.fileio.workload import (
    WHOLE_PERCENT,
    AccessPattern,
    Job,
    bssplit_block_bytes_and_percents,
)
from iolab.text import percent_text
from iolab.units import format_bytes, format_count, format_ns, parse_size

SIGMAS: Final = 6.0
"""How far chance may move a count, a mean or a share: once in 500 million."""

ENOUGH_BIOS: Final = 200
"""Sampled I/Os from which a share is known to a few per cent."""

CENSORED_MAX: Final = 0.25
"""Share of the sampled I/Os whose end may be missing. Beyond it the ends of others on the same
place may have been taken for theirs, and windows without any end are not counted."""

FLUSHING_OPTIONS: Final = ("fsync", "fdatasync", "sync", "write_barrier")
"""Options by which a file system writes of its own for each I/O, in the engine's name."""

RELOCATING_FILE_SYSTEMS: Final = frozenset({"btrfs", "f2fs", "bcachefs", "zfs", "nilfs2"})
"""File systems that write in other places than they are asked to, and may buffer direct I/O."""

SURELY_WHOLE_BYTES: Final = 64 << 10
"""Blocks up to this no device splits for the number of their pages; larger ones many do, whatever
they say of the largest I/O (a loop device takes 128 pages at once)."""

FEWER_GOOD: Final = 0.98
"""Share of the claimed I/Os that the device must have done: as of bytes, none of an honest direct
run is missing once merges are added."""

FEWER_BAD: Final = 0.90
"""Below this share more than one I/O in ten is not an I/O of the device."""

MORE_GOOD: Final = 2.0
"""Device I/Os for each claimed one that fragments, stripes and a file system's own may explain."""

MORE_BAD: Final = 4.0
"""From four I/Os for each claimed one on, of blocks that the device takes whole, the claimed ones
are none of the device's."""

SMALL_SHARE: Final = 0.10
"""Share of sampled requests that edges of extents may make smaller than the block."""

SMALL_BAD: Final = 0.50
"""From half of them on the blocks are smaller."""

OTHERS_IOS_PER_S: Final = 100.0
"""What an idle system does by itself (logs, journals): excess below is not told."""

_LAYERED: Final = ("dm-", "md")
"""Devices that split I/Os by limits of their own (stripes, thin blocks)."""

_WORDS: Final = {Direction.READ: "read", Direction.WRITE: "written", Direction.TRIM: "trimmed"}

SEQUENTIAL_GOOD: Final = 0.10
"""Share of sequential I/O beyond chance that a random load may have."""

SEQUENTIAL_BAD: Final = 0.50
"""From half of it on it is another load."""

RUN_GOOD: Final = 0.80
"""Share of its expected sequential I/O that a sequential load must have."""

RUN_BAD: Final = 0.50
"""With less than half of it the load is random."""

STREAMS_KNOWN: Final = 0.50
"""Windows too short for the job's streams to show at least this share of sequence tell nothing."""

COVERED_GOOD: Final = 0.95
"""Share of the data set that the places must look drawn from; checked only beyond chance."""

COVERED_BAD: Final = 0.50
"""From half of the data set on it is another data set."""

MAPPED_CHANCE: Final = 4.0
"""How much likelier than by draws alone an I/O follows another under fio's map of visited blocks: a
draw that meets a visited block takes the next free one, which lies behind others (measured: 3)."""

_MIXED_RUN: Final = 0.5
"""Of mixed sequential access an engine may have one position for both directions: the one before
went the same way at least half of the time."""

RANKS: Final = (50.0, 90.0, 99.0, 99.9)
"""Percentiles of the engine that are held against the device, and its maximum."""

SLOWER_GOOD: Final = 0.2
"""Share by which more of the device's I/Os may be slower than of the engine's, beyond chance: a
sample of windows is no sample of I/Os where the rate changes within one."""

SLOWER_GOOD_MAX: Final = 0.05
"""The same where many are slower: a twentieth of all."""

SLOWER_BAD: Final = 0.5

SLOWER_BAD_MAX: Final = 0.10
"""From half as many again, or a tenth of all, on it is no matter of sampling."""

ENOUGH_WINDOWS: Final = 5
"""Fewer windows do not tell how far chance moves a share."""

FEW: Final = 5
"""Slower bios that may be other than the engine's I/O: pages of its program that are read in."""

CHANCE_OF_ERROR: Final = 0.05
"""Of the sampled I/Os without a recorded end so many may have been given that of a later one on the
same place, and look slow."""

MEAN_GOOD: Final = 1.10

MEAN_BAD: Final = 1.25
"""How much longer the device's mean may be than the engine's, where there is no sample: its counts
have a few I/Os of the file system."""

SUM_SHARE: Final = 0.01
"""How far the engine's sum of latencies may be from what its bins allow: means are rounded."""

RANK_SHARE: Final = 0.05
"""How far a percentile may be from that of the bins: a bin is 1.6 % wide."""


def _without_partial_device_sample(view: RunView, host: HostRun) -> HostRun:
    """The host without the sample of one device where its target lies over several of them."""
    facts = view.facts_of_host(host)
    if host.trace is None or facts is None or facts.target is None:
        return host
    if len(nearest_device_names(facts.target.devices, facts)) < 2:
        return host
    return replace(
        host, trace=BlockTrace(host.trace.device, "the target lies over several devices")
    )


def missing_sample_answer(host: HostRun, subject: str, host_suffix: str) -> CheckAnswer:
    """Why the `subject` that the block layer would tell is not known on a host."""
    reason = host.trace.reason if host.trace else "no sample was taken"
    return not_applicable_answer(
        f"{subject}{host_suffix} is not known: {reason or 'nothing was seen'}.", host=host.host
    )


def direction_ios_noun(direction: Direction) -> str:
    """I/Os of a direction, for a sentence."""
    return {Direction.READ: "reads", Direction.WRITE: "writes"}.get(direction, "trims")


def has_flushing_options(job: Job) -> bool:
    """Whether the job makes the file system write of its own."""
    return any(
        value not in ("0", "none") for name, value in job.options if name in FLUSHING_OPTIONS
    )


def does_file_system_relocate_writes(view: RunView, host: HostRun) -> bool:
    """Whether the file system decides where writes go."""
    target = view.target_of_host(host)
    return target is not None and target.fs_type in RELOCATING_FILE_SYSTEMS


def has_too_many_unfinished_ios(trace: DirectionTrace) -> bool:
    """Whether too many sampled I/Os have no recorded end for times and windows to be trusted."""
    return trace.censored > CENSORED_MAX * (trace.censored + trace.timed)


def block_bytes_and_io_shares(job: Job, direction: Direction) -> tuple[tuple[int, float], ...]:
    """The block sizes that I/Os of one direction have, each with its share, which sum to 1."""
    split = dict(job.options).get("bssplit")
    if job.trace:
        return ((job.trace_least_bytes, 0.5), (job.block_bytes, 0.5))
    if split is None:
        return ((job.block_bytes, 1.0),)
    reads, _, others = split.partition(",")
    used = [
        (size, share)
        for size, share in bssplit_block_bytes_and_percents(
            _option_value_for_direction(reads, others, direction)
        )
        if share
    ]
    sizes = {size: 0.0 for size, _ in used}
    for size, share in used:
        sizes[size] += share / WHOLE_PERCENT
    # What is left of a hundred percent goes to the last size.
    sizes[used[-1][0]] += 1 - sum(sizes.values())
    return tuple(sizes.items())


def _option_value_for_direction(
    reads_value: str, writes_and_trims_value: str, direction: Direction
) -> str:
    return (
        reads_value
        if direction is Direction.READ or not writes_and_trims_value
        else writes_and_trims_value
    )


@check("block-size", "Block size")
def check_block_size(view: RunView) -> CheckAnswer:
    """Whether the I/Os were as large as the job says: by claims, and by the device's own count."""
    return worst_answer(
        [
            *_claimed_bytes_per_io_answers(view),
            *_device_io_count_answers(view),
            *_sampled_request_size_answers(view),
        ]
    )


def _claimed_bytes_per_io_answers(view: RunView) -> Iterator[CheckAnswer]:
    """Claimed bytes against claimed I/Os, by host and direction."""
    for index, host in enumerate(view.hosts):
        job = Job.require_type(view.record.run.point.job_on_host(host.host))
        for way in job.access.directions:
            ios, moved = view.claimed_run_ios(index, way), view.claimed_run_bytes(index, way)
            if ios:
                totals = engine_totals_by_direction(host)[way]
                short = totals.short_ios if totals else 0
                if totals is None or totals.ios != ios:
                    # Reports of an engine that did not end well are taken while it counts.
                    short += job.iodepth_per_client + abs(totals.ios - ios if totals else 0)
                yield _claimed_bytes_per_io_answer(
                    job, way, ios, moved, short, host.host, view.on_host_if_several(host)
                )


def _claimed_bytes_per_io_answer(
    job: Job,
    direction: Direction,
    io_count: int,
    moved_bytes: int,
    short_io_count: int,
    host_names: str,
    host_suffix: str,
) -> CheckAnswer:
    sizes = block_bytes_and_io_shares(job, direction)
    low, high = _mean_io_size_bounds(job, sizes, io_count)
    slack = short_io_count * max(size for size, _ in sizes)
    evidence: EvidenceValues = {
        "host": host_names,
        "direction": direction.key,
        "claimed_run_ios": io_count,
        "claimed_bytes": moved_bytes,
        "bytes_per_io": moved_bytes / io_count,
        "least_bytes_per_io": low,
        "most_bytes_per_io": high,
    }
    asked = (
        f"{format_bytes(sizes[0][0])}"
        if len(sizes) == 1
        else f"{format_bytes(min(s for s, _ in sizes))} to {format_bytes(max(s for s, _ in sizes))}"
    )
    message = (
        f"The engine claims {format_bytes(moved_bytes)} {_WORDS[direction]} in "
        f"{format_count(io_count)} "
        f"I/Os{host_suffix}, {moved_bytes / io_count:,.0f} B each"
    )
    if low * io_count - slack <= moved_bytes <= high * io_count:
        return valid_answer(f"{message}.", **evidence)
    return invalid_answer(f"{message}, where the job's I/Os are of {asked}.", **evidence)


def _mean_io_size_bounds(
    job: Job, block_sizes_and_shares: tuple[tuple[int, float], ...], io_count: int
) -> tuple[float, float]:
    """Between which the bytes of an I/O lie in the mean: exactly known where there is one size.

    Mixed sizes are drawn, so their mean varies by chance, and by the I/Os under way at the end.
    Near the end of a file a block that does not fit is drawn anew; fio's map of visited blocks cuts
    blocks to what is left between visited ones, so that only the least is known then.
    """
    block_sizes = [size for size, _ in block_sizes_and_shares]
    if len(block_sizes) == 1:
        return float(block_sizes[0]), float(block_sizes[0])
    if job.trace:
        # Which of its I/Os fell into the measured time is not known.
        return float(min(block_sizes)), float(max(block_sizes))
    mean = sum(size * share for size, share in block_sizes_and_shares)
    deviation = math.sqrt(
        max(sum(size * size * share for size, share in block_sizes_and_shares) - mean**2, 0.0)
    )
    chance = SIGMAS * deviation / math.sqrt(io_count)
    edges = max(block_sizes) * (
        job.iodepth_per_client / io_count + max(block_sizes) / job.file_bytes
    )
    low = max(mean - chance - edges, min(block_sizes))
    if job.access.is_random and dict(job.options).get("norandommap") != "1":
        low = min(block_sizes)
    return float(low), float(min(mean + chance + edges, max(block_sizes)))


def _device_io_count_answers(view: RunView) -> Iterator[CheckAnswer]:
    """The device's own count of I/Os against the claimed one; of direct I/O on a known device."""
    if not view.job.direct:
        return
    for group in device_byte_counts(view) or ():
        members = [i for i, host in enumerate(view.hosts) if host.host in group.host_names]
        for way in (Direction.READ, Direction.WRITE):
            claimed = sum(view.claimed_run_ios(index, way) for index in members)
            claimed += view.neighbour_run_ios_and_bytes(group.neighbour_indexes, way)[0]
            if claimed:
                yield from _device_io_count_answers_of_group(view, group, members, way, claimed)


def _device_io_count_answers_of_group(
    view: RunView,
    byte_counts: DeviceByteCounts,
    host_indexes: list[int],
    direction: Direction,
    claimed_io_count: int,
) -> Iterator[CheckAnswer]:
    done, merged = _io_and_merge_counts_of_widest_host(
        view, host_indexes, byte_counts.device_names, direction
    )
    if not done:
        return  # The bytes say so already.
    of_bytes = (byte_counts.claimed_bytes(direction), byte_counts.moved_bytes(direction))
    evidence: EvidenceValues = {
        "device": byte_counts.device,
        "direction": direction.key,
        "claimed_run_ios": claimed_io_count,
        "device_ios": done,
        "device_merges": merged,
    }
    message = (
        f"{byte_counts.device} did {format_count(done + (merged or 0))} I/Os {_WORDS[direction]} "
        "for the "
        f"{format_count(claimed_io_count)} claimed"
    )
    if merged is not None:
        # What the device did not move is said of bytes.
        arrived = min(of_bytes[1] / max(of_bytes[0], 1), 1.0) * claimed_io_count
        if done + merged < FEWER_GOOD * arrived:
            placed = any(
                does_file_system_relocate_writes(view, view.hosts[index]) for index in host_indexes
            )
            if placed:
                yield indicative_answer(
                    f"{message}: its file system may have buffered them.", **evidence
                )
            else:
                verdict = (
                    invalid_answer if done + merged < FEWER_BAD * arrived else indicative_answer
                )
                yield verdict(f"{message}: the engine counts I/Os that were none.", **evidence)
    yield from _excess_io_answers(
        view, byte_counts, host_indexes, direction, message, evidence, done + (merged or 0)
    )
    yield valid_answer(f"{message}.", **evidence)


def _excess_io_answers(
    view: RunView,
    byte_counts: DeviceByteCounts,
    host_indexes: list[int],
    direction: Direction,
    message: str,
    evidence: EvidenceValues,
    device_io_count: int,
) -> Iterator[CheckAnswer]:
    """More I/Os than the claimed blocks need, where the device takes such blocks whole."""
    claimed, jobs = (
        int(evidence["claimed_run_ios"] or 0),
        _jobs_of_run_and_neighbours_on_device(view, byte_counts),
    )
    moved, reported = (
        byte_counts.moved_bytes(direction) - byte_counts.bytes_moved_by_probes(direction),
        byte_counts.claimed_bytes(direction),
    )
    limit = _largest_unsplit_io_bytes(view, byte_counts)
    largest = max(
        size
        for job in jobs
        if direction in job.access.directions
        for size, _ in block_bytes_and_io_shares(job, direction)
    )
    # Others' bytes, and those of a file system, bring I/Os with them; that is said of bytes.
    foreign = max(EXCESS_SHARE * reported, BACKGROUND_BYTES_PER_S * byte_counts.seconds)
    if any(map(has_flushing_options, jobs)) or limit is None or moved - reported > foreign:
        return
    totals = [
        host.totals
        for host in host_runs_on_device(view, host_indexes, byte_counts.neighbour_indexes)
    ]
    probes = sum(t.generator.probe_reads for t in totals if t and t.generator)
    if largest > min(limit, SURELY_WHOLE_BYTES):
        return
    own = (
        device_io_count
        - (probes if direction is Direction.READ else 0)
        - OTHERS_IOS_PER_S * byte_counts.seconds
    )
    if own > MORE_GOOD * claimed:
        layered = any(name.startswith(_LAYERED) for name in byte_counts.device_names)
        verdict = invalid_answer if own > MORE_BAD * claimed and not layered else indicative_answer
        yield verdict(
            f"{message}: they were smaller than {format_bytes(largest)}.",
            **{**evidence, "max_io_bytes": limit},
        )


def _jobs_of_run_and_neighbours_on_device(
    view: RunView, byte_counts: DeviceByteCounts
) -> list[Job]:
    """The jobs of the run and of its neighbours on a device."""
    neighbours = [view.record.neighbours[place] for place in byte_counts.neighbour_indexes]
    return [
        Job.require_type(view.job),
        *(Job.require_type(run.point.job_on_host(run.host.host)) for run in neighbours),
    ]


def _sampled_request_size_answers(view: RunView) -> Iterator[CheckAnswer]:
    """Sizes of sampled requests, of blocks that the kernel has no cause to split."""
    for counted_host in view.hosts:
        host = _without_partial_device_sample(view, counted_host)
        job = Job.require_type(view.record.run.point.job_on_host(host.host))
        for way in job.access.directions:
            trace = host.trace.direction_trace(way) if host.trace and job.direct else None
            least = min(size for size, _ in block_bytes_and_io_shares(job, way))
            if trace is None or trace.bios < ENOUGH_BIOS or least > SURELY_WHOLE_BYTES:
                continue
            if way is Direction.WRITE and has_flushing_options(job):
                continue
            small = sum(bios for size, bios in trace.sizes if 0 < size < least)
            share = small / trace.bios
            evidence: EvidenceValues = {
                "host": host.host,
                "direction": way.key,
                "sampled": trace.bios,
                "smaller": small,
                "smaller_share": share,
            }
            message = (
                f"{percent_text(share)} of {format_count(trace.bios)} sampled I/Os "
                f"{_WORDS[way]}{view.on_host_if_several(host)} were smaller than "
                f"{format_bytes(least)}"
            )
            if share > SMALL_SHARE:
                verdict = invalid_answer if share >= SMALL_BAD else indicative_answer
                yield verdict(f"{message}: the load is not what its label says.", **evidence)


def _largest_unsplit_io_bytes(view: RunView, byte_counts: DeviceByteCounts) -> int | None:
    """The largest I/O that all devices of the group take whole; None where that is not known."""
    names = byte_counts.device_names
    facts = next(
        (view.facts_of_host(host) for host in view.hosts if host.host in byte_counts.host_names),
        None,
    )
    limits = [disk.max_io_bytes for disk in (facts.disks if facts else ()) if disk.name in names]
    stated = [limit for limit in limits if limit is not None]
    return min(stated) if stated and len(stated) == len(names) else None


def _io_and_merge_counts_of_widest_host(
    view: RunView, host_indexes: list[int], device_names: Sequence[str], direction: Direction
) -> tuple[int, int | None]:
    """I/Os and merges of those devices; each host took its looks itself, so the widest saw all."""
    counts = [
        _sum_ios_and_merges(
            [delta for delta in view.hosts[index].devices if delta.device in device_names],
            direction,
        )
        for index in host_indexes
    ]
    return max(counts, key=lambda pair: pair[0] + (pair[1] or 0))


def _sum_ios_and_merges(deltas: list[DeviceDelta], direction: Direction) -> tuple[int, int | None]:
    moved = [delta.direction_delta(direction) for delta in deltas]
    merges = [part.merges for part in moved if part.merges is not None]
    return sum(part.ios for part in moved), sum(merges) if len(merges) == len(moved) else None


@check("access-pattern", "Access pattern")
@per_host()
def check_access_pattern(view: RunView, host_index: int) -> Iterator[CheckAnswer]:
    """Whether random I/O covered the data set and was not in sequence, or sequential was."""
    if not view.job.direct:
        yield not_applicable_answer(
            "The page cache decides what reaches the device, and in what order."
        )
        return
    host = _without_partial_device_sample(view, view.hosts[host_index])
    job, where = (
        Job.require_type(view.record.run.point.job_on_host(host.host)),
        view.on_host_if_several(host),
    )
    if host.trace is None or host.trace.reason:
        yield missing_sample_answer(host, "Which places were accessed", where)
        return
    if does_file_system_relocate_writes(view, host):
        yield not_applicable_answer(
            f"The file system{where} decides itself where writes go.", host=host.host
        )
        return
    # What a flush writes, a file system writes in the engine's name.
    ways = [
        way
        for way in job.access.directions
        if way is Direction.READ or not has_flushing_options(job)
    ]
    if Direction.WRITE in job.access.directions and not ways:
        yield not_applicable_answer(
            f"Flushed writes{where} are the file system's as well as the engine's.", host=host.host
        )
        return
    if job.access.has_trims:
        yield not_applicable_answer("Trims are not sampled.")
        return
    if job.trace:
        yield not_applicable_answer("A trace has the pattern that was recorded.")
        return
    sampled = {way: trace for way in ways if (trace := host.trace.direction_trace(way))}
    traces: Mapping[Direction, DirectionTrace] = {
        way: trace for way, trace in sampled.items() if trace.bios >= ENOUGH_BIOS
    }
    if not traces:
        most = max((trace.bios for trace in sampled.values()), default=0)
        yield not_applicable_answer(
            f"Only {format_count(most)} I/Os{where} were sampled, which tell no pattern.",
            host=host.host,
        )
    elif not job.access.is_random:
        yield _sequential_answer(job, traces, host.host, where)
    else:
        for way, trace in traces.items():
            yield from _random_access_answers(job, way, trace, host.host, where)


def _sequential_answer(
    job: Job, traces: Mapping[Direction, DirectionTrace], host_name: str, host_suffix: str
) -> CheckAnswer:
    """A sequential job: each stream's I/Os follow each other, but for its first of a window."""
    bios = sum(trace.bios for trace in traces.values())
    share = sum(trace.sequential for trace in traces.values()) / bios
    streams = job.numjobs * job.files_per_job
    starts = sum(trace.windows for trace in traces.values()) * streams
    # Each pass over a file begins at its start again.
    revisited = job.block_bytes / max(job.file_bytes, 1)
    expected = 1 - starts / bios - revisited
    evidence: EvidenceValues = {
        "host": host_name,
        "bios": bios,
        "sequential_share": share,
        "streams": streams,
    }
    if any(has_too_many_unfinished_ios(trace) for trace in traces.values()):
        return not_applicable_answer(
            f"The ends of too many sampled I/Os{host_suffix} were not recorded to tell streams "
            "apart.",
            **evidence,
        )
    if expected < STREAMS_KNOWN:
        return not_applicable_answer(
            f"{format_count(streams)} sequential streams{host_suffix} are too many to be told "
            "apart in "
            f"{format_count(bios)} sampled I/Os.",
            **evidence,
        )
    if job.access is AccessPattern.RW:
        expected *= _MIXED_RUN
    evidence = {**evidence, "expected_share": expected}
    message = (
        f"{percent_text(share)} of {format_count(bios)} sampled I/Os{host_suffix} followed another"
    )
    if share < RUN_GOOD * expected:
        verdict = invalid_answer if share < RUN_BAD * expected else indicative_answer
        return verdict(
            f"{message}, where sequential I/O has at least {percent_text(expected)}: the load "
            "is not "
            "sequential.",
            **evidence,
        )
    return valid_answer(f"{message}.", **evidence)


def _random_access_answers(
    job: Job, direction: Direction, trace: DirectionTrace, host_name: str, host_suffix: str
) -> Iterator[CheckAnswer]:
    options = dict(job.options)
    kind, _, values = options.get("random_distribution", "random").partition(":")
    share = options.get("percentage_random", str(WHOLE_PERCENT))
    if share != str(WHOLE_PERCENT):
        yield not_applicable_answer(
            f"Only {share} % of the I/Os go to random places, as asked.", host=host_name
        )
        return
    if kind not in ("random", "zoned"):
        yield not_applicable_answer(
            f"Places of {kind} draws are as unequal as they were asked to be.", host=host_name
        )
        return
    sizes = block_bytes_and_io_shares(job, direction)
    grain = parse_size(options.get("blockalign", str(min(size for size, _ in sizes))))
    blocks = job.numjobs * job.files_per_job * (job.file_bytes // grain)
    zones = _zone_io_and_size_shares(values) if kind == "zoned" else ((1.0, 1.0),)
    order = options.get("file_service_type", "")
    if job.files_per_job > 1 and (order.startswith("sequential") or ":" in order):
        yield not_applicable_answer(
            "Files are served one after the other, as was asked.", host=host_name
        )
    else:
        yield _random_coverage_answer(
            direction, trace, grain, blocks, zones, (host_name, host_suffix)
        )
    yield _not_sequential_answer(direction, trace, sizes, blocks, zones, (host_name, host_suffix))


def _zone_io_and_size_shares(zones_text: str) -> tuple[tuple[float, float], ...]:
    """Shares of I/O and of the data of each of fio's zones."""
    pairs = (zone.split("/") for zone in zones_text.split(":"))
    return tuple((int(ios) / WHOLE_PERCENT, int(size) / WHOLE_PERCENT) for ios, size in pairs)


def _not_sequential_answer(
    direction: Direction,
    trace: DirectionTrace,
    block_sizes_and_shares: tuple[tuple[int, float], ...],
    block_count: int,
    io_and_size_shares_of_zones: tuple[tuple[float, float], ...],
    host_and_suffix: tuple[str, str],
) -> CheckAnswer:
    """By chance an I/O begins where another has ended; parts of one I/O always do."""
    host, where = host_and_suffix
    share = trace.sequential / trace.bios
    likelier = max((ios / size for ios, size in io_and_size_shares_of_zones if size), default=1.0)
    chance = min(trace.ends / trace.bios / max(block_count, 1) * likelier * MAPPED_CHANCE, 1.0)
    mean = sum(size * part for size, part in block_sizes_and_shares)
    sized = sum(bios for size, bios in trace.sizes if size)
    piece = sum(size * bios for size, bios in trace.sizes) / max(sized, 1)
    # Small blocks are not split, whatever was seen: their size is another check's.
    split = max(size for size, _ in block_sizes_and_shares) > SURELY_WHOLE_BYTES
    parts = max(1 - piece / mean, 0.0) if split else 0.0
    expected = min(chance + parts, 1.0)
    allowed = expected + SIGMAS * math.sqrt(max(expected, 1 / trace.bios) / trace.bios)
    evidence: EvidenceValues = {
        "host": host,
        "direction": direction.key,
        "bios": trace.bios,
        "sequential_share": share,
        "expected_share": expected,
    }
    message = (
        f"{percent_text(share)} of {format_count(trace.bios)} sampled "
        f"{direction_ios_noun(direction)}{where} "
        "followed "
        "another"
    )
    if share > allowed + SEQUENTIAL_GOOD:
        verdict = invalid_answer if share > allowed + SEQUENTIAL_BAD else indicative_answer
        return verdict(
            f"{message}, where {percent_text(expected)} do by chance: the load is not random.",
            **evidence,
        )
    return valid_answer(f"{message}, as at random.", **evidence)


def _random_coverage_answer(
    direction: Direction,
    trace: DirectionTrace,
    grain_bytes: int,
    block_count: int,
    zone_shares: tuple[tuple[float, float], ...],
    host_and_suffix: tuple[str, str],
) -> CheckAnswer:
    """So many draws meet so many places; a map of visited blocks and split I/Os only more."""
    host, where = host_and_suffix
    drawn, distinct = len(trace.sectors), len(set(trace.sectors))
    mean, deviation = _distinct_blocks_mean_and_deviation(drawn, block_count, zone_shares)
    evidence: EvidenceValues = {
        "host": host,
        "direction": direction.key,
        "places": drawn,
        "distinct_places": distinct,
        "expected_places": mean,
        "data_bytes": block_count * grain_bytes,
    }
    message = (
        f"{format_count(drawn)} sampled {direction_ios_noun(direction)}{where} began at "
        f"{format_count(distinct)} "
        "places"
    )
    if distinct < mean - SIGMAS * max(deviation, 1.0):
        covered = _estimated_drawn_block_count(drawn, distinct, block_count, zone_shares)
        evidence = {**evidence, "covered_bytes": covered * grain_bytes}
        if covered < COVERED_GOOD * block_count:
            verdict = invalid_answer if covered < COVERED_BAD * block_count else indicative_answer
            return verdict(
                f"{message}, as of {format_bytes(covered * grain_bytes)}, where the data set has "
                f"{format_bytes(block_count * grain_bytes)}: the load did not go over all of it.",
                **evidence,
            )
    return valid_answer(f"{message}, as many as of the whole data set.", **evidence)


def _distinct_blocks_mean_and_deviation(
    draw_count: int, block_count: float, zone_shares: tuple[tuple[float, float], ...]
) -> tuple[float, float]:
    """How many places so many draws meet, and by how much that varies (occupancy problem)."""
    mean = variance = 0.0
    for ios, size in zone_shares:
        cells, load = block_count * size, draw_count * ios
        if cells < 1:
            continue
        empty = math.exp(-load / cells)
        mean += cells * (1 - empty)
        variance += cells * empty * (1 - (1 + load / cells) * empty)
    return mean, math.sqrt(max(variance, 0.0))


def _estimated_drawn_block_count(
    draw_count: int,
    distinct_count: int,
    block_count: int,
    zone_shares: tuple[tuple[float, float], ...],
) -> int:
    """Of how many blocks so many draws would meet so many places, at most all."""
    low, high = 1.0, float(block_count)
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if _distinct_blocks_mean_and_deviation(draw_count, middle, zone_shares)[0]
            < distinct_count
            else (low, middle)
        )
    return round(high)


@check("latency-contradicted", "Latency below the device's")
def check_latency_contradicted(view: RunView) -> CheckAnswer:
    """Whether no I/O was faster than the device, and the engine's sums fit its histogram."""
    answers = [
        answer
        for index in range(len(view.hosts))
        for answer in _latency_answers_of_host(view, index)
    ]
    return worst_answer(answers or [not_applicable_answer("No latency was measured.")])


def _latency_answers_of_host(view: RunView, host_index: int) -> Iterator[CheckAnswer]:
    """A host's latencies against its device, then against themselves.

    Where nothing is known of the device, the second answer has the reason as well.
    """
    bins = view.run_bin_counts(host_index)
    by_device = tuple(_device_latency_answers(view, host_index, bins)) if bins.any() else ()
    yield from by_device
    for answer in _histogram_consistency_answers(view, host_index, bins):
        if answer.level is VerdictLevel.VALID and all(other.level is None for other in by_device):
            reasons = " ".join(other.message for other in by_device[:1])
            yield replace(answer, message=f"{answer.message} {reasons}".rstrip())
        else:
            yield answer


def is_latency_contradicted_by_device(view: RunView, host_index: int, bins: Ints) -> bool:
    """Whether a host's latencies are told shorter than its device took, of its bins."""
    answers = _device_latency_answers(view, host_index, bins)
    return any(
        answer.level in (VerdictLevel.INDICATIVE, VerdictLevel.INVALID) for answer in answers
    )


def _histogram_consistency_answers(
    view: RunView, host_index: int, bins: Ints
) -> Iterator[CheckAnswer]:
    """Sums, extremes and percentiles against the bins, which all tell the same I/Os."""
    host, table = view.hosts[host_index], view.record.intervals
    for way in Direction:
        counts = bins[way]
        total = int(counts.sum())
        totals = engine_totals_by_direction(host)[way]
        if not total:
            continue
        claimed_ns = float(table.lat_sum_ns[view.interval_rows(host_index, way)].sum())
        least, most = float(counts @ LOWER_NS), float(counts @ UPPER_NS)
        evidence: EvidenceValues = {
            "host": host.host,
            "direction": way.key,
            "lat_ns_mean": claimed_ns / total,
            "least_ns_mean": least / total,
            "most_ns_mean": most / total,
        }
        subject = f"of its {direction_ios_noun(way)}{view.on_host_if_several(host)}"
        # The last bin takes all that is longer.
        if claimed_ns < (1 - SUM_SHARE) * least or (
            claimed_ns > (1 + SUM_SHARE) * most and not counts[BIN_COUNT - 1]
        ):
            yield invalid_answer(
                f"The engine's mean latency {subject} is {format_ns(claimed_ns / total)}, its "
                f"histogram allows {format_ns(least / total)} to {format_ns(most / total)}.",
                **evidence,
            )
        if totals is None or host.stopped_early:
            yield valid_answer(
                f"The engine's mean latency {subject} fits its histogram.", **evidence
            )
            continue
        top = int(np.flatnonzero(counts)[-1])
        highest = totals.lat_max_ns
        if top < BIN_COUNT - 1 and not (
            (1 - RANK_SHARE) * LOWER_NS[top] <= highest <= (1 + RANK_SHARE) * UPPER_NS[top]
        ):
            yield invalid_answer(
                f"The engine's longest latency {subject} is {format_ns(highest)}, of its histogram "
                f"{format_ns(int(UPPER_NS[top]))}.",
                **{**evidence, "lat_ns_max": highest, "histogram_ns_max": int(UPPER_NS[top])},
            )
        ranks = [rank for rank, _ in totals.percentiles]
        percentiles = Histogram(counts).percentiles_ns(ranks)
        for (rank, value), binned in zip(totals.percentiles, percentiles, strict=True):
            ours = binned or 0.0
            if abs(value - ours) > RANK_SHARE * max(ours, 1.0) + 1:
                yield invalid_answer(
                    f"The engine's {rank:g}th percentile {subject} is {format_ns(value)}, of its "
                    f"histogram {format_ns(ours)}.",
                    **{**evidence, "percent": rank, "lat_ns": value, "histogram_ns": ours},
                )
                break
        yield valid_answer(
            f"The engine's mean, longest latency and percentiles {subject} fit its histogram.",
            **evidence,
        )


def _device_latency_answers(view: RunView, host_index: int, bins: Ints) -> Iterator[CheckAnswer]:
    """Of each direction the sampled distribution, else the mean of the device's own counts."""
    host = _without_partial_device_sample(view, view.hosts[host_index])
    job, where = (
        Job.require_type(view.record.run.point.job_on_host(host.host)),
        view.on_host_if_several(host),
    )
    if not job.direct:
        yield not_applicable_answer("The page cache stands between the engine and the device.")
        return
    for way in job.access.directions:
        if way is Direction.TRIM:
            continue
        if way is Direction.WRITE and has_flushing_options(job):
            yield not_applicable_answer(
                f"Flushed writes{where} are the file system's as well as the engine's.",
                host=host.host,
            )
            continue
        # From submission, where that is told beside the time from when an I/O was due.
        service = bins[len(Direction) + way]
        counts = service if service.any() else bins[way]
        trace = host.trace.direction_trace(way) if host.trace else None
        if not counts.sum():
            continue
        if trace is None or has_too_many_unfinished_ios(trace):
            yield _mean_latency_answer(view, host_index, way, counts)
        elif trace.timed < ENOUGH_BIOS or trace.windows < ENOUGH_WINDOWS:
            yield not_applicable_answer(
                f"Only {format_count(trace.timed)} {direction_ios_noun(way)}{where} were "
                "timed in the block "
                "layer.",
                host=host.host,
            )
        else:
            yield _latency_distribution_answer(host, way, counts, trace, where)
    if not job.access.has_reads and not job.access.has_writes:
        yield not_applicable_answer("Trims are not sampled.")


def _latency_distribution_answer(
    host: HostRun, direction: Direction, counts: Ints, trace: DirectionTrace, host_suffix: str
) -> CheckAnswer:
    """At each rank, how many of the device's I/Os were slower than that many of the engine's."""
    total = int(counts.sum())
    above = total - np.cumsum(counts)
    answers = []
    for rank in (*RANKS, 100.0):
        at = int(np.argmax(above <= (1 - rank / 100) * total))
        # The next bin too: clocks differ, and a bin's edge is no wall.
        slower = _share_of_bios_above_bin(trace, at + 1, _finite_population_factor(trace, total))
        answers.append(
            _slower_device_answer(
                host,
                direction,
                trace,
                slower,
                _EnginePercentile(rank, at, above[at] / total),
                host_suffix,
            )
        )
    return worst_answer(answers, max_key="excess")


def _slower_device_answer(
    host: HostRun,
    direction: Direction,
    trace: DirectionTrace,
    slower_bios: _SlowerBios,
    engine_percentile: _EnginePercentile,
    host_suffix: str,
) -> CheckAnswer:
    bios, share, error, windows = slower_bios
    percentile, at, engine = engine_percentile
    bound = int(UPPER_NS[at])
    evidence: EvidenceValues = {
        "host": host.host,
        "direction": direction.key,
        "percent": percentile,
        "lat_ns": bound,
        "engine_share": engine,
        "device_share": share,
        "device_share_error": error,
        "slower_bios": bios,
        "bios": trace.timed,
        "censored": trace.censored,
        "excess": share - engine,
    }
    how_many = "no" if engine == 0 else f"only {percent_text(engine)} of its"
    message = (
        f"The engine says that {how_many} {direction_ios_noun(direction)}{host_suffix} took longer "
        "than "
        f"{format_ns(bound)}; "
        f"the device took longer for {format_count(bios)} of {format_count(trace.timed)} sampled"
    )
    probes = host.totals.generator.probe_reads if host.totals and host.totals.generator else 0
    others = FEW + CHANCE_OF_ERROR * trace.censored + (probes if direction is Direction.READ else 0)
    if bios < others:
        return _valid_latency_answer(direction, trace, host_suffix, evidence)
    if engine == 0:
        # No chance makes an I/O faster than its own parts; but one window may be another's.
        return (
            invalid_answer(f"{message}.", **evidence)
            if windows >= 2
            else indicative_answer(f"{message}.", **evidence)
        )
    by_chance = engine + SIGMAS * error
    good, bad = (
        min(SLOWER_GOOD * engine, SLOWER_GOOD_MAX),
        min(SLOWER_BAD * engine, SLOWER_BAD_MAX),
    )
    if share > by_chance + good:
        verdict = invalid_answer if share > by_chance + bad else indicative_answer
        return verdict(f"{message} ({percent_text(share)} of all).", **evidence)
    return _valid_latency_answer(direction, trace, host_suffix, evidence)


def _valid_latency_answer(
    direction: Direction, trace: DirectionTrace, host_suffix: str, evidence: EvidenceValues
) -> CheckAnswer:
    return valid_answer(
        f"{format_count(trace.timed)} sampled {direction_ios_noun(direction)}{host_suffix} took "
        "the "
        "block layer no "
        "longer than the engine says, beyond what chance allows.",
        **evidence,
    )


def _finite_population_factor(trace: DirectionTrace, io_count: int) -> float:
    """How far chance can move a share of the sampled, who are a part of those whose share it is.

    Where all were sampled not at all (the correction for a finite population).
    """
    sampled = min(trace.timed / io_count, trace.timed / trace.weight if trace.weight else 1.0, 1.0)
    return math.sqrt(1 - sampled)


class _EnginePercentile(NamedTuple):
    """The bin in which a percentile of the engine's latencies lies, and the share above that."""

    percent: float
    bin_index: int
    share_above: float


class _SlowerBios(NamedTuple):
    """Sampled bios above a bin: how many, their share of all, and of how many windows they are."""

    bio_count: int
    share: float
    share_error: float
    effective_windows: float


def _share_of_bios_above_bin(
    trace: DirectionTrace, bin_index: int, error_factor: float
) -> _SlowerBios:
    """The bios above that bin, with the standard error of their share.

    Windows are the clusters of the sample; of those that hold slow bios, equal ones count as one
    each, and one with nearly all as little more than one.
    """
    bios = sum(row.bios for row in trace.latencies if row.bin > bin_index)
    weight = sum(row.weight for row in trace.latencies if row.bin > bin_index)
    below = [row for row in trace.latencies if row.bin <= bin_index]
    squares, products = (
        (below[-1].tail_squares, below[-1].tail_products)
        if below
        else (trace.weight_squares, trace.weight_squares)
    )
    if not trace.weight:
        return _SlowerBios(0, 0.0, 0.0, 0.0)
    share = weight / trace.weight
    variance = squares - 2 * share * products + share * share * trace.weight_squares
    error = error_factor * math.sqrt(max(variance, 0.0)) / trace.weight
    return _SlowerBios(bios, share, error, weight * weight / squares if squares else 0.0)


def _mean_latency_answer(
    view: RunView, host_index: int, direction: Direction, counts: Ints
) -> CheckAnswer:
    """Without a sample: the mean of the device's counts, where they are those of this load."""
    host = _without_partial_device_sample(view, view.hosts[host_index])
    where = view.on_host_if_several(host)
    trace = host.trace.direction_trace(direction) if host.trace else None
    unknown = (
        missing_sample_answer(host, "How long the device took for each I/O", where)
        if trace is None
        else not_applicable_answer(
            f"{percent_text(trace.censored / max(trace.censored + trace.timed, 1))} of the sampled "
            f"{direction_ios_noun(direction)}{where} have no recorded end, too many to tell "
            "times.",
            host=host.host,
        )
    )
    deltas = counted_device_deltas(view.facts_of_host(host), host.devices)
    if not deltas or len(view.hosts) > 1:
        return unknown
    moved = [delta.direction_delta(direction) for delta in deltas]
    ios, total = sum(part.ios for part in moved), int(counts.sum())
    time_ns = sum(part.time_ns or 0 for part in moved)
    # With merges a request is of several I/Os, and more than claimed are not all the engine's.
    if not ios or any(part.merges or (part.ios and not part.time_ns) for part in moved):
        return unknown
    if abs(ios - total) > SUM_SHARE * total:
        return unknown
    engine, device = float(counts @ UPPER_NS) / total, time_ns / ios
    evidence: EvidenceValues = {
        "host": host.host,
        "direction": direction.key,
        "engine_ns_mean": engine,
        "device_ns_mean": device,
        "excess": device / engine - 1,
    }
    message = (
        f"The mean of the engine's {direction_ios_noun(direction)}{where} is "
        f"{format_ns(engine)}, "
        "that of the "
        f"device's {format_ns(device)}"
    )
    if device > MEAN_GOOD * engine:
        verdict = invalid_answer if device > MEAN_BAD * engine else indicative_answer
        return verdict(f"{message}: no I/O is done before its device is.", **evidence)
    return valid_answer(f"{message}.", **evidence)
