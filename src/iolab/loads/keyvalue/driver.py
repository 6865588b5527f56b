"""How load on key-value stores is made in a session: db_bench's driver, and that of YCSB."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from iolab.core.events import Phase
from iolab.core.run import PlannedRun
from iolab.core.study import Study
from iolab.errors import EngineError, HostError
from iolab.hosts.barrier import alongside, together
from iolab.hosts.host import Host
from iolab.hosts.processes import told
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.keyvalue.databases import (
    Golden,
    bytes_in,
    clone,
    drop_caches_of,
    find,
    folder_of,
    make,
    remove,
    source_of,
)
from iolab.loads.keyvalue.db_bench import (
    DbBenchTask,
    RocksdbPrograms,
    Seeds,
    cell_command,
    cell_seeds,
    derived_seed,
    load_seeds,
    make_load,
    next_seed,
)
from iolab.loads.keyvalue.db_bench_evidence import CellRequest
from iolab.loads.keyvalue.problems import wanted_tools
from iolab.loads.keyvalue.workload import (
    DB_BENCH_ENGINE,
    YCSB_ENGINE,
    KeyValueJob,
    StoreShape,
    TableShape,
)
from iolab.loads.keyvalue.ycsb_driver import YcsbDriver
from iolab.session.context import SessionContext
from iolab.session.driver import Driver, HostShare, on_each
from iolab.session.kinds import LoadSession, Programs
from iolab.session.start import Go, load_at_once, watch_idle
from iolab.study.cost import ASSUMED_WRITE_BYTES_PER_S
from iolab.targets.work_directory import WorkDirectory
from iolab.units import format_bytes

PAST_THE_WINDOW_S: Final = 1
"""db_bench runs so much longer than it is measured: its report is of whole seconds."""

WRITTEN_TIMES: Final = 3
"""How often a load writes every byte: as it comes, when it is sorted, when it is compacted."""


@dataclass(frozen=True, slots=True)
class _Start:
    """A client's database at the start of a run: its golden one, and the copy that it is."""

    golden: Golden
    copied_by: str
    shape: StoreShape


