"""A btrfs mirror of two disks of a known speed, each a process, to be broken by tests. Needs root.

`python mirror.py FOLDER up [IOPS]` makes it, writes FOLDER/hosts.toml, an inventory with it as host
`lab`, and prints the first process of its name spaces; with that process everything of it goes.
`lose`, `hang`, `wake`, `slow IOPS` and `rebuild [BYTES/S]` act on its second disk, `state` prints
one JSON object, `down` ends it all. A rebuild is onto a new disk, which then is the second: all of
it can be done again and again. `single [IOPS]` in place of `up` makes one such disk.

A disk is an image behind a limit of QEMU's storage daemon, exported by FUSE, and a loop device over
that: without direct I/O, by which such a loop damages large requests.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

PROGRAMS = ("qemu-storage-daemon", "mkfs.btrfs", "btrfs", "unshare", "nsenter", "losetup")
"""What it is made with."""

SIZE = 2 << 30
IOPS = 600
PATIENCE_S = 20.0
_INIT = "mount --make-rprivate /; echo; while :; do sleep 1000 & wait -n; done"


def _run(*words: object) -> str:
    argv = [str(word) for word in words]
    # As a script it finds no module of the tests.
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


INVENTORY = """format = 1

[[host]]
name = "lab"
kind = "command"
command = ["nsenter", "-t", "{holder}", "-m", "--"]
path = "{mount}"
"""
ACTIONS = """
[[action]]
id = "fail"
host = "lab"
command = [{program}, "lose"]

[[action]]
id = "replace"
host = "lab"
command = [{program}, "rebuild"]

