"""What `--hosts` names: an inventory's file, or hosts that a launcher knows of."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Final

from iolab.errors import HostError

if TYPE_CHECKING:
    from iolab.plan.inventory import Inventory

SLURM: Final = "slurm"
MPI: Final = "mpi:"
PODS: Final = "k8s:"


def find_hosts(name: str) -> Inventory:
    """The inventory that `--hosts` names. UsageError or HostError when there is none.

    A file whose name looks like a launcher is reached as `./slurm`.
    """
    if name == SLURM:
        return _slurm()
    if name.startswith(MPI):
        return _mpi(name)
    if name.startswith(PODS):
        return _pods(name)
    return _file(name)


def _file(name: str) -> Inventory:
    from iolab.cli.catalogue import read_source
    from iolab.plan.inventory import Inventory

    source = read_source(name, "Give an inventory, see docs/reference/inventory.md.")
    return Inventory(source.text, source.file_name)


def _slurm() -> Inventory:
    from iolab.plan.slurm import read_allocation, slurm_inventory

    allocation = read_allocation(os.environ)
    _need("srun", "Add Slurm's programs to PATH (Debian: slurm-client).")
    return slurm_inventory(allocation)


def _mpi(name: str) -> Inventory:
    from iolab.cli.catalogue import read_source
    from iolab.plan.mpi_hosts import mpi_inventory

    source = read_source(name.removeprefix(MPI), "Give an MPI host file, as in mpi:hosts.")
    return mpi_inventory(source.text, source.file_name)


def _pods(name: str) -> Inventory:
    import asyncio

    from iolab.plan.pods import parse_selection, pods_inventory
    from iolab.run.hosts.pods import look_up_pods

    selection = parse_selection(name.removeprefix(PODS))
    _need("kubectl", "Install it, or add it to PATH.")
    context, listing = asyncio.run(look_up_pods(selection))
    return pods_inventory(selection, context, listing)


def _need(program: str, do: str) -> None:
    if shutil.which(program) is None:
        raise HostError(f"There is no program '{program}' here.", do)
