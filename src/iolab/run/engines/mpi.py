"""Which MPI an `mpiexec` belongs to, and how it is told where ranks go: pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from iolab.errors import EngineError


class MpiName(StrEnum):
    """The MPIs whose `mpiexec` is known."""

    MPICH = "MPICH"
    OPEN_MPI = "Open MPI"


@dataclass(frozen=True, slots=True)
class Mpi:
    """An MPI as its `mpiexec --version` tells it."""

    name: MpiName
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where ranks run: a host's name in the study, its address among the hosts, how many."""

    host: str
    address: str
    ranks: int


INSTALL: Final = "Install MPICH or Open MPI on every client, as with `apt-get install mpich`."


def mpi_of(text: str) -> Mpi:
    """The MPI that printed this as its version. EngineError for any other.

    Hydra is MPICH's; Intel's and Cray's mpiexec, which take other options, say something else.
    """
    for name, pattern in _VERSIONS:
        if match := pattern.search(text[:VERSION_LIMIT]):
            return Mpi(name, match[1])
    first = (text.strip().splitlines() or ["nothing"])[0]
    raise EngineError(f"mpiexec says its version is {first[:60]!r}, which is unknown.", INSTALL)


def mpiexec_argv(mpi: Mpi, program: str, places: Sequence[Place], *, as_root: bool) -> list[str]:
    """Start ranks on all places, filled one after the other; what to run is to be appended.

    Hosts stand in the arguments, so that no host file is left anywhere. The launcher reaches the
    others by ssh. EngineError for an address that cannot stand there.
    """
    for place in places:
        _require_plain(place)
    hosts = ",".join(f"{place.address}:{place.ranks}" for place in places)
    ranks = str(sum(place.ranks for place in places))
    if mpi.name is MpiName.MPICH:
        # `user`: not the nodes of whatever allocation the agent was started in.
        return [program, "-rmk", "user", "-launcher", "ssh", "-hosts", hosts, "-np", ranks]
    root = ["--allow-run-as-root"] if as_root else []
    # Ranks that wait for storage share processors: none is bound to one, as with MPICH.
    where = ["--host", hosts, "--map-by", "slot", "--bind-to", "none"]
    return [program, *root, *where, "-np", ranks]


VERSION_LIMIT: Final = 64 << 10
"""Characters looked at: both print a page."""

_VERSIONS: Final = (
    (MpiName.MPICH, re.compile(r"HYDRA build details:\s+Version:\s+(\d[\w.+-]{0,39})")),
    (MpiName.OPEN_MPI, re.compile(r"\(Open(?:RTE| MPI)\) (\d[\w.+-]{0,39})")),
)
_ADDRESS: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9])?")


def _require_plain(place: Place) -> None:
    if _ADDRESS.fullmatch(place.address):
        return
    happened = f"mpiexec cannot be told the address of host '{place.host}', {place.address!r}."
    raise EngineError(happened, "Give a name or an IPv4 address in the inventory.")
