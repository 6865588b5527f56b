"""What the files of training runs say of samples a second and accelerator utilization."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any, Final

from iolab.importers.foreign_run import FileEvidence
from iolab.importers.submissions.result_folder import (
    Document,
    ResultFolder,
    number_at_keys,
    numbers_at_keys,
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
)
from iolab.text import counted_noun, percent_text
from iolab.units import GIB, MIB, format_bytes

AGREE: Final = 0.03
"""Two figures of one run within this agree: epochs are timed to a hundredth of a second, and end
with a barrier."""

DISAGREE: Final = 0.10
"""From a tenth on they contradict each other."""

MEMORY_FACTOR: Final = 5.0
"""The suite's rule: data of five times the memory of all clients."""

MEMORY_ROUNDING: Final = 0.02
"""Some count GB for GiB when they size their data."""

THRESHOLDS: Final = {"unet3d": 90.0, "resnet50": 90.0, "cosmoflow": 70.0, "retinanet": 85.0}
"""Accelerator utilization in per cent that a row of the workload needs, by the suite's rules."""

UTILIZATION_SLACK: Final = 0.5
"""Points by which the utilization of whole epochs may exceed the published one."""

LATER_EPOCHS_FASTER: Final = 1.10


def evidence_on_training_row(row: SubmittedRow) -> Iterator[FileEvidence]:
    """Of each run that counts, and of all of them together."""
    for folder in row.scored_folders:
        yield from _evidence_on_throughput_unit(row, folder)
        yield from _evidence_on_samples_per_epoch_time(row, folder)
        yield from _evidence_on_utilization(row, folder)
        counted = list(
            evidence_from_host_counters(row, folder, _nominal_read_bytes(folder), "read")
        )
        yield from counted
        do_counters_confirm_reads = any(each.kind is SUPPORTS for each in counted)
        yield from _evidence_on_data_and_memory_size(
            row, folder, do_counters_confirm_reads=do_counters_confirm_reads
        )
        yield from evidence_of_command_overrides(row, folder)
    yield from _evidence_of_slow_first_epoch(row)


def nominal_sample_bytes(folder: ResultFolder) -> float | None:
    """The nominal size of a sample."""
    return folder.numeric_parameter_at_paths("dataset.record_length_bytes", "dataset.record_length")


def samples_per_epoch(folder: ResultFolder) -> float | None:
    """Samples of the training set."""
    files = number_at_keys(folder.summary, "num_files_train")
    per_file = number_at_keys(folder.summary, "num_samples_per_file")
    return files * per_file if files and per_file else None


def _nominal_read_bytes(folder: ResultFolder) -> float | None:
    size, samples = nominal_sample_bytes(folder), samples_per_epoch(folder)
    epochs = number_at_keys(folder.summary, "epochs")
    return size * samples * epochs if size and samples and epochs else None


def _evidence_on_throughput_unit(row: SubmittedRow, folder: ResultFolder) -> Iterator[FileEvidence]:
    """Samples a second times bytes of a sample, in the unit of the key."""
    samples = number_at_keys(folder.summary, "metric", "train_throughput_mean_samples_per_second")
    rate = number_at_keys(folder.summary, "metric", "train_io_mean_MB_per_second")
    size = nominal_sample_bytes(folder)
    if not samples or not rate or not size:
        return
    place = ("summary.json", "metric.train_io_mean_MB_per_second")
    share = samples * size / (rate * MIB)
    if abs(share - 1) <= AGREE:
        return
    if abs(samples * size / (rate * 1e6) - 1) <= AGREE / 2:
        message = "MB of this file are 1,000,000 bytes, where the suite writes MiB."
        yield row.file_evidence("units", QUESTIONS, message, folder, place)
        return
    yield row.file_evidence(
        "units",
        CONTRADICTS if abs(share - 1) > DISAGREE else QUESTIONS,
        f"{samples:,.1f} samples/s of {format_bytes(size)} are {samples * size / MIB:,.0f} MiB/s; "
        f"{rate:,.0f} are published.",
        folder,
        place,
    )


def _evidence_on_samples_per_epoch_time(
    row: SubmittedRow, folder: ResultFolder
) -> Iterator[FileEvidence]:
    """Samples of an epoch over its time, beside the published samples a second."""
    samples = samples_per_epoch(folder)
    published = number_at_keys(folder.summary, "metric", "train_throughput_mean_samples_per_second")
    if not samples or not published or not folder.epoch_documents_by_rank:
        return
    rank = min(folder.epoch_documents_by_rank)
    seconds = [
        time
        for epoch in _epoch_documents(folder.epoch_documents_by_rank[rank])
        if (time := _only_training_block_s(epoch)) is not None
    ]
    if not seconds:
        return
    rate = fmean(samples / each for each in seconds)
    share = published / rate
    text = (
        f"{samples:,.0f} samples in {fmean(seconds):,.1f} s an epoch are {rate:,.1f} samples/s; "
        f"{published:,.1f} are published"
    )
    place = (folder.epoch_files_by_rank[rank], "block1.duration")
    if abs(share - 1) <= AGREE:
        yield row.file_evidence("epoch-times", SUPPORTS, f"{text}.", folder, place)
    elif share > 1 + DISAGREE:
        yield row.file_evidence("epoch-times", CONTRADICTS, f"{text}.", folder, place)
    else:
        yield row.file_evidence("epoch-times", QUESTIONS, f"{text}.", folder, place)


def _epoch_documents(document: Document) -> list[dict[str, Any]]:
    return [
        value
        for key, value in sorted(
            document.items(), key=lambda item: parse_finite_number(item[0]) or 0
        )
        if key.isdigit() and isinstance(value, dict)
    ]


