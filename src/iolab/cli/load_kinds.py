"""The registry of kinds of load.

Whoever reads a session imports it: all that kinds own in stored documents, and every metric, is
known then. What
studies, sessions and reports need of kinds is imported by registries of their own.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

import iolab.guests.guest  # noqa: F401 - hosts that are booted have parts of their own
from iolab.core.metric_spec import declare
from iolab.importers.kind import KIND as IMPORTED
from iolab.loads.fileio.kind import KIND as FILE_IO
from iolab.loads.keyvalue.kind import KIND as KEY_VALUE
from iolab.loads.metadata.kind import KIND as METADATA
from iolab.report.load_kind import LoadKind

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
