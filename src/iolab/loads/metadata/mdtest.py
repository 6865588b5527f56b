"""mdtest as an engine: the MPI that starts it, its commands, and its driver in sessions."""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec.structs import replace

from iolab.core.compressed import OutputCompressor
from iolab.core.engine import validate_options
from iolab.core.events import SessionPhase
from iolab.core.host import HostTransport
from iolab.core.limits import MDTEST_OUTPUT_BYTES_MAX
from iolab.core.run import PlannedRun, RunRecord
from iolab.errors import EngineError, HostError
from iolab.hosts.answers import read_facts
from iolab.hosts.barrier import gather_hosts, run_with_background
from iolab.hosts.clock import measure_clock_offset
from iolab.hosts.device_counters import take_disks_snapshot, take_disks_snapshot_and_sample
from iolab.hosts.engine import Command, ParsedEngineOutput
from iolab.hosts.remote_process import exit_fault_text, run_process
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.metadata.mdtest_output import (
    MdtestOutput,
    output_contradictions,
    parse_mdtest_output,
    reported_rates,
)
from iolab.loads.metadata.workload import (
    MDTEST_ENGINE,
    MDTEST_OPTIONS,
    MetadataJob,
    MetadataOperation,
    ReportedRate,
    ReportedRunRates,
)
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.session.discovery import FACTS_LIMIT_S
from iolab.session.driver import HostRunInProgress, LoadDriver, run_on_each_host
from iolab.session.observers import HostWatch
from iolab.session.process_driver import process_ending_error
from iolab.session.start import end_watches, watch_for_background_io
from iolab.targets.work_directory import WorkDirectory, require_shared_target
from iolab.text import excerpt

INSTALL_MPI: Final = "Install MPICH or Open MPI on every client, as with `apt-get install mpich`."

MPI_SETTINGS: Final = (("UCX_TLS", "^sm"),)
"""UCX, by which an MPI may send, takes no shared memory: it looks ranks up in `/proc`, which knows
them by other numbers than they have in an agent's PID namespace, and takes them for dead."""

VERSION_LIMIT: Final = 64 << 10
"""Characters looked at: both print a page."""

_ADDRESS: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9])?")

START_LIMIT_S: Final = 300.0
"""For mpiexec to start thousands of ranks over ssh, and to end them."""

SLOWEST_OPS_PER_S: Final = 20.0
"""A fleet that is slower in any phase is taken for hung: a tenth of a lone disk that syncs."""

VERSION_LIMIT_S: Final = 60.0
"""For `mpiexec --version`, from a software tree on a busy network file system."""

INSTALL_MDTEST: Final = "Install it on every client, in the same place: it comes with IOR."
_SHARE: Final = "Mount the target at the same path on every client."


class MpiName(StrEnum):
    """The MPIs whose `mpiexec` is known."""

    MPICH = "MPICH"
    OPEN_MPI = "Open MPI"


class MpiInstallation(Record):
    """An MPI as its `mpiexec --version` tells it."""

    name: MpiName
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class RankPlacement(Record):
    """Where ranks run: a host's name in the study, its address among the hosts, how many."""

    host: str
    address: str
    ranks: int


def parse_mpi_version(text: str) -> MpiInstallation:
    """The MPI that printed this as its version. EngineError for any other.

    Hydra is MPICH's; Intel's and Cray's mpiexec, which take other options, say something else.
    """
    for name, pattern in _VERSIONS:
        if match := pattern.search(text[:VERSION_LIMIT]):
            return MpiInstallation(name, match[1])
    first = (text.strip().splitlines() or ["nothing"])[0]
    raise EngineError(f"mpiexec reports the unknown version {first[:60]!r}.", INSTALL_MPI)


def mpiexec_argv(
    mpi: MpiInstallation, program: str, placements: Sequence[RankPlacement], *, is_run_as_root: bool
) -> list[str]:
    """Start ranks on all places, filled one after the other; what to run is to be appended.

    Hosts stand in the arguments, so that no host file is left anywhere. The launcher reaches the
    others by ssh. EngineError for an address that cannot stand there.
    """
    for place in placements:
        _require_plain_address(place)
    hosts = ",".join(f"{place.address}:{place.ranks}" for place in placements)
    ranks = str(sum(place.ranks for place in placements))
    if mpi.name is MpiName.MPICH:
        # `user`: not the nodes of whatever allocation the agent was started in.
        return [program, "-rmk", "user", "-launcher", "ssh", "-hosts", hosts, "-np", ranks]
    root = ["--allow-run-as-root"] if is_run_as_root else []
    # Ranks that wait for storage share processors: none is bound to one, as with MPICH.
    where = ["--host", hosts, "--map-by", "slot", "--bind-to", "none"]
    return [program, *root, *where, "-np", ranks]


