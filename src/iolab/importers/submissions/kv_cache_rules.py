"""What the files of the KV cache benchmark say: its window, its ranks, its times of sync calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Final

from iolab.importers.foreign_run import FileEvidence
from iolab.importers.submissions.result_folder import (
    Document,
    OptionTrialAndRankNumbers,
    ResultFolder,
    number_at_keys,
)
from iolab.importers.submissions.row import SubmittedRow
from iolab.importers.submissions.shared_rules import (
    CONTRADICTS,
    EXPLAINS,
    QUESTIONS,
    SUPPORTS,
    evidence_of_differing_overrides,
)
from iolab.record import Record
from iolab.text import counted_noun
from iolab.units import GIB, format_rate_bytes

AGREE: Final = 0.02
"""Sums of ranks' rates are printed in full."""

WINDOW_SLACK: Final = 1.02

SYNC_MS: Final = 0.05
"""A write that reached storage within a sync call takes more than 50 us."""

LONG_WRITE_MS: Final = 1000.0

_COMMAND_PLACE: Final = re.compile(r"option_(\d{1,3})/trial_\d+")
_DURATION: Final = re.compile(r"--duration[ =](\d{1,7})")
_USERS: Final = re.compile(r"--num-users[ =](\d{1,7})")


class KvCacheRankResult(Record):
    """What one rank of one trial printed: rates in GiB/s, times in ms, its window in s."""

    read_gib_per_s: float
    write_gib_per_s: float
    window_s: float | None
    sync_p95_ms: float | None
    write_p50_ms: float | None


def evidence_on_kv_cache_row(row: SubmittedRow) -> Iterator[FileEvidence]:
    """Of each option."""
    folder = row.folders[0]
    results = {
        place: _parse_rank_result(folder.read_json_or_note_unreadable(name))
        for place, name in folder.rank_result_file_by_option_trial_rank.items()
    }
    options = folder.summary.get("options")
    for name in sorted(options if isinstance(options, dict) else {}):
        if name.isdigit():
            own = {place: each for place, each in results.items() if place[0] == int(name)}
            yield from _evidence_of_missing_ranks(row, folder, name, own)
            yield from _evidence_on_mean_of_rank_sums(row, folder, name, own)
            yield from _evidence_of_percentile_beyond_window(row, folder, name, own)
            yield from _evidence_of_instant_syncs(row, folder, name, own)
    yield from _evidence_of_command_overrides(row, folder)


def _parse_rank_result(document: Document) -> KvCacheRankResult:
    stats = ("summary", "cache_stats")
    read = number_at_keys(document, *stats, "tier_storage_read_bandwidth_gbps") or 0.0
    moved = number_at_keys(document, *stats, "tier_storage_kv_bytes_read_gb")
    return KvCacheRankResult(
        read,
        number_at_keys(document, *stats, "tier_storage_write_bandwidth_gbps") or 0.0,
        moved / read if moved and read else None,
        number_at_keys(document, *stats, "storage_write_device_p95_ms"),
        number_at_keys(document, *stats, "storage_write_host_p50_ms"),
    )


def _evidence_of_missing_ranks(
    row: SubmittedRow,
    folder: ResultFolder,
    option: str,
    result_by_option_trial_rank: Mapping[OptionTrialAndRankNumbers, KvCacheRankResult],
) -> Iterator[FileEvidence]:
    """Ranks that the option lacks, by its summary and by its files."""
    total = int(number_at_keys(folder.summary, "total_ranks") or 0)
    trials = int(number_at_keys(folder.summary, "trials_per_option") or 0)
    summary = folder.summary["options"][option]
    missing = summary.get("missing_files")
    count = len(missing) if isinstance(missing, list) else 0
    ranks = int(number_at_keys(folder.summary, "options", option, "rank_count") or 0)
    place = ("summary.json", f"options.{option}")
    if count or summary.get("partial_failure") is True or ranks < total:
        yield row.file_evidence(
            "missing-ranks",
            CONTRADICTS,
            f"Option {option}: results of {ranks} of {total} ranks; {counted_noun(count, 'file')} "
            "named as missing.",
            folder,
            (place[0], f"{place[1]}.missing_files"),
        )
    elif len(result_by_option_trial_rank) < total * trials:
        yield row.file_evidence(
            "missing-ranks",
            QUESTIONS,
            f"Option {option}: {len(result_by_option_trial_rank)} of {total * trials} ranks' files "
            "are in the tree.",
            folder,
            (place[0], f"{place[1]}.rank_count"),
        )


