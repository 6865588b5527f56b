"""An agent behind `chroot`: what it sees stays below that root, also when it mounts for itself."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from iolab.hosts.answers import read_facts
from iolab.hosts.message import Message
from iolab.study.readiness import unusable_target_fault
from tests.agent.speaker import Agent
from tests.facts import tells
from tests.needs import ROOT, require

SET_UP = """
if [ "$2" = mounted ]; then mount --bind "$1" "$1"; fi
mount -t proc proc "$1/proc" && mount -t sysfs sysfs "$1/sys" &&
mount -t tmpfs none "$1/only-here" && mount --bind /dev "$1/dev" && exec chroot "$1" "$3"
"""
"""A sysfs of its own has an empty /sys/fs/cgroup, so the agent mounts control groups for itself."""


@pytest.mark.parametrize("root_is", ["folder", "mounted"])
def test_an_agent_that_mounts_for_itself_stays_in_its_root(
    program: Path, tmp_path: Path, root_is: str
) -> None:
    require(ROOT, "unshare", "chroot")
    root = tmp_path / "root"
    for name in ("dev", "proc", "sys", "only-here"):
        (root / name).mkdir(parents=True)
    # Where controllers keep agents: on a host that is cleaned, the agent's own file is left, too.
    place = f"/tmp/iolab-agent-{os.geteuid()}/agent"
    (root / place[1:]).parent.mkdir(parents=True, mode=0o700)
    shutil.copy(program, root / place[1:])
    words = ("unshare", "--mount", "sh", "-c", SET_UP, "sh", str(root), root_is, place)
    with Agent(Path("unused"), *words) as agent:
        before = agent.ask("facts", path="/only-here")["facts"]["target"]
        assert before is not None
        probed = agent.ask("probe", path="/only-here", rights=True)
        assert probed["mount_error"] is None
        after = agent.ask("facts", path="/only-here")["facts"]["target"]
        assert after["mount_point"] == before["mount_point"]
        outside = agent.ask("facts", path=str(tmp_path))["facts"]["target"]
        assert outside is None
        own = agent.ask("facts", path="/dev/..")["facts"]
        assert (own["target"] is None) == (root_is == "folder")
        if own["target"] is None:
            answer = Message("facts", {"facts": own})
            fault = unusable_target_fault(read_facts("c", answer), "'/dev/..' on host 'c'")
            assert tells(fault.message, "/proc/self/mountinfo", "root", "mount")
        assert agent.ask("leftovers", path="/only-here")["agents"] == [place]
        ended = agent.run(place, "--version", memory_limit_bytes=64 << 20)
        assert ended[-1].is_ == "exited", ended
