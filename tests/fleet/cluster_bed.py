"""A cluster of nodes for tests: made before, gone after, whatever happened between."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools import cluster as tool

from tests.processes import run_program

TOOL = [sys.executable, str(Path(tool.__file__))]
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class ClusterBed:
    """A cluster that stands."""

    cluster: tool.Cluster

    @property
    def inventory(self) -> Path:
        return self.cluster.inventory

    def within(self, node: str, *argv: str) -> str:
        """What a program prints on a node."""
        words = ["ip", "netns", "exec", self.cluster.namespace(node), *argv]
        return listing(*words)

    def device(self, node: str) -> str:
        """The name of its first SSD."""
        image = self.cluster.image(node, 1)
        return Path(listing("losetup", "-nO", "NAME", "-j", str(image)).strip()).name

    def port_bytes(self, node: str) -> tuple[int, int]:
        """Bytes that its port has received and sent."""
        for line in self.within(node, "cat", "/proc/net/dev").splitlines():
            name, _, counters = line.strip().partition(":")
            if name == "eth0":
                fields = counters.split()
                return int(fields[0]), int(fields[8])
        raise LookupError(node)


@contextmanager
def cluster(
    nodes: int = 2, ssds: int = 1, fs: str = "ext4", size_bytes: int = 1 << 30
) -> Iterator[ClusterBed]:
    """A cluster of our own; what test runs that were killed have left is removed first."""
    for folder in tool.FOLDER.glob("iolab-cluster-t*"):
        dead = re.fullmatch(r"iolab-cluster-(t(\d+)x\d+)", folder.name)
        if dead and not Path(f"/proc/{dead[2]}").exists():
            call("down", "--name", dead[1])
    name = f"t{os.getpid()}x{next(_NUMBERS)}"
    sizes = ("--nodes", str(nodes), "--ssds", str(ssds), "--fs", fs, "--size", str(size_bytes))
    call("up", "--name", name, *sizes)
    try:
        yield ClusterBed(tool.Cluster(name))
    finally:
        call("down", "--name", name)


def call(*words: str) -> None:
    subprocess.run([*TOOL, *words], check=True, timeout=120, stdout=subprocess.DEVNULL)


def listing(*argv: str) -> str:
    return run_program(argv, check=True, timeout=60).stdout


def traces(made: tool.Cluster) -> list[str]:
    """Whatever is on this machine of a cluster."""
    folders = [str(made.base)] if made.base.exists() else []
    return made.namespaces() + made.loops() + made.mounts() + folders
