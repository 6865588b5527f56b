"""What sessions need of every kind of load, and of the kind of host that is booted."""

from __future__ import annotations

from typing import Final

from iolab.cli.study_kinds import LOADS, STUDY_KINDS
from iolab.guests.fleet import GuestSession
from iolab.session.kinds import SessionKinds

SESSION_KINDS: Final = SessionKinds(
    loads=tuple(kind.session() for kind in LOADS), hosts=GuestSession(), study=STUDY_KINDS
)
"""What sessions can make."""