def _evidence_on_mean_of_rank_sums(
    row: SubmittedRow,
    folder: ResultFolder,
    option: str,
    result_by_option_trial_rank: Mapping[OptionTrialAndRankNumbers, KvCacheRankResult],
) -> Iterator[FileEvidence]:
    """The published rate beside the mean over trials of the ranks' sums."""
    trials = sorted({trial for _, trial, _ in result_by_option_trial_rank})
    total = int(number_at_keys(folder.summary, "total_ranks") or 0)
    if not trials or len(result_by_option_trial_rank) < total * len(trials):
        return
    for operation in ("read", "write"):
        key = f"aggregated_{operation}_bandwidth_gbps"
        published = number_at_keys(folder.summary, "options", option, key)
        summed = fmean(
            sum(
                each.read_gib_per_s if operation == "read" else each.write_gib_per_s
                for (_, own_trial, _), each in result_by_option_trial_rank.items()
                if own_trial == trial
            )
            for trial in trials
        )
        if not published or not summed:
            continue
        is_equal = abs(summed / published - 1) <= AGREE
        yield row.file_evidence(
            "rank-sums",
            SUPPORTS if is_equal else CONTRADICTS,
            f"Option {option}: the ranks' {operation}s give {format_rate_bytes(summed * GIB)}; "
            f"{format_rate_bytes(published * GIB)} are published.",
            folder,
            ("summary.json", f"options.{option}.{key}"),
        )


def _evidence_of_percentile_beyond_window(
    row: SubmittedRow,
    folder: ResultFolder,
    option: str,
    result_by_option_trial_rank: Mapping[OptionTrialAndRankNumbers, KvCacheRankResult],
) -> Iterator[FileEvidence]:
    """A percentile that is longer than the time by which the rate was divided."""
    published = number_at_keys(folder.summary, "options", option, "aggregated_p95_latency_ms")
    windows = [each.window_s for each in result_by_option_trial_rank.values() if each.window_s]
    asked = _number_by_option_in_commands(folder, _DURATION).get(option)
    window = fmean(windows) if windows else asked
    if published is None or not window:
        return
    key = f"options.{option}.aggregated_p95_latency_ms"
    text = f"Option {option}: p95 is {published / 1000:,.1f} s in a window of {window:,.0f} s"
    if published / 1000 > window * WINDOW_SLACK:
        message = f"{text}: requests that ended after it are counted, the divisor is the window."
        yield row.file_evidence(
            "percentile-window", CONTRADICTS, message, folder, ("summary.json", key)
        )


def _evidence_of_instant_syncs(
    row: SubmittedRow,
    folder: ResultFolder,
    option: str,
    result_by_option_trial_rank: Mapping[OptionTrialAndRankNumbers, KvCacheRankResult],
) -> Iterator[FileEvidence]:
    """Sync calls that end at once where a write takes seconds."""
    for place, result in result_by_option_trial_rank.items():
        sync, write = result.sync_p95_ms, result.write_p50_ms
        if sync is not None and write is not None and sync < SYNC_MS and write >= LONG_WRITE_MS:
            yield row.file_evidence(
                "sync-time",
                QUESTIONS,
                f"Option {option}: p95 of sync calls is {1000 * sync:,.1f} us where a write takes "
                f"{write / 1000:,.2f} s: the calls did not wait for storage.",
                folder,
                (
                    folder.rank_result_file_by_option_trial_rank[place],
                    "summary.cache_stats.storage_write_device_p95_ms",
                ),
            )
            return


def _evidence_of_command_overrides(
    row: SubmittedRow, folder: ResultFolder
) -> Iterator[FileEvidence]:
    """Users and seconds of the commands, beside those that are stored."""
    differing = []
    for name, pattern in (("num_users", _USERS), ("duration", _DURATION)):
        stored = number_at_keys(folder.metadata, "parameters", name)
        used = sorted(set(_number_by_option_in_commands(folder, pattern).values()))
        if stored is not None and used and used != [stored]:
            values = ", ".join(f"{value:g}" for value in used)
            differing.append(f"{name} = {values} (stored: {stored:g})")
    yield from evidence_of_differing_overrides(row, folder, differing)
    yield from _evidence_of_unknown_window(row, folder)


def _evidence_of_unknown_window(row: SubmittedRow, folder: ResultFolder) -> Iterator[FileEvidence]:
    """Nothing of the window is known where neither a rank's file nor a command tells it."""
    if not folder.rank_result_file_by_option_trial_rank and not folder.commands:
        message = "Neither ranks' files nor commands are in the tree: the window is not known."
        yield row.file_evidence(
            "percentile-window", EXPLAINS, message, folder, ("summary.json", "")
        )


def _number_by_option_in_commands(
    folder: ResultFolder, pattern: re.Pattern[str]
) -> Mapping[str, float]:
    """What the commands of each option set."""
    found: dict[str, float] = {}
    for command in folder.commands:
        place, value = _COMMAND_PLACE.search(command), pattern.search(command)
        if place and value:
            found[place[1]] = float(value[1])
    return found
