"""What a session is handed of kinds of load, and of hosts that it boots."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final, Protocol

from iolab.core.engine import EngineName
from iolab.core.host import HostFacts
from iolab.core.run import PlannedRun, RunRecord
from iolab.errors import Fault
from iolab.hosts.engine import FileEngine, SingleProcessEngine
from iolab.hosts.telemetry import CounterCollector
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.session.discovery import DiscoveredHosts
from iolab.session.driver import LoadDriver, SessionDrivers
from iolab.session.process_driver import ProcessDriver
from iolab.session.reconnect import HostFactory
from iolab.study.kinds import StudyKinds
from iolab.targets.work_directories import WorkDirectories


class SessionResources(Record):
    """Folders and files, makers of load, and hosts that are booted."""

    workdirs: WorkDirectories
    drivers: SessionDrivers
    booted_hosts: BootedHosts

    async def clean_up_and_list_failures(self) -> tuple[str, ...]:
        """Nothing of it stays on any host that answers; sentences on what could not be ended."""
        # A server that still runs would write into the folder that is being removed, and what lies
        # on a booted host goes before the host.
        held = await self.drivers.close_and_list_failures()
        left = await self.workdirs.clean_up_and_list_failures()
        return (*held, *left, *await self.booted_hosts.shut_down_and_list_failures())


class LoadSessionKind(Record):
    """The part of a kind of load in sessions.

    The load of each engine is made by `driver_factory_by_engine`. `engines` are those of files and
    devices, which lay them out too. `list_preflight_faults` looks from connected hosts at what
    their load needs; what it finds wrong refuses the session before anything is written.
    """

    driver_factory_by_engine: Mapping[EngineName, Callable[[], LoadDriver]]
    engines: tuple[FileEngine[Any], ...] = ()
    list_preflight_faults: Callable[[SessionContext], Awaitable[Sequence[Fault]]] | None = None

    @classmethod
    def for_engines(cls, *engines: SingleProcessEngine[Any]) -> LoadSessionKind:
        """That of engines that run as one process on each host."""
        factories = {engine.name: partial(ProcessDriver, engine) for engine in engines}
        return cls(driver_factory_by_engine=factories)


NO_LOAD_SESSION: Final = LoadSessionKind(driver_factory_by_engine={})
"""That of load which no session makes."""


class BootedHosts(Protocol):
    """The hosts of a session that it boots, or that stand on others; perhaps none.

    `set_up_nodes_for_boots` before the first of them is reached, `sample_counters` and
    `with_booted_host_details` for each run, `shut_down_and_list_failures` once.
    """

    path_devices_by_node: Mapping[str, tuple[str, ...]]
    """The block devices below the path of each node that has one."""

    @property
    def has_guests_to_boot(self) -> bool:
        """Whether there are any to boot."""

    async def set_up_nodes_for_boots(self, discovered_nodes: DiscoveredHosts) -> None:
        """Everything up to the boots; `discovered_nodes` is what they told.

        Raises HostError, EngineError, and Interrupted at a stop request.
        """

    def set_and_wrap_reconnect_host_factory(
        self, host_factory: HostFactory | None
    ) -> HostFactory | None:
        """The same way to reach hosts anew, after which they are booted anew."""

    def set_path_devices_from_facts(self, facts_by_host: Mapping[str, HostFacts]) -> None:
        """Take what nodes told of themselves."""

    def sample_counters(
        self, run: PlannedRun, counters: CounterCollector, host_index_by_name: Mapping[str, int]
    ) -> AbstractAsyncContextManager[None]:
        """What nodes count of them is collected while what is done within lasts.

        `host_index_by_name` are the numbers of the nodes among the hosts that counters name.
        """

    def with_booted_host_details(self, record: RunRecord) -> RunRecord:
        """The record of a run with what is to be kept of them."""

    async def shut_down_and_list_failures(self) -> tuple[str, ...]:
        """All of them are shut down; sentences on what failed."""


class HostSessionKind(Protocol):
    """The part in sessions of the kind of host that is booted."""

    def create_booted_hosts(self, session: SessionContext) -> BootedHosts:
        """Those of a session."""


class SessionKinds(Record):
    """The kinds of load that a session can make, and the kind of host that it can boot."""

    loads: tuple[LoadSessionKind, ...]
    hosts: HostSessionKind
    study: StudyKinds
    """What each has to do with studies and plans."""

    @property
    def file_engines(self) -> tuple[FileEngine[Any], ...]:
        """Every engine of files and devices."""
        return tuple(engine for load in self.loads for engine in load.engines)

    async def preflight_faults(self, session: SessionContext) -> tuple[Fault, ...]:
        """What speaks against the session by a look from its connected hosts."""
        looks = [
            load.list_preflight_faults
            for load in self.loads
            if load.list_preflight_faults is not None
        ]
        return tuple([fault for look in looks for fault in await look(session)])

    @property
    def driver_factory_by_engine(self) -> Mapping[EngineName, Callable[[], LoadDriver]]:
        """Every maker of load that a run may name."""
        return {
            name: made
            for load in self.loads
            for name, made in load.driver_factory_by_engine.items()
        }
