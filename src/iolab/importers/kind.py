"""What others measured as a kind of load: no study asks for it, and no session makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolab.importers.model import ImportedJob
from iolab.loads.kind import LoadKind

if TYPE_CHECKING:
    from iolab.importers.analysis import ImportedAnalysis
    from iolab.importers.report import ImportedReport
    from iolab.report.brief import HostsReport
    from iolab.session.kinds import LoadSession
    from iolab.study.kinds import LoadStudy


def _study() -> LoadStudy:
    from iolab.study.kinds import LoadStudy

    return LoadStudy()


def _session() -> LoadSession:
    from iolab.session.kinds import LoadSession

    return LoadSession(drivers={})


def _analysis() -> ImportedAnalysis:
    from iolab.importers.analysis import ImportedAnalysis

    return ImportedAnalysis()


def _report(hosts: HostsReport) -> ImportedReport:  # noqa: ARG001 - not swept over them
    from iolab.importers.report import ImportedReport

    return ImportedReport((ImportedJob,))


KIND: Final = LoadKind("imported", (ImportedJob,), _study, _session, _analysis, _report)
