"""The registry of kinds of load, with what studies ask of them and of hosts that are booted.

Whoever reads a session imports it: all that kinds own in stored documents is known then. What
sessions and reports need of kinds is imported by registries of their own, so that a study is read
and planned without them.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

from iolab.guests.study_part import GuestStudy
from iolab.importers.kind import KIND as IMPORTED
from iolab.loads.fileio.kind import KIND as FILE_IO
from iolab.loads.keyvalue.kind import KIND as KEY_VALUE
from iolab.loads.metadata.kind import KIND as METADATA
from iolab.report.load_kind import LoadKind
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

STUDY_KINDS: Final = StudyKinds(loads=tuple(kind.study for kind in LOADS), hosts=GuestStudy())
"""What studies can ask for."""