_VERSIONS: Final = (
    (MpiName.MPICH, re.compile(r"HYDRA build details:\s+Version:\s+(\d[\w.+-]{0,39})")),
    (MpiName.OPEN_MPI, re.compile(r"\(Open(?:RTE| MPI)\) (\d[\w.+-]{0,39})")),
)


def _require_plain_address(placement: RankPlacement) -> None:
    if _ADDRESS.fullmatch(placement.address):
        return
    message = (
        f"mpiexec cannot be told the address of host '{placement.host}', {placement.address!r}."
    )
    raise EngineError(message, "Give a name or an IPv4 address in the inventory.")


class MpiPrograms(Record):
    """What to start, each a name to be found on PATH or a full path."""

    mdtest: str
    mpiexec: str


def mpi_programs_of_job(job: MetadataJob) -> MpiPrograms:
    """The programs that the job names, else those of the usual names. EngineError as below."""
    options = validate_options("mdtest", job.options, MDTEST_OPTIONS)
    return MpiPrograms(options.get("mdtest", "mdtest"), options.get("mpiexec", "mpiexec"))


def mpiexec_version_command(programs: MpiPrograms, directory: str) -> Command:
    """Ask `mpiexec` for its version."""
    argv = (programs.mpiexec, "--version")
    return Command(argv, directory, b"", "", VERSION_LIMIT_S, MDTEST_OUTPUT_BYTES_MAX)


def mdtest_command(
    mpi: MpiInstallation,
    job: MetadataJob,
    placements: Sequence[RankPlacement],
    directory: str,
    iteration_folder: str,
) -> Command:
    """One iteration of all phases below `directory`/`iteration_folder`, made and removed by mdtest.

    `placements` are the clients in their order, the one that starts the others first. EngineError
    for an option that is not allowed or an address that mpiexec cannot be told.
    """
    options = validate_options("mdtest", job.options, MDTEST_OPTIONS)
    programs = mpi_programs_of_job(job)
    total = sum(place.ranks for place in placements)
    as_root = options.get("allow_run_as_root") == "1"
    argv = [
        *mpiexec_argv(mpi, programs.mpiexec, placements, is_run_as_root=as_root),
        *(programs.mdtest, "-v", "-i", "1", "-F", "-u", "-n", str(job.files_per_rank)),
        *_optional_mdtest_arguments(job, total, options),
        *("-d", f"{directory}/{iteration_folder}"),
    ]
    work = len(MetadataOperation) * total * job.files_per_rank
    lines = "".join(
        f"{place.host}: {place.ranks} ranks at {place.address}\n" for place in placements
    )
    return Command(
        argv=tuple(argv),
        cwd=directory,
        stdin=b"",
        job_file=f"{mpi}\n{lines}",
        wall_limit_s=START_LIMIT_S + work / SLOWEST_OPS_PER_S,
        output_limit_bytes=MDTEST_OUTPUT_BYTES_MAX,
        env=MPI_SETTINGS,
    )


def mdtest_output_faults(
    output: MdtestOutput, job: MetadataJob, rank_count: int
) -> tuple[str, ...]:
    """Why an output is not that of the run that was requested; empty when it is.

    What mdtest or MPI said of an error comes first, but for what explains all of them.
    """
    if output.ranks == 1 and rank_count > 1:
        # Each is rank 0 of its own world; they make and remove the same files.
        return (
            f"{rank_count} ranks ran alone: this mdtest was built for another MPI than mpiexec's",
        )
    return (
        *output.messages,
        *output.faults,
        *output_contradictions(output),
        *_request_mismatch_faults(output, job, rank_count),
    )


def _optional_mdtest_arguments(
    job: MetadataJob, total_ranks: int, mdtest_options: dict[str, str]
) -> Iterator[str]:
    if job.rank_shift % total_ranks:
        yield from ("-N", str(job.rank_shift % total_ranks))
    if job.file_bytes:
        yield from ("-w", str(job.file_bytes), "-e", str(job.file_bytes))
    if mdtest_options.get("fsync") == "1":
        yield "-y"
    if mdtest_options.get("random_stat") == "1":
        yield "-R"


