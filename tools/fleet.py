#!/usr/bin/env python3
"""A fleet of ssh hosts on this machine, to try and to test iolab with: made and removed as one.

    fleet.py up   [--name NAME] [--hosts N] [--storage own|shared|served|xfs] [--size BYTES]
    fleet.py down [--name NAME]

Each host is a network namespace with an address of its own on a common bridge, a host name, an
sshd, an empty home, a private /tmp and a target directory. All files lie in one folder; `down`
removes it and all else, also after a crash. Needs root, iproute2, util-linux and OpenSSH's sshd.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BASES = Path("/var/tmp")  # noqa: S108 - named, and not below /tmp: every host has its own
NETWORK = "10.77"  # .SUBNET.HOST; the addresses exist on this machine's bridge only
BRIDGE_HOST = 254
HOSTS_MAX = 99
COMMAND_LIMIT_S = 60.0
END_LIMIT_S = 10.0
SSHD = "/usr/sbin/sshd"

SSHD_CONFIG = """\
Port 22
ListenAddress {address}
HostKey {folder}/host_key
PidFile {folder}/sshd.pid
AuthorizedKeysFile {base}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
PrintMotd no
PrintLastLog no
UseDNS no
MaxStartups 200
# A client that is cut off is noticed here, too: its agent's input ends in about 12 s.
ClientAliveInterval 2
ClientAliveCountMax 2
LogLevel VERBOSE
"""

INVENTORY = """\
format = 1

[defaults]
user = "root"
key = "{base}/id_ed25519"
known_hosts = "{base}/known_hosts"
path = "{base}/target"

[[host]]
name = "c[01-{count:02}]"
address = "{network}.{subnet}.[1-{count}]"
"""


@dataclass(frozen=True)
class Fleet:
    """A fleet by name: where its files lie and what its interfaces are called."""

    name: str

    @property
    def base(self) -> Path:
        """All of its files."""
        return BASES / f"iolab-fleet-{self.name}"

    @property
    def tag(self) -> str:
        """Six characters for the names of interfaces, which have fifteen at most."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:6]

    @property
    def bridge(self) -> str:
        """The bridge, whose own address the controller speaks from."""
        return f"fb{self.tag}"

    def namespace(self, host: str) -> str:
        """A host's network namespace."""
        return f"iolab-{self.name}-{host}"

    def folder(self, host: str) -> Path:
        """A host's own files."""
        return self.base / "hosts" / host

    def namespaces(self) -> list[str]:
        """Those that are there now, whether or not the last `up` or `down` came to its end."""
        found = run("ip", "netns", "list").splitlines()
        pattern = re.compile(rf"iolab-{re.escape(self.name)}-c\d\d")
        return [name for line in found if pattern.fullmatch(name := line.split()[0])]


def main() -> int:
    """Make or remove a fleet; `enter` is how `up` calls itself inside a host."""
    if len(sys.argv) == 4 and sys.argv[1] == "enter":
        become_host(Fleet(sys.argv[2]), sys.argv[3])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["up", "down"])
    parser.add_argument("--name", default="lab", help="several fleets may stand side by side")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--storage", choices=["own", "shared", "served", "xfs"], default="own")
    parser.add_argument("--size", type=int, default=1 << 30, help="of an XFS, in bytes")
    chosen = parser.parse_args()
    if not re.fullmatch(r"[a-z0-9]{1,20}", chosen.name) or not 1 <= chosen.hosts <= HOSTS_MAX:
        parser.error(f"give a name of up to 20 letters and digits, and 1 to {HOSTS_MAX} hosts")
    fleet = Fleet(chosen.name)
    with one_at_a_time():
        down(fleet)
        if chosen.what == "up":
            try:
                up(fleet, chosen.hosts, chosen.storage, chosen.size)
            except BaseException:
                down(fleet)
                raise
    return 0


