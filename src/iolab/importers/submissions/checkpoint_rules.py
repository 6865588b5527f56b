"""What the files of checkpoints say of their rates: the slowest rank, the mean, caches, gaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from statistics import fmean, median
from typing import Any, Final

from iolab.importers.foreign_run import FileEvidence
from iolab.importers.submissions.result_folder import (
    Document,
    ResultFolder,
    number_at_keys,
    parse_datetime,
    parse_finite_number,
)
from iolab.importers.submissions.row import SubmittedRow
from iolab.importers.submissions.shared_rules import (
    CONTRADICTS,
    EXPLAINS,
    QUESTIONS,
    SUPPORTS,
    evidence_from_host_counters,
    evidence_of_command_overrides,
    first_file_name_and_count_text,
)
from iolab.importers.submissions.training_rules import total_host_memory_bytes
from iolab.record import Record
from iolab.text import counted_noun
from iolab.units import GIB, format_bytes, format_rate_bytes

SLOWER: Final = 1.05
"""From a twentieth on the slowest rank is told apart from the published time."""

PAUSE_S: Final = 5.0
"""Between two checkpoints, by the suite's configuration; a barrier precedes it."""

MEMORY_FACTOR: Final = 3.0
"""By the suite's rules, checkpoints of less than so many times the memory need cleared caches."""

GAP_S: Final = 30.0
"""The rules allow so long between the command that saves and the one that loads."""

FAST_LOAD: Final = 1.5
"""A load so many times as fast as the median did not read the same way."""

FAST_LOADS_SHOWN: Final = 3

WAYS: Final = {"save": "write", "load": "read"}


class RankCheckpointTime(Record):
    """One checkpoint as one rank timed it."""

    start: datetime
    seconds: float


def evidence_on_checkpoint_row(row: SubmittedRow) -> Iterator[FileEvidence]:
    """Of each command's folder."""
    for folder in row.folders:
        for way in WAYS:
            if number_at_keys(folder.summary, "metric", f"{way}_checkpoint_io_mean_GB_per_second"):
                yield from _evidence_on_save_or_load(row, folder, way)
        yield from evidence_of_command_overrides(row, folder)
    yield from _evidence_of_save_to_load_gap(row)


def _evidence_on_save_or_load(
    row: SubmittedRow, folder: ResultFolder, save_or_load: str
) -> Iterator[FileEvidence]:
    times = {
        rank: checkpoint_times_of_rank(document, save_or_load)
        for rank, document in folder.epoch_documents_by_rank.items()
    }
    times = {rank: each for rank, each in times.items() if each}
    yield from _evidence_on_slowest_rank_time(row, folder, save_or_load, times)
    yield from _evidence_on_mean_of_rates(row, folder, save_or_load)
    size = number_at_keys(folder.summary, "metric", "checkpoint_size_GB")
    count = len(next(iter(times.values()), ()))
    claimed = size * GIB * count if size and count else None
    # One pair of snapshots holds what both ways moved.
    other = "load" if save_or_load == "save" else "save"
    if (
        number_at_keys(folder.summary, "metric", f"{other}_checkpoint_io_mean_GB_per_second")
        is None
    ):
        counted = list(evidence_from_host_counters(row, folder, claimed, WAYS[save_or_load]))
    else:
        counted = [
            each
            for each in evidence_from_host_counters(row, folder, claimed, WAYS[save_or_load])
            if each.kind is not EXPLAINS or "RDMA" in each.message
        ]
    yield from counted
    if save_or_load == "load":
        yield from _evidence_of_fast_loads(row, folder, times)
        yield from _evidence_of_loads_from_memory(
            row, folder, do_counters_confirm_reads=any(each.kind is SUPPORTS for each in counted)
        )


def checkpoint_times_of_rank(
    document: Document, save_or_load: str
) -> Mapping[str, RankCheckpointTime]:
    """The times of one rank by the name of the checkpoint."""
    found: dict[str, RankCheckpointTime] = {}
    for epoch in document.values():
        for name, entry in epoch.items() if isinstance(epoch, dict) else ():
            if name.startswith(f"{save_or_load}_ckpt") and isinstance(entry, dict):
                time = _checkpoint_time(entry)
                if time is not None:
                    found[name] = time
    return found


def _checkpoint_time(entry: dict[str, Any]) -> RankCheckpointTime | None:
    start, seconds = parse_datetime(entry.get("start")), parse_finite_number(entry.get("duration"))
    return None if start is None or not seconds else RankCheckpointTime(start, seconds)


