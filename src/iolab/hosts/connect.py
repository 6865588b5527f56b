"""The ways to hosts: a subprocess, a command, a job step, a boot, ssh; and which pods there are."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.core.host import HostFacts, HostSpec, HostTransport
from iolab.core.study import LINK_TIMEOUT_S
from iolab.errors import HostError
from iolab.hosts.host import AgentLink, Host
from iolab.hosts.kubernetes.facts import pod_reference_of_command, read_pod_facts
from iolab.hosts.leftovers import close_hosts_and_report_leftovers
from iolab.hosts.message import HostCommandError
from iolab.hosts.process import exit_and_stderr_text, run_local_process, start_local_process
from iolab.hosts.push import CommandHostFileOperations, CommandPrefix, agent_binary, install_agent
from iolab.study.inventory import (
    CONTEXT_CHARACTERS,
    PodSelection,
    list_pods_command,
    read_slurm_allocation,
    srun_environment,
    srun_prefix,
)
from iolab.text import quote_value

if TYPE_CHECKING:
    from iolab.hosts.ssh_host import SshConnections

PUSHES_AT_ONCE: Final = 32
"""Hosts of commands that are being pushed to at a time. Each takes a process here, and a request to
what every user of a site shares: Slurm's controller, a cluster's API server."""

_SLURM_HELP: Final = "See with 'squeue' and 'sinfo -N' that the job still runs and the node is up."

LOOK_UP_LIMIT_S: Final = 30.0
"""A cluster that answers takes a second; a plugin that asks for a password waits for ever."""

LISTING_BYTES: Final = 64 << 20
"""A pod is described in about 10 kB; of a thousand pods there is room for six times as much."""

_KUBECTL_HELP: Final = "Try the same with 'kubectl get pods' by hand."

GUEST_TIMEOUT_S: Final = 60.0
"""An emulated guest may stand still for long, and ends with its node's agent whatever it hears."""


class LocalHost(Host):
    """The agent as a subprocess in a session of its own.

    If the controller dies by any means, the agent's standard input ends and it cleans up alone.
    """

    def __init__(self, spec: HostSpec, agent: Path | None = None) -> None:
        super().__init__(spec)
        self._agent = agent

    async def start_agent(self) -> AgentLink:
        """Start the agent where it lies."""
        return await start_local_process(self.name, [str(self._agent or agent_binary())])


class CommandHost(Host):
    """The agent behind a prefix, pushed when it is not there yet.

    `slots` bounds the hosts that are pushed to at a time, over all that share it.
    """

    def __init__(
        self, spec: HostSpec, agent: Path | None = None, slots: asyncio.Semaphore | None = None
    ) -> None:
        super().__init__(spec)
        self._agent = agent
        self._slots = slots or asyncio.Semaphore(1)

    def prefix(self) -> CommandPrefix:
        """The words that reach the host. Raises HostError."""
        return CommandPrefix(self.name, self.spec.command_prefix)

    async def with_pod_facts(self, facts: HostFacts, path: str | None) -> HostFacts:
        """Of a pod, what its cluster tells of it and of the volume at the path."""
        pod = pod_reference_of_command(self.spec.command_prefix)
        return facts if pod is None else replace(facts, pod=await read_pod_facts(pod, path))

    async def start_agent(self) -> AgentLink:
        """Push the agent if need be, and start it."""
        prefix = self.prefix()
        async with self._slots:
            remote = await install_agent(CommandHostFileOperations(prefix), self._agent)
        return await start_local_process(self.name, prefix.argv(remote), prefix.environment)


