"""The measured phase of YCSB: all clients started at one moment, watched, heard, and read after.

YCSB writes its latency logs into a folder of the run on each client, from which they are fetched
when its process has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from iolab.errors import EngineError
from iolab.model.engine import EngineName
from iolab.model.event import IntervalSeen
from iolab.model.packed import Packed
from iolab.model.run import PlannedRun
from iolab.run.barrier import alongside
from iolab.run.common_start import Go, drive_between_looks, load_at_once
from iolab.run.crew import Crew
from iolab.run.engines.hdr_log import LOG_LIMIT_BYTES
from iolab.run.engines.ycsb_status import YcsbStatus
from iolab.run.evidence import Evidence, on_each
from iolab.run.hosts.base import Refusal
from iolab.run.key_value.fetching import fetched
from iolab.run.key_value.ycsb_process import Hear, Printed, out_of_memory
from iolab.run.outcome import ending_fault
from iolab.run.telemetry.decode import CounterCollector

DEATH_WATCH_S: Final = 0.5
"""How often it is asked whether the server still lives."""

STDERR: Final = f"{EngineName.YCSB}.stderr"

Died = Callable[[], str | None]
"""A sentence once the server has died, None while it lives."""


def nobody_dies() -> str | None:
    """Where there is no server."""
    return None


class YcsbClients:
    """All clients of one run; `measure` once, then `fetch`.

    Each client's command stands in its evidence; `printed` holds what each process printed.
    """

    def __init__(
        self,
        crew: Crew,
        run: PlannedRun,
        evidence: Sequence[Evidence],
        counters: CounterCollector,
        *,
        record_bytes: int,
    ) -> None:
        self._crew = crew
        self._evidence = evidence
        self._counters = counters
        self._halt = asyncio.Event()
        self.printed = {
            mine.name: Printed(show(crew, run, mine.name, record_bytes)) for mine in evidence
        }

    async def measure(self, died: Died = nobody_dies) -> None:
        """From the start of all processes to the end of the last.

        Raises HostError or EngineError when any host failed or the server died; the others are then
        stopped. The user's wish to stop ends all of them early without an error.
        """
        load = load_at_once(self._crew, self._evidence, self._counters, self._one, self._halt)
        try:
            await alongside(load, self._heed(died))
        except EngineError:
            if died() is None:
                raise
        if said := died():
            # Operations that fail, and clients that give up, follow from it: nobody else is guilty.
            for mine in self._evidence:
                mine.error = None
            do = "See what the server said before it died; the next run starts it again."
            raise EngineError(said, do)

    async def fetch(self, names: Mapping[str, Sequence[str]]) -> None:
        """Bring each client's files by their paths into its evidence, as far as they are there.

        Raises HostError when a host fails, with the files of the others kept.
        """

        async def bring(mine: Evidence) -> None:
            for path in names[mine.name]:
                with suppress(Refusal):
                    content = await fetched(mine.site.host, path, LOG_LIMIT_BYTES)
                    if content is not None:
                        mine.files[path.rpartition("/")[2]] = Packed.of(content)

        await on_each([mine for mine in self._evidence if not mine.site.host.lost], bring)

    async def _one(self, mine: Evidence, go: Go) -> None:
        """One client's process between two looks at its devices."""
        if mine.command is None:
            raise ValueError("a client has its command before the run is measured")
        printed = self.printed[mine.name]
        try:
            ending = await drive_between_looks(
                mine, mine.command, go, self._halt, printed.out, printed.err
            )
        finally:
            if mine.ending is not None:
                mine.ending = printed.without_status(mine.ending)
            mine.output, mine.files[STDERR] = printed.packed
        killed = out_of_memory(mine.name, mine.command, ending)
        if fault := killed or ending_fault(EngineName.YCSB, mine):
            raise fault

    async def _heed(self, died: Died) -> None:
        """Halt all clients when the server has died."""
        while not died():  # noqa: ASYNC110 - a process elsewhere sets no event
            await asyncio.sleep(DEATH_WATCH_S)
        self._halt.set()
        await asyncio.Event().wait()


def show(crew: Crew, run: PlannedRun, host: str, record_bytes: int) -> Hear:
    """Tells the live view of each status line of a host."""

    def hear(status: YcsbStatus) -> None:
        crew.tell(
            IntervalSeen(
                host=host,
                run=run,
                elapsed_s=float(status.elapsed_s),
                iops=status.ops_per_s,
                bw_bytes_per_s=status.ops_per_s * record_bytes,
                lat_ns_mean=status.lat_ns_mean,
            )
        )

    return hear