def _evidence_on_slowest_rank_time(
    row: SubmittedRow,
    folder: ResultFolder,
    save_or_load: str,
    times_by_rank: Mapping[int, Mapping[str, RankCheckpointTime]],
) -> Iterator[FileEvidence]:
    """The slowest rank's time: of all ranks' files, else what the starts leave room for."""
    key = f"{save_or_load}_checkpoint_duration_mean_seconds"
    published = number_at_keys(folder.summary, "metric", key)
    ranks = int(number_at_keys(folder.summary, "num_accelerators") or 0)
    size = number_at_keys(folder.summary, "metric", "checkpoint_size_GB")
    if not published or not times_by_rank:
        message = f"The times of no rank's {save_or_load}s are in the tree."
        yield row.file_evidence("slowest-rank", QUESTIONS, message, folder, ("summary.json", key))
        return
    names = set.intersection(*(set(each) for each in times_by_rank.values()))
    if not names:
        return
    slowest = fmean(max(each[name].seconds for each in times_by_rank.values()) for name in names)
    files = [folder.epoch_files_by_rank[rank] for rank in times_by_rank]
    place = (first_file_name_and_count_text(folder, files)[0], f"{save_or_load}_ckpt*.duration")
    if slowest > published * SLOWER and len(times_by_rank) > 1:
        yield row.file_evidence(
            "slowest-rank",
            CONTRADICTS,
            f"{save_or_load}: the slowest of {len(times_by_rank)} ranks took {slowest:.1f} s, "
            f"{published:.1f} s are published{_rate_suffix(size, slowest)}.",
            folder,
            place,
        )
    elif len(times_by_rank) >= ranks:
        rank_text = f"{len(times_by_rank)} ranks"
        message = f"{save_or_load}: the slowest of {rank_text} took {slowest:.1f} s, as published."
        yield row.file_evidence("slowest-rank", SUPPORTS, message, folder, place)
    else:
        yield from _evidence_on_time_between_starts(
            row, folder, save_or_load, times_by_rank[min(times_by_rank)]
        )


def _rate_suffix(size_gib: float | None, seconds: float) -> str:
    return f": {format_rate_bytes(size_gib * GIB / seconds)}" if size_gib and seconds else ""


def _evidence_on_time_between_starts(
    row: SubmittedRow,
    folder: ResultFolder,
    save_or_load: str,
    time_by_checkpoint: Mapping[str, RankCheckpointTime],
) -> Iterator[FileEvidence]:
    """Between two starts all ranks ended, and paused: a bound of the slowest rank's time."""
    pause_s = folder.numeric_parameter_at_paths("checkpoint.time_between_checkpoints")
    pause_s = PAUSE_S if pause_s is None else pause_s
    ordered = sorted(time_by_checkpoint.values(), key=lambda time: time.start)
    pairs = [
        (first.seconds, (second.start - first.start).total_seconds() - pause_s)
        for first, second in pairwise(ordered)
    ]
    if not pairs:
        return
    own, bound = fmean(pair[0] for pair in pairs), fmean(pair[1] for pair in pairs)
    size = number_at_keys(folder.summary, "metric", "checkpoint_size_GB")
    ranks = int(number_at_keys(folder.summary, "num_accelerators") or 0)
    place = (
        folder.epoch_files_by_rank[min(folder.epoch_documents_by_rank)],
        f"{save_or_load}_ckpt*.start",
    )
    text = f"{save_or_load}: the times are those of one rank of {ranks}, {own:.1f} s"
    if bound < own - 1:
        message = f"{text}; the next began after less than that: clocks or pauses differ."
        yield row.file_evidence("slowest-rank", QUESTIONS, message, folder, place)
    elif bound <= own * SLOWER:
        message = f"{text}; by the starts the slowest rank took no more than {bound:.1f} s."
        yield row.file_evidence("slowest-rank", SUPPORTS, message, folder, place)
    else:
        message = (
            f"{text}; the starts leave the slowest rank up to {bound:.1f} s"
            f"{_rate_suffix(size, bound)}."
        )
        yield row.file_evidence("slowest-rank", QUESTIONS, message, folder, place)


