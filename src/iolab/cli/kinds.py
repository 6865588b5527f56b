"""The registry of kinds of load, and what studies, sessions, analysis and reports ask of them.

Whoever reads a session imports it: all that kinds own in stored documents, and every metric, is
known then. The parts of kinds are imported when they are asked for: reading results that were
judged needs no checks, and planning no drivers.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

import iolab.guests.guest  # noqa: F401 - hosts that are booted have parts of their own
from iolab.core.metric_spec import declare
from iolab.importers.kind import KIND as IMPORTED
from iolab.loads.fileio.kind import KIND as FILE_IO
from iolab.loads.keyvalue.kind import KIND as KEY_VALUE
from iolab.loads.kind import LoadKind
from iolab.loads.metadata.kind import KIND as METADATA

if TYPE_CHECKING:
    from iolab.analysis.kinds import Analyses
    from iolab.report.brief import HostsReport, Kinds
    from iolab.session.kinds import SessionKinds
    from iolab.study.kinds import StudyKinds

ENTRY_POINTS: Final = "iolab.kinds"
"""The group of entry points by which an installed package adds kinds of load: each names a
`LoadKind`."""

LOADS: Final[tuple[LoadKind, ...]] = (
    FILE_IO,
    METADATA,
    KEY_VALUE,
    IMPORTED,
    *(point.load() for point in entry_points(group=ENTRY_POINTS)),
)
"""Every kind of load, in the order shown; one line each."""

for _kind in LOADS:
    declare(_kind.metrics)


@cache
def study_kinds() -> StudyKinds:
    """What studies can ask for."""
    from iolab.guests.study import GuestStudy
    from iolab.study.kinds import StudyKinds

    return StudyKinds(loads=tuple(kind.study() for kind in LOADS), hosts=GuestStudy())


@cache
def session_kinds() -> SessionKinds:
    """What sessions can make."""
    from iolab.guests.fleet import GuestSession
    from iolab.session.kinds import SessionKinds

    loads = tuple(kind.session() for kind in LOADS)
    return SessionKinds(loads=loads, hosts=GuestSession(), study=study_kinds())


@cache
def analyses() -> Analyses:
    """What results are judged by."""
    from iolab.analysis.kinds import Analyses
    from iolab.guests.analysis import GuestAnalysis

    loads = {
        job: analysis for kind in LOADS for analysis in (cache(kind.analysis),) for job in kind.jobs
    }
    return Analyses(loads, hosts=(GuestAnalysis(),))


@cache
def reported() -> Kinds:
    """What reports and exports ask of each kind."""
    from iolab.report.brief import Kinds

    return Kinds(LOADS, _guests, analyses)


def _guests() -> HostsReport:
    from iolab.guests.report import GuestsReport

    return GuestsReport()