class DbBenchDriver(Driver):
    """One db_bench on each client; see `Driver`."""

    def __init__(self) -> None:
        self._programs = RocksdbPrograms()
        self._loads: set[Seeds] = set()
        self._cells: set[Seeds] = set()
        self._versions: dict[str, str] = {}
        self._goldens: dict[str, Golden] = {}
        self._starts: dict[str, _Start] = {}
        self._sources: WeakKeyDictionary[Host, dict[str, TableShape]] = WeakKeyDictionary()
        self._failed: WeakKeyDictionary[Host, dict[str, tuple[str, str]]] = WeakKeyDictionary()

    async def prepare(
        self, session: SessionContext, run: PlannedRun, evidence: Sequence[HostShare]
    ) -> None:
        """Programs there, databases whole, a copy for the run, caches dropped, devices idle."""
        for phase in (self._find_programs, self._have_databases, self._copy, _drop, watch_idle):
            if not session.stop.requested:
                await phase(session, run, evidence)

    async def measure(
        self,
        session: SessionContext,
        run: PlannedRun,
        evidence: Sequence[HostShare],
        counters: CounterCollector,
    ) -> None:
        """db_bench on all clients from one moment on; it prints no rate of the fleet."""
        method = session.study.method
        seconds = math.ceil(method.warmup_s + method.runtime_s) + PAST_THE_WINDOW_S
        session.begin(Phase.MEASURE, run, run.point.label, float(seconds))
        halt = asyncio.Event()
        cells = {mine.name: self._cell(session, run, mine, seconds) for mine in evidence}

        async def one(mine: HostShare, go: Go) -> None:
            await make_load(session, run, mine, cells[mine.name], go, halt)

        try:
            await load_at_once(session, evidence, counters, one, halt)
        finally:
            await _remove_copies(evidence)

    async def _find_programs(
        self, session: SessionContext, run: PlannedRun, evidence: Sequence[HostShare]
    ) -> None:
        session.begin(Phase.PROVE, run, "db_bench and sst_dump on every client")

        async def ask(mine: HostShare) -> None:
            self._versions[mine.name] = await self._programs.version_on(mine.site, job_of(run))

        await on_each(evidence, ask)

    async def _have_databases(
        self, session: SessionContext, run: PlannedRun, evidence: Sequence[HostShare]
    ) -> None:
        """Each client's golden database; those that are not there are loaded, all at once."""
        job = job_of(run)
        self._goldens.clear()

        async def look(mine: HostShare) -> None:
            source = await self._source(mine, job)
            found = await find(mine.site, job, self._versions[mine.name], source)
            if found is not None:
                self._goldens[mine.name] = found

        await on_each(evidence, look)
        missing = [mine for mine in evidence if mine.name not in self._goldens]
        if missing:
            await self._make(session, run, missing)
        for one in self._goldens.values():
            if one.seed is not None:
                self._loads.add(load_seeds(one.seed))

    async def _source(self, mine: HostShare, job: KeyValueJob) -> TableShape | None:
        """The user's own database, which is looked at once; None where iolab loads one."""
        if not job.database:
            return None
        known = self._sources.setdefault(mine.site.host, {})
        if folder_of(mine.site, job) not in known:
            known[folder_of(mine.site, job)] = await source_of(mine.site, job)
        return known[folder_of(mine.site, job)]

    async def _make(
        self, session: SessionContext, run: PlannedRun, missing: Sequence[HostShare]
    ) -> None:
        job = job_of(run)
        size = job.loaded.keys * job.loaded.entry_bytes
        what = f"{format_bytes(size)} in blocks of {format_bytes(job.loaded.block_bytes)}"
        expected_s = WRITTEN_TIMES * size / ASSUMED_WRITE_BYTES_PER_S
        hosts = "1 host" if len(missing) == 1 else f"each of {len(missing)} hosts"
        session.begin(Phase.LAY_OUT, run, f"database of {what} on {hosts}", expected_s)
        halt = asyncio.Event()

        async def load(mine: HostShare) -> None:
            made = await self._load(session, run, mine, halt)
            if made is not None:
                self._goldens[mine.name] = made

        await alongside(on_each(missing, load), session.stop.pass_on(halt))

    async def _load(
        self, session: SessionContext, run: PlannedRun, mine: HostShare, halt: asyncio.Event
    ) -> Golden | None:
        """One client's database, made; what failed once fails at once unless it is retried.

        It would take as long again, for each point, to come to the same end.
        """
        job, version = job_of(run), self._versions[mine.name]
        folder = folder_of(mine.site, job)
        failed = self._failed.setdefault(mine.site.host, {})
        if folder in failed and run.attempt == 1:
            raise EngineError(*failed[folder])
        # The same on every target of a host, so that configurations have the same database.
        what = ("load", folder.rpartition("/")[2], mine.name)
        wanted = load_seeds(derived_seed(session.study.method.seed, *what))
        seed = next_seed(self._cells, wanted)
        try:
            return await make(mine.site, job, version, seed, halt)
        except (EngineError, HostError) as fault:
            failed[folder] = fault.happened, fault.do
            raise

    async def _copy(
        self, session: SessionContext, run: PlannedRun, evidence: Sequence[HostShare]
    ) -> None:
        """A copy of each golden database, which is what that is."""
        session.begin(Phase.PROVE, run, "a copy of the database on every client")

        async def copy(mine: HostShare) -> None:
            host, gold = mine.site.host, self._goldens[mine.name]
            await remove(host, cell_folder(mine.site))
            await told(host, ("mkdir", "--", cell_folder(mine.site)))
            how = await clone(host, gold.database, _copy_on(mine.site))
            held = await bytes_in(mine.site, _copy_on(mine.site))
            if held != gold.file_bytes:
                happened = (
                    f"The copy of the database on host '{mine.name}' is not what was loaded: "
                    f"it has {held} bytes instead of {gold.file_bytes}."
                )
                raise EngineError(happened, "Let nobody change files in the scratch folder.")
            self._starts[mine.name] = _Start(gold, how, gold.shape)

        await session.stop.unless_requested(on_each(evidence, copy))

    def _cell(
        self, session: SessionContext, run: PlannedRun, mine: HostShare, seconds: int
    ) -> DbBenchTask:
        """What one client is to do, with streams of keys that nobody has used."""
        job, start = job_of(run), self._starts[mine.name]
        what = (run.point.digest, run.repeat, run.attempt, mine.name)
        wanted = cell_seeds(job, derived_seed(session.study.method.seed, *what))
        seed = next_seed(self._loads | self._cells, wanted)
        self._cells.add(cell_seeds(job, seed))
        asked = CellRequest(
            job=job,
            seconds=seconds,
            seed=seed,
            load_seed=start.golden.seed,
            version=self._versions[mine.name],
            copied_by=start.copied_by,
            start=start.shape,
            loaded_bytes=start.golden.tree_bytes,
        )
        report = f"{cell_folder(mine.site)}/{REPORT}"
        command = cell_command(
            job, mine.site.dir, _copy_on(mine.site), seconds=seconds, seed=seed, report_file=report
        )
        return DbBenchTask(asked, command, report)


REPORT: Final = "report.csv"


def job_of(run: PlannedRun) -> KeyValueJob:
    """The run's job; TypeError for one of another engine."""
    job = run.point.job
    if not isinstance(job, KeyValueJob):
        raise TypeError(f"{job.engine} is not db_bench")
    return job


def cell_folder(site: WorkDirectory) -> str:
    """Where everything of the present run lies on a host."""
    return f"{site.dir}/db_bench.cell"


def _copy_on(site: WorkDirectory) -> str:
    return f"{cell_folder(site)}/database"


async def _drop(session: SessionContext, run: PlannedRun, evidence: Sequence[HostShare]) -> None:
    await drop_caches_of(session, run, evidence, _copy_on)


async def _remove_copies(evidence: Sequence[HostShare]) -> None:
    """Make room again; whatever is left is removed before the next run, or with the session."""
    living = [mine for mine in evidence if not mine.site.host.lost]
    await together(living, lambda mine: remove(mine.site.host, cell_folder(mine.site)))


def programs_of(study: Study) -> Programs:
    """What a study's key-value load needs on clients."""
    return {program: argv for program, (_, argv) in wanted_tools(study).items()}


KEY_VALUE: Final = LoadSession(
    drivers={DB_BENCH_ENGINE: DbBenchDriver, YCSB_ENGINE: YcsbDriver},
    programs=programs_of,
)
