"""One host with the folder that a session holds there."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Final

from iolab.model.host import TargetFacts
from iolab.model.run import DataSet
from iolab.run.hosts.base import Host

PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Host names that may stand in a folder's name as they are."""


@dataclass(frozen=True, slots=True)
class Site:
    """A host, the session's scratch folder on it, and what is known of the file system below.

    `key` is that of the directory's facts (`Target.key`). `read_from` is the client whose folder
    `dir` is, empty for the host's own. Where the target is a block device, `device` is its name in
    the folder `dir`, and `filled_bytes` is how much of it, from the start, is known to be written.
    With `image` it is a guest's disk, whose image was written in full before the guest was booted.
    Where `dir` is a file system of the session's own, `scratch` is the folder that is held for it.
    """

    host: Host
    dir: str
    target: TargetFacts | None
    key: str
    read_from: str = ""
    device: str = ""
    filled_bytes: int = 0
    scratch: str = ""
    image: bool = False

    @property
    def raw(self) -> bool:
        """Whether it is a device found as it is, which must be written over before it counts."""
        return bool(self.device) and not self.image

    @property
    def held(self) -> str:
        """The scratch folder that the host's agent holds: `dir`, or the one around it."""
        return self.scratch or self.dir

    @property
    def name(self) -> str:
        """The host's name."""
        return self.host.name

    @property
    def devices(self) -> tuple[str, ...]:
        """The block devices below the folder, nearest first; none for network file systems."""
        return self.target.devices if self.target else ()

    def paths(self, data_set: DataSet, numjobs: int | None = None) -> list[str]:
        """Full paths of the data set's files that so many jobs use (all by default)."""
        if self.device:
            return [f"{self.dir}/{self.device}"]
        return [f"{self.dir}/{name}" for name in data_set.file_names(numjobs)]

    def holding(self, data_set: DataSet) -> DataSet:
        """The data set as it lies here: in files, or on the device."""
        return replace(data_set.on(self.name), device=self.device)


def scratch_name(host: str) -> str:
    """The folder's name for a host: the host's own name where it is plain, else its hash."""
    if PLAIN_NAME.fullmatch(host):
        return f"iolab-scratch-{host}"
    return f"iolab-scratch-{hashlib.sha256(host.encode()).hexdigest()[:16]}"
