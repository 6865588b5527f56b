"""tools/cluster.py: what it makes, and that all of it goes, also after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tools import cluster as tool
from tools.fleet import wait_until

from tests.fleet.cluster_bed import TOOL, call, cluster, listing, traces
from tests.processes import run_program

pytestmark = pytest.mark.e2e

FLEETS = ("fb", "fv")
"""How the ports of a fleet begin; those of a cluster are `eth0`, `br0` and `port1`."""


def ports_here() -> set[str]:
    """All but those of fleets, which may come and go beside these tests."""
    return {port.name for port in Path("/sys/class/net").iterdir() if port.name[:2] not in FLEETS}


@pytest.mark.parametrize("fs", ["ext4", "xfs"])
def test_nodes_have_ssds_and_ports_and_all_goes(fs: str) -> None:
    before = ports_here()
    with cluster(nodes=2, ssds=2, fs=fs) as made:
        assert ports_here() == before
        for node in ("n1", "n2"):
            place = made.cluster.mount_point(node, 1)
            assert made.within(node, "stat", "-f", "-c", "%T", str(place)).strip() in (
                "ext2/ext3" if fs == "ext4" else "xfs"
            )
            direct = Path(f"/sys/block/{made.device(node)}/loop/dio").read_text(encoding="ascii")
            assert direct.strip() == "1"
        assert len(made.cluster.loops()) == 4
        assert "quickack 1" in made.within("n1", "ip", "route")
    assert traces(made.cluster) == []


def test_a_port_counts_what_goes_to_another_node() -> None:
    with cluster() as made:
        before = made.port_bytes("n1")[1]
        script = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        script += "[s.sendto(bytes(1000), ('10.78.0.2', 9)) for _ in range(100)]"
        made.within("n1", "python3", "-c", script)
        assert made.port_bytes("n1")[1] - before >= 100 * 1000


def test_an_up_that_fails_leaves_nothing() -> None:
    # An XFS of 64 MiB cannot be made: the first node's port stands by then.
    made = tool.Cluster(f"t{os.getpid()}half")
    words = [*TOOL, "up", "--name", made.name, "--fs", "xfs", "--size", str(64 << 20)]
    done = run_program(words, timeout=60)
    assert done.returncode == 1
    assert "mkfs.xfs" in done.stderr
    assert traces(made) == []


def test_what_a_killed_up_has_left_is_removed() -> None:
    made = tool.Cluster(f"t{os.getpid()}killed")
    process = subprocess.Popen([*TOOL, "up", "--name", made.name, "--nodes", "60"])
    try:
        deadline = time.monotonic() + 30
        while len(made.loops()) < 2 and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        left = traces(made)
    finally:
        call("down", "--name", made.name)
    assert process.returncode == -signal.SIGKILL
    assert len(left) > 3
    assert traces(made) == []


def test_a_down_takes_processes_and_open_files_with_it() -> None:
    with cluster() as made:
        held = made.cluster.mount_point("n1", 1) / "held"
        words = ["ip", "netns", "exec", made.cluster.namespace("n1"), "sh", "-c"]
        sleeper = subprocess.Popen([*words, f"exec sleep 1000 > {held}"])
        while not held.exists():
            time.sleep(0.01)
        with held.open("rb"):
            call("down", "--name", made.cluster.name)
            assert sleeper.wait(timeout=10) == -signal.SIGKILL
            assert not made.cluster.base.exists()
            assert len(made.cluster.loops()) == 1
        wait_until(lambda: traces(made.cluster) == [])


def test_a_second_up_begins_anew() -> None:
    with cluster(nodes=2) as made:
        listing(*TOOL, "up", "--name", made.cluster.name, "--nodes", "1")
        assert len(made.cluster.loops()) == 1
        assert made.inventory.read_text("utf-8").count("[[host]]") == 1
