"""The published data sets that training reads, with batches and computation of accelerators."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from iolab.record import Record

CUSTOM: Final = "custom"
"""What a study calls a data set of its own."""

PUBLISHED_STEPS: Final = 500
"""Steps of an epoch that the published rules want at least."""

MEMORY_FACTOR: Final = 5
"""How many times the memory of its hosts they want a set to be."""


class TrainingStep(Record):
    """What an accelerator takes and computes in a step."""

    batch: int
    compute_ns: int


class SampleSet(Record):
    """One data set; `steps` are those of accelerators, the first is the usual one.

    Samples have `sample_bytes` on average, all of them where `sample_stdev` is 0; they are
    multiples of `sample_step`. Training counts as well fed from `threshold` on.
    """

    title: str
    samples_per_file: int
    sample_bytes: int
    threshold: float
    loaders: int
    steps: Mapping[str, TrainingStep]
    sample_stdev: int = 0
    sample_step: int = 1


SAMPLE_SETS: Final[Mapping[str, SampleSet]] = MappingProxyType(
    {
        "unet3d": SampleSet(
            "3D U-Net, KiTS19 volumes",
            samples_per_file=1,
            sample_bytes=146_600_628,
            sample_stdev=68_341_808,
            sample_step=2 << 20,
            threshold=0.90,
            loaders=4,
            steps={
                "h100": TrainingStep(7, 323_000_000),
                "a100": TrainingStep(7, 636_000_000),
                "b200": TrainingStep(7, 162_000_000),
            },
        ),
        "retinanet": SampleSet(
            "RetinaNet, Open Images",
            samples_per_file=1,
            sample_bytes=322_957,
            threshold=0.85,
            loaders=8,
            steps={"b200": TrainingStep(24, 47_550_000), "mi355": TrainingStep(32, 63_400_000)},
        ),
        "resnet50": SampleSet(
            "ResNet-50, ImageNet records",
            samples_per_file=1251,
            sample_bytes=114_660,
            threshold=0.90,
            loaders=8,
            steps={"h100": TrainingStep(400, 224_000_000), "a100": TrainingStep(400, 435_000_000)},
        ),
        "cosmoflow": SampleSet(
            "CosmoFlow, simulated universes",
            samples_per_file=1,
            sample_bytes=2_828_486,
            sample_stdev=71_311,
            sample_step=4096,
            threshold=0.70,
            loaders=4,
            steps={"h100": TrainingStep(1, 3_500_000), "a100": TrainingStep(1, 5_510_000)},
        ),
        "flux": SampleSet(
            "Flux.1, images with text",
            samples_per_file=288,
            sample_bytes=2_164_832,
            threshold=0.90,
            loaders=4,
            steps={
                "b200": TrainingStep(48, 1_350_000_000),
                "mi355": TrainingStep(72, 2_025_000_000),
            },
        ),
    }
)
"""By the names in study files."""

ACCELERATORS: Final = tuple(dict.fromkeys(name for s in SAMPLE_SETS.values() for name in s.steps))
