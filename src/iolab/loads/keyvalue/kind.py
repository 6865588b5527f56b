"""Load on key-value stores as a kind of load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolab.loads.keyvalue.workload import KeyValueJob, YcsbJob
from iolab.loads.kind import LoadKind

if TYPE_CHECKING:
    from iolab.loads.keyvalue.analysis import KeyValueAnalysis
    from iolab.loads.keyvalue.report import KeyValueReport
    from iolab.report.brief import HostsReport
    from iolab.session.kinds import LoadSession
    from iolab.study.kinds import LoadStudy


def _study() -> LoadStudy:
    from iolab.loads.keyvalue.study import KeyValueStudy

    return KeyValueStudy()


def _session() -> LoadSession:
    from iolab.loads.keyvalue.driver import KEY_VALUE

    return KEY_VALUE


def _analysis() -> KeyValueAnalysis:
    from iolab.loads.keyvalue.analysis import KeyValueAnalysis

    return KeyValueAnalysis()


def _report(hosts: HostsReport) -> KeyValueReport:  # noqa: ARG001 - not swept over them
    from iolab.loads.keyvalue.report import KeyValueReport

    return KeyValueReport()


KIND: Final = LoadKind(
    "keyvalue",
    (KeyValueJob, YcsbJob),
    _study,
    _session,
    _analysis,
    _report,
    document_lists=("gains",),
)
