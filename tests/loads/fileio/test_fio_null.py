"""What fio is told to make of nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iolab.errors import EngineError
from iolab.loads.fileio.engine_facts import FIO_ENGINE
from iolab.loads.fileio.engines.fio import NULL_FOLDER, FioEngine
from iolab.loads.fileio.workload import Access, Contents, Job, kind_of

READS = Job(FIO_ENGINE, Access.RANDREAD, 4096, 32, 4, 1 << 30, options=(("fsync", "1"),))


def lines(job: Job) -> list[str]:
    command = FioEngine().null(kind_of(job), seconds=0.5)
    assert command is not None
    assert command.cwd == NULL_FOLDER
    assert not any("status-interval" in word for word in command.argv)
    return command.stdin.decode("ascii").splitlines()


def test_reads_are_writes_that_cost_nothing_to_fill() -> None:
    told = lines(replace(READS, rate_iops=10))
    for line in ("rw=randwrite", "filename=null", "direct=0", "zero_buffers=1", "runtime=500ms"):
        assert line in told
    for line in ("iodepth=32", "numjobs=4", "ioengine=libaio"):
        assert line in told
    assert not any(line.startswith(("rate", "fsync", "rwmixread")) for line in told)


def test_writes_are_filled_as_they_would_be() -> None:
    writes = replace(READS, access=Access.RW, read_percent=49, contents=Contents.RANDOM)
    told = lines(replace(writes, block_bytes=1 << 20))
    for line in ("rw=write", "bs=1048576", "refill_buffers=1"):
        assert line in told


def test_nothing_takes_trims() -> None:
    assert FioEngine().null(replace(READS, access=Access.RANDTRIM), seconds=0.5) is None


def test_what_cannot_be_told_is_refused() -> None:
    wrong = replace(READS, options=(("exec_prerun", "true"),))
    with pytest.raises(EngineError, match="exec_prerun"):
        FioEngine().null(wrong, seconds=0.5)
