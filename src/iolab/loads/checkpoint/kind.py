"""Checkpoint load as a kind of load."""

from __future__ import annotations

from typing import Final

from iolab.loads.checkpoint.metric_specs import METRICS
from iolab.loads.kind import LoadKind

KIND: Final = LoadKind(
    "checkpoint",
    {"checkpoint": "iolab.loads.checkpoint.workload:CheckpointJob"},
    study_words=("checkpoint",),
    session_kind_path="iolab.loads.checkpoint.driver:SESSION",
    study_kind_path="iolab.loads.checkpoint.study:CheckpointStudyKind",
    analysis_path="iolab.loads.checkpoint.analysis:CheckpointAnalysis",
    report_path="iolab.loads.checkpoint.report:CheckpointReport",
    non_operation_metrics=METRICS,
)
