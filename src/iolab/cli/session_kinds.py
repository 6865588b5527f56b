"""The registry of sessions: every kind of load, and the kind of host that is booted."""

from __future__ import annotations

from typing import Final

from iolab.cli.study_kinds import STUDY_KINDS
from iolab.guests.fleet import GuestSession
from iolab.loads.fileio.driver import FILE_IO
from iolab.loads.keyvalue.driver import KEY_VALUE
from iolab.loads.metadata.driver import METADATA
from iolab.session.kinds import SessionKinds

SESSION_KINDS: Final = SessionKinds(
    loads=(FILE_IO, METADATA, KEY_VALUE), hosts=GuestSession(), study=STUDY_KINDS
)
"""What sessions can make."""
