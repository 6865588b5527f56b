"""Training-read load as a kind of load."""

from __future__ import annotations

from typing import Final

from iolab.loads.kind import LoadKind
from iolab.loads.training.metric_specs import METRICS

KIND: Final = LoadKind(
    "training-read",
    {"training-read": "iolab.loads.training.workload:TrainingJob"},
    study_words=("training-read",),
    session_kind_path="iolab.loads.training.driver:SESSION",
    study_kind_path="iolab.loads.training.study:TrainingStudyKind",
    analysis_path="iolab.loads.training.analysis:TrainingAnalysis",
    report_path="iolab.loads.training.report:TrainingReport",
    non_operation_metrics=METRICS,
)
