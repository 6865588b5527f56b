"""A phase is a barrier: the same work on every host at once; nobody goes on before all are done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Generic, Protocol, TypeVar

from iolab.errors import EngineError, Fault, HostError, Interrupted, IolabError
from iolab.record import Record

NAMED_HOSTS: Final = 12
"""Hosts that an error of many names; each has a fault of its own."""


class HasName(Protocol):
    """Whatever a phase works on: a host, or a host's work directory."""

    @property
    def name(self) -> str:
        """The host's name, under which its outcome is filed."""


@contextmanager
def set_event_on_failure(event: asyncio.Event) -> Iterator[None]:
    """Set the event where what is done inside fails: the others need not go on then."""
    try:
        yield
    except (HostError, EngineError):
        event.set()
        raise


Member = TypeVar("Member", bound=HasName)
Outcome = TypeVar("Outcome")


class HostOutcomes(Record, Generic[Outcome]):
    """What came of a phase, by host name: each host is in exactly one of the two."""

    results: Mapping[str, Outcome]
    errors: Mapping[str, IolabError]

    def results_or_raise(self) -> Mapping[str, Outcome]:
        """All outcomes; one error with every fault when any host failed (its own when alone)."""
        if not self.errors:
            return self.results
        fault = combined_error(self.errors)
        fault.hosts = tuple(self.errors)
        raise fault


async def gather_hosts(
    members: Iterable[Member], work: Callable[[Member], Awaitable[Outcome]]
) -> HostOutcomes[Outcome]:
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
                _raise_unless_host_or_engine_error(task)
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
    return HostOutcomes(done, failed)


async def run_with_background(
    main: Coroutine[Any, Any, Outcome], background: Coroutine[Any, Any, None]
) -> Outcome:
    """What `main` gives; `background` runs until then, and its failure ends both."""
    leading = asyncio.create_task(main)
    following = asyncio.create_task(background)
    try:
        await asyncio.wait({leading, following}, return_when=asyncio.FIRST_COMPLETED)
        if following.done() and not leading.done():
            following.result()
        return await leading
    finally:
        leading.cancel()
        following.cancel()
        await asyncio.gather(leading, following, return_exceptions=True)


def combined_error(errors_by_host: Mapping[str, IolabError]) -> IolabError:
    """Hosts' errors as one: the only one as it is, else one that names the hosts."""
    faults = tuple(errors_by_host.values())
    if len(faults) == 1:
        return faults[0]
    hosts_fault = any(isinstance(fault, HostError) for fault in faults)
    kind: type[IolabError] = HostError if hosts_fault else EngineError
    each = tuple(
        part for fault in faults for part in (fault.faults or (Fault(fault.message, fault.hint),))
    )
    names = ", ".join(f"'{name}'" for name in [*errors_by_host][:NAMED_HOSTS])
    more = f" and {len(faults) - NAMED_HOSTS} more" if len(faults) > NAMED_HOSTS else ""
    message = f"{len(faults)} hosts failed: {names}{more}."
    return kind(message, "Correct each of them and run again.", each)


def _raise_unless_host_or_engine_error(task: asyncio.Future[Outcome]) -> None:
    if task.cancelled():
        raise asyncio.CancelledError
    fault = task.exception()
    if fault is not None and not isinstance(fault, HostError | EngineError):
        raise fault


class StopRequest:
    """Two requests: the first ends the run early and keeps what it measured, the second abandons.

    Call `request_stop` in the event loop's thread (`loop.add_signal_handler`).
    """

    def __init__(self) -> None:
        self._first = asyncio.Event()
        self._second = asyncio.Event()

    def request_stop(self) -> None:
        """Ask to stop; a third and later request changes nothing."""
        if self._first.is_set():
            self._second.set()
        self._first.set()

    @property
    def is_requested(self) -> bool:
        """Whether the session should come to its end."""
        return self._first.is_set()

    @property
    def is_immediate(self) -> bool:
        """Whether nothing should be waited for."""
        return self._second.is_set()

    async def wait(self) -> None:
        """Return at the first request."""
        await self._first.wait()

    async def forward_to_event(self, event: asyncio.Event) -> None:
        """Set `event` at the first request.

        Run it beside a task by `run_with_background`, which cancels it.
        """
        await self._first.wait()
        event.set()
        await asyncio.Event().wait()

    async def sleep(self, seconds: float) -> None:
        """Wait so long, or until the first request."""
        try:
            async with asyncio.timeout(seconds):
                await self._first.wait()
        except TimeoutError:
            return

    async def run_unless_stopped(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        """The work's outcome; at the first request it is cancelled and Interrupted is raised.

        For what may take hours and is of no use half done.
        """
        return await _run_until_event(
            self._first, work, "The session was stopped while it prepared."
        )

    async def run_unless_immediate_stop(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        """The work's outcome; at the second request it is cancelled and Interrupted is raised."""
        return await _run_until_event(self._second, work, "The session was stopped at once.")


async def _run_until_event(
    event: asyncio.Event, work: Coroutine[Any, Any, Outcome], message: str
) -> Outcome:
    task = asyncio.create_task(work, name="until a stop request")
    wish = asyncio.create_task(event.wait(), name="stop request")
    try:
        await asyncio.wait({task, wish}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Interrupted(message, "Resume it to go on.")
    finally:
        task.cancel()
        wish.cancel()
        await asyncio.gather(task, wish, return_exceptions=True)
