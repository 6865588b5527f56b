#!/usr/bin/env python3
"""A small hyper-converged cluster on this machine, to boot guests on: made and removed as one.

    cluster.py up   [--name NAME] [--nodes N] [--ssds N] [--folder DIR] [--fs ext4|xfs]
                    [--size BYTES]
    cluster.py down [--name NAME] [--folder DIR]

Each node is a network namespace with one port on a bridge that has a namespace of its own, and
loop devices with direct I/O as its SSDs, each with a file system. No address and no interface of
it is seen outside. All files lie in one folder; `down` removes it and all else, also after a crash.
Needs root, iproute2, util-linux and the file system's mkfs.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # as a program, this file's own folder is all that is searched
    sys.path.append(str(ROOT))

from tools.fleet import attempt, end_all, one_at_a_time, run  # noqa: E402

FOLDER = Path("/var/tmp")  # noqa: S108 - a disk mostly, and not below /tmp
NETWORK = "10.78.0"  # .NODE; every cluster has the same, since nobody outside sees them
NODES_MAX = 64
SSDS_MAX = 16
SIZE_MIN = 64 << 20  # mkfs.xfs needs 300 MiB and says so itself
MKFS = {"ext4": ("mkfs.ext4", "-q", "-F", "-m", "0"), "xfs": ("mkfs.xfs", "-q", "-f")}

HOST = """
[[host]]
name = "{node}"
kind = "command"
role = "hypervisor"
command = ["ip", "netns", "exec", "{namespace}"]
path = "{path}"
devices = ["{device}"]
storage_address = "{address}"
cores = {cores}
numa_nodes = {numa_nodes}
"""


@dataclass(frozen=True)
class Cluster:
    """A cluster by name and by the folder that its files go to."""

    name: str
    folder: Path = FOLDER

    @property
    def base(self) -> Path:
        """All of its files, and where its SSDs are mounted."""
        return self.folder / f"iolab-cluster-{self.name}"

    @property
    def inventory(self) -> Path:
        """Its nodes as iolab reads them."""
        return self.base / "inventory.toml"

    @property
    def switch(self) -> str:
        """The bridge's namespace."""
        return f"iolab-cluster-{self.name}-sw"

    def namespace(self, node: str) -> str:
        """A node's namespace."""
        return f"iolab-cluster-{self.name}-{node}"

    def image(self, node: str, ssd: int) -> Path:
        """The file behind an SSD, which are counted from 1."""
        return self.base / "ssds" / f"{node}-{ssd}"

    def mount_point(self, node: str, ssd: int) -> Path:
        """Where that SSD is mounted."""
        return self.base / node / f"ssd{ssd}"

    def namespaces(self) -> list[str]:
        """Those that are there now, whether or not the last `up` or `down` came to its end."""
        found = run("ip", "netns", "list").splitlines()
        pattern = re.compile(rf"iolab-cluster-{re.escape(self.name)}-(n\d+|sw)")
        return [name for line in found if pattern.fullmatch(name := line.split()[0])]

    def loops(self) -> list[str]:
        """The loop devices over files of ours, removed files included."""
        listed = run("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE")
        lines = (line.split(maxsplit=1) for line in listed.splitlines())
        return [words[0] for words in lines if words[-1].startswith(f"{self.base}/")]

    def mounts(self) -> list[str]:
        """Where something is mounted below the base, the deepest first."""
        table = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
        places = [line.split()[1] for line in table]
        return sorted((at for at in places if at.startswith(f"{self.base}/")), reverse=True)


