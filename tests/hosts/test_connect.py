"""The ways to hosts: which agent one gets, what Slurm's faults advise, what kubectl tells."""

from __future__ import annotations

import asyncio
import os
import platform
from pathlib import Path

import pytest

from iolab.core.host import HostSpec, HostTransport
from iolab.errors import HostError
from iolab.hosts.connect import SlurmHost, read_context_and_pods_json
from iolab.hosts.push import agent_binary
from iolab.study.inventory import PodSelection
from tests.facts import tells


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for machine in ("x86_64", "aarch64"):
        (tmp_path / machine).mkdir()
        (tmp_path / machine / "iolab-agent").write_text(machine)
    return tmp_path


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_host_gets_the_agent_of_its_machine(folder: Path, machine: str) -> None:
    agent = agent_binary(machine, system="Linux", host_name="c1", folder=folder)
    assert agent.read_text() == machine


def test_without_a_host_it_is_this_machine_s(folder: Path) -> None:
    (folder / platform.machine()).mkdir(exist_ok=True)
    (folder / platform.machine() / "iolab-agent").write_text("here")
    assert agent_binary(folder=folder).read_text() == "here"


@pytest.mark.parametrize("machine", ["riscv64", "../x86_64", ""])
def test_a_machine_without_an_agent_is_named_with_those_that_have_one(
    folder: Path, machine: str
) -> None:
    if not machine:
        (folder / platform.machine() / "iolab-agent").unlink(missing_ok=True)
    with pytest.raises(HostError) as refused:
        agent_binary(machine, system="Linux", host_name="c1", folder=folder)
    assert tells(refused.value.message, "c1", machine or platform.machine(), "aarch64")


def test_another_system_is_named(folder: Path) -> None:
    with pytest.raises(HostError) as refused:
        agent_binary("arm64", system="Darwin", host_name="mac", folder=folder)
    assert tells(refused.value.message, "mac", "Darwin", "Linux")


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
    host = SlurmHost(
        HostSpec("n1", HostTransport.SLURM), asyncio.Semaphore(1), environment=environment
    )

    async def body() -> HostError:
        with pytest.raises(HostError) as caught:
            await host.connect()
        return caught.value

    return asyncio.run(asyncio.wait_for(body(), 60))


def test_a_job_that_does_not_answer_is_looked_at_with_slurms_tools(tmp_path: Path) -> None:
    fault = fault_of(tmp_path, "echo 'Job has expired' >&2; exit 1")
    assert "Job has expired" in fault.message
    assert "squeue" in fault.hint


def test_a_missing_agent_is_no_matter_of_slurm(tmp_path: Path) -> None:
    fault = fault_of(tmp_path, '[ "$1" = uname ] && exec echo Linux riscv64\nexec "$@"')
    assert "riscv64" in fault.message
    assert "make agents" in fault.hint
    assert "squeue" not in fault.hint


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the program lies that is found as kubectl."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "kubectl"


def ask(program: Path, script: str, limit_s: float = 30) -> tuple[str | None, str]:
    """What a look-up gives with this script as kubectl."""
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return asyncio.run(read_context_and_pods_json(PodSelection("bench", "app=load"), limit_s))


@pytest.mark.parametrize(
    ("context", "found"), [("echo lab", "lab"), ("exit 1", None), ("echo", None)]
)
def test_the_context_and_the_listing_are_found(
    kubectl: Path, context: str, found: str | None
) -> None:
    script = f'[ "$1" = config ] && {{ {context}; exit; }}\necho \'{{"items": []}}\''
    assert ask(kubectl, script) == (found, '{"items": []}\n')


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exec sleep 100", "did not answer within 0.3 s"),
        (
            "[ $1 = config ] && exit 1\nprintf 'Unable to connect \\033[1m\\n' >&2\nexit 1",
            r"(exit code 1; Unable to connect \x1b[1m)",
        ),
        ("printf 'a\\033[1mb\\n'", "name of kubectl's context"),
    ],
)
def test_what_kubectl_cannot_tell_is_an_error_without_escapes(
    kubectl: Path, script: str, message: str
) -> None:
    with pytest.raises(HostError) as raised:
        ask(kubectl, script, 0.3 if "sleep" in script else 30)
    assert message in raised.value.message
    assert raised.value.message.isprintable()
