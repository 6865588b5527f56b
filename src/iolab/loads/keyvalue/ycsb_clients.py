"""The measured phase of YCSB: all clients started at one moment, watched, heard, and read after.

YCSB writes its latency logs into a folder of the run on each client, from which they are fetched
when its process has ended.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final
from weakref import WeakKeyDictionary

from iolab.core.compressed import Packed
from iolab.core.events import IntervalSeen, Phase
from iolab.core.run import PlannedRun
from iolab.errors import EngineError, HostError, Interrupted
from iolab.hosts.barrier import alongside
from iolab.hosts.engine import Command
from iolab.hosts.host import AgentRefusal, Host, printable
from iolab.hosts.processes import driven, ending_says, fetched, told
from iolab.hosts.remote_process import STDERR_TAIL_BYTES, Ending
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.keyvalue.hdr_log import LOG_LIMIT_BYTES
from iolab.loads.keyvalue.java import (
    INSTALL_JAVA,
    YCSB_VERSION,
    Java,
    KitName,
    Kits,
    java_on,
    kit_on,
)
from iolab.loads.keyvalue.workload import YCSB_ENGINE, ServerSettings
from iolab.loads.keyvalue.ycsb import Kit, kit_of
from iolab.loads.keyvalue.ycsb_output import (
    StatusReader,
    YcsbStatus,
    load_faults,
    parse,
    without_status,
)
from iolab.session.context import SessionContext
from iolab.session.driver import HostShare, on_each
from iolab.session.exit_faults import ending_fault
from iolab.session.start import Go, drive_between_looks, load_at_once
from iolab.session.start_time import NS_PER_S
from iolab.targets.work_directory import WorkDirectory
from iolab.units import format_bytes

KEPT_BYTES: Final = 16 << 20
"""Of each stream: a status line of half a kB for each second of nine hours."""


Hear = Callable[[YcsbStatus], None]
"""Takes each status line when it comes."""


class YcsbStreams:
    """Keeps both streams of a process, and reads its status lines while they come."""

    def __init__(self, hear: Hear) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._hear = hear
        self._status = StatusReader()

    def out(self, piece: bytes) -> None:
        """Take the next bytes of standard output."""
        self.stdout += piece[: KEPT_BYTES - len(self.stdout)]

    def err(self, piece: bytes) -> None:
        """Take the next bytes of standard error."""
        self.stderr += piece[: KEPT_BYTES - len(self.stderr)]
        for status in self._status.feed(piece):
            self._hear(status)

    def without_status(self, ending: Ending) -> Ending:
        """How the process ended, with the last words that are no status line."""
        words = without_status(bytes(self.stderr))[-STDERR_TAIL_BYTES:]
        return replace(ending, stderr_tail=words.decode("utf-8", "replace"))

    @property
    def packed(self) -> tuple[Packed, Packed]:
        """Both streams for the record."""
        return Packed.of(bytes(self.stdout)), Packed.of(bytes(self.stderr))


def out_of_memory(host: str, command: Command, ending: Ending) -> EngineError | None:
    """Whether the kernel killed a client because its memory is bounded."""
    if not ending.exited.oom_kills or command.memory_limit_bytes is None:
        return None
    limit = format_bytes(command.memory_limit_bytes)
    return EngineError(
        f"YCSB on host '{host}' needed more than its {limit} and was killed.",
        "Give it more by workload.*.memory, or a smaller heap or cache_bytes by workload.*.ycsb.",
    )


DEATH_WATCH_S: Final = 0.5
"""How often it is asked whether the server still lives."""

STDERR: Final = f"{YCSB_ENGINE}.stderr"

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
        session: SessionContext,
        run: PlannedRun,
        evidence: Sequence[HostShare],
        counters: CounterCollector,
        *,
        record_bytes: int,
    ) -> None:
        self._session = session
        self._evidence = evidence
        self._counters = counters
        self._halt = asyncio.Event()
        self.printed = {
            mine.name: YcsbStreams(show(session, run, mine.name, record_bytes)) for mine in evidence
        }

    async def measure(self, died: Died = nobody_dies) -> None:
        """From the start of all processes to the end of the last.

        Raises HostError or EngineError when any host failed or the server died; the others are then
        stopped. The user's wish to stop ends all of them early without an error.
        """
        load = load_at_once(self._session, self._evidence, self._counters, self._one, self._halt)
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

        async def bring(mine: HostShare) -> None:
            for path in names[mine.name]:
                with suppress(AgentRefusal):
                    content = await fetched(mine.site.host, path, LOG_LIMIT_BYTES)
                    if content is not None:
                        mine.files[path.rpartition("/")[2]] = Packed.of(content)

        await on_each([mine for mine in self._evidence if not mine.site.host.lost], bring)

    async def _one(self, mine: HostShare, go: Go) -> None:
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
        if fault := killed or ending_fault(YCSB_ENGINE, mine):
            raise fault

    async def _heed(self, died: Died) -> None:
        """Halt all clients when the server has died."""
        while not died():  # noqa: ASYNC110 - a process elsewhere sets no event
            await asyncio.sleep(DEATH_WATCH_S)
        self._halt.set()
        await asyncio.Event().wait()


def show(session: SessionContext, run: PlannedRun, host: str, record_bytes: int) -> Hear:
    """Tells the live view of each status line of a host."""

    def hear(status: YcsbStatus) -> None:
        session.tell(
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


LOAD_THREADS: Final = 16
"""Of each client: enough to keep a store of one node busy, few enough not to make it refuse."""

START_LIMIT_S: Final = 120.0
SLOWEST_INSERTS_PER_S: Final = 100.0
"""A client that is slower, or needs longer to start, is taken for hung."""

PROGRESS_S: Final = 10
"""Between two words on how far a load has come."""

LOAD_AGAIN: Final = "See that the store has room and answers; the records are loaded again then."


@dataclass(frozen=True, slots=True)
class RecordShare:
    """The records that one client loads: `count` of them from number `first` on."""

    first: int
    count: int


def shares(records: int, clients: int) -> tuple[RecordShare, ...]:
    """The records in parts as equal as can be, in order, none left out."""
    edges = [records * index // clients for index in range(clients + 1)]
    return tuple(RecordShare(low, high - low) for low, high in pairwise(edges))


def load_limit_s(count: int) -> int:
    """How long a client may take for so many records before it is taken for hung."""
    return math.ceil(START_LIMIT_S + count / SLOWEST_INSERTS_PER_S)


async def load_records(
    session: SessionContext,
    run: PlannedRun,
    evidence: Sequence[HostShare],
    work: Mapping[str, tuple[Command, RecordShare]],
) -> None:
    """Each client writes its share, all at once. EngineError unless every record came in.

    HostError when a host fails; Interrupted when the user wishes to stop, with a store that is
    loaded in part.
    """
    halt = asyncio.Event()
    progress = _Progress(session, run, sum(share.count for _, share in work.values()))

    async def one(mine: HostShare) -> None:
        command, share = work[mine.name]
        printed = YcsbStreams(progress.of(mine.name))
        try:
            await _load_share(mine, command, share, printed, halt)
        except (HostError, EngineError):
            # What the others would still write is of no use.
            halt.set()
            raise

    loading = on_each([mine for mine in evidence if mine.name in work], one)
    await alongside(loading, session.stop.pass_on(halt))
    if session.stop.requested:
        raise Interrupted("The session was stopped while it loaded records.", "Resume it to go on.")


class _Progress:
    """Tells now and then how far all clients have come together."""

    def __init__(self, session: SessionContext, run: PlannedRun, records: int) -> None:
        self._session = session
        self._run = run
        self._records = records
        self._done: dict[str, int] = {}
        self._told_ns = session.clock.mono_ns()

    def of(self, host: str) -> Hear:
        """What hears that host's status."""

        def hear(status: YcsbStatus) -> None:
            self._done[host] = status.operations
            now_ns = self._session.clock.mono_ns()
            if now_ns - self._told_ns >= PROGRESS_S * NS_PER_S:
                self._told_ns = now_ns
                text = f"{sum(self._done.values()):,} of {self._records:,} records"
                self._session.begin(Phase.LAY_OUT, self._run, text)

        return hear


