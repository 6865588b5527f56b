"""The agent as the first process of a real guest, over the agent of its node."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from iolab.guests.guest import GUEST_DISK, GUEST_SERIAL, Accelerator, GuestSettings
from iolab.guests.kit.build import GuestKit
from iolab.guests.machine import QemuAio, QemuMachine, agent_socket_file_name, qemu_argv
from iolab.hosts.clock import ClockStepDetector
from iolab.hosts.push import agent_binary
from tests.agent.speaker import FINAL, Agent, Said, output
from tests.e2e.guest_sessions import users_kit
from tests.needs import ROOT, require

pytestmark = pytest.mark.e2e

DISK_BYTES: Final = 16 << 20
SETTINGS: Final = GuestSettings(vcpus=1, memory_bytes=192 << 20, disk_bytes=DISK_BYTES)
JOB: Final = ("--name=a", "--direct=1", "--rw=randwrite", "--bs=4k", "--io_size=256k", "--minimal")
PATIENCE_S: Final = 120.0
"""A boot under emulation takes two seconds, and twenty on a machine that is busy."""
CLOCK_OFF_LIMIT_NS: Final = 30_000_000_000
"""A guest's clock is right to a second; without its setting it is years off, or hours."""


@pytest.fixture(scope="module")
def kit() -> GuestKit:
    return users_kit()


@pytest.fixture
def node() -> Iterator[Agent]:
    with Agent(agent_binary(), patience_s=PATIENCE_S) as agent:
        yield agent


@pytest.fixture
def folder(node: Agent) -> Iterator[Path]:
    """A scratch folder of the node, on disk because /tmp may be in memory."""
    with tempfile.TemporaryDirectory(prefix="iolab-guest-", dir="/var/tmp") as path:
        opened = node.ask("scratch_open", path=path, name="iolab-scratch-x", owner="me")
        yield Path(opened["dir"])
        node.ask("bye")


def guest_argv(
    folder: Path,
    kit: GuestKit,
    *more: str,
    devices: tuple[str, ...] = (),
    qemu: tuple[str, ...] = ("qemu-system-x86_64",),
) -> list[str]:
    """The command of a guest, to be run in the folder; `more` are words of its kernel."""
    image = folder / "image"
    # Bytes that a physical volume begins with: random ones could be the same.
    image.write_bytes(bytes(512) + b"LABELONE" + bytes(DISK_BYTES - 520))
    machine = QemuMachine(
        guest="vm01",
        settings=SETTINGS,
        accelerator=Accelerator.TCG,
        kernel=str(kit.kernel),
        initrd=str(kit.initrd),
        tools=str(kit.tools),
        image=str(image),
        tsc_khz=processor_khz(),
        real_ns=time.time_ns(),
        aio=QemuAio.THREADS,
    )
    argv = [*qemu, *qemu_argv(machine, qemu[0])[1:]]
    argv[-1] = " ".join([argv[-1], *more])
    if devices:  # of PCI, which the small machine has where it is asked for
        place = argv.index("-machine") + 1
        argv[place] += ",pcie=on,acpi=on"
        # The usual firmware puts the tables of ACPI where the first file system is loaded to.
        argv += ["-bios", "qboot.rom", *devices]
    return argv


class Guest:
    """A guest on a node, and what is said to the agent in it."""

    def __init__(
        self,
        node: Agent,
        folder: Path,
        kit: GuestKit,
        *more: str,
        devices: tuple[str, ...] = (),
        qemu: tuple[str, ...] = ("qemu-system-x86_64",),
    ) -> None:
        argv = guest_argv(folder, kit, *more, devices=devices, qemu=qemu)
        self._node = node
        self._heard = b""
        self._next_id = 0
        self.run = node.begin("run", argv=argv, cwd=str(folder))
        name = agent_socket_file_name("vm01")
        self.line = node.begin("connect", dir=str(folder), name=name, wait_s=60)

    def ask(self, verb: str, payload: bytes = b"", **arguments: Any) -> list[Said]:
        """Everything said to a request."""
        self._next_id += 1
        text = json.dumps({"id": self._next_id, "do": verb, **arguments}).encode()
        frame = struct.pack("<II", len(text), len(payload)) + text + payload
        assert self._node.ask("send", frame, connection=self.line).is_ == "done"
        said = [self.hear()]
        while said[-1].is_ not in FINAL | {"sample"}:
            said.append(self.hear())
        return said

    def hear(self) -> Said:
        """The next message. EOFError when the connection ended."""
        while True:
            if len(self._heard) >= 8:
                header, payload = struct.unpack("<II", self._heard[:8])
                end = 8 + header + payload
                if len(self._heard) >= end:
                    text, content = self._heard[8 : 8 + header], self._heard[8 + header : end]
                    self._heard = self._heard[end:]
                    return Said(json.loads(text), content)
            said = self._node.next(self.line)
            if said.is_ in FINAL:
                raise EOFError(said.header)
            self._heard += said.payload

    def end(self) -> str:
        """Wait until its QEMU has ended by itself; what its console said."""
        said = self._node.rest(self.run)
        assert said[-1].header.get("code") == 0, (said[-1].header, output(said, "stderr"))
        return output(said).decode("utf-8", "replace")


