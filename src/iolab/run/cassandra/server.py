"""A server of a key-value store as its driver sees it, whoever runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from iolab.model.key_value_run import ServerRun
from iolab.model.run import CacheProof, PlannedRun
from iolab.run.crew import Crew
from iolab.run.site import Site
from iolab.run.telemetry.decode import CounterCollector

Load = Callable[[], Awaitable[None]]
"""Writes all records into the store, by way of its `addresses`, which answer by then."""


class Server(Protocol):
    """A store that lives as long as its session and is brought to one state before each run.

    For a run, `ready_for`, `watching` around the load, and `after` are called in this order; `end`
    once. What any of them raises is a HostError or an EngineError.
    """

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where clients find it: HOST:PORT of each node that is known."""

    @property
    def host(self) -> str:
        """The host of the study on which it runs; "" for one outside of it."""

    @property
    def cache(self) -> CacheProof | None:
        """What was dropped of its files on `host` before it was started; None if nothing was."""

    async def ready_for(
        self, crew: Crew, run: PlannedRun, sites: Sequence[Site], load: Load
    ) -> None:
        """Everything up to a server that answers in the start state of the run.

        `sites` are those of the run's clients. `load` is called when the records are not there
        yet. Returns early at a request to stop: nothing is to be measured then.
        """

    def watching(
        self, crew: Crew, run: PlannedRun, counters: CounterCollector, hosts: Mapping[str, int]
    ) -> AbstractAsyncContextManager[None]:
        """Its own counters are collected while what is done within lasts.

        `hosts` are the indices by which counters name the hosts of the run, its bystanders too.
        A server that stops telling them ends nothing.
        """

    async def after(self, crew: Crew, run: PlannedRun) -> None:
        """The load is over, well or not: take the last statistics. Never raises."""

    def told(self) -> ServerRun:
        """What is to be recorded of it for the last run."""

    def fault(self) -> str | None:
        """A sentence once it has died since it was ready; None while it lives."""

    async def end(self) -> tuple[str, ...]:
        """Stop what iolab started and drop what iolab made there; what could not be ended."""