def _evidence_on_mean_of_rates(
    row: SubmittedRow, folder: ResultFolder, save_or_load: str
) -> Iterator[FileEvidence]:
    """Bytes over time, beside the published mean of rates."""
    key = f"{save_or_load}_checkpoint_io_mean_GB_per_second"
    rate = number_at_keys(folder.summary, "metric", key)
    seconds = number_at_keys(
        folder.summary, "metric", f"{save_or_load}_checkpoint_duration_mean_seconds"
    )
    size = number_at_keys(folder.summary, "metric", "checkpoint_size_GB")
    if not rate or not seconds or not size:
        return
    over_time = size / seconds
    text = (
        f"{save_or_load}: {format_bytes(size * GIB)} in {seconds:.2f} s are "
        f"{format_rate_bytes(over_time * GIB)}; {format_rate_bytes(rate * GIB)} are published"
    )
    place = ("summary.json", f"metric.{key}")
    if rate < over_time * (1 - (SLOWER - 1)):
        # A mean of rates is never below bytes over time.
        yield row.file_evidence("mean-of-rates", CONTRADICTS, f"{text}.", folder, place)
    elif rate > over_time * SLOWER:
        message = f"{text}, a mean of unequal rates."
        yield row.file_evidence("mean-of-rates", QUESTIONS, message, folder, place)
    else:
        yield row.file_evidence("mean-of-rates", EXPLAINS, f"{text}.", folder, place)


def _evidence_of_fast_loads(
    row: SubmittedRow,
    folder: ResultFolder,
    times_by_rank: Mapping[int, Mapping[str, RankCheckpointTime]],
) -> Iterator[FileEvidence]:
    """Loads that are much faster than the others: some of what was saved last was in memory."""
    if not times_by_rank:
        return
    rank = min(times_by_rank)
    usual = median(time.seconds for time in times_by_rank[rank].values())
    fast = {
        name.removeprefix("load_ckpt"): usual / time.seconds
        for name, time in times_by_rank[rank].items()
        if usual > FAST_LOAD * time.seconds
    }
    if fast:
        numbers = sorted(fast, key=lambda name: parse_finite_number(name) or 0)
        yield row.file_evidence(
            "uneven-loads",
            QUESTIONS,
            f"Of {len(times_by_rank[rank])} loads, {counted_noun(len(fast), 'load')} "
            f"({', '.join(numbers[:FAST_LOADS_SHOWN])}) took up to {max(fast.values()):.1f} times "
            f"less than the median of {usual:.1f} s.",
            folder,
            (folder.epoch_files_by_rank[rank], "load_ckpt*.duration"),
        )


def _evidence_of_loads_from_memory(
    row: SubmittedRow, folder: ResultFolder, *, do_counters_confirm_reads: bool
) -> Iterator[FileEvidence]:
    """Loads of what the same command saved, where it fits into memory."""
    size = number_at_keys(folder.summary, "metric", "checkpoint_size_GB")
    memory = total_host_memory_bytes(folder)
    if not size or not memory:
        return
    factor = size * GIB / memory
    is_one_command = number_at_keys(
        folder.summary, "metric", "save_checkpoint_io_mean_GB_per_second"
    )
    text = (
        f"A checkpoint of {format_bytes(size * GIB)} is {factor:.2f} times the clients' memory of "
        f"{format_bytes(memory)}"
    )
    place = ("summary.json", "host_memory_GB")
    if factor >= MEMORY_FACTOR or do_counters_confirm_reads or not is_one_command:
        yield row.file_evidence("memory", EXPLAINS, f"{text}.", folder, place)
    else:
        message = f"{text}, and one command saved and loaded it: loads may come from memory."
        yield row.file_evidence("memory", QUESTIONS, message, folder, place)


def _evidence_of_save_to_load_gap(row: SubmittedRow) -> Iterator[FileEvidence]:
    """The time between the command that saves and the one that loads."""
    spans = {
        way: (folder, folder.start_and_end_times)
        for folder in row.folders
        for way in WAYS
        if number_at_keys(folder.summary, "metric", f"{way}_checkpoint_io_mean_GB_per_second")
        is not None
    }
    if len(spans) < len(WAYS) or spans["save"][0] is spans["load"][0]:
        return
    (_, saved), (folder, loaded) = spans["save"], spans["load"]
    if saved is None or loaded is None:
        return
    began, place = loaded[0], ("summary.json", "start")
    command = folder.command_start_time
    if command is not None and saved[1] <= command <= began:
        # The summary begins when all ranks have started, which takes up to a minute.
        began = command
    gap_s = (began - saved[1]).total_seconds()
    if gap_s < 0:
        message = f"The loads began {-gap_s:.1f} s before the saves ended: two clocks differ."
        yield row.file_evidence("gaps", EXPLAINS, message, folder, place)
    elif gap_s > GAP_S:
        message = f"The loads began {gap_s:.0f} s after the saves, {GAP_S:g} s are allowed."
        yield row.file_evidence("gaps", QUESTIONS, message, folder, place)
