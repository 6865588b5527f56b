"""What engines offer: commands to run on a host, and a reader of what they print.

An engine is pure. It never starts anything: the session gives a `Command` to a host's agent and
feeds the command's standard output, in pieces of any size, to the reader that belongs to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, runtime_checkable

from iolab.core.engine import EngineName
from iolab.core.host import ToolFacts
from iolab.core.run import EngineTotals, HostLoadDetails
from iolab.core.scenario import IoLimit
from iolab.core.workload import AnyJob, DataSet
from iolab.errors import EngineError
from iolab.record import Record

if TYPE_CHECKING:
    from iolab.hosts.intervals import Interval

FAULTS_LIMIT: Final = 10
"""A fault often repeats every second; the first ones tell the cause."""


class RunIoLimit(Record):
    """What a process and all that it starts may do on the nearest disks of a stack of devices.

    `devices` are all layers of the stack; the agent finds its nearest whole disks.
    """

    devices: tuple[str, ...]
    limit: IoLimit

    @property
    def arguments(self) -> dict[str, object]:
        """The same for an agent."""
        return {"devices": list(self.devices), "rates": self.limit.limited_rates_by_name}


class Command(Record):
    """One process to run on a host: an argument list, never a shell line.

    It must be started in the folder `cwd`, so that no path ever needs quoting inside a job file.
    `stdin` is all it reads from its standard input, `env` is added to its environment. With
    `memory_limit_bytes` it and all that it starts have no more memory, page cache included. With an
    `io_limit` they are in a control group of their own, whose I/O can be limited anew on the way.
    `job_file` is what the engine was told, as text for the record (it is part of `stdin` or of
    `argv`). A process that still runs after `wall_limit_s` is hung and is killed.
    `output_limit_bytes` bounds what it may print. One that
    `waits_for_start` is started at once, told its start by the agent, and waits for it, set up. One
    `in_host_pid_namespace` sees the host's processes by their own numbers.
    """

    argv: tuple[str, ...]
    cwd: str
    stdin: bytes
    job_file: str
    wall_limit_s: float
    output_limit_bytes: int
    env: tuple[tuple[str, str], ...] = ()
    memory_limit_bytes: int | None = None
    waits_for_start: bool = False
    in_host_pid_namespace: bool = False
    io_limit: RunIoLimit | None = None


class BlockLedger(Record):
    """Where an engine keeps which write of every block was last acknowledged, on its host.

    It counts in blocks of `block_bytes`, of which all that is written and read are multiples.
    """

    path: str
    block_bytes: int


class ParsedEngineOutput(Record):
    """All that an engine's output tells of one run on one host.

    Times are the host's CLOCK_REALTIME, None when the engine never got to do I/O. `totals` come
    from the engine's last complete report, None without one. `faults` are sentences that say why
    the run is not what was requested; a reading without fault is complete. `details` are what only
    the kind of load knows, None where the output tells nothing of that.
    """

    version: str
    start_real_ns: int | None
    end_real_ns: int | None
    intervals: Sequence[Interval]
    totals: EngineTotals | None
    faults: tuple[str, ...]
    details: HostLoadDetails | None = None


class OutputFaults(list[str]):
    """Faults of a reading while it is made: each once, and no more than FAULTS_LIMIT."""

    def add_fault(self, sentence: str) -> None:
        """Add it, if it says anything new."""
        if sentence not in self and len(self) < FAULTS_LIMIT:
            self.append(sentence)


class OutputReader(Protocol):
    """Reads one process's standard output while it comes."""

    def feed(self, piece: bytes) -> list[Interval]:
        """Take the next bytes; the intervals that they complete (often none). Never raises.

        For the live view: `finish` gives all intervals again, corrected where the end of the run
        told more, and these are the record.
        """

    def finish(self) -> ParsedEngineOutput:
        """The output has ended: everything it told. Never raises; to be called once."""


class LoadEngine(Protocol):
    """A maker of load, as far as hosts are asked for it."""

    @property
    def name(self) -> EngineName:
        """Its name in study files."""

    def require_usable(self, tool: ToolFacts) -> None:
        """EngineError unless this tool, as found on a host, can serve."""


JobT = TypeVar("JobT", bound=AnyJob, contravariant=True)


class SingleProcessEngine(LoadEngine, Protocol[JobT]):
    """A maker of load that runs as one process on each host, in a folder of its own."""

    def build_command(self, job: JobT, directory: str, *, seconds: float, seed: int) -> Command:
        """Make the job's load in `directory` for so many seconds, warm-up included.

        `seed` fixes whatever is drawn. EngineError when a value cannot be told to the engine.
        """

    def create_output_reader(self, job: JobT) -> OutputReader:
        """A new reader for the output of that job's `build_command`."""


class FileEngine(LoadEngine, Protocol[JobT]):
    """A maker of I/O on files and devices, which it also lays out."""

    def build_layout_command(
        self, data_set: DataSet, directory: str, job: JobT | None, *, seed: int
    ) -> Command:
        """Write every file of the data set, whole and with real contents, into `directory`.

        That is done as the `job` to come asks the kernel, which is then known to work; for None
        past the page cache.
        """

    def create_layout_reader(self, data_set: DataSet) -> OutputReader:
        """A new reader for the output of that `build_layout_command` command.

        Too few bytes are a fault.
        """

    def build_overwrite_command(
        self, data_set: DataSet, directory: str, passes: float, job: JobT, *, seed: int
    ) -> Command:
        """Write over the data set, which is there, so many times: sequentially, in 128 KiB.

        `job` says by which I/O engine, and whether past the page cache.
        """

    def create_overwrite_reader(self, data_set: DataSet, passes: float) -> OutputReader:
        """A new reader for that `build_overwrite_command`; too few bytes are a fault."""

    def build_measurement_command(
        self,
        job: JobT,
        data_set: DataSet,
        directory: str,
        *,
        seconds: float,
        seed: int,
        arrival_shift_share: float = 0.0,
    ) -> Command:
        """Make the job's load on the laid-out files for so many seconds (warm-up included).

        `seed` fixes the order of offsets. Arrivals at a fixed rate begin later by
        `arrival_shift_share`, from 0 to below 1, of the time between two of this host, where an
        engine can. EngineError when a value cannot be told to the engine.
        """

    def create_measurement_reader(self, job: JobT) -> OutputReader:
        """A new reader for the output of that job's `build_measurement_command` command."""

    def build_null_target_command(self, job: JobT, *, seconds: float) -> Command | None:
        """Make the job's load, at full speed, on a target that does nothing.

        None where there is no such target for its I/O. It says what it made at its end.
        """

    def create_null_target_reader(self, job: JobT) -> OutputReader:
        """A new reader for the output of that `build_null_target_command` command."""


@runtime_checkable
class VerifyingEngine(Protocol):
    """An engine that can hold what it reads against what was last written there."""

    def command_that_verifies_blocks(self, command: Command, block_ledger: BlockLedger) -> Command:
        """The same command, its jobs held against that ledger.

        EngineError when that is more than the engine reads.
        """


def command_that_verifies_blocks(
    engine: LoadEngine, command: Command, block_ledger: BlockLedger | None
) -> Command:
    """The engine's command, held against a ledger if there is one. EngineError if it cannot be."""
    if block_ledger is None:
        return command
    if not isinstance(engine, VerifyingEngine):
        raise EngineError(
            f"{engine.name} does not verify what it reads.", "Leave verify out of the workload."
        )
    return engine.command_that_verifies_blocks(command, block_ledger)
