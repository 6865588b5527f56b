"""A node of the Slurm allocation that iolab runs in, reached by job steps of srun.

The steps are of the allocation around the controller, whichever that is: a session that began in
one job goes on in another that has the same nodes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from iolab.errors import HostError
from iolab.model.host import HostSpec
from iolab.plan.slurm import read_allocation, step_environment, step_words
from iolab.plan.wording import shown
from iolab.run.hosts.base import agent_binary
from iolab.run.hosts.linked import Link, LinkedHost
from iolab.run.hosts.prefix import Prefix
from iolab.run.hosts.process import start_process
from iolab.run.hosts.push import ProgramLanding, push

_DO: Final = "See with 'squeue' and 'sinfo -N' that the job still runs and the node is up."


class SlurmHost(LinkedHost):
    """The agent as a job step. When srun goes, slurmstepd ends the agent's input: its lease.

    `turns` bounds the nodes that are pushed to at a time, over all that share it.
    """

    def __init__(
        self,
        spec: HostSpec,
        turns: asyncio.Semaphore,
        agent: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(spec)
        self._turns = turns
        self._agent = agent
        self._environment = os.environ if environment is None else environment

    async def open_link(self) -> Link:
        """Push the agent if need be, and start it."""
        allocation = read_allocation(self._environment)
        if self.name not in allocation.nodes:
            happened = f"Host {shown(self.name)} is no node of Slurm job {allocation.job}."
            raise HostError(happened, f"Run in a job that has it, as by 'salloc -w {self.name}'.")
        environment = step_environment(self._environment)
        prefix = Prefix(self.name, step_words(allocation.job, self.name), environment)
        agent = self._agent or agent_binary()
        try:
            async with self._turns:
                remote = await push(ProgramLanding(prefix), agent)
            return await start_process(self.name, prefix.argv(remote), environment)
        except HostError as fault:
            raise HostError(fault.happened, _DO) from None