def _request_mismatch_faults(
    output: MdtestOutput, job: MetadataJob, rank_count: int
) -> Iterator[str]:
    if output.ranks is not None and output.ranks != rank_count:
        yield f"mdtest ran {output.ranks} ranks, and {rank_count} were requested"
    files = rank_count * job.files_per_rank
    if output.files is not None and output.files != files:
        yield f"mdtest used {output.files} files, and {files} were requested"
    if not output.rows:
        yield "mdtest printed no summary"
        return
    if output.iterations != 1:
        yield f"mdtest ran {output.iterations} iterations, and one was requested"
    for operation in MetadataOperation:
        row = output.summary_row(operation)
        if row is None or row.minimum <= 0:
            yield f"mdtest gave no rate for {operation.display_name}"
    if not output.finished:
        yield "mdtest did not say that it finished"


class MdtestDriver(LoadDriver):
    """One iteration of mdtest on all clients; see `LoadDriver`."""

    def __init__(self) -> None:
        self.rates: tuple[ReportedRate, ...] = ()

    async def do_steps_before_load(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """The target shared at one path, the programs there, the devices watched idle."""
        self.rates = ()
        session.begin_session_phase(SessionPhase.PROVE, run, "mdtest and MPI on every client")
        await run_on_each_host(
            host_runs,
            lambda host_run: _require_programs(host_run, MetadataJob.require_type(run.point.job)),
        )
        await _require_one_shared_target(host_runs)
        if not session.stop.is_requested:
            await watch_for_background_io(session, run, host_runs)

    async def measure(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        counters: CounterCollector,
    ) -> None:
        """Mdtest from its start to its end."""
        job = MetadataJob.require_type(run.point.job)
        session.begin_session_phase(SessionPhase.MEASURE, run, run.point.title_text)
        halt = asyncio.Event()
        mpi = await _require_common_mpi(host_runs, job, halt)
        first = host_runs[0]
        folder = f"mdtest.{run.repeat}.{run.attempt}"
        places = [
            RankPlacement(host_run.name, mpi_host_address(host_run.workdir), job.ranks)
            for host_run in host_runs
        ]
        first.command = mdtest_command(mpi, job, places, first.workdir.dir, folder)
        raw = await _run_mdtest(session, host_runs, counters, first.command, halt)
        self.rates = _set_readings_and_parse_rates_or_raise(host_runs, job, raw)

    def with_load_details(self, record: RunRecord) -> RunRecord:
        """With the rates that it printed."""
        return replace(record, details=ReportedRunRates(self.rates))


def mpi_host_address(workdir: WorkDirectory) -> str:
    """Where the other clients find this one: its address for ssh, else its name in the study.

    This machine is `localhost`, which serves as long as it is the only client.
    """
    spec = workdir.host.spec
    if spec.ssh is not None:
        return spec.ssh.address
    return "localhost" if spec.transport is HostTransport.LOCAL else spec.name


async def _require_programs(host_run: HostRunInProgress, job: MetadataJob) -> None:
    """EngineError when mdtest or mpiexec is not on that host."""
    programs = mpi_programs_of_job(job)
    asked = {
        "mdtest": [programs.mdtest, "-h"],
        "mpiexec": [programs.mpiexec, "--version"],
    }
    answer = await host_run.workdir.host.request(
        "facts", deadline_s=FACTS_LIMIT_S, path=host_run.workdir.dir, tools=asked
    )
    facts = read_facts(host_run.name, answer)
    for name, words in asked.items():
        tool = facts.tool_facts(name)
        if tool is None or tool.path is None:
            message = f"There is no {excerpt(words[0])} on host '{host_run.name}'."
            raise EngineError(message, INSTALL_MDTEST if name == "mdtest" else INSTALL_MPI)


async def _require_one_shared_target(host_runs: Sequence[HostRunInProgress]) -> None:
    """HostError unless every client sees the first one's folder under the same path."""
    first = host_runs[0].workdir
    for host_run in host_runs:
        if posixpath.dirname(host_run.workdir.dir) != posixpath.dirname(first.dir):
            message = (
                f"mdtest works below one path on all clients, and '{host_run.name}' has its "
                f"target at {posixpath.dirname(host_run.workdir.dir)}, '{first.name}' at "
                f"{posixpath.dirname(first.dir)}."
            )
            raise HostError(message, _SHARE)
    workdirs = [host_run.workdir for host_run in host_runs]
    needs = {workdir.name: [first.name] for workdir in workdirs[1:]}
    if needs:
        await require_shared_target(workdirs, needs, hint=_SHARE)


async def _require_common_mpi(
    host_runs: Sequence[HostRunInProgress], job: MetadataJob, halt: asyncio.Event
) -> MpiInstallation:
    """The MPI of all clients. EngineError when they differ: their ranks would not meet."""

    async def find_mpi_on_host(host_run: HostRunInProgress) -> MpiInstallation:
        words = bytearray()
        command = mpiexec_version_command(mpi_programs_of_job(job), host_run.workdir.dir)
        ending = await run_process(host_run.workdir.host, command, halt, words.extend)
        if fault := exit_fault_text(ending, command):
            raise EngineError(f"mpiexec on host '{host_run.name}' {fault}.", INSTALL_MPI)
        return parse_mpi_version(words.decode("utf-8", "replace"))

    mpis = (await gather_hosts(host_runs, find_mpi_on_host)).results_or_raise()
    _require_equal_mpis(mpis)
    return mpis[host_runs[0].name]


def _require_equal_mpis(mpis: Mapping[str, MpiInstallation]) -> None:
    first, mpi = next(iter(mpis.items()))
    for name, other in mpis.items():
        if other != mpi:
            message = f"The MPIs differ: {mpi} on '{first}', {other} on '{name}'."
            raise EngineError(message, "Install the same MPI in the same version on all clients.")


async def _run_mdtest(
    session: SessionContext,
    host_runs: Sequence[HostRunInProgress],
    counters: CounterCollector,
    command: Command,
    halt: asyncio.Event,
) -> bytes:
    """What mdtest prints while every client is watched; also kept packed, however it ends."""
    watches = {
        host_run.name: HostWatch(
            session, host_run.workdir.host, index, counters, host_run.workdir.inode_count_path
        )
        for index, host_run in enumerate(host_runs)
    }
    first = host_runs[0]
    packer, raw = OutputCompressor(MDTEST_OUTPUT_BYTES_MAX), bytearray()

    async def begin_watch_and_snapshot(host_run: HostRunInProgress) -> None:
        await watches[host_run.name].begin()
        host_run.clock_offset = await measure_clock_offset(host_run.workdir.host, session.clock)
        host_run.disks_before = await take_disks_snapshot(host_run.workdir.host)

    async def set_final_snapshot_and_clock_offset(host_run: HostRunInProgress) -> None:
        host_run.disks_after, host_run.last_sample = await take_disks_snapshot_and_sample(
            host_run.workdir.host, host_run.workdir.inode_count_path
        )
        host_run.clock_offset_after = await measure_clock_offset(
            host_run.workdir.host, session.clock
        )

    def keep_output(piece: bytes) -> None:
        packer.add(piece)
        raw.extend(piece)

    async def run_mdtest_to_end() -> None:
        try:
            first.ending = await run_process(
                first.workdir.host, command, halt, keep_output, does_watch_processor=True
            )
        finally:
            first.output = packer.finish()
        await run_on_each_host(host_runs, set_final_snapshot_and_clock_offset)

    async def watch_all_hosts() -> None:
        await _run_until_first_ends(
            [
                _collect_telemetry_until_cancelled(host_run, watches[host_run.name])
                for host_run in host_runs
            ]
        )

    try:
        await run_on_each_host(host_runs, begin_watch_and_snapshot)
        heeding = run_with_background(run_mdtest_to_end(), session.stop.forward_to_event(halt))
        await run_with_background(heeding, watch_all_hosts())
    finally:
        await end_watches(watches, host_runs)
    return bytes(raw)


async def _collect_telemetry_until_cancelled(host_run: HostRunInProgress, watch: HostWatch) -> None:
    """Telemetry until cancelled; a host that is lost is told of in its state."""
    try:
        await watch.collect_and_report_until_cancelled(0)
    except HostError as fault:
        host_run.error = fault.message
        raise


async def _run_until_first_ends(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    """All at once until the first one ends or fails, which ends the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _set_readings_and_parse_rates_or_raise(
    host_runs: Sequence[HostRunInProgress], job: MetadataJob, mdtest_output: bytes
) -> tuple[ReportedRate, ...]:
    """What mdtest printed, held against what was requested; EngineError when it is not that."""
    first = host_runs[0]
    output = parse_mdtest_output(mdtest_output)
    ranks = job.ranks * len(host_runs)
    faults = mdtest_output_faults(output, job, ranks)
    for host_run in host_runs:
        own_faults = faults if host_run is first else ()
        host_run.reading = ParsedEngineOutput(output.version, None, None, (), None, own_faults)
    fault = process_ending_error(MDTEST_ENGINE, first)
    if fault:
        first.error = first.error or fault.message
        raise fault
    return reported_rates(output)
