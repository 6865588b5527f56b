"""Records written into a store by YCSB: shared among clients, all of them OK and counted."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from iolab.errors import EngineError, HostError, Interrupted
from iolab.model.event import Phase
from iolab.model.run import PlannedRun
from iolab.run.barrier import alongside
from iolab.run.crew import Crew
from iolab.run.engines.base import Command
from iolab.run.engines.ycsb_output import load_faults, parse
from iolab.run.engines.ycsb_status import YcsbStatus
from iolab.run.evidence import Evidence, on_each
from iolab.run.hosts.text import printable
from iolab.run.key_value.java import INSTALL
from iolab.run.key_value.processes import driven, ending_says
from iolab.run.key_value.ycsb_process import Hear, Printed, out_of_memory
from iolab.run.start import NS_PER_S

LOAD_THREADS: Final = 16
"""Of each client: enough to keep a store of one node busy, few enough not to make it refuse."""

START_LIMIT_S: Final = 120.0
SLOWEST_INSERTS_PER_S: Final = 100.0
"""A client that is slower, or needs longer to start, is taken for hung."""

PROGRESS_S: Final = 10
"""Between two words on how far a load has come."""

LOAD_AGAIN: Final = "See that the store has room and answers; the records are loaded again then."


@dataclass(frozen=True, slots=True)
class Share:
    """The records that one client loads: `count` of them from number `first` on."""

    first: int
    count: int


def shares(records: int, clients: int) -> tuple[Share, ...]:
    """The records in parts as equal as can be, in order, none left out."""
    edges = [records * index // clients for index in range(clients + 1)]
    return tuple(Share(low, high - low) for low, high in pairwise(edges))


def load_limit_s(count: int) -> int:
    """How long a client may take for so many records before it is taken for hung."""
    return math.ceil(START_LIMIT_S + count / SLOWEST_INSERTS_PER_S)


async def load_records(
    crew: Crew,
    run: PlannedRun,
    evidence: Sequence[Evidence],
    work: Mapping[str, tuple[Command, Share]],
) -> None:
    """Each client writes its share, all at once. EngineError unless every record came in.

    HostError when a host fails; Interrupted when the user wishes to stop, with a store that is
    loaded in part.
    """
    halt = asyncio.Event()
    progress = _Progress(crew, run, sum(share.count for _, share in work.values()))

    async def one(mine: Evidence) -> None:
        command, share = work[mine.name]
        printed = Printed(progress.of(mine.name))
        try:
            await _load_share(mine, command, share, printed, halt)
        except (HostError, EngineError):
            # What the others would still write is of no use.
            halt.set()
            raise

    loading = on_each([mine for mine in evidence if mine.name in work], one)
    await alongside(loading, crew.stop.pass_on(halt))
    if crew.stop.requested:
        raise Interrupted("The session was stopped while it loaded records.", "Resume it to go on.")


class _Progress:
    """Tells now and then how far all clients have come together."""

    def __init__(self, crew: Crew, run: PlannedRun, records: int) -> None:
        self._crew = crew
        self._run = run
        self._records = records
        self._done: dict[str, int] = {}
        self._told_ns = crew.clock.mono_ns()

    def of(self, host: str) -> Hear:
        """What hears that host's status."""

        def hear(status: YcsbStatus) -> None:
            self._done[host] = status.operations
            now_ns = self._crew.clock.mono_ns()
            if now_ns - self._told_ns >= PROGRESS_S * NS_PER_S:
                self._told_ns = now_ns
                text = f"{sum(self._done.values()):,} of {self._records:,} records"
                self._crew.begin(Phase.LAY_OUT, self._run, text)

        return hear


async def _load_share(
    mine: Evidence, command: Command, share: Share, printed: Printed, halt: asyncio.Event
) -> None:
    """One client's part, to its end or until it is halted."""
    ending = await driven(
        mine.site.host, command, halt, printed.out, on_stderr=printed.err, install=INSTALL
    )
    if ending.halted:
        return
    if killed := out_of_memory(mine.name, command, ending):
        raise killed
    if fault := ending_says(printed.without_status(ending), command):
        raise EngineError(f"YCSB on host '{mine.name}' {fault}.", LOAD_AGAIN)
    output = parse(bytes(printed.stdout), bytes(printed.stderr))
    if faults := load_faults(output, share.count):
        said = printable("; ".join(faults)).rstrip(".")
        raise EngineError(f"A load of YCSB on host '{mine.name}': {said}.", LOAD_AGAIN)
