"""What is advised where a host of a Slurm job cannot be used: what fits the fault."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from iolab.core.host import HostKind, HostSpec
from iolab.errors import HostError
from iolab.hosts.connect import SlurmHost


def fault_of(folder: Path, script: str) -> HostError:
    """Why the host is not reached by an srun that does this with the program's name in `$1`."""
    srun = folder / "srun"
    skip = 'while [ "${1#-}" != "$1" ]; do shift; done\n'
    srun.write_text(f"#!/bin/sh\n{skip}{script}\n", encoding="utf-8")
    srun.chmod(0o755)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "n1",
    }
    host = SlurmHost(HostSpec("n1", HostKind.SLURM), asyncio.Semaphore(1), environment=environment)

    async def body() -> HostError:
        with pytest.raises(HostError) as caught:
            await host.connect()
        return caught.value

    return asyncio.run(asyncio.wait_for(body(), 60))


def test_a_job_that_does_not_answer_is_looked_at_with_slurms_tools(tmp_path: Path) -> None:
    fault = fault_of(tmp_path, "echo 'Job has expired' >&2; exit 1")
    assert "Job has expired" in fault.happened
    assert "squeue" in fault.do


def test_a_missing_agent_is_no_matter_of_slurm(tmp_path: Path) -> None:
    fault = fault_of(tmp_path, '[ "$1" = uname ] && exec echo Linux riscv64\nexec "$@"')
    assert "riscv64" in fault.happened
    assert "make agents" in fault.do
    assert "squeue" not in fault.do
