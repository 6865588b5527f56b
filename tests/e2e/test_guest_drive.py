"""The log pages of a real (emulated) NVMe drive, read by the agent in a guest."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import convert

from iolab.analysis.drive_pages import DATA_UNIT_BYTES, media_bytes, smart_counters
from iolab.core.drive import DriveReading
from iolab.guests.kit.build import GuestKit
from iolab.hosts.answers import DrivesAnswer
from iolab.hosts.push import agent_binary
from tests.agent.speaker import Agent
from tests.agent.test_schema import VALIDATOR
from tests.e2e.guest_sessions import users_kit
from tests.e2e.test_guest_agent import PATIENCE_S, Guest

pytestmark = [pytest.mark.e2e, pytest.mark.long]

DRIVE: Final = "/dev/nvme0n1"
WRITTEN_BYTES: Final = 16 << 20
OTHER_BYTES: Final = 8 << 20


@pytest.fixture(scope="module")
def kit() -> GuestKit:
    return users_kit()


@pytest.fixture
def guest(kit: GuestKit) -> Iterator[Guest]:
    """A guest with a drive of two namespaces."""
    with (
        Agent(agent_binary(), patience_s=PATIENCE_S) as node,
        tempfile.TemporaryDirectory(prefix="iolab-guest-", dir="/var/tmp") as path,
    ):
        folder = Path(
            node.ask("scratch_open", path=path, name="iolab-scratch-x", owner="me")["dir"]
        )
        devices = ["-device", "nvme,id=nvme0,serial=IOLAB001"]
        for number in (1, 2):
            image = folder / f"namespace{number}"
            with image.open("wb") as file:
                file.truncate(64 << 20)
            devices += ["-drive", f"if=none,id=n{number},format=raw,file={image}"]
            devices += ["-device", f"nvme-ns,bus=nvme0,drive=n{number},nsid={number}"]
        guest = Guest(node, folder, kit, devices=tuple(devices))
        assert guest.hear().is_ == "hello"
        yield guest
        guest.ask("bye")
        node.ask("bye")


def read_drive(guest: Guest) -> DriveReading:
    answer = guest.ask("drive_logs", devices=["nvme0n1", "vda", "nvme0c0n1"])[-1]
    VALIDATOR.validate(answer.header)
    (drive,) = convert(answer.header, DrivesAnswer).drives
    assert drive.fault is None
    return drive


def write(guest: Guest, device: str, size: int, *options: str) -> None:
    job = ("--name=w", "--direct=1", "--rw=write", "--bs=32k", f"--size={size}", "--minimal")
    said = guest.ask("run", argv=["fio", *job, *options, f"--filename={device}"])
    assert said[-1]["code"] == 0


def disk_rows(guest: Guest) -> dict[str, list[Any]]:
    """The counters of every block device that was used."""
    return {row[0]: row for row in guest.ask("snapshot")[-1]["disks"]}


def block_bytes(guest: Guest, name: str) -> int:
    return int(disk_rows(guest)[name][5])


def test_the_drive_counts_what_its_block_device_wrote(guest: Guest) -> None:
    before, start = read_drive(guest), block_bytes(guest, "nvme0n1")
    assert before.identity is not None
    assert before.identity.serial == "IOLAB001"
    assert before.identity.model.startswith("QEMU")
    assert before.power_state == 0
    assert before.namespace == 1
    # Nothing that this drive lacks is made up: it has no page of media bytes.
    assert media_bytes(before) is None
    write(guest, DRIVE, WRITTEN_BYTES)
    after, end = read_drive(guest), block_bytes(guest, "nvme0n1")
    assert end - start == WRITTEN_BYTES
    smart = smart_counters(before), smart_counters(after)
    assert smart[0] is not None
    assert smart[1] is not None
    units = smart[1].units_written - smart[0].units_written
    assert (units - 1) * DATA_UNIT_BYTES < WRITTEN_BYTES <= (units + 1) * DATA_UNIT_BYTES
    # Another namespace's writer is in the same page, which is the controller's.
    write(guest, "/dev/nvme0n2", OTHER_BYTES)
    last = read_drive(guest)
    controller = smart_counters(last)
    assert controller is not None
    more = (controller.units_written - smart[1].units_written) * DATA_UNIT_BYTES
    assert abs(more - OTHER_BYTES) <= DATA_UNIT_BYTES
