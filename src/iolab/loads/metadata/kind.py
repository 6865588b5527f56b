"""Metadata load as a kind of load."""

from __future__ import annotations

from typing import Final

from iolab.loads.kind import LoadKind

KIND: Final = LoadKind(
    "metadata",
    {"metadata": "iolab.loads.metadata.workload:MetadataJob"},
    study_words=("metadata", "mdtest"),
    session_kind_path="iolab.loads.metadata.driver:METADATA",
    study_kind_path="iolab.loads.metadata.study:MetadataStudyKind",
    analysis_path="iolab.loads.metadata.analysis:MetadataAnalysis",
    report_path="iolab.loads.metadata.report:MetadataReport",
    document_list_names=("iterations",),
)
