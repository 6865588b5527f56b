"""Recorded training: one client, half a minute, two accelerators that hardly ever wait."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from iolab.core.generator import GeneratorTotals, SubmissionLateness
from iolab.core.run import RunRecord
from iolab.loads.training.workload import (
    TRAINING_ENGINE,
    EpochTotals,
    TrainingHostDetails,
    TrainingJob,
    TrainingOperation,
)
from tests.analysis.records import GENERATOR as SOUND
from tests.analysis.records import Burst, bursts_record, told_record

STEP_NS: Final = 100_000_000
STEPS: Final = 600
"""Of two accelerators in half a minute."""

PARTS_NS: Final = {"computing": 92, "storage": 5, "barrier": 2, "lateness": 1}
"""Of a hundred of each step's time."""

JOB: Final = TrainingJob(
    TRAINING_ENGINE,
    dataset="unet3d",
    accelerator="h100",
    accelerators=2,
    batch=7,
    compute_ns=STEP_NS * PARTS_NS["computing"] // 100,
    # Files of the size of records: 4 KiB.
    sample_bytes=4096,
    files=1400,
)

EPOCH: Final = EpochTotals(
    steps=200,
    step_ns=200 * STEP_NS,
    storage_wait_ns=10 * STEP_NS,
    first_step_ns=2 * STEP_NS,
    batches=200,
    load_ns=200 * STEP_NS,
    bytes=1400 * 4096,
)

RUN: Final = TrainingHostDetails(
    accelerators=2,
    samples=1400,
    steps_per_epoch=100,
    epochs=3,
    steps_least=300,
    steps_most=300,
    first_epoch=EPOCH,
    later_epochs=replace(EPOCH, steps=400, step_ns=400 * STEP_NS),
)

GENERATOR: Final = replace(
    SOUND,
    method="sync",
    threads=8,
    lateness=SubmissionLateness(STEPS, 60_000, 200_000, 900_000, None),
)


def trained(
    *,
    job: TrainingJob = JOB,
    generator: GeneratorTotals = GENERATOR,
    steps: int = STEPS,
    step: int = 100,
    parts: dict[str, int] | None = None,
    **changes: Any,
) -> RunRecord:
    """The record of a client whose steps have those parts, in hundredths of `STEP_NS` as `step`."""
    shares = {**PARTS_NS, **(parts or {})}

    def of_steps(operation: TrainingOperation, hundredths: int) -> Burst:
        return Burst(ios=steps // 30, lat_ns=STEP_NS * hundredths // 100, direction=operation)

    bursts = [
        Burst(ios=40_000, lat_ns=900_000),
        Burst(ios=140, lat_ns=900_000, direction=TrainingOperation.FILE_READ),
        Burst(ios=steps // 30, lat_ns=9_000_000, direction=TrainingOperation.BATCH_LOAD),
        of_steps(TrainingOperation.STEP, step),
        of_steps(TrainingOperation.STORAGE_WAIT, shares["storage"]),
        of_steps(TrainingOperation.BARRIER_WAIT, shares["barrier"]),
        of_steps(TrainingOperation.COMPUTE_LATENESS, shares["lateness"]),
    ]
    return told_record(bursts_record(bursts, job=job), replace(RUN, **changes), generator)