def processor_khz() -> int:
    found = re.search(r"cpu MHz\s*: ([0-9.]+)", Path("/proc/cpuinfo").read_text())
    return int(float(found[1]) * 1000) if found else 2_000_000


@pytest.mark.long
def test_a_guest_serves_as_any_host_does(node: Agent, folder: Path, kit: GuestKit) -> None:
    guest = Guest(node, folder, kit)
    assert guest.hear().is_ == "hello"
    facts = guest.ask("facts", path=None, tools={"fio": ["fio", "--version"]})[-1]["facts"]
    assert (facts["kernel"]["hypervisor"], facts["kernel"]["hostname"]) == ("TCG", "vm01")
    assert facts["kernel"]["release"] == kit.release
    assert facts["tools"][0]["version"].startswith("fio-")
    off_ns = time.time_ns() - guest.ask("clock")[-1]["real_ns"]
    assert abs(off_ns) < CLOCK_OFF_LIMIT_NS
    wish: dict[str, Any] = {"path": GUEST_DISK, "serial": GUEST_SERIAL}
    looked = guest.ask("device", **wish, overwrite=False)[-1]
    assert [one["code"] for one in looked["objections"]] == ["signature"]
    taken = guest.ask("device_open", **wish, overwrite=True)[-1]
    assert (taken.is_, taken["size_bytes"]) == ("device", DISK_BYTES)
    said = guest.ask("run", argv=["fio", *JOB, f"--filename={GUEST_DISK}"])
    assert (said[-1]["code"], output(said).split(b";")[1][:3]) == (0, b"fio")
    disks = {disk[0]: disk for disk in guest.ask("snapshot")[-1]["disks"]}
    assert disks[taken["name"]][5] == 256 << 10
    used = node.ask("use", run=guest.run)
    assert 0 < used["vcpu_run_ns"] < used["run_ns"]
    assert guest.ask("bye")[-1].is_ == "done"
    assert "iolab-agent:" not in guest.end()
    assert node.rest(guest.line)[-1].is_ == "closed"


SET_CLOCK: Final = """
#include <time.h>
int main(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return 1;
  now.tv_sec += STEP_S;
  return clock_settime(CLOCK_REALTIME, &now) != 0;
}
"""


@pytest.mark.long
def test_a_clock_that_is_set_in_a_guest_is_told_by_how_much(
    node: Agent, folder: Path, kit: GuestKit, tmp_path: Path
) -> None:
    require("cc")
    step_s = 4
    # Static: the guest has no library for it.
    words = ["-static", "-O1", f"-DSTEP_S={step_s}", "-o", "set", "-xc", "-"]
    subprocess.run(["cc", *words], input=SET_CLOCK.encode(), cwd=tmp_path, check=True)
    guest = Guest(node, folder, kit)
    assert guest.hear().is_ == "hello"
    meter = ClockStepDetector()

    def look() -> int | None:
        sample = guest.ask("snapshot")[-1].header
        meter.add_reading(sample["real_ns"], sample["boot_ns"])
        return meter.step_ns

    steps = [look() for _ in range(3)]
    program = (tmp_path / "set").read_bytes()
    assert guest.ask("put", program, path="/tmp/set", mode=0o700)[-1].is_ == "done"
    assert guest.ask("run", argv=["/tmp/set"])[-1]["code"] == 0
    told = look()
    assert (steps[0], steps[-1]) == (None, 0)
    assert told is not None
    assert abs(told - step_s * 10**9) < 10**9 // 2
    assert guest.ask("bye")[-1].is_ == "done"


@pytest.mark.long
def test_a_guest_ends_with_its_connection(node: Agent, folder: Path, kit: GuestKit) -> None:
    guest = Guest(node, folder, kit)
    assert guest.hear().is_ == "hello"
    assert node.ask("disconnect", connection=guest.line).is_ == "done"
    assert "iolab-agent:" not in guest.end()


@pytest.mark.long
def test_a_guest_ends_with_its_lease_and_says_so(node: Agent, folder: Path, kit: GuestKit) -> None:
    guest = Guest(node, folder, kit)
    assert guest.hear().is_ == "hello"
    assert guest.ask("lease", seconds=1)[-1].is_ == "done"
    console = guest.end()
    assert "iolab-agent: nothing was heard for" in console
    assert "iolab-agent: the guest ends: its agent ended with code 4" in console


@pytest.mark.long
def test_a_guest_that_cannot_start_says_why(node: Agent, folder: Path, kit: GuestKit) -> None:
    guest = Guest(node, folder, kit, "iolab.real_ns=soon")
    said = 'iolab-agent: the guest cannot start: the kernel\'s parameter "iolab.real_ns=soon"'
    assert said in guest.end()


def test_the_first_process_of_a_container_is_no_guest() -> None:
    require(ROOT)
    with Agent(agent_binary(), "unshare", "--pid", "--fork", "--mount-proc") as agent:
        assert agent.hello["pid"] == 2
        assert agent.ask("bye").is_ == "done"
