"""Load on objects as a kind of load."""

from __future__ import annotations

from typing import Final

from iolab.loads.kind import LoadKind
from iolab.loads.objects.metric_specs import METRICS

KIND: Final = LoadKind(
    "objects",
    {"objects": "iolab.loads.objects.workload:ObjectsJob"},
    study_words=("s3",),
    session_kind_path="iolab.loads.objects.driver:SESSION",
    study_kind_path="iolab.loads.objects.study:ObjectsStudyKind",
    analysis_path="iolab.loads.objects.analysis:ObjectsAnalysis",
    report_path="iolab.loads.objects.report:ObjectsReport",
    non_operation_metrics=METRICS,
)
