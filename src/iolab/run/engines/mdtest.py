"""mdtest as an engine: one `mpiexec` on the first client starts its ranks on all of them. Pure.

One iteration is one repeat of the run, so that a crash loses that one alone and the statistics over
iterations are ours. See docs/reference/engines/mdtest.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.model.mdtest_options import MDTEST_OPTIONS
from iolab.model.metadata import MetadataJob, Operation
from iolab.run.engines.base import Command
from iolab.run.engines.mdtest_output import OUTPUT_LIMIT_BYTES, MdtestOutput
from iolab.run.engines.mdtest_spread import contradictions
from iolab.run.engines.mpi import Mpi, Place, mpiexec_argv
from iolab.run.engines.options import allowed

START_LIMIT_S: Final = 300.0
"""For mpiexec to start thousands of ranks over ssh, and to end them."""

SLOWEST_OPS_PER_S: Final = 20.0
"""A fleet that is slower in any phase is taken for hung: a tenth of a lone disk that syncs."""

VERSION_LIMIT_S: Final = 60.0
"""For `mpiexec --version`, from a software tree on a busy network file system."""

INSTALL: Final = "Install it on every client, in the same place: it comes with IOR."


@dataclass(frozen=True, slots=True)
class Programs:
    """What to start, each a name to be found on PATH or a full path."""

    mdtest: str
    mpiexec: str


def programs_of(job: MetadataJob) -> Programs:
    """The programs that the job names, else those of the usual names. EngineError as below."""
    options = allowed("mdtest", job.options, MDTEST_OPTIONS)
    return Programs(options.get("mdtest", "mdtest"), options.get("mpiexec", "mpiexec"))


def version_command(programs: Programs, directory: str) -> Command:
    """Ask `mpiexec` for its version."""
    argv = (programs.mpiexec, "--version")
    return Command(argv, directory, b"", "", VERSION_LIMIT_S, OUTPUT_LIMIT_BYTES)


def measure_command(
    mpi: Mpi, job: MetadataJob, places: Sequence[Place], directory: str, folder: str
) -> Command:
    """One iteration of all phases below `directory`/`folder`, which mdtest makes and removes.

    `places` are the clients in their order, the one that starts the others first. EngineError for
    an option that is not allowed or an address that mpiexec cannot be told.
    """
    options = allowed("mdtest", job.options, MDTEST_OPTIONS)
    programs = programs_of(job)
    total = sum(place.ranks for place in places)
    as_root = options.get("allow_run_as_root") == "1"
    argv = [
        *mpiexec_argv(mpi, programs.mpiexec, places, as_root=as_root),
        *(programs.mdtest, "-v", "-i", "1", "-F", "-u", "-n", str(job.files_per_rank)),
        *_optional(job, total, options),
        *("-d", f"{directory}/{folder}"),
    ]
    work = len(Operation) * total * job.files_per_rank
    lines = "".join(f"{place.host}: {place.ranks} ranks at {place.address}\n" for place in places)
    return Command(
        argv=tuple(argv),
        cwd=directory,
        stdin=b"",
        job_file=f"{mpi}\n{lines}",
        wall_limit_s=START_LIMIT_S + work / SLOWEST_OPS_PER_S,
        output_limit_bytes=OUTPUT_LIMIT_BYTES,
    )


def faults_of(output: MdtestOutput, job: MetadataJob, ranks: int) -> tuple[str, ...]:
    """Why an output is not that of the run that was asked for; empty when it is.

    What mdtest or MPI said of an error comes first, but for what explains all of them.
    """
    if output.ranks == 1 and ranks > 1:
        # Each is rank 0 of its own world; they make and remove the same files.
        return (f"{ranks} ranks ran alone: this mdtest was built for another MPI than mpiexec's",)
    return (*output.said, *output.faults, *contradictions(output), *_lacking(output, job, ranks))


def _optional(job: MetadataJob, total: int, options: dict[str, str]) -> Iterator[str]:
    if job.rank_shift % total:
        yield from ("-N", str(job.rank_shift % total))
    if job.file_bytes:
        yield from ("-w", str(job.file_bytes), "-e", str(job.file_bytes))
    if options.get("fsync") == "1":
        yield "-y"
    if options.get("random_stat") == "1":
        yield "-R"


def _lacking(output: MdtestOutput, job: MetadataJob, ranks: int) -> Iterator[str]:
    if output.ranks is not None and output.ranks != ranks:
        yield f"mdtest ran {output.ranks} ranks, and {ranks} were asked for"
    files = ranks * job.files_per_rank
    if output.files is not None and output.files != files:
        yield f"mdtest used {output.files} files, and {files} were asked for"
    if not output.rows:
        yield "mdtest printed no summary"
        return
    if output.iterations != 1:
        yield f"mdtest ran {output.iterations} iterations, and one was asked for"
    for operation in Operation:
        row = output.row(operation)
        if row is None or row.minimum <= 0:
            yield f"mdtest gave no rate for {operation.word}"
    if not output.finished:
        yield "mdtest did not say that it finished"
