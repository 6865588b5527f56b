"""Whether the clients of a fleet can run mdtest together: told only where one of them has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iolab.model.host import HostFacts

MDTEST: Final = "mdtest"
MPIEXEC: Final = "mpiexec"
MPICH: Final = "mpichversion"

TOOLS: Final[Mapping[str, Sequence[str]]] = {
    MDTEST: (MDTEST, "-h"),
    MPIEXEC: (MPIEXEC, "--version"),
    MPICH: (MPICH,),
}
"""What is asked. MPICH's mpiexec has no version in its first line; `mpichversion` does."""


def mpi_words(facts: HostFacts) -> str:
    """The MPI of a host for comparison, and whether mdtest is there: `MPICH 4.0.2, no mdtest`."""
    return _mpi(facts) if has_mdtest(facts) else f"{_mpi(facts)}, no mdtest"


def has_mdtest(facts: HostFacts) -> bool:
    """Whether mdtest is on the PATH of that host."""
    tool = facts.tool(MDTEST)
    return tool is not None and tool.path is not None


def _mpi(facts: HostFacts) -> str:
    mpiexec, mpich = facts.tool(MPIEXEC), facts.tool(MPICH)
    if mpiexec is None or mpiexec.path is None:
        return "no mpiexec"
    words = mpiexec.version or "unknown"
    if not words.startswith("HYDRA"):
        return words
    version = (mpich.version or "") if mpich is not None and mpich.path is not None else ""
    return f"MPICH {version.rpartition(':')[2].strip() or 'unknown'}"
