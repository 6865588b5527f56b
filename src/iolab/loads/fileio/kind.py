"""I/O on files and devices as a kind of load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolab.loads.fileio.workload import Job
from iolab.loads.kind import LoadKind

if TYPE_CHECKING:
    from iolab.loads.fileio.analysis import FileAnalysis
    from iolab.loads.fileio.report import FileReport
    from iolab.report.brief import HostsReport
    from iolab.session.kinds import LoadSession
    from iolab.study.kinds import LoadStudy


def _study() -> LoadStudy:
    from iolab.loads.fileio.study import FileIoStudy

    return FileIoStudy()


def _session() -> LoadSession:
    from iolab.loads.fileio.driver import FILE_IO

    return FILE_IO


def _analysis() -> FileAnalysis:
    from iolab.loads.fileio.analysis import FileAnalysis

    return FileAnalysis()


def _report(hosts: HostsReport) -> FileReport:
    from iolab.loads.fileio.report import FileReport

    return FileReport(hosts)


KIND: Final = LoadKind("fileio", (Job,), _study, _session, _analysis, _report)
