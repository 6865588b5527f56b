"""The built-in metadata engine against mdtest: same tree, same ranks, in turn.

Needs a real mdtest: MDTEST names it, MPIEXEC the mpiexec of the MPI that it was built for (found on
PATH else). Without one it says so and measures nothing. Each pair runs both on the same directory
(BENCH_PATH, else that for temporary files), the order swapped each time, since machines drift.
Prints for creates, stats and removes the median of the ratios ours / mdtest, the smallest and the
largest. Ours takes all work over the whole phase, as mdtest 4.x does; 1.9 and 3.2 print more.

BENCH_PAIRS, BENCH_RANKS and BENCH_FILES say how often, how many ranks, and files of each.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
from typing import Final

from iolab.errors import IolabError
from iolab.model.engine import EngineName
from iolab.model.host import HostKind, HostSpec
from iolab.model.metadata import MetadataJob, Operation
from iolab.run.drive import drive
from iolab.run.engines.mdtest import faults_of, measure_command, programs_of, version_command
from iolab.run.engines.mdtest_output import parse, reported
from iolab.run.engines.mpi import Place, mpi_of
from iolab.run.hosts.answers import ScratchAnswer, read_answer
from iolab.run.hosts.base import Host
from iolab.run.hosts.local import LocalHost

PAIRS: Final = int(os.environ.get("BENCH_PAIRS", "7"))
RANKS: Final = int(os.environ.get("BENCH_RANKS", "2"))
FILES: Final = int(os.environ.get("BENCH_FILES", "10000"))
SHOWN: Final = (Operation.FILE_CREATE, Operation.FILE_STAT, Operation.FILE_REMOVE)
PHASE_LIMIT_S: Final = 600.0
NS_PER_S: Final = 1_000_000_000

Rates = dict[Operation, float]


def job_of(mdtest: str, mpiexec: str) -> MetadataJob:
    options = (("mdtest", mdtest), ("mpiexec", mpiexec), ("allow_run_as_root", "1"))
    return MetadataJob(EngineName.MDTEST, RANKS, FILES, rank_shift=0, options=options)


async def ours(host: Host, folder: str, iteration: int) -> Rates:
    """All work of each phase over the time from its first start to its last end."""
    rates: Rates = {}
    for operation in Operation:
        told = await host.ask(
            "metadata",
            deadline_s=PHASE_LIMIT_S,
            dir=folder,
            phase=operation.word,
            first_rank=0,
            ranks=RANKS,
            total_ranks=RANKS,
            files_per_rank=FILES,
            iteration=iteration,
        )
        seen = told.header
        if seen["errors"] or seen["skipped"]:
            raise SystemExit(f"metadata: {operation.word}: {seen['errors']} {seen['skipped']}")
        span_ns = seen["last_end_real_ns"] - seen["first_start_real_ns"]
        rates[operation] = seen["ops"] * NS_PER_S / max(span_ns, 1)
    return rates


async def theirs(host: Host, folder: str, job: MetadataJob, iteration: int) -> tuple[str, Rates]:
    """What mdtest prints, and its version."""
    raw, words = bytearray(), bytearray()
    await drive(host, version_command(programs_of(job), folder), asyncio.Event(), words.extend)
    mpi = mpi_of(words.decode("utf-8", "replace"))
    places = [Place(host.name, "localhost", RANKS)]
    command = measure_command(mpi, job, places, folder, f"mdtest.{iteration}")
    ending = await drive(host, command, asyncio.Event(), raw.extend)
    output = parse(bytes(raw))
    faults = faults_of(output, job, RANKS)
    if faults or ending.exited.code:
        raise SystemExit(f"mdtest: {'; '.join((*faults, ending.stderr_tail))}")
    return f"mdtest {output.version}, {mpi}", {r.operation: r.ops_per_s for r in reported(output)}


async def bench(mdtest: str, mpiexec: str, path: str) -> None:
    job = job_of(mdtest, mpiexec)
    host = LocalHost(HostSpec("local", HostKind.LOCAL))
    await host.connect()
    try:
        opened = await host.ask(
            "scratch_open", deadline_s=60, path=path, name="iolab-scratch-bench", owner="bench"
        )
        folder = read_answer(host.name, ScratchAnswer, opened).dir
        ratios: dict[Operation, list[float]] = {operation: [] for operation in SHOWN}
        for pair in range(PAIRS):
            if pair % 2:
                version, other = await theirs(host, folder, job, pair)
                own = await ours(host, folder, pair)
            else:
                own = await ours(host, folder, pair)
                version, other = await theirs(host, folder, job, pair)
            for operation in SHOWN:
                ratios[operation].append(own[operation] / other[operation])
            line = "  ".join(
                f"{operation.word} {own[operation]:.0f} / {other[operation]:.0f}"
                for operation in SHOWN
            )
            print(f"pair {pair + 1}: {line}", flush=True)
        print(f"ours / {version}; {RANKS} ranks of {FILES} files, {PAIRS} pairs:")
        for operation, seen in ratios.items():
            middle = statistics.median(seen)
            print(f"  {operation.word:12} {middle:.2f}  ({min(seen):.2f} to {max(seen):.2f})")
        await host.ask("scratch_close", deadline_s=600, dir=folder, keep=False)
    finally:
        await host.close()


def main() -> None:
    mdtest = os.environ.get("MDTEST") or shutil.which("mdtest")
    mpiexec = os.environ.get("MPIEXEC") or shutil.which("mpiexec")
    if not mdtest or not mpiexec:
        print("metadata: no mdtest here to compare with; MDTEST=/path/to/mdtest names one")
        return
    path = os.environ.get("BENCH_PATH") or tempfile.gettempdir()
    try:
        asyncio.run(bench(mdtest, mpiexec, path))
    except IolabError as error:
        sys.exit(f"{error.happened} {error.do}")


if __name__ == "__main__":
    main()
