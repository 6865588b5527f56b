"""One phase of metadata load on one host: asked for, listened to, stopped, never left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from iolab.errors import EngineError
from iolab.run.drive import OVERDUE_S, heeding
from iolab.run.engines.base import Interval
from iolab.run.hosts.answers import MeasuredAnswer, MetadataIntervalAnswer, read_answer
from iolab.run.hosts.base import Host, Message
from iolab.run.metadata_reading import PhaseReader
from iolab.run.start import Start

INTERVAL_MS: Final = 1000
"""As often as fio reports."""

LEAST_LIMIT_S: Final = 600.0
SLOWEST_OPS_PER_S: Final = 10.0
"""Ten minutes, and a tenth of a second more for each operation: a phase that is slower hangs."""


def wall_limit_s(operations: int) -> float:
    """How long a phase of so many operations on one host may take."""
    return LEAST_LIMIT_S + operations / SLOWEST_OPS_PER_S


async def perform(
    host: Host,
    request: Mapping[str, object],
    halt: asyncio.Event,
    on_message: Callable[[Message], None],
    *,
    limit_s: float,
) -> Message:
    """Ask for a phase and hear it to its end; the final message. Raises HostError.

    `halt` stops it: what was done until then is told all the same. `limit_s` counts from now.
    """
    arguments: dict[str, Any] = {**request, "wall_limit_s": limit_s, "interval_ms": INTERVAL_MS}
    stream = host.stream("metadata", **arguments)
    last: Message | None = None
    late = f"did not end '{request['phase']}' within {limit_s:g} s, nor stopped it"
    async with heeding(host, stream, halt, limit_s + OVERDUE_S, late):
        async for last in stream:
            if last.is_ == "interval":
                on_message(last)
    if last is None:
        raise host.give_up(f"gave no answer to '{request['phase']}'")
    return last


async def measured_phase(
    host: Host,
    request: Mapping[str, object],
    start: Start,
    go_real_ns: int,
    halt: asyncio.Event,
    reader: PhaseReader,
    on_interval: Callable[[Interval], None],
    *,
    operations: int,
) -> MeasuredAnswer:
    """A phase that counts: begun at `go_real_ns` of the host's clock, read by `reader`.

    Raises HostError for a host that fails or makes no sense, EngineError for a phase that did not
    end in time or was stopped by somebody else.
    """

    def take(message: Message) -> None:
        told = read_answer(host.name, MetadataIntervalAnswer, message)
        try:
            on_interval(reader.take(told))
        except ValueError as fault:
            _nonsense(host, "an interval", fault)

    limit_s = start.lead_s + wall_limit_s(operations)
    timed = {**request, "start_at_real_ns": go_real_ns}
    final = await perform(host, timed, halt, take, limit_s=limit_s)
    measured = read_answer(host.name, MeasuredAnswer, final)
    on = f"'{request['phase']}' on host '{host.name}'"
    if measured.timed_out:
        happened = f"{on} did not end within {limit_s:g} s, and was stopped."
        raise EngineError(happened, "See whether the target still answers.")
    if measured.cancelled and not halt.is_set():
        happened = f"{on} was stopped by somebody else."
        raise EngineError(happened, "See who ends processes on that host, and run again.")
    return measured


def _nonsense(host: Host, what: str, fault: ValueError) -> NoReturn:
    raise host.give_up(f"sent {what} that makes no sense: {fault}") from None
