"""What others measured as a kind of load: no study asks for it, and no session makes it."""

from __future__ import annotations

from typing import Final

from iolab.loads.kind import LoadKind

KIND: Final = LoadKind(
    "imported",
    {"imported": "iolab.importers.foreign_run:ImportedJob"},
    session_kind_path="iolab.session.kinds:NO_LOAD_SESSION",
    analysis_path="iolab.importers.analysis:ImportedAnalysis",
    report_path="iolab.importers.report:ImportedReport",
)
