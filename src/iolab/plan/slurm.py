"""A Slurm allocation: its nodes as an inventory, and the job step that reaches a node. Pure.

The options are those of Slurm 20.11 and later, which first has `--overlap`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from iolab.errors import HostError
from iolab.model.host import HostKind
from iolab.plan.hosts_text import inventory_text
from iolab.plan.inventory import Inventory
from iolab.plan.ranges import RangeFault, expand
from iolab.plan.values import is_identifier
from iolab.plan.wording import shown

JOB_VARIABLE: Final = "SLURM_JOB_ID"
NODES_VARIABLE: Final = "SLURM_JOB_NODELIST"

KEPT: Final = frozenset({"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_WORKING_CLUSTER"})
"""How srun finds its controller and proves who asks. Every other variable of Slurm's is an option
of the job around us (`SLURM_NTASKS`, `SLURM_MEM_PER_CPU`), which srun would take for the step's."""

_INSIDE: Final = "Run iolab inside of one, started with salloc or sbatch."


@dataclass(frozen=True, slots=True)
class Allocation:
    """A job's id and its nodes."""

    job: str
    nodes: tuple[str, ...]


def read_allocation(environment: Mapping[str, str]) -> Allocation:
    """The allocation that a process with this environment is in. HostError when there is none."""
    job, nodes = environment.get(JOB_VARIABLE, ""), environment.get(NODES_VARIABLE, "")
    if not job or not nodes:
        unset = NODES_VARIABLE if job else JOB_VARIABLE
        raise HostError(f"There is no Slurm allocation here ({unset} is not set).", _INSIDE)
    if not re.fullmatch(r"[0-9]{1,10}", job):
        raise HostError(f"{JOB_VARIABLE} is {shown(job)}, not a number.", _INSIDE)
    try:
        names = expand(nodes)
    except RangeFault as fault:
        raise HostError(f"{NODES_VARIABLE} {fault.happened}.", _INSIDE) from None
    for name in names:
        if not is_identifier(name):
            happened = f"{NODES_VARIABLE} has {shown(name)}, which is no name of a node."
            raise HostError(happened, _INSIDE)
    return Allocation(job, names)


def slurm_inventory(allocation: Allocation) -> Inventory:
    """The allocation's nodes, each a host of kind `slurm`: no job's id is in it."""
    origin = f"--hosts slurm, in job {allocation.job}"
    hosts = ({"name": name, "kind": HostKind.SLURM.value} for name in allocation.nodes)
    return Inventory(inventory_text(origin, hosts), "--hosts slurm")


def step_words(job: str, node: str) -> tuple[str, ...]:
    """The words before a program that let srun run it on one node of the job."""
    return (
        "srun",
        f"--jobid={job}",
        f"--nodelist={node}",
        "--nodes=1",
        "--ntasks=1",
        "--job-name=iolab",
        # The allocation's memory, processors and devices are shared with every other step; without
        # these three a second step waits until the first one ends.
        "--overlap",
        "--mem=0",
        "--gres=none",
        # One task would else be bound to one core, and all load with it.
        "--cpu-bind=none",
        "--mpi=none",
        # Buffered, slurmstepd holds output back until a line ends, and a frame has no line.
        "--unbuffered",
        "--input=all",
        "--output=all",
        "--error=all",
        # The controller's working directory need not be there, its PATH must.
        "--chdir=/",
        "--export=ALL",
        "--quiet",
    )


def step_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for srun: that of the controller without the job's own settings."""
    return {
        name: value
        for name, value in environment.items()
        if name in KEPT or not name.startswith(("SLURM_", "SRUN_", "SBATCH_", "SALLOC_"))
    }
