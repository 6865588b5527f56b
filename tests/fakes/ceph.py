"""A Ceph cluster on this machine, of Debian's packages, to be broken by tests. Needs root.

With the first process of its name spaces everything of it goes. Copies lie on two OSDs. All daemons
listen on the loopback alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from tests.processes import run_program

ACCESS_KEY = "IOLABTESTKEY"
SECRET_KEY = "iolab/test+secret"

OSD_BYTES = 3 << 30
"""Of a sparse file."""

PLACEMENT_GROUPS = 8
"""Of each pool: a gateway has seven."""

START_LIMIT_S = 120.0
CALL_LIMIT_S = 60.0
FAULT_CHARACTERS = 500
"""Of what a daemon says: one that crashes prints thousands of lines."""

_INIT = "mount --make-rprivate /; echo; while :; do sleep 1000 & wait -n; done"

# Each of the later ones costs a second or more of a start, or of a pool, at its default.
CONFIGURATION = """\
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{port}/0]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind msgr1 = false
keyring = {folder}/keyring
run dir = {folder}
admin socket = {folder}/$name.asok
pid file = {folder}/$name.pid
log file = {folder}/$name.log
crash dir = {folder}
osd crush chooseleaf type = 0
mon osd reporter subtree level = osd
osd pool default size = 2
osd pool default min size = 1
osd pool default pg num = {groups}
osd pool default pgp num = {groups}
osd pool default pg autoscale mode = off
mon max pg per osd = 500
mon data avail warn = 1
mon data avail crit = 0
auth allow insecure global id reclaim = false
osd objectstore = bluestore
bluestore block size = {osd_bytes}
bluestore cache autotune = false
bluestore cache size = 67108864
bdev aio poll ms = 20
osd op num shards = 2
osd op num threads per shard = 2
osd recovery sleep hdd = 0
paxos propose interval = 0.2
mgr stats period = 1
mgr initial modules =
rgw thread pool size = 64
rgw enable ops log = true
rgw ops log rados = false
rgw ops log file path = {folder}/requests.log
[mon]
mon data = {folder}/mon
mon cluster log file = {folder}/cluster.log
[mgr]
mgr data = {folder}/mgr
[osd]
osd data = {folder}/osd$id
[client.admin]
admin socket =
log file =
pid file =
"""


@dataclass(frozen=True)
class LoggedRequest:
    """A request as the gateway has answered it, with the bytes of contents in either direction."""

    method: str
    uri: str
    status: int
    request_bytes: int
    response_bytes: int
    begun: datetime


@dataclass(frozen=True)
class ClusterState:
    """Whether everything has two copies, and how many OSDs there are and are up."""

    is_redundant: bool
    up: int
    members: int

    @property
    def is_whole(self) -> bool:
        """Nothing is missing."""
        return self.is_redundant and self.up == self.members


class Ceph:
    """The cluster in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def up(self, osds: int = 3) -> None:
        """Make it."""
        self.folder.mkdir(parents=True)
        argv = ["unshare", "-mp", "--fork", "--kill-child", "--mount-proc", "bash", "-c", _INIT]
        with subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        ) as outer:
            try:
                _read_line(outer.stdout)
                holder = _run("pgrep", "-o", "-P", outer.pid)
                self._write_file("holder", holder)
            except BaseException:
                os.killpg(outer.pid, signal.SIGKILL)
                raise
            outer.returncode = 0  # it lives on, and nobody waits for it here
        fsid, port = uuid.uuid4(), _free_port()
        self._write_file(
            "ceph.conf",
            CONFIGURATION.format(
                fsid=fsid,
                port=port,
                folder=self.folder,
                groups=PLACEMENT_GROUPS,
                osd_bytes=OSD_BYTES,
            ),
        )
        self._make_keys(osds)
        monitors = self.folder / "monitors"
        address = f"[v2:127.0.0.1:{port}]"
        _run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", address, monitors)
        self._run_in_namespace("ceph-mon", "--mkfs", "-i", "a", "--monmap", monitors)
        self._run_in_namespace("ceph-mon", "-i", "a")
        (self.folder / "mgr").mkdir()
        self._run_in_namespace("ceph-mgr", "-i", "x")
        for number in range(osds):
            name = uuid.uuid4()
            (self.folder / f"osd{number}").mkdir()
            self.call("osd", "new", name, number)
            self._run_in_namespace("ceph-osd", "-i", number, "--mkfs", "--osd-uuid", name)
            self.start(number)
        _wait_for("all OSDs", lambda: self.state().up == osds)

    def serve(self) -> str:
        """Start a gateway for S3 objects with a user; its URL."""
        port = _free_port()
        user = ("--uid", "iolab", "--display-name", "iolab")
        keys = ("--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY)
        self.call_admin("user", "create", *user, *keys)
        # Without tcp_nodelay each small answer waits 40 ms for an acknowledgement.
        frontend = f"beast endpoint=127.0.0.1:{port} tcp_nodelay=1"
        self._run_in_namespace("radosgw", "-n", "client.gateway", "--rgw-frontends", frontend)
        _wait_for("the gateway", lambda: _listens(port))
        self.wait_until_redundant()
        return f"http://127.0.0.1:{port}"

    def requests(self) -> list[LoggedRequest]:
        """What the gateway has answered, by its own log, which comes a moment later."""
        log = self.folder / "requests.log"
        text = log.read_text() if log.exists() else ""
        decoder, found, at = json.JSONDecoder(), [], 0
        while (at := text.find("{", at)) >= 0:
            try:
                entry, at = decoder.raw_decode(text, at)
            except ValueError:
                break  # it is being written
            method, uri, _ = entry["uri"].split()
            found.append(
                LoggedRequest(
                    method=method,
                    uri=uri,
                    status=int(entry["http_status"]),
                    request_bytes=entry["bytes_received"],
                    response_bytes=entry["bytes_sent"],
                    begun=datetime.fromisoformat(entry["time"]),
                )
            )
        return found

    def lose(self, number: int) -> None:
        """Kill an OSD."""
        pid = self._read_file(f"osd.{number}.pid")
        self._run_in_namespace("kill", "-KILL", pid)
        (self.folder / f"osd.{number}.pid").unlink()

    def start(self, number: int) -> None:
        """Start an OSD, for the first time or again."""
        self._run_in_namespace("ceph-osd", "-i", number)

    def state(self) -> ClusterState:
        """By the states of all placement groups.

        A health of HEALTH_OK says less, and the states themselves lag a fault by some seconds.
        """
        status = json.loads(self.call("status", "-f", "json"))
        groups, osds = status["pgmap"], status["osdmap"]
        states = {one["state_name"]: one["count"] for one in groups.get("pgs_by_state", ())}
        is_clean = states == {"active+clean": groups["num_pgs"]}
        degraded = groups.get("degraded_objects", 0)
        return ClusterState(is_clean and not degraded, osds["num_up_osds"], osds["num_osds"])

    def wait_until_redundant(self) -> None:
        """Everything has two copies, and no OSD is missing."""
        _wait_for("two copies of all", lambda: self.state().is_whole)

    def call(self, *argv: object) -> str:
        """The answer of the cluster to a command."""
        return self._run_in_namespace("ceph", *argv)

    def call_admin(self, *argv: object) -> str:
        """The answer of the gateway's own administration."""
        return self._run_in_namespace("radosgw-admin", *argv)

    def down(self) -> None:
        """Nothing of it is left."""
        if (self.folder / "holder").exists():
            holder = int(self._read_file("holder"))
            with contextlib.suppress(ProcessLookupError):
                os.kill(holder, signal.SIGKILL)
            # It goes last of its name space.
            _wait_for("its processes", lambda: not Path(f"/proc/{holder}").exists())
        shutil.rmtree(self.folder)

    def _make_keys(self, osds: int) -> None:
        """A key for each daemon, which the monitor takes over when it is made."""
        keyring = self.folder / "keyring"
        every = ("--cap", "mon", "allow *", "--cap", "osd", "allow *", "--cap", "mgr", "allow *")
        names = ["mon.", "client.admin", "client.gateway", "mgr.x"]
        names += [f"osd.{number}" for number in range(osds)]
        for name in names:
            options = () if keyring.exists() else ("--create-keyring",)
            _run("ceph-authtool", keyring, *options, "--gen-key", "-n", name, *every)

    def _run_in_namespace(self, *argv: object) -> str:
        return _run(
            *("nsenter", "-t", self._read_file("holder"), "-m", "-p", "--"),
            *("env", f"CEPH_CONF={self.folder}/ceph.conf"),
            *argv,
        )

    def _read_file(self, name: str) -> str:
        return (self.folder / name).read_text().strip()

    def _write_file(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


def _run(*argv: object) -> str:
    words = [str(argument) for argument in argv]
    done = run_program(words, timeout=CALL_LIMIT_S, stdin=subprocess.DEVNULL)
    if done.returncode:
        fault = (done.stderr.strip() or done.stdout.strip())[:FAULT_CHARACTERS]
        raise SystemExit(f"{' '.join(words)}: {fault}")
    return done.stdout.strip()


def _read_line(stream: IO[bytes] | None) -> None:
    assert stream is not None
    if not select.select([stream], [], [], CALL_LIMIT_S)[0]:
        raise SystemExit(f"nothing is printed within {CALL_LIMIT_S:.0f} s")
    stream.readline()


def _wait_for(what: str, condition: Callable[[], bool]) -> None:
    end = time.monotonic() + START_LIMIT_S
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {START_LIMIT_S:.0f} s")
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