[[witness]]
id = "redundant"
host = "lab"
command = [{program}, "state"]
field = "redundant"
rebuilt_field = "rebuilt_bytes"
throttle_field = "throttle"
timeout = "20s"
"""


class Mirror:
    """The mirror in a folder; each call is of a process of its own."""

    actions = ACTIONS

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mount = folder / "mount"

    @classmethod
    @contextlib.contextmanager
    def running(cls, folder: Path, iops: int = IOPS) -> Iterator[Self]:
        """It, made for the length of a block; nothing of it is left then, nor where that failed."""
        made = cls(folder)
        try:
            made.up(iops)
            yield made
        finally:
            made.down()

    @property
    def inventory(self) -> Path:
        """The inventory with it as host `lab`."""
        return self.folder / "hosts.toml"

    def command(self, *words: object) -> str:
        """The words that call this program with a verb, as a study's list has them."""
        program = (sys.executable, Path(__file__).resolve(), self.folder)
        return ", ".join(f'"{word}"' for word in (*program, *words))

    def up(self, iops: int = IOPS) -> str:
        """Make it; the id of its first process."""
        holder = self._start_holder(iops)
        devices = [self._attach(self._start_disk()) for _ in range(2)]
        try:
            options = ("-q", "-f", "-K", "-d", "raid1", "-m", "raid1")
            self._inside("mkfs.btrfs", *options, *devices)
            self._put("uuid", self._inside("blkid", "-o", "value", "-s", "UUID", devices[0]))
            self._inside("mount", "-o", "noatime,nodiscard", devices[0], self.mount)
        finally:
            for device in devices:
                self._inside("losetup", "--detach", device)  # when its last user is gone
        self._put("second", "2")
        self._put_inventory()
        return holder

    def _put_inventory(self) -> None:
        """What iolab reaches it by: a host in its own name space, and what breaks and mends it."""
        values = {
            "holder": self._get("holder"),
            "mount": self.mount,
            "program": self.command(),
        }
        self.inventory.write_text((INVENTORY + self.actions).format_map(values))

    def _start_holder(self, iops: int) -> str:
        """The first process of the name spaces, in which disks are made of that speed."""
        self.mount.mkdir(parents=True)
        argv = ["unshare", "-mp", "--fork", "--kill-child", "bash", "-c", _INIT]
        with subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        ) as outer:
            assert outer.stdout is not None
            outer.stdout.readline()
            holder = _run("pgrep", "-o", "-P", outer.pid)
            self._put("holder", holder)
            self._put("iops", str(iops))
            outer.returncode = 0  # it lives on, and nobody waits for it here
        return holder

    def lose(self) -> None:
        """Every I/O of the second disk fails from now on."""
        os.kill(self.pid(), signal.SIGKILL)

    def hang(self) -> None:
        """No I/O of the second disk ends."""
        os.kill(self.pid(), signal.SIGSTOP)

    def wake(self) -> None:
        """It goes on."""
        os.kill(self.pid(), signal.SIGCONT)

    def slow(self, iops: int) -> None:
        """The second disk has another speed."""
        value = {"path": "/objects/t", "property": "limits", "value": {"iops-total": iops}}
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(PATIENCE_S)
            monitor.connect(str(self.folder / f"monitor{self._get('second')}"))
            lines = monitor.makefile("rw")
            lines.readline()
            for command in (
                {"execute": "qmp_capabilities"},
                {"execute": "qom-set", "arguments": value},
            ):
                print(json.dumps(command), file=lines, flush=True)
                if "return" not in lines.readline():
                    raise SystemExit("the disk did not take its limit")

    def rebuild(self, bytes_per_s: int = 0) -> None:
        """Copy what is on the first disk onto a new one, so fast at most."""
        for limit in self._disk_infos("*/scrub_speed_max"):
            limit.write_text(str(bytes_per_s))
        device = self._attach(self._start_disk())
        try:
            before = self._progress()
            self._inside("btrfs", "replace", "start", "-f", "-r", 2, device, self.mount)
            end = time.monotonic() + PATIENCE_S
            while (now := self._progress()) == before and time.monotonic() < end:
                time.sleep(0.02)
            if now == before or "canceled" in now:
                raise SystemExit(f"no rebuild began: {now}")
        finally:
            self._inside("losetup", "--detach", device)
        self._put("second", self._get("disks"))

    def state(self) -> dict[str, object]:
        """Whether every block is on two disks that work, by what the file system counts."""
        errors = 0
        for stats in self._disk_infos("*/error_stats"):
            errors += sum(int(line.split()[1]) for line in stats.read_text().splitlines())
        missing = any(m.read_text().strip() == "1" for m in self._disk_infos("*/missing"))
        line = self._progress()
        is_rebuilding = bool(re.search(r"% done", line))
        redundant = not errors and not missing and not is_rebuilding
        return {
            "redundant": redundant,
            "rebuilding": is_rebuilding,
            "rebuilt_bytes": self._rebuilt_bytes(line),
            "throttle": self._throttle(),
        }

    def _rebuilt_bytes(self, progress: str) -> int:
        """What of the file system is copied, by the share that it says."""
        done = re.search(r"([0-9.]+)% done", progress)
        share = float(done[1]) / 100 if done else float("finished" in progress)
        used = os.statvfs(f"/proc/{self._get('holder')}/root{self.mount}")
        return int(share * (used.f_blocks - used.f_bfree) * used.f_frsize)

    def _throttle(self) -> str:
        """The limit of a rebuild, where there is one."""
        limits = {limit.read_text().strip() for limit in self._disk_infos("*/scrub_speed_max")}
        return "scrub_speed_max" if limits - {"0"} else ""

    def down(self) -> None:
        """Nothing of it is left."""
        if (self.folder / "holder").exists():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(self._get("holder")), signal.SIGKILL)
        end = time.monotonic() + PATIENCE_S
        while self._daemons() and time.monotonic() < end:
            time.sleep(0.05)
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def _start_disk(self) -> int:
        number = int(self._get("disks")) + 1 if (self.folder / "disks").exists() else 1
        image, export = self.folder / f"image{number}", self.folder / f"disk{number}"
        with image.open("wb") as file:
            file.truncate(SIZE)
        export.touch()
        monitor = self.folder / f"monitor{number}"
        self._inside(
            "qemu-storage-daemon",
            "--daemonize",
            "--pidfile",
            self.folder / f"pid{number}",
            "--object",
            f"throttle-group,id=t,limits.iops-total={self._get('iops')}",
            "--blockdev",
            f"file,node-name=f,filename={image},cache.direct=on",
            "--blockdev",
            "throttle,node-name=d,throttle-group=t,file=f",
            "--chardev",
            f"socket,path={monitor},server=on,wait=off,id=m",
            "--monitor",
            "chardev=m",
            "--export",
            f"fuse,id=e,node-name=d,mountpoint={export},writable=on",
        )
        self._put("disks", str(number))
        return number

    def _attach(self, number: int) -> str:
        return self._inside("losetup", "--find", "--show", self.folder / f"disk{number}")

    def _progress(self) -> str:
        return self._inside("btrfs", "replace", "status", "-1", self.mount)

    def _disk_infos(self, pattern: str) -> list[Path]:
        return list(Path("/sys/fs/btrfs", self._get("uuid"), "devinfo").glob(pattern))

    def _inside(self, *words: object) -> str:
        return _run("nsenter", "-t", self._get("holder"), "-m", "-p", "--", *words)

    def pid(self) -> int:
        """The second disk's process, by its number outside of its name space."""
        name = f"{self.folder}/pid{self._get('second')}"
        for pid, words in self._daemons():
            if name in words:
                return pid
        raise SystemExit("the second disk has no process")

    def _daemons(self) -> list[tuple[int, list[str]]]:
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes().decode("utf-8", "replace").split("\0")
            except OSError:
                continue
            if words[0].endswith("qemu-storage-daemon") and f"{self.folder}/pid" in str(words):
                found.append((int(entry.parent.name), words))
        return found

    def _get(self, name: str) -> str:
        return (self.folder / name).read_text().strip()

    def _put(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


class SingleDisk(Mirror):
    """One such disk with an ext4, to be shared with a neighbour; `slow` and `down` act on it."""

    actions = ""

    def up(self, iops: int = IOPS) -> str:
        """Make it; the id of its first process."""
        holder = self._start_holder(iops)
        device = self._attach(self._start_disk())
        try:
            self._inside("mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0", device)
            self._inside("mount", "-o", "noatime", device, self.mount)
        finally:
            self._inside("losetup", "--detach", device)  # when its last user is gone
        self._put("second", "1")
        self._put_inventory()
        return holder


def main(folder: str, verb: str, *numbers: str) -> None:
    """One of the verbs."""
    is_single = verb == "single"
    made = (SingleDisk if is_single else Mirror)(Path(folder).resolve())
    done = getattr(made, "up" if is_single else verb)(*map(int, numbers))
    if done is not None:
        print(done if isinstance(done, str) else json.dumps(done))


if __name__ == "__main__":
    main(*sys.argv[1:])