def _only_training_block_s(epoch: dict[str, Any]) -> float | None:
    """The time of the epoch's training block; None where it has not just one, with a time."""
    blocks = [value for key, value in epoch.items() if key.startswith("block")]
    if len(blocks) != 1 or not isinstance(blocks[0], dict):
        return None
    first, last = parse_datetime(blocks[0].get("start")), parse_datetime(blocks[0].get("end"))
    if first is not None and last is not None and last > first:
        return (last - first).total_seconds()
    return parse_finite_number(blocks[0].get("duration")) or None


def _evidence_on_utilization(row: SubmittedRow, folder: ResultFolder) -> Iterator[FileEvidence]:
    """Accelerator utilization of whole epochs, beside the published one and its threshold."""
    published = number_at_keys(folder.summary, "metric", "train_au_mean_percentage")
    if published is None:
        return
    place = ("summary.json", "metric.train_au_mean_percentage")
    model = next((each for each in THRESHOLDS if each in row.name.casefold()), "")
    own_threshold = folder.numeric_parameter_at_paths("metric.au")
    needed = THRESHOLDS.get(model, 100 * own_threshold if own_threshold else None)
    if needed is not None and published < needed:
        yield row.file_evidence(
            "utilization",
            CONTRADICTS,
            f"Accelerator utilization is {published:.2f} %; a row of {model or 'it'} needs "
            f"{needed:g} %.",
            folder,
            place,
        )
    samples = number_at_keys(folder.summary, "metric", "train_throughput_mean_samples_per_second")
    compute_s = folder.numeric_parameter_at_paths("train.computation_time")
    batch = folder.numeric_parameter_at_paths("reader.batch_size")
    accelerators = number_at_keys(folder.summary, "num_accelerators")
    if not samples or not compute_s or not batch or not accelerators:
        return
    whole = 100 * samples * compute_s / (batch * accelerators)
    text = (
        f"{samples:,.1f} samples/s x {compute_s:g} s / ({batch:g} x {accelerators:g}) are "
        f"{whole:.2f} % of the accelerators' time; {published:.2f} % are published"
    )
    if whole > published + UTILIZATION_SLACK:
        yield row.file_evidence("utilization", CONTRADICTS, f"{text}.", folder, place)
    elif whole >= published * (1 - AGREE):
        yield row.file_evidence("utilization", SUPPORTS, f"{text}.", folder, place)
    else:
        message = f"{text}, which leave out the first step of each epoch."
        yield row.file_evidence("utilization", EXPLAINS, message, folder, place)


def _evidence_on_data_and_memory_size(
    row: SubmittedRow, folder: ResultFolder, *, do_counters_confirm_reads: bool
) -> Iterator[FileEvidence]:
    """The data beside the memory of all clients."""
    size, samples = nominal_sample_bytes(folder), samples_per_epoch(folder)
    memory = total_host_memory_bytes(folder)
    if not size or not samples or not memory:
        return
    factor = size * samples / memory
    text = (
        f"{format_bytes(size * samples)} of data are {factor:.2f} times the clients' memory of "
        f"{format_bytes(memory)}"
    )
    place = ("summary.json", "host_memory_GB")
    if factor >= MEMORY_FACTOR * (1 - MEMORY_ROUNDING):
        yield row.file_evidence("memory", EXPLAINS, f"{text}.", folder, place)
    elif do_counters_confirm_reads:
        yield row.file_evidence(
            "memory", EXPLAINS, f"{text}; counters saw the reads.", folder, place
        )
    else:
        message = f"{text}, of the {MEMORY_FACTOR:g} that the rules ask for."
        yield row.file_evidence("memory", QUESTIONS, message, folder, place)


def total_host_memory_bytes(folder: ResultFolder) -> float | None:
    """The memory of all hosts.

    Where the list of hosts has zeros, it is of ranks: some hosts' memory is in it several times,
    others' not at all, and that of the host that wrote the summary stands for each.
    """
    total = number_at_keys(folder.metadata, "system_info", "total_memory_bytes")
    if total:
        return total
    listed = numbers_at_keys(folder.summary, "host_memory_GB")
    hosts = number_at_keys(folder.summary, "num_hosts") or len(listed)
    if listed and min(listed) > 0:
        return fmean(listed) * hosts * GIB
    own = folder.summary.get("host_meminfo")
    words = str(own.get("MemTotal", "")).split() if isinstance(own, dict) else []
    own_kib = parse_finite_number(words[0]) if words else None
    return own_kib * 1024 * hosts if own_kib else None


def _evidence_of_slow_first_epoch(row: SubmittedRow) -> Iterator[FileEvidence]:
    """Epochs that are faster than the first in all runs: data stayed in a cache."""
    key = "train_throughput_samples_per_second"
    rates = [numbers_at_keys(each.summary, "metric", key) for each in row.scored_folders]
    rates = [each for each in rates if len(each) > 1 and each[0] > 0]
    if not rates:
        return
    first, later = fmean(each[0] for each in rates), fmean(fmean(each[1:]) for each in rates)
    if later > first * LATER_EPOCHS_FASTER:
        yield row.file_evidence(
            "first-epoch",
            QUESTIONS,
            f"Epochs after the first are {percent_text(later / first - 1)} faster: {first:,.1f}, "
            f"then {later:,.1f} samples/s, the mean of {counted_noun(len(rates), 'run')}.",
            row.scored_folders[0],
            ("summary.json", f"metric.{key}"),
        )
