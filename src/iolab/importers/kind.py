"""What others measured as a kind of load: no study asks for it, and no session makes it."""

from __future__ import annotations

from typing import Final

from iolab.importers.foreign_run import ImportedJob
from iolab.loads.kind import LoadKind

KIND: Final = LoadKind(
    "imported",
    (ImportedJob,),
    session="iolab.session.kinds:NO_LOAD_SESSION",
    analysis="iolab.importers.analysis:ImportedAnalysis",
    report="iolab.importers.report:ImportedReport",
)
