"""One row of a published table: the runs that it is made of, and what it claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Final

from iolab.importers.foreign_run import EvidenceKind, FileEvidence
from iolab.importers.submissions.result_folder import ResultFolder, number_at_keys
from iolab.importers.submissions.yaml_scalars import yaml_scalar_key_paths_and_texts
from iolab.record import Record
from iolab.units import GIB, MIB, format_rate_bytes

WARM_UP_RUNS: Final = 6
"""So many runs of a training workload are a warm-up and the five that count."""

KEY_VALUE_OPTIONS_MAX: Final = 20
"""Options of the KV cache benchmark that are read; it has three."""


class Benchmark(StrEnum):
    """The benchmarks of the suite whose results are read."""

    TRAINING = "training"
    CHECKPOINTING = "checkpointing"
    KV_CACHE = "kv_cache"


class RowStatus(StrEnum):
    """What a row's own files make of its figure."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"


class PublishedRate(Record):
    """A rate that a row claims: bytes a second by operation, with the seconds it is of."""

    operation: str
    bytes_per_s: float
    seconds: float | None
    key: str
    printed: str
    option: int | None = None


class SubmittedRow(Record, dict=True):
    """The runs of one system with one workload; paths begin at the named folder.

    `tree` is the folder that holds the divisions, None where it is not known.
    """

    division: str
    organization: str
    system: str
    workload: str
    benchmark: Benchmark
    folders: Sequence[ResultFolder]
    tree: Path | None

    @property
    def name(self) -> str:
        """Whose it is, of what."""
        parts = (self.division, self.organization, self.system, self.workload)
        return " / ".join(part for part in parts if part)

    @cached_property
    def scored_folders(self) -> Sequence[ResultFolder]:
        """The runs that its figure is the mean of: the first of six is a warm-up."""
        if self.benchmark is Benchmark.TRAINING and len(self.folders) == WARM_UP_RUNS:
            return sorted(self.folders, key=lambda each: str(each.summary.get("start", "")))[1:]
        return self.folders

    @cached_property
    def published_rates(self) -> Sequence[PublishedRate]:
        """What it claims."""
        match self.benchmark:
            case Benchmark.TRAINING:
                return list(_training_rates(self.scored_folders))
            case Benchmark.CHECKPOINTING:
                return list(_checkpoint_rates(self.folders))
            case Benchmark.KV_CACHE:
                return list(_kv_cache_rates(self.folders[0]))

    @property
    def figure_text(self) -> str:
        """The figures as a person reads them."""
        texts = [each.printed for each in self.published_rates]
        return "; ".join(texts) or "no figure"

    @cached_property
    def system_file_and_values(self) -> tuple[str, Mapping[str, str]]:
        """The file that describes its system, by its path in the tree, and its values."""
        for base in self._organization_folders():
            path = base / "systems" / f"{self.system}.yaml"
            if path.is_file() and not path.is_symlink():
                try:
                    text = self.folders[0].reader.read(path).decode("utf-8", "replace")
                except OSError:
                    break
                return f"systems/{path.name}", dict(yaml_scalar_key_paths_and_texts(text))
        return "", {}

    def _organization_folders(self) -> Iterator[Path]:
        for parent in self.folders[0].path.parents:
            if parent.name == "results":
                yield parent.parent

    def file_evidence(
        self,
        rule: str,
        kind: EvidenceKind,
        message: str,
        folder: ResultFolder,
        file_and_key: tuple[str, str],
    ) -> FileEvidence:
        """What one of its files, and the key in it, say."""
        name, key = file_and_key
        return FileEvidence(rule, kind, message, folder.file_label(name), key)


def row_status(evidence: Sequence[FileEvidence]) -> RowStatus:
    """Contradicted by one file, supported where one agrees and none leaves it open."""
    kinds = {each.kind for each in evidence}
    if EvidenceKind.CONTRADICTS in kinds:
        return RowStatus.CONTRADICTED
    if EvidenceKind.QUESTIONS in kinds or EvidenceKind.SUPPORTS not in kinds:
        return RowStatus.UNSUPPORTED
    return RowStatus.SUPPORTED


def _training_rates(folders: Sequence[ResultFolder]) -> Iterator[PublishedRate]:
    key = "train_io_mean_MB_per_second"
    rates = [number_at_keys(each.summary, "metric", key) for each in folders]
    samples = [
        number_at_keys(each.summary, "metric", "train_throughput_mean_samples_per_second")
        for each in folders
    ]
    use = [number_at_keys(each.summary, "metric", "train_au_mean_percentage") for each in folders]
    if all(rate is not None for rate in rates) and rates:
        bytes_per_s = fmean(rate for rate in rates if rate is not None) * MIB
        text = format_rate_bytes(bytes_per_s)
        if all(each is not None for each in samples):
            text = f"{fmean(each for each in samples if each is not None):,.1f} samples/s, {text}"
        if all(each is not None for each in use):
            text += f", AU {fmean(each for each in use if each is not None):.1f} %"
        seconds = sum(
            (start_and_end_times[1] - start_and_end_times[0]).total_seconds()
            for each in folders
            if (start_and_end_times := each.start_and_end_times)
        )
        yield PublishedRate("read", bytes_per_s, seconds or None, key, text)


def _checkpoint_rates(folders: Sequence[ResultFolder]) -> Iterator[PublishedRate]:
    for way, operation in (("save", "write"), ("load", "read")):
        key = f"{way}_checkpoint_io_mean_GB_per_second"
        for folder in folders:
            rate = number_at_keys(folder.summary, "metric", key)
            if rate is None:
                continue
            seconds = number_at_keys(
                folder.summary, "metric", f"{way}_checkpoint_duration_mean_seconds"
            )
            text = f"{way} {format_rate_bytes(rate * GIB)}"
            text += f" in {seconds:.2f} s" if seconds is not None else ""
            yield PublishedRate(operation, rate * GIB, seconds, key, text)


def _kv_cache_rates(folder: ResultFolder) -> Iterator[PublishedRate]:
    options = folder.summary.get("options")
    for name in sorted(options if isinstance(options, dict) else {})[:KEY_VALUE_OPTIONS_MAX]:
        for operation in ("read", "write"):
            key = f"aggregated_{operation}_bandwidth_gbps"
            rate = number_at_keys(folder.summary, "options", name, key)
            if rate is not None and name.isdigit():
                text = f"option {name} {operation} {format_rate_bytes(rate * GIB)}"
                yield PublishedRate(
                    operation, rate * GIB, None, f"options.{name}.{key}", text, int(name)
                )
