"""I/O on files and devices as a kind of load."""

from __future__ import annotations

from typing import Final

from iolab.loads.kind import LoadKind

KIND: Final = LoadKind(
    "fileio",
    {"io": "iolab.loads.fileio.workload:Job"},
    session_kind_path="iolab.loads.fileio.driver:FILE_IO",
    study_kind_path="iolab.loads.fileio.study:FileIoStudyKind",
    analysis_path="iolab.loads.fileio.analysis:FileAnalysis",
    report_path="iolab.loads.fileio.report:FileReport",
)
