"""The agent's engine of training-read load: what it is told of a host, and what it tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from iolab.core.run import EngineTotals
from iolab.core.workload import Direction
from iolab.hosts.agent_engine import (
    TIMED_INTERVAL_MS,
    compact_ascii_json,
    timed_agent_engine_command,
)
from iolab.hosts.engine import Command
from iolab.hosts.engine_lines import (
    EngineLineReader,
    parse_operation_interval,
    require_count,
    require_operation_table,
)
from iolab.hosts.engine_totals import parse_engine_totals, parse_io_and_service_time_intervals
from iolab.hosts.intervals import DirectionInterval
from iolab.loads.training.workload import (
    EpochTotals,
    TrainingHostDetails,
    TrainingJob,
    TrainingOperation,
)

FORMAT: Final = 1
ARGV: Final = ("iolab-agent", "training-read")

SIZES_SEED: Final = 1
"""Samples have the same sizes in all runs; their order is another in each."""


def training_command(
    job: TrainingJob, accelerator_count: int, directory: str, *, seconds: float, seed: int
) -> Command:
    """The process of one host."""
    spec: dict[str, Any] = {
        "format": FORMAT,
        "path": f"{job.data_set('').id}.0.",
        "files": job.files,
        "file_bytes": job.file_bytes,
        "samples": _sample_sizes_spec(job),
        "samples_per_group": job.samples_per_file,
        "accelerators": accelerator_count,
        "loaders": job.loaders,
        "prefetch": job.prefetch,
        "batch": job.batch,
        "compute_ns": job.compute_ns,
        "read_bytes": job.read_bytes,
        "barrier": job.barrier,
        "direct": job.direct,
        "runtime_s": seconds,
        "interval_ms": TIMED_INTERVAL_MS,
        "seed": seed,
    }
    text = compact_ascii_json(spec)
    return timed_agent_engine_command(ARGV, directory, text, seconds, recorded_spec=text)


def _sample_sizes_spec(job: TrainingJob) -> dict[str, Any]:
    if not job.sample_stdev:
        return {"fixed": {"bytes": job.sample_bytes, "per_file": job.samples_per_file}}
    sizes = {"mean": job.sample_bytes, "stdev": job.sample_stdev, "step": job.sample_step}
    return {"normal": {**sizes, "seed": SIZES_SEED}}


class TrainingLineReader(EngineLineReader):
    """Reads what the engine prints on one host; `details` when it has ended."""

    engine_title = "training-read"

    def __init__(self, accelerator_count: int) -> None:
        super().__init__()
        self._accelerators = accelerator_count
        self.details: TrainingHostDetails | None = None

    def parse_interval_line(self, document: dict[str, Any]) -> tuple[DirectionInterval, ...]:
        """Reads, and the operations that are made of them."""
        parts = list(
            parse_io_and_service_time_intervals(
                Direction.READ, require_operation_table(document, Direction.READ.key)
            )
        )
        parts += (
            parse_operation_interval(operation, require_operation_table(document, operation.key))
            for operation in TrainingOperation
        )
        return tuple(parts)

    def keep_load_details(self, first_line: dict[str, Any], last_line: dict[str, Any]) -> None:  # noqa: ARG002
        """What was counted of epochs."""
        self.details = self._parse_run_details(require_operation_table(last_line, "training"))

    def parse_totals(self, first_line: dict[str, Any], last_line: dict[str, Any]) -> EngineTotals:
        """See `EngineLineReader`."""
        return parse_engine_totals(first_line, last_line, (Direction.READ,), 1)

    def add_incomplete_run_faults(self, totals: EngineTotals, last_line: dict[str, Any]) -> None:
        """A run of nothing but failures, or without any step."""
        generator = totals.generator
        failed = generator.failed_ios if generator else 0
        if failed and not (totals.read and totals.read.ios):
            self.faults.add_fault(f"all {failed} I/Os failed")
        if not require_operation_table(last_line, "training").get("steps_most"):
            self.faults.add_fault(
                "no accelerator ended a step: a batch takes longer than the run, or there are "
                "fewer samples than one batch for each"
            )

    def _parse_run_details(self, counts: Mapping[str, Any]) -> TrainingHostDetails:
        return TrainingHostDetails(
            accelerators=self._accelerators,
            samples=require_count(counts, "samples"),
            steps_per_epoch=require_count(counts, "steps_per_epoch"),
            epochs=require_count(counts, "epochs"),
            steps_least=require_count(counts, "steps_least"),
            steps_most=require_count(counts, "steps_most"),
            first_epoch=_parse_epoch_totals(require_operation_table(counts, "first_epoch")),
            later_epochs=_parse_epoch_totals(require_operation_table(counts, "later_epochs")),
        )


def _parse_epoch_totals(counts: Mapping[str, Any]) -> EpochTotals:
    return EpochTotals(
        steps=require_count(counts, "steps"),
        step_ns=require_count(counts, "step_ns"),
        storage_wait_ns=require_count(counts, "storage_wait_ns"),
        first_step_ns=require_count(counts, "first_step_ns"),
        batches=require_count(counts, "batches"),
        load_ns=require_count(counts, "load_ns"),
        bytes=require_count(counts, "bytes"),
    )