def up(fleet: Fleet, count: int, storage: str, size_bytes: int) -> None:
    """Make the hosts, start their sshd, and say where everything is."""
    subnet = free_subnet()
    hosts = [f"c{number:02}" for number in range(1, count + 1)]
    base = fleet.base
    base.mkdir(mode=0o755)
    (base / "target").mkdir()
    (base / "shared").mkdir()
    device = serve(base, size_bytes) if storage == "served" else ""
    settings = {"storage": storage, "size_bytes": size_bytes, "subnet": subnet, "hosts": hosts}
    settings["device"] = device
    (base / "fleet.json").write_text(json.dumps(settings), encoding="utf-8")
    make_key(base / "id_ed25519")
    shutil.copy(base / "id_ed25519.pub", base / "authorized_keys")
    text = INVENTORY.format(base=base, count=count, network=NETWORK, subnet=subnet)
    (base / "inventory.toml").write_text(text, encoding="utf-8")

    run("ip", "link", "add", fleet.bridge, "type", "bridge")
    run("ip", "addr", "add", f"{NETWORK}.{subnet}.{BRIDGE_HOST}/24", "dev", fleet.bridge)
    run("ip", "link", "set", fleet.bridge, "up")
    known = []
    for number, host in enumerate(hosts, start=1):
        address = f"{NETWORK}.{subnet}.{number}"
        prepare_files(fleet, host, address, size_bytes if storage == "xfs" else None)
        connect(fleet, host, number, address)
        key = " ".join((fleet.folder(host) / "host_key.pub").read_text("utf-8").split()[:2])
        known.append(f"{host},{address} {key}\n")
    (base / "known_hosts").write_text("".join(known), encoding="utf-8")
    for host in hosts:
        start(fleet, host)
    for name in ("inventory.toml", "known_hosts", "id_ed25519"):
        print(base / name)


def down(fleet: Fleet) -> None:
    """Remove every trace of the fleet, whatever of it is there."""
    namespaces = fleet.namespaces()
    for namespace in namespaces:
        end_all(namespace)
    for namespace in namespaces:
        run("ip", "netns", "delete", namespace)
    for name in [port.name for port in Path("/sys/class/net").iterdir()]:
        if name == fleet.bridge or name.startswith(f"fv{fleet.tag}-"):
            attempt("ip", "link", "delete", name)
    for device in attempt("losetup", "-nO", "NAME", "-j", str(fleet.base / "xfs")).split():
        attempt("losetup", "--detach", device)
    if fleet.base.exists():
        # A host's XFS is unmounted, and its loop device free, when its last process is gone.
        wait_until(lambda: f"{fleet.base}/" not in attempt("losetup", "-lnO", "BACK-FILE"))
        shutil.rmtree(fleet.base)


def serve(base: Path, size_bytes: int) -> str:
    """One XFS for all hosts, as a storage node's disk is to its clients; its loop device's name.

    It is mounted by the hosts alone: a mount outside of them would be copied into the hosts of all
    fleets made later, and stay there.
    """
    with (base / "xfs").open("wb") as file:
        file.truncate(size_bytes)
    run("mkfs.xfs", "-q", base / "xfs")
    device = run("losetup", "--find", "--show", "--direct-io=on", base / "xfs").strip()
    return Path(device).name


def prepare_files(fleet: Fleet, host: str, address: str, xfs_bytes: int | None) -> None:
    """A host's folder: its key, its sshd's configuration, its /tmp and its target."""
    folder = fleet.folder(host)
    (folder / "target").mkdir(parents=True)
    (folder / "home").mkdir(mode=0o700)
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)
    make_key(folder / "host_key")
    config = SSHD_CONFIG.format(address=address, folder=folder, base=fleet.base)
    (folder / "sshd_config").write_text(config, encoding="utf-8")
    if xfs_bytes is not None:
        with (folder / "xfs").open("wb") as file:
            file.truncate(xfs_bytes)
        run("mkfs.xfs", "-q", folder / "xfs")


