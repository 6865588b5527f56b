"""The agents that come with iolab: one static program for each kind of machine that runs Linux."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Final

from iolab.errors import HostError

AGENT_VARIABLE: Final = "IOLAB_AGENT"
"""Environment variable that names another agent, for all hosts, than the package's own."""

AGENTS_FOLDER: Final = Path(__file__).parents[1] / "_agent"
"""A folder for each machine, as `uname -m` names it, with its agent."""

LINUX: Final = "Linux"


def agent_binary(
    machine: str = "", *, system: str = "", host: str = "", folder: Path = AGENTS_FOLDER
) -> Path:
    """The agent for a host whose `uname` says `system` and `machine`; this machine's by default.

    `IOLAB_AGENT` stands for all. HostError where there is none, with those that there are.
    """
    named = os.environ.get(AGENT_VARIABLE)
    if named:
        if not Path(named).is_file():
            raise HostError(f"There is no agent at {named}.", f"Correct {AGENT_VARIABLE}.")
        return Path(named)
    who = f"Host '{host}'" if host else "This machine"
    if (system or platform.system()) != LINUX:
        what = f"{who} runs {system or platform.system()}, and the agent needs {LINUX}."
        do = "Leave it out." if host else "Name hosts that run it with --hosts."
        raise HostError(what, do)
    machine = machine or platform.machine()
    agents = {path.parent.name: path for path in sorted(folder.glob("*/iolab-agent"))}
    if machine not in agents:
        there = " and ".join(agents) or "no machine"
        happened = f"{who} is {machine}, and this iolab has agents for {there}."
        do = "Install iolab from its wheel; in a checkout 'make setup' builds this machine's, "
        raise HostError(happened, do + "'make agents' all.")
    return agents[machine]
