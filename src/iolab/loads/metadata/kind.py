"""Metadata load as a kind of load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolab.loads.kind import LoadKind
from iolab.loads.metadata.workload import MDTEST_ENGINE, METADATA_ENGINE, MetadataJob

if TYPE_CHECKING:
    from iolab.loads.metadata.analysis import MetadataAnalysis
    from iolab.loads.metadata.report import MetadataReport
    from iolab.report.brief import HostsReport
    from iolab.session.kinds import LoadSession
    from iolab.study.kinds import LoadStudy


def _study() -> LoadStudy:
    from iolab.loads.metadata.study import MetadataStudy

    return MetadataStudy()


def _session() -> LoadSession:
    from iolab.loads.metadata.mdtest import MdtestDriver
    from iolab.loads.metadata.native import MetadataDriver
    from iolab.session.kinds import LoadSession

    return LoadSession(drivers={METADATA_ENGINE: MetadataDriver, MDTEST_ENGINE: MdtestDriver})


def _analysis() -> MetadataAnalysis:
    from iolab.loads.metadata.analysis import MetadataAnalysis

    return MetadataAnalysis()


def _report(hosts: HostsReport) -> MetadataReport:  # noqa: ARG001 - not swept over them
    from iolab.loads.metadata.report import MetadataReport

    return MetadataReport()


KIND: Final = LoadKind(
    "metadata", (MetadataJob,), _study, _session, _analysis, _report, document_lists=("iterations",)
)