class SlurmHost(CommandHost):
    """The agent as a job step. When srun goes, slurmstepd ends the agent's input: its lease."""

    def __init__(
        self,
        spec: HostSpec,
        slots: asyncio.Semaphore,
        agent: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(spec, agent, slots)
        self._environment = os.environ if environment is None else environment

    def prefix(self) -> CommandPrefix:
        """That of a job step on the node. Raises HostError."""
        allocation = read_slurm_allocation(self._environment)
        if self.name not in allocation.nodes:
            message = f"Host {quote_value(self.name)} is no node of Slurm job {allocation.job_id}."
            raise HostError(message, f"Run in a job that has it, as by 'salloc -w {self.name}'.")
        environment = srun_environment(self._environment)
        return CommandPrefix(self.name, srun_prefix(allocation.job_id, self.name), environment)

    async def start_agent(self) -> AgentLink:
        """Push the agent if need be, and start it."""
        try:
            return await super().start_agent()
        except HostCommandError as fault:
            raise HostCommandError(fault.message, _SLURM_HELP) from None


async def read_context_and_pods_json(
    selection: PodSelection, limit_s: float = LOOK_UP_LIMIT_S
) -> tuple[str | None, str]:
    """The name of kubectl's context (None inside a cluster, where there is none), and its pods.

    The second is the JSON for `pods_inventory`. HostError with kubectl's own words.
    """
    code, output, _ = await _run_kubectl(("kubectl", "config", "current-context"), limit_s)
    context = output.decode("utf-8", "replace").strip() if code == 0 else ""
    if not context.isprintable() or len(context) > CONTEXT_CHARACTERS:
        raise HostError("The name of kubectl's context cannot be written down.", "Rename it.")
    code, output, stderr = await _run_kubectl(list_pods_command(selection), limit_s)
    if code != 0:
        raise HostError(
            f"kubectl cannot list the pods ({exit_and_stderr_text(code, stderr)}).", _KUBECTL_HELP
        )
    if len(output) > LISTING_BYTES:
        raise HostError(f"kubectl's list has more than {LISTING_BYTES} bytes.", "Select fewer.")
    return context or None, output.decode("utf-8", "replace")


async def _run_kubectl(argv: tuple[str, ...], limit_s: float) -> tuple[int | None, bytes, bytes]:
    """Exit code, output and errors of a command that is asked nothing."""
    try:
        return await run_local_process(argv, limit_s=limit_s, output_bytes=LISTING_BYTES + 1)
    except TimeoutError:
        message = f"'{argv[0]} {argv[1]}' did not answer within {limit_s:g} s."
        raise HostError(message, _KUBECTL_HELP) from None
    except OSError as error:
        raise HostError(f"'{argv[0]}' does not start ({error.strerror}).", _KUBECTL_HELP) from None


Boot = Callable[[HostSpec], Awaitable[AgentLink]]
"""Starts a host and gives the way to the agent on it. Raises HostError."""


class BootableHost(Host):
    """A host that the session boots; somebody who can takes care of it first, by setting `boot`."""

    def __init__(self, spec: HostSpec) -> None:
        super().__init__(spec)
        self.boot: Boot | None = None
        self.link_timeout_s = GUEST_TIMEOUT_S

    async def start_agent(self) -> AgentLink:
        """Boot it."""
        if self.boot is None:
            message = f"The guest '{self.name}' has not been given a node to run on."
            raise HostError(message, "This is a fault of iolab; please report it.")
        return await self.boot(self.spec)


def create_hosts(
    specs: Iterable[HostSpec],
    agent: Path | None = None,
    ssh_connections: SshConnections | None = None,
    link_timeout_s: float = LINK_TIMEOUT_S,
) -> dict[str, Host]:
    """A host for each spec, by name, not connected yet.

    `agent` replaces the package's binary; hosts of one call share their `ssh_connections`.
    """
    wanted = tuple(specs)
    if ssh_connections is None and any(spec.transport is HostTransport.SSH for spec in wanted):
        ssh_connections = _default_ssh_connections(link_timeout_s)
    slots = asyncio.Semaphore(PUSHES_AT_ONCE)
    hosts = {spec.name: _create_host(spec, agent, ssh_connections, slots) for spec in wanted}
    for host in hosts.values():
        if host.spec.transport is not HostTransport.VM:
            host.link_timeout_s = link_timeout_s
    return dict(hosts)


@asynccontextmanager
async def open_hosts(
    specs: Iterable[HostSpec],
    agent: Path | None = None,
    ssh_connections: SshConnections | None = None,
    link_timeout_s: float = LINK_TIMEOUT_S,
) -> AsyncIterator[dict[str, Host]]:
    """Hosts by name, not connected yet; every one is closed at the end, whatever happens.

    What stays there is reported (`iolab.hosts.leftovers`).
    """
    hosts = create_hosts(specs, agent, ssh_connections, link_timeout_s)
    try:
        yield hosts
    finally:
        await close_hosts_and_report_leftovers(hosts.values())


def _create_host(
    spec: HostSpec,
    agent: Path | None,
    ssh_connections: SshConnections | None,
    slots: asyncio.Semaphore,
) -> Host:
    match spec.transport:
        case HostTransport.LOCAL:
            return LocalHost(spec, agent)
        case HostTransport.COMMAND:
            return CommandHost(spec, agent, slots)
        case HostTransport.SSH:
            return _create_ssh_host(spec, agent, ssh_connections)
        case HostTransport.SLURM:
            return SlurmHost(spec, slots, agent)
        case HostTransport.VM:
            return BootableHost(spec)


# asyncssh and its ciphers take a quarter of a second to import; a local study does without.


def _default_ssh_connections(link_timeout_s: float) -> SshConnections:
    from iolab.hosts.ssh import ssh_settings_for_timeout
    from iolab.hosts.ssh_host import SshConnections

    return SshConnections(ssh_settings_for_timeout(link_timeout_s))


def _create_ssh_host(
    spec: HostSpec, agent: Path | None, ssh_connections: SshConnections | None
) -> Host:
    from iolab.hosts.ssh_host import SshHost

    return SshHost(spec, ssh_connections or _default_ssh_connections(LINK_TIMEOUT_S), agent)
