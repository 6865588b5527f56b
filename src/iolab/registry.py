"""Every kind of load and of booted host, and its parts for studies, sessions, analysis, reports.

Whoever reads a session imports this module: then every type that stands in stored documents, and
every metric, is known. The jobs and parts of a kind are named as "module:attribute" and imported
when they are asked for: reading results that were judged needs no checks, planning no drivers, and
a session none of the kinds of load that it is not of.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

import iolab.guests.guest  # noqa: F401 - hosts that are booted have parts of their own
from iolab.core.metric_spec import declare_metrics
from iolab.core.power import POWER_METRICS
from iolab.core.tagged import declare_parts, import_attribute
from iolab.core.wear import WEAR_METRICS
from iolab.loads.kind import LoadKind
from iolab.record import Record

if TYPE_CHECKING:
    from iolab.analysis.kinds import AnalysisKinds
    from iolab.report.brief import BootedHostsReport, LoadReportKinds
    from iolab.session.kinds import SessionKinds
    from iolab.study.kinds import StudyKinds

ENTRY_POINTS: Final = "iolab.kinds"
"""The group of entry points by which an installed package adds kinds of load: each names a
`LoadKind`."""

KINDS: Final = (
    "iolab.loads.fileio.kind:KIND",
    "iolab.loads.metadata.kind:KIND",
    "iolab.loads.keyvalue.kind:KIND",
    "iolab.loads.kvcache.kind:KIND",
    "iolab.loads.checkpoint.kind:KIND",
    "iolab.loads.objects.kind:KIND",
    "iolab.loads.training.kind:KIND",
    "iolab.importers.kind:KIND",
)
"""iolab's own kinds of load, in the order shown; one line each."""

LOADS: Final[tuple[LoadKind, ...]] = (
    *map(import_attribute, KINDS),
    *(point.load() for point in entry_points(group=ENTRY_POINTS)),
)
"""Every kind of load, in the order shown."""


class BootedHostKind(Record):
    """A kind of host that sessions boot: the names of its parts, each made without arguments."""

    study: str
    session: str
    analysis: str
    report: str


GUESTS: Final = BootedHostKind(
    study="iolab.guests.study:GuestStudyKind",
    session="iolab.guests.fleet:GuestSessionKind",
    analysis="iolab.guests.analysis:GuestAnalysis",
    report="iolab.guests.report:GuestsReport",
)

for _kind in LOADS:
    declare_parts(_kind.jobs)
    declare_metrics(_kind.metrics)
declare_metrics(POWER_METRICS)
declare_metrics(WEAR_METRICS)


@cache
def study_kinds() -> StudyKinds:
    """What studies can ask for."""
    from iolab.study.kinds import StudyKinds

    loads = tuple(kind.make_study_kind() for kind in LOADS)
    return StudyKinds(loads, import_attribute(GUESTS.study)())


@cache
def session_kinds() -> SessionKinds:
    """What sessions can make."""
    from iolab.session.kinds import SessionKinds

    loads = tuple(kind.make_session_kind() for kind in LOADS)
    return SessionKinds(loads=loads, hosts=import_attribute(GUESTS.session)(), study=study_kinds())


@cache
def analysis_kinds() -> AnalysisKinds:
    """What results are judged by."""
    from iolab.analysis.kinds import AnalysisKinds

    loads = {job: cache(kind.make_analysis) for kind in LOADS for job in kind.jobs}
    specs = (*(spec for kind in LOADS for spec in kind.metrics), *POWER_METRICS, *WEAR_METRICS)
    declared = dict.fromkeys(spec.key for spec in specs)
    return AnalysisKinds(loads, (import_attribute(GUESTS.analysis)(),), tuple(declared))


@cache
def report_kinds() -> LoadReportKinds:
    """What reports and exports ask of each kind."""
    from iolab.report.brief import LoadReportKinds

    return LoadReportKinds(LOADS, _guests_report, analysis_kinds)


def _guests_report() -> BootedHostsReport:
    report: BootedHostsReport = import_attribute(GUESTS.report)()
    return report
