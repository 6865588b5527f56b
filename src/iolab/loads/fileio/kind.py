"""I/O on files and devices as a kind of load."""

from __future__ import annotations

from typing import Final

from iolab.loads.kind import LoadKind

KIND: Final = LoadKind(
    "fileio",
    {"io": "iolab.loads.fileio.workload:Job"},
    session="iolab.loads.fileio.driver:FILE_IO",
    study="iolab.loads.fileio.study:FileIoStudyKind",
    analysis="iolab.loads.fileio.analysis:FileAnalysis",
    report="iolab.loads.fileio.report:FileReport",
)