def main() -> int:
    """Make or remove a cluster."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["up", "down"])
    parser.add_argument("--name", default="lab", help="several clusters may stand side by side")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ssds", type=int, default=1, help="of each node")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the SSDs' bytes lie")
    parser.add_argument("--fs", choices=sorted(MKFS), default="ext4")
    parser.add_argument("--size", type=int, default=2 << 30, help="of each SSD, in bytes")
    chosen = parser.parse_args()
    if not re.fullmatch(r"[a-z0-9]{1,20}", chosen.name):
        parser.error("give a name of up to 20 letters and digits")
    if not 1 <= chosen.nodes <= NODES_MAX or not 1 <= chosen.ssds <= SSDS_MAX:
        parser.error(f"give 1 to {NODES_MAX} nodes of 1 to {SSDS_MAX} SSDs")
    if chosen.size < SIZE_MIN:
        parser.error(f"give SSDs of {SIZE_MIN} bytes or more")
    cluster = Cluster(chosen.name, chosen.folder.resolve())
    with one_at_a_time():
        down(cluster)
        if chosen.what == "up":
            try:
                up(cluster, chosen.nodes, chosen.ssds, chosen.fs, chosen.size)
            except BaseException:
                down(cluster)
                raise
            print(cluster.inventory)
    return 0


def up(cluster: Cluster, count: int, ssds: int, fs: str, size_bytes: int) -> None:
    """Make the switch, then one node after the other, and write the inventory."""
    cluster.base.mkdir(mode=0o755)
    (cluster.base / "ssds").mkdir()
    run("ip", "netns", "add", cluster.switch)
    run("ip", "-n", cluster.switch, "link", "add", "br0", "type", "bridge")
    run("ip", "-n", cluster.switch, "link", "set", "br0", "up")
    text = "format = 1\n"
    for number in range(1, count + 1):
        node = f"n{number}"
        connect(cluster, node, number)
        devices = [attach(cluster, node, ssd, fs, size_bytes) for ssd in range(1, ssds + 1)]
        text += HOST.format(
            node=node,
            namespace=cluster.namespace(node),
            path=cluster.mount_point(node, 1),
            device=devices[0],
            address=f"{NETWORK}.{number}",
            # The nodes share this machine's processors and memory: a share each is what they have.
            cores=max((os.cpu_count() or 1) // count, 1),
            numa_nodes=1,
        )
    cluster.inventory.write_text(text, encoding="utf-8")


def connect(cluster: Cluster, node: str, number: int) -> None:
    """A node's namespace, its port `eth0`, and the other end on the bridge."""
    namespace, address, port = cluster.namespace(node), f"{NETWORK}.{number}", f"port{number}"
    run("ip", "netns", "add", namespace)
    peer = ("peer", "name", "eth0", "netns", namespace)
    run("ip", "-n", cluster.switch, "link", "add", port, "type", "veth", *peer)
    run("ip", "-n", cluster.switch, "link", "set", port, "master", "br0", "up")
    run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", "eth0")
    run("ip", "-n", namespace, "link", "set", "lo", "up")
    run("ip", "-n", namespace, "link", "set", "eth0", "up")
    # Small replies of the network block device would wait 40 ms for their acknowledgement else.
    route = ("dev", "eth0", "proto", "kernel", "scope", "link", "src", address, "quickack", "1")
    run("ip", "-n", namespace, "route", "replace", f"{NETWORK}.0/24", *route)


def attach(cluster: Cluster, node: str, ssd: int, fs: str, size_bytes: int) -> str:
    """One SSD with its file system, mounted; the name of its device."""
    image, mount_point = cluster.image(node, ssd), cluster.mount_point(node, ssd)
    with image.open("wb") as file:
        os.truncate(file.fileno(), size_bytes)
    run(*MKFS[fs], image)
    device = run("losetup", "--find", "--show", "--direct-io=on", image).strip()
    mount_point.mkdir(parents=True)
    run("mount", "-o", "noatime", device, mount_point)
    return Path(device).name


def down(cluster: Cluster) -> None:
    """Remove every trace of the cluster, whatever of it is there."""
    namespaces = cluster.namespaces()
    for namespace in namespaces:
        end_all(namespace)
    for place in cluster.mounts():
        attempt("umount", place)
        if place in cluster.mounts():
            run("umount", "--lazy", place)
    for device in cluster.loops():
        attempt("losetup", "--detach", device)
    for namespace in namespaces:
        run("ip", "netns", "delete", namespace)
    if cluster.base.exists():
        shutil.rmtree(cluster.base)
    # Whoever has a file open there, or was born with a copy of the mounts, keeps the device alone.
    if held := cluster.loops():
        print(f"cluster: {' '.join(held)} will go when others close their files", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
