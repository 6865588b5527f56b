"""What others measured as a kind of load: no study asks for it, and no session makes it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from iolab.core.engine import EngineName
from iolab.importers.model import ImportedHost, ImportedJob, ImportedRun
from iolab.report.load_kind import LoadKind
from iolab.study.kinds import LoadStudy

if TYPE_CHECKING:
    from iolab.importers.analysis import ImportedAnalysis
    from iolab.importers.report import ImportedReport
    from iolab.report.kinds import HostsReport
    from iolab.session.kinds import LoadSession
    from iolab.study.target_tables import Table


class ImportedStudy(LoadStudy):
    """No table of a study describes it."""

    tables: Mapping[type[Table], tuple[EngineName, ...]] = MappingProxyType({})


def _session() -> LoadSession:
    from iolab.session.kinds import LoadSession

    return LoadSession(drivers={})


def _analysis() -> ImportedAnalysis:
    from iolab.importers.analysis import ImportedAnalysis

    return ImportedAnalysis()


def _report(hosts: HostsReport) -> ImportedReport:  # noqa: ARG001 - not swept over them
    from iolab.importers.report import ImportedReport

    return ImportedReport((ImportedJob,))


KIND: Final = LoadKind(
    "imported",
    (ImportedJob,),
    ImportedStudy(),
    _session,
    _analysis,
    _report,
    stored=(ImportedHost, ImportedRun),
)