async def _load_share(
    mine: HostShare, command: Command, share: RecordShare, printed: YcsbStreams, halt: asyncio.Event
) -> None:
    """One client's part, to its end or until it is halted."""
    ending = await driven(
        mine.site.host, command, halt, printed.out, on_stderr=printed.err, install=INSTALL_JAVA
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


OLDEST_JAVA: Final = 8
"""What YCSB 0.17.0 and iolab's bindings for it are compiled for."""

WORK: Final = "ycsb.run"
"""The folder in which a run's processes work and leave their logs, below the session's folder."""

_CORE: Final = re.compile(r"^core-(\d[\w.-]*)\.jar$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class YcsbInstall:
    """What starts YCSB on a host, and which version of it that is."""

    kit: Kit
    java: Java
    version: str

    @property
    def told(self) -> str:
        """Both versions, as a record has them."""
        return f"YCSB {self.version}, Java {self.java.version}"


class YcsbTools:
    """The tools of each host that was asked about, as long as its connection holds."""

    def __init__(self, kits: Kits = kit_on) -> None:
        self._kits = kits
        self._found: WeakKeyDictionary[Host, YcsbInstall] = WeakKeyDictionary()

    def of(self, site: WorkDirectory) -> YcsbInstall:
        """The tools of a host that was asked before; KeyError for another."""
        return self._found[site.host]

    async def on(
        self, site: WorkDirectory, settings: ServerSettings, say: Callable[[str], None]
    ) -> YcsbInstall:
        """The tools on a site's host. EngineError when they cannot be had, HostError of a host."""
        found = self._found.get(site.host)
        if found is None:
            found = self._found[site.host] = await self._look(site, settings, say)
        return found

    async def _look(
        self, site: WorkDirectory, settings: ServerSettings, say: Callable[[str], None]
    ) -> YcsbInstall:
        java = await java_on(site.host, settings.java, oldest=OLDEST_JAVA)
        version = await _version_of(site.host, settings.ycsb) if settings.ycsb else YCSB_VERSION
        jars = await self._kits(site.host, KitName.YCSB, YCSB_VERSION, site.dir, say)
        return YcsbInstall(kit_of(settings.java, jars, ycsb=settings.ycsb), java, version)


def work_folder(site: WorkDirectory) -> str:
    """Where a run's processes work on that client."""
    return f"{site.dir}/{WORK}"


async def _version_of(host: Host, folder: str) -> str:
    """The version of the user's own YCSB, by the name of its core. EngineError without one."""
    do = "Give the folder of an unpacked YCSB as server.ycsb; without it iolab brings its own."
    try:
        listed = await told(host, ("ls", "--", f"{folder.rstrip('/')}/lib"))
    except EngineError as fault:
        raise EngineError(fault.happened, do) from None
    found = _CORE.search(listed.decode("utf-8", "replace"))
    if found is None:
        where = printable(f"{folder.rstrip('/')}/lib")
        raise EngineError(f"There is no core of YCSB in {where} on host '{host.name}'.", do)
    return found[1]
