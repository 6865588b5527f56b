"""Checkpoint load as a kind of load."""

from __future__ import annotations

from typing import Final

from iolab.loads.checkpoint.metric_specs import METRICS
from iolab.loads.kind import LoadKind

KIND: Final = LoadKind(
    "checkpoint",
    {"checkpoint": "iolab.loads.checkpoint.workload:CheckpointJob"},
    study_words=("checkpoint",),
    session="iolab.loads.checkpoint.driver:SESSION",
    study="iolab.loads.checkpoint.study:CheckpointStudyKind",
    analysis="iolab.loads.checkpoint.analysis:CheckpointAnalysis",
    report="iolab.loads.checkpoint.report:CheckpointReport",
    metrics=METRICS,
)
