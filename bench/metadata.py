"""The built-in metadata engine against mdtest: same tree, same ranks, in turn.

Needs a real mdtest: MDTEST names it, MPIEXEC the mpiexec of the MPI that it was built for (found on
PATH else). Without one it says so and measures nothing. Each pair runs both on the same directory
(BENCH_PATH, else that for temporary files), the order swapped each time, since machines drift.
Prints the median of the ratios ours / mdtest of each operation, the smallest and the largest. Files
are empty but where they are read. Ours takes all work over the whole phase, as mdtest 4.x does; 1.9
and 3.2 print more.

BENCH_PAIRS, BENCH_RANKS and BENCH_FILES say how often, how many ranks, and files of each.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.core.host import HostSpec, HostTransport
from iolab.errors import IolabError
from iolab.hosts.answers import ScratchAnswer, read_answer
from iolab.hosts.connect import LocalHost
from iolab.hosts.host import Host
from iolab.hosts.remote_process import run_process
from iolab.loads.metadata.mdtest import (
    RankPlacement,
    mdtest_command,
    mdtest_output_faults,
    mpi_programs_of_job,
    mpiexec_version_command,
    parse_mpi_version,
)
from iolab.loads.metadata.mdtest_output import parse_mdtest_output, reported_rates
from iolab.loads.metadata.workload import MDTEST_ENGINE, MetadataJob, MetadataOperation
from iolab.units import NS_PER_S

PAIRS: Final = int(os.environ.get("BENCH_PAIRS", "7"))
RANKS: Final = int(os.environ.get("BENCH_RANKS", "2"))
FILES: Final = int(os.environ.get("BENCH_FILES", "10000"))
READ_BYTES: Final = 3901
"""Of a file that is read, as IO500 has it."""
PHASE_LIMIT_S: Final = 600.0
Rates = dict[MetadataOperation, float]


@dataclass(frozen=True, slots=True)
class Load:
    """Ranks, files of each, bytes of a file, and the operations that are looked at."""

    ranks: int
    files: int
    file_bytes: int
    shown: tuple[MetadataOperation, ...]

    def __str__(self) -> str:
        """In words."""
        size = f" of {self.file_bytes} bytes" if self.file_bytes else ""
        return f"ranks: {self.ranks}, files of each: {self.files}{size}"


def loads(ranks: int, files: int) -> tuple[Load, ...]:
    """Empty files for what goes by names alone; files with something in them to be read."""
    named = (
        MetadataOperation.FILE_CREATE,
        MetadataOperation.FILE_STAT,
        MetadataOperation.FILE_REMOVE,
    )
    return (
        Load(ranks, files, 0, named),
        Load(ranks, files, READ_BYTES, (MetadataOperation.FILE_READ,)),
    )


@dataclass(frozen=True, slots=True)
class Programs:
    """The mdtest to compare with, and what starts it."""

    mdtest: str
    mpiexec: str


def programs() -> Programs | None:
    """Those that the environment names, else those on PATH; None where one is missing."""
    mdtest = os.environ.get("MDTEST") or shutil.which("mdtest")
    mpiexec = os.environ.get("MPIEXEC") or shutil.which("mpiexec")
    return Programs(mdtest, mpiexec) if mdtest and mpiexec else None


def _job(found: Programs, load: Load) -> MetadataJob:
    options = (("mdtest", found.mdtest), ("mpiexec", found.mpiexec), ("allow_run_as_root", "1"))
    return MetadataJob(
        MDTEST_ENGINE,
        load.ranks,
        load.files,
        rank_shift=0,
        file_bytes=load.file_bytes,
        options=options,
    )


async def _ours(host: Host, folder: str, load: Load, iteration: int) -> Rates:
    """All work of each phase over the time from its first start to its last end."""
    rates: Rates = {}
    for operation in MetadataOperation:
        told = await host.request(
            "metadata",
            deadline_s=PHASE_LIMIT_S,
            dir=folder,
            phase=operation.display_name,
            first_rank=0,
            ranks=load.ranks,
            total_ranks=load.ranks,
            files_per_rank=load.files,
            file_bytes=load.file_bytes,
            iteration=iteration,
        )
        seen = told.header
        if seen["errors"] or seen["skipped"]:
            raise SystemExit(
                f"metadata: {operation.display_name}: {seen['errors']} {seen['skipped']}"
            )
        span_ns = seen["last_end_real_ns"] - seen["first_start_real_ns"]
        rates[operation] = seen["ops"] * NS_PER_S / max(span_ns, 1)
    return rates


async def _theirs(host: Host, folder: str, job: MetadataJob, iteration: int) -> tuple[str, Rates]:
    """What mdtest prints, and its version."""
    raw, words = bytearray(), bytearray()
    await run_process(
        host,
        mpiexec_version_command(mpi_programs_of_job(job), folder),
        asyncio.Event(),
        words.extend,
    )
    mpi = parse_mpi_version(words.decode("utf-8", "replace"))
    places = [RankPlacement(host.name, "localhost", job.ranks)]
    command = mdtest_command(mpi, job, places, folder, f"mdtest.{iteration}")
    ending = await run_process(host, command, asyncio.Event(), raw.extend)
    output = parse_mdtest_output(bytes(raw))
    faults = mdtest_output_faults(output, job, job.ranks)
    if faults or ending.exited.code:
        raise SystemExit(f"mdtest: {'; '.join((*faults, ending.stderr_tail))}")
    return f"mdtest {output.version}, {mpi}", {
        r.operation: r.ops_per_s for r in reported_rates(output)
    }


async def measure(
    found: Programs, path: str, load: Load
) -> tuple[str, dict[MetadataOperation, list[float]]]:
    """Which mdtest it is, and ours / theirs of each operation, pair by pair, below a directory."""
    host = LocalHost(HostSpec("local", HostTransport.LOCAL))
    await host.connect()
    version, ratios = "", {operation: list[float]() for operation in load.shown}
    try:
        opened = await host.request(
            "scratch_open", deadline_s=60, path=path, name="iolab-scratch-bench", owner="bench"
        )
        folder = read_answer(host.name, ScratchAnswer, opened).dir
        job = _job(found, load)
        for pair in range(PAIRS):
            if pair % 2:
                version, other = await _theirs(host, folder, job, pair)
                own = await _ours(host, folder, load, pair)
            else:
                own = await _ours(host, folder, load, pair)
                version, other = await _theirs(host, folder, job, pair)
            for operation, seen in ratios.items():
                seen.append(own[operation] / other[operation])
        await host.request("scratch_close", deadline_s=600, dir=folder, keep=False)
    finally:
        await host.close()
    return version, ratios


def shown(operation: MetadataOperation, seen: Sequence[float]) -> str:
    """A line of the median, the smallest and the largest."""
    spread = f"({min(seen):.2f} to {max(seen):.2f})"
    return f"  {operation.display_name:12} {statistics.median(seen):.2f}  {spread}"


def main() -> None:
    found = programs()
    if found is None:
        print("metadata: no mdtest here to compare with; MDTEST=/path/to/mdtest names one")
        return
    path = os.environ.get("BENCH_PATH") or tempfile.gettempdir()
    try:
        for load in loads(RANKS, FILES):
            version, ratios = asyncio.run(measure(found, path, load))
            print(f"ours / {version}; {load}; pairs: {PAIRS}")
            for operation, seen in ratios.items():
                print(shown(operation, seen), flush=True)
    except IolabError as error:
        sys.exit(f"{error.message} {error.hint}")


if __name__ == "__main__":
    main()
