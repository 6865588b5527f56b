"""Types of value that several tables share, and the tables of targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict

from iolab.core.target_state import PLAIN, Purge, Restore
from iolab.core.volume import VOLUME_TYPES
from iolab.study import values
from iolab.study.names import HOSTS_MAX
from iolab.units import parse_size

TITLE_CHARACTERS: Final = 200
PROSE_CHARACTERS: Final = 4000

Title = Annotated[str, values.text(TITLE_CHARACTERS)]
Prose = Annotated[str, values.text(PROSE_CHARACTERS, lines=True)]
Id = Annotated[str, values.identifier()]
Label = Annotated[str | int | float | bool, values.scalar()]
Sizes = values.Listed(lone=True, same=parse_size)
Numbers = values.Listed(lone=True)


NUMJOBS_MAX: Final = 4096
"""As many jobs as one fio takes (REAL_MAX_JOBS in fio's os headers)."""

NumJobs = Annotated[int, values.whole(1, NUMJOBS_MAX)]


FILL_MAX: Final = 100.0
"""A device that is not steady after so many times its size will never be."""

ROUND_S_MAX: Final = 3600.0
ROUNDS_MIN: Final = 5
"""As many as one window has."""

ROUNDS_MAX: Final = 1000
SERIAL_CHARACTERS: Final = 1024
"""As long as a path: the serial of a loop device is the path of its file."""


AS_FOUND: Final = "as-found"
XFS: Final = "xfs"
"""File systems that a target may have: the one that is there, or an XFS that a session makes."""

IMAGE_BYTES_MIN: Final = 320 << 20
"""mkfs.xfs makes none in less than 300 MiB."""

IMAGE_BYTES_MAX: Final = 1 << 50


class StudyTable(BaseModel):
    """A table of the file: unknown keys are faults."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, defer_build=True
    )

    whole: ClassVar[type[StudyTable] | None] = None
    """The table that this one is a part of, for what else could have been written there."""

    def entries(self) -> Iterator[tuple[str, Any]]:
        """Its keys with their values, without those that say nothing."""
        for key in type(self).model_fields:
            value = getattr(self, key)
            if value is not None:
                yield key, tuple(value) if isinstance(value, list) else value


REPEATS_MAX: Final = 1000
Flag = Annotated[bool, values.flag()]
TargetPath = Annotated[str, values.absolute_path()]
DevicePath = Annotated[str, values.device_path()]
Serial = Annotated[str, values.text(SERIAL_CHARACTERS)]


class TargetTable(StudyTable):
    """`[target]`: where the load goes and what may happen there."""

    path: TargetPath | None = None
    device: DevicePath | None = None
    serial: Serial | None = None
    overwrite: Flag = False
    keep_files: Flag = False
    allow_memory: Flag = False
    rotate: Annotated[int, values.whole(0, HOSTS_MAX - 1)] = 0
    filesystem: Annotated[str, values.word((AS_FOUND, XFS), "file systems")] = AS_FOUND
    image: (
        Annotated[int | str, values.size(IMAGE_BYTES_MIN, IMAGE_BYTES_MAX, multiple=512)] | None
    ) = None
    volume: Annotated[str, values.word(VOLUME_TYPES, "volume types")] | None = None
    cloud_metadata: Flag = False


class PreconditionTable(StudyTable):
    """`[precondition]`: the state in which tests begin."""

    purge: Annotated[Purge, values.choice(Purge, "ways to purge")] = Purge.NONE
    fill: Annotated[float, values.multiple(FILL_MAX)] = PLAIN.fill
    steady: Flag = False
    round: Annotated[float, values.seconds(1, ROUND_S_MAX)] = PLAIN.round_s
    rounds: Annotated[int, values.whole(ROUNDS_MIN, ROUNDS_MAX)] = PLAIN.rounds_max
    restore: Annotated[Restore, values.choice(Restore, "times to restore")] = Restore.ONCE
