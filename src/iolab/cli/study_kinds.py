"""The registry of studies: every kind of load, and the kind of host that is booted.

It stands apart from that of sessions, which a study that is only read or planned need not load.
Whoever reads a session imports it: all that kinds own in stored documents is known then.
"""

from __future__ import annotations

from typing import Final

from iolab.guests.study_part import GuestStudy
from iolab.loads.fileio.study_part import FileIoStudy
from iolab.loads.keyvalue import record
from iolab.loads.keyvalue.study_part import KeyValueStudy
from iolab.loads.metadata.study_part import MetadataStudy
from iolab.study.kinds import StudyKinds

STUDY_KINDS: Final = StudyKinds(
    loads=(FileIoStudy(), MetadataStudy(), KeyValueStudy()), hosts=GuestStudy()
)
"""What studies can ask for."""

STORED: Final = (record.KeyValueRun, record.ServerRun)
"""What stored records hold of modules that no study needs (see `core.owned`)."""
