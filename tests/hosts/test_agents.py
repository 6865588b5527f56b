"""Which agent a host gets: that of its kind of machine, or a sentence that says there is none."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from iolab.errors import HostError
from iolab.hosts.agents import agent_binary
from tests.facts import tells


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for machine in ("x86_64", "aarch64"):
        (tmp_path / machine).mkdir()
        (tmp_path / machine / "iolab-agent").write_text(machine)
    return tmp_path


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_host_gets_the_agent_of_its_machine(folder: Path, machine: str) -> None:
    agent = agent_binary(machine, system="Linux", host="c1", folder=folder)
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
        agent_binary(machine, system="Linux", host="c1", folder=folder)
    assert tells(refused.value.happened, "c1", machine or platform.machine(), "aarch64")


def test_another_system_is_named(folder: Path) -> None:
    with pytest.raises(HostError) as refused:
        agent_binary("arm64", system="Darwin", host="mac", folder=folder)
    assert tells(refused.value.happened, "mac", "Darwin", "Linux")
