"""mdtest's command line under both MPIs, and what an output lacks of what was requested."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace

from iolab.errors import EngineError
from iolab.loads.metadata.mdtest import (
    MpiInstallation,
    MpiName,
    RankPlacement,
    mdtest_command,
    mdtest_output_faults,
    mpi_programs_of_job,
    mpiexec_argv,
    mpiexec_version_command,
    parse_mpi_version,
)
from iolab.loads.metadata.mdtest_output import parse_mdtest_output
from iolab.loads.metadata.workload import MDTEST_ENGINE, MetadataJob
from tests.recorded import recorded

JOB: Final = MetadataJob(MDTEST_ENGINE, ranks=2, files_per_rank=50, rank_shift=2)
MPICH: Final = MpiInstallation(MpiName.MPICH, "4.0.2")
OPEN_MPI: Final = MpiInstallation(MpiName.OPEN_MPI, "4.1.4")
TWO: Final = (RankPlacement("c01", "10.0.0.1", 2), RankPlacement("c02", "node-2.lan", 2))


def test_the_published_command_is_what_is_run() -> None:
    job = replace(JOB, ranks=136, files_per_rank=18382, rank_shift=136)
    places = [RankPlacement(f"c{n}", f"c{n}", 136) for n in range(8)]
    command = mdtest_command(MPICH, job, places, "/mnt/x/iolab-scratch-c0", "mdtest.2.1")
    hosts = ",".join(f"c{n}:136" for n in range(8))
    assert command.argv == (
        *("mpiexec", "-rmk", "user", "-launcher", "ssh", "-hosts", hosts, "-np", "1088"),
        *("mdtest", "-v", "-i", "1", "-F", "-u", "-n", "18382", "-N", "136"),
        *("-d", "/mnt/x/iolab-scratch-c0/mdtest.2.1"),
    )
    assert command.cwd == "/mnt/x/iolab-scratch-c0"
    assert command.env == (("UCX_TLS", "^sm"),)
    assert command.wall_limit_s > 6 * 1088 * 18382 / 20
    assert command.job_file.splitlines()[:2] == ["MPICH 4.0.2", "c0: 136 ranks at c0"]


def test_open_mpi_is_told_the_same_in_its_words() -> None:
    command = mdtest_command(OPEN_MPI, JOB, TWO, "/t", "m")
    assert command.argv[:9] == (
        *("mpiexec", "--host", "10.0.0.1:2,node-2.lan:2", "--map-by", "slot"),
        *("--bind-to", "none", "-np", "4"),
    )
    as_root = replace(JOB, options=(("allow_run_as_root", "1"),))
    assert mdtest_command(OPEN_MPI, as_root, TWO, "/t", "m").argv[1] == "--allow-run-as-root"
    assert "--allow-run-as-root" not in mdtest_command(MPICH, as_root, TWO, "/t", "m").argv


def test_options_reach_mdtest() -> None:
    options = (("fsync", "1"), ("random_stat", "1"), ("mdtest", "/opt/ior-4.0/bin/mdtest"))
    job = replace(JOB, file_bytes=3901, options=options)
    argv = mdtest_command(MPICH, job, TWO, "/t", "m").argv
    at = argv.index("/opt/ior-4.0/bin/mdtest")
    assert argv[at + 8 :] == (*("-N", "2", "-w", "3901", "-e", "3901", "-y", "-R", "-d", "/t/m"),)
    none = replace(JOB, options=(("fsync", "0"), ("mpiexec", "mpiexec.openmpi")))
    assert "-y" not in mdtest_command(MPICH, none, TWO, "/t", "m").argv
    assert mpiexec_version_command(mpi_programs_of_job(none), "/t").argv == (
        "mpiexec.openmpi",
        "--version",
    )


def test_a_shift_of_all_ranks_is_none() -> None:
    assert "-N" not in mdtest_command(MPICH, JOB, TWO[:1], "/t", "m").argv


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mdtest", "/bin/sh"),
        ("mdtest", "/opt/../../bin/mdtest x"),
        ("mdtest", "-mdtest"),
        ("mdtest", "/opt/-x/mdtest"),
        ("mpiexec", "mpiexec -f x"),
        ("mpiexec", "bash"),
        ("fsync", "yes"),
        ("prologue", "rm"),
    ],
)
def test_anything_else_is_refused(name: str, value: str) -> None:
    with pytest.raises(EngineError, match=name):
        mdtest_command(MPICH, replace(JOB, options=((name, value),)), TWO, "/t", "m")


@pytest.mark.parametrize("address", ["-launcher", "a,b", "fe80::1", "", "a:3", "a b", "a\x1b[2J"])
def test_an_address_that_mpiexec_would_misread_is_refused(address: str) -> None:
    for mpi in (MPICH, OPEN_MPI):
        with pytest.raises(EngineError, match="address of host 'c09'"):
            mpiexec_argv(mpi, "mpiexec", [RankPlacement("c09", address, 1)], is_run_as_root=False)


@pytest.mark.parametrize(
    ("name", "mpi"), [("mpich-4.0.2", MPICH), ("openmpi-4.1.4", OPEN_MPI)], ids=str
)
def test_an_mpi_is_known_by_its_words(name: str, mpi: MpiInstallation) -> None:
    assert parse_mpi_version(recorded(f"mdtest/mpiexec-{name}.txt").decode()) == mpi


def test_an_mpi_of_another_make_is_refused() -> None:
    with pytest.raises(EngineError, match="unknown version 'Intel"):
        parse_mpi_version("Intel(R) MPI Library for Linux* OS, Version 2021.11\n")
    with pytest.raises(EngineError, match="nothing"):
        parse_mpi_version("")


def test_an_output_that_is_as_asked_for_has_no_fault() -> None:
    assert mdtest_output_faults(parse_mdtest_output(recorded("mdtest/one-4.0.0.txt")), JOB, 4) == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("4 total", "8 total", "mdtest ran 8 ranks, and 4 were requested"),
        ("200 files", "400 files", "mdtest used 400 files, and 200 were requested"),
        ("4 total", "1 total", "built for another MPI"),
        ("(of 1 iterations)", "(of 3 iterations)", "mdtest ran 3 iterations"),
        ("   File read   ", "   File peruse   ", "no rate for file-read"),
        ("-- finished", "-- vanished", "did not say that it finished"),
        ("SUMMARY", "summary", "printed no summary"),
        ("Path  ", "ERROR: no space left ", "no space left"),
    ],
)
def test_an_output_of_another_run_is_found_out(old: str, new: str, message: str) -> None:
    text = recorded("mdtest/one-4.0.0.txt").decode()
    assert old in text
    faults = mdtest_output_faults(parse_mdtest_output(text.replace(old, new).encode()), JOB, 4)
    assert any(message in fault for fault in faults), faults


def test_a_phase_that_was_left_out_has_no_rate() -> None:
    text = recorded("mdtest/one-1.9.3.txt").decode()
    row = next(line for line in text.splitlines() if line.startswith("   File stat  "))
    rate = row.split()[-4]
    faults = mdtest_output_faults(
        parse_mdtest_output(text.replace(row, row.replace(rate, "0.000")).encode()), JOB, 4
    )
    assert "mdtest gave no rate for file-stat" in faults