def connect(fleet: Fleet, host: str, number: int, address: str) -> None:
    """A namespace with one end of a pair of ports, the other end on the bridge."""
    namespace, port = fleet.namespace(host), f"fv{fleet.tag}-{number}"
    run("ip", "netns", "add", namespace)
    run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", namespace)
    run("ip", "link", "set", port, "master", fleet.bridge, "up")
    run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", "eth0")
    run("ip", "-n", namespace, "link", "set", "lo", "up")
    run("ip", "-n", namespace, "link", "set", "eth0", "up")


def start(fleet: Fleet, host: str) -> None:
    """Start the host's sshd in name spaces of its own; it is listening when this returns."""
    run(
        *("ip", "netns", "exec", fleet.namespace(host)),
        *("unshare", "--mount", "--uts", "--propagation", "private"),
        *(sys.executable, "-S", Path(__file__).resolve(), "enter", fleet.name, host),
    )


def become_host(fleet: Fleet, host: str) -> None:
    """Inside the name spaces: give the host its own name, /run, /tmp and target, then its sshd."""
    settings = json.loads((fleet.base / "fleet.json").read_text("utf-8"))
    folder, target = fleet.folder(host), fleet.base / "target"
    run("hostname", host)
    match settings["storage"]:
        case "own":
            run("mount", "--bind", folder / "target", target)
        case "served":
            run("mount", "-o", "noatime", Path("/dev") / settings["device"], target)
        case "shared":
            run("mount", "--bind", fleet.base / "shared", target)
        case "xfs":
            device = run("losetup", "--find", "--show", "--direct-io=on", folder / "xfs").strip()
            run("mount", "-o", "noatime", device, target)
            run("losetup", "--detach", device)  # takes effect when the mount goes
    make_tmp(folder / "tmp")
    run("mount", "--bind", folder / "home", pwd.getpwuid(0).pw_dir)
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    Path("/run/sshd").mkdir(mode=0o755)
    os.chdir("/")
    os.execv(  # noqa: S606 - this process is to be sshd
        SSHD, [SSHD, "-f", str(folder / "sshd_config"), "-E", str(folder / "sshd.log")]
    )


def make_tmp(own: Path) -> None:
    """Inside the name spaces: the host's own /tmp, in which a checkout that lies there stays.

    A controller on the host needs it: its environment's modules are read when they are first used.
    """
    checkout, tmp = Path(__file__).resolve().parents[1], Path("/tmp")  # noqa: S108 - the host's
    below = checkout.relative_to(tmp) if checkout.is_relative_to(tmp) else None
    if below:
        (own / below).mkdir(parents=True, exist_ok=True)
        run("mount", "--bind", checkout, own / below)
    run("mount", "--rbind", own, tmp)


def end_all(namespace: str) -> None:
    """Kill what lives in a namespace; it was all started there, by us or over its sshd."""

    def nobody_left() -> bool:
        pids = run("ip", "netns", "pids", namespace).split()
        for pid in pids:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue
        return not pids

    wait_until(nobody_left)


def free_subnet() -> int:
    """A subnet that no interface of this machine has."""
    taken = run("ip", "-o", "addr", "show") + run("ip", "route", "show", "table", "all")
    for subnet in range(256):
        if f" {NETWORK}.{subnet}." not in taken:
            return subnet
    raise SystemExit(f"fleet: every subnet of {NETWORK}.0.0 is taken; remove a fleet first")


def make_key(path: Path) -> None:
    """An Ed25519 key without a passphrase, its public half beside it."""
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", path)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Two fleets that are made at once would choose the same subnet."""
    folder = os.open(BASES, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def wait_until(condition: Callable[[], bool]) -> None:
    """Try until it holds; gives up after a limit."""
    deadline = time.monotonic() + END_LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("fleet: a host does not go away; see 'ip netns' and try again")
        time.sleep(0.05)


def run(*argv: str | Path) -> str:
    """What a command printed; ends the program with the command's own words when it fails."""
    words = [str(word) for word in argv]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False
    )
    if done.returncode:
        raise SystemExit(f"fleet: {' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def attempt(*argv: str | Path) -> str:
    """What a command printed, if it could."""
    try:
        return run(*argv)
    except SystemExit:
        return ""


if __name__ == "__main__":
    sys.exit(main())
