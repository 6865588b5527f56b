"""A phase is a barrier: the same work on every host at once; nobody goes on before all are done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from iolab.errors import EngineError, Fault, HostError, IolabError


class Named(Protocol):
    """Whatever a phase works on: a host, or a host's site."""

    @property
    def name(self) -> str:
        """The host's name, under which its outcome is filed."""


Member = TypeVar("Member", bound=Named)
Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[Outcome]):
    """What came of a phase, by host name: each host is in exactly one of the two."""

    done: Mapping[str, Outcome]
    failed: Mapping[str, IolabError]

    def complete(self) -> Mapping[str, Outcome]:
        """All outcomes; one error with every fault when any host failed (its own when alone)."""
        if not self.failed:
            return self.done
        fault = joined(tuple(self.failed.values()))
        fault.hosts = tuple(self.failed)
        raise fault


async def together(
    members: Iterable[Member], work: Callable[[Member], Awaitable[Outcome]]
) -> Outcomes[Outcome]:
    """The work on all at once; the slowest decides. `work` must have deadlines of its own.

    HostError and EngineError are outcomes. Anything else (a StoreError of the recorder, a
    cancellation, a bug) cancels the others, waits for them, and is raised.
    """
    tasks = {member.name: asyncio.ensure_future(work(member)) for member in members}
    try:
        waiting = set(tasks.values())
        while waiting:
            ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                _raise_unless_outcome(task)
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    done: dict[str, Outcome] = {}
    failed: dict[str, IolabError] = {}
    for name, task in tasks.items():
        fault = task.exception()
        if isinstance(fault, IolabError):
            failed[name] = fault
        else:
            done[name] = task.result()
    return Outcomes(done, failed)


async def alongside(
    main: Coroutine[Any, Any, Outcome], beside: Coroutine[Any, Any, None]
) -> Outcome:
    """What `main` gives; `beside` runs until then, and its failure ends both."""
    leading = asyncio.create_task(main)
    following = asyncio.create_task(beside)
    try:
        await asyncio.wait({leading, following}, return_when=asyncio.FIRST_COMPLETED)
        if following.done() and not leading.done():
            following.result()
        return await leading
    finally:
        leading.cancel()
        following.cancel()
        await asyncio.gather(leading, following, return_exceptions=True)


def joined(faults: tuple[IolabError, ...]) -> IolabError:
    """Several hosts' errors as one: the only one as it is, else one that names them all."""
    if len(faults) == 1:
        return faults[0]
    hosts_fault = any(isinstance(fault, HostError) for fault in faults)
    kind: type[IolabError] = HostError if hosts_fault else EngineError
    each = tuple(
        part for fault in faults for part in (fault.faults or (Fault(fault.happened, fault.do),))
    )
    return kind(f"{len(faults)} hosts failed.", "Correct each of them and run again.", each)


def _raise_unless_outcome(task: asyncio.Future[Outcome]) -> None:
    if task.cancelled():
        raise asyncio.CancelledError
    fault = task.exception()
    if fault is not None and not isinstance(fault, HostError | EngineError):
        raise fault
