"""What studies can ask for: the part in studies of every kind of load, and of booted hosts."""

from __future__ import annotations

from typing import Final

from iolab.cli.load_kinds import LOADS
from iolab.guests.study_part import GuestStudy
from iolab.study.kinds import StudyKinds

STUDY_KINDS: Final = StudyKinds(loads=tuple(kind.study() for kind in LOADS), hosts=GuestStudy())
"""What studies can ask for."""
