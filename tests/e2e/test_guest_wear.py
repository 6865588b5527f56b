"""What was written on a real (emulated) NVMe drive with flash behind it, layer by layer."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from iolab.analysis.checks.drives import check_drive_counters, check_foreign_drive_writer
from iolab.analysis.drive_pages import DATA_UNIT_BYTES
from iolab.analysis.wear import drive_wear_of_run
from iolab.core.drive import DriveReading, DriveReadingPair
from iolab.core.metric import DriveWear, MediaCounter
from iolab.core.run import DeviceDelta, RunRecord
from iolab.errors import EngineError
from iolab.guests.kit.build import GuestKit
from iolab.hosts.push import agent_binary
from tests.agent.speaker import Agent, output
from tests.analysis.checks_on import INDICATIVE, VALID, ask
from tests.analysis.records import healthy, view_of
from tests.drive_qemu import drive_qemu
from tests.e2e.guest_sessions import users_kit
from tests.e2e.test_guest_agent import PATIENCE_S, Guest
from tests.e2e.test_guest_drive import block_bytes, disk_rows, read_drive, write
from tests.needs import do_without, require

pytestmark = [pytest.mark.e2e, pytest.mark.long]

DRIVE: Final = "/dev/nvme0n1"
SERIAL: Final = "IOLAB001"
RECLAIM_UNIT_BYTES: Final = 256 << 20
CLOSE_PROGRAM: Final = "/tmp/close_reclaim_unit"
FDP_STATISTICS: Final = 0x22
OCP_SMART: Final = 0xC0


@pytest.fixture(scope="module")
def kit() -> GuestKit:
    return users_kit()


@pytest.fixture(scope="module")
def qemu() -> tuple[str, ...]:
    try:
        return asyncio.run(drive_qemu())
    except EngineError as fault:
        do_without(str(fault))


def flash_devices(
    folder: Path, unit_bytes: int = RECLAIM_UNIT_BYTES, size: int = 256 << 20
) -> tuple[str, ...]:
    """A drive of two namespaces, whose flash is written in reclaim units."""
    flash = f"fdp=on,fdp.runs={unit_bytes},fdp.nrg=1,fdp.nruh=4"
    devices = ["-device", f"nvme-subsys,id=flash,nqn=iolab,{flash}"]
    devices += ["-device", f"nvme,id=nvme0,serial={SERIAL},subsys=flash,ocp=on"]
    for number, handles in ((1, "0-1"), (2, "2-3")):
        image = folder / f"namespace{number}"
        with image.open("wb") as file:
            file.truncate(size)
        devices += ["-drive", f"if=none,id=n{number},format=raw,file={image}"]
        devices += [
            "-device",
            f"nvme-ns,bus=nvme0,drive=n{number},nsid={number},fdp.ruhs={handles}",
        ]
    return tuple(devices)


@pytest.fixture
def guest(kit: GuestKit, qemu: tuple[str, ...]) -> Iterator[Guest]:
    """A guest with a drive of two namespaces, whose flash is written in reclaim units."""
    require("cc")
    with (
        Agent(agent_binary(), patience_s=PATIENCE_S) as node,
        tempfile.TemporaryDirectory(prefix="iolab-guest-", dir="/var/tmp") as path,
    ):
        opened = node.ask("scratch_open", path=path, name="iolab-scratch-x", owner="me")
        folder = Path(opened["dir"])
        guest = Guest(node, folder, kit, devices=flash_devices(folder), qemu=qemu)
        assert guest.hear().is_ == "hello"
        guest.ask("put", close_program(folder), path=CLOSE_PROGRAM, mode=0o700)
        yield guest
        guest.ask("bye")
        node.ask("bye")


def close_program(folder: Path) -> bytes:
    """Static: the guest has no library for it."""
    source = Path(__file__).parent / "power" / "close_reclaim_unit.c"
    program = folder / "close_reclaim_unit"
    subprocess.run(["cc", "-static", "-O1", "-o", str(program), str(source)], check=True)
    return program.read_bytes()


def close_reclaim_unit(guest: Guest) -> None:
    """All that is left of the unit counts as written from now on."""
    said = guest.ask("run", argv=[CLOSE_PROGRAM, DRIVE])
    assert said[-1]["code"] == 0, output(said)


def counter(reading: DriveReading, page: int, start: int) -> int:
    """A counter of 16 bytes as the drive gave it, decoded by other code than the product's."""
    (found,) = (each for each in reading.pages if each.page == page and each.namespace is None)
    assert found.hex is not None
    return int.from_bytes(bytes.fromhex(found.hex)[start : start + 16], "little")


class Written:
    """A run between two looks at the drive and at its block device."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self.before, self._block_before = read_drive(guest), block_bytes(guest, "nvme0n1")

    def record(self) -> RunRecord:
        self.after = read_drive(self._guest)
        grown = block_bytes(self._guest, "nvme0n1") - self._block_before
        delta = DeviceDelta("nvme0n1", 0, grown, 0, 1)
        return healthy(devices=(delta,), drives=(DriveReadingPair(self.before, self.after),))

    def wear(self) -> DriveWear:
        (wear,) = drive_wear_of_run(view_of(self.record()))
        return wear

    def grown(self, page: int, start: int) -> int:
        return counter(self.after, page, start) - counter(self.before, page, start)


def test_each_layer_is_what_was_written_and_what_the_drive_counted(guest: Guest) -> None:
    written = Written(guest)
    for size, total, amplification in (
        (4 * 17_293_312, 4 * 17_293_312, 3.88),
        (4 * 8_388_608, 4 * 25_681_920, 5.23),
    ):
        write(guest, DRIVE, size)
        close_reclaim_unit(guest)
        wear = written.wear()
        assert wear.block_bytes == total
        # The drive's own log pages: hosts' bytes with and without what the flash adds.
        assert written.grown(FDP_STATISTICS, 0) == total
        assert written.grown(OCP_SMART, 0) == total
        assert wear.media_counter is MediaCounter.FDP
        assert wear.media_bytes is not None
        assert wear.media_bytes.value == written.grown(FDP_STATISTICS, 16)
        assert wear.host_bytes is not None
        assert abs((wear.host_bytes.value or 0) - total) <= DATA_UNIT_BYTES
        found = wear.write_amplification
        assert found is not None, wear.reason
        assert found.value == pytest.approx(amplification, abs=0.005)
        assert (found.low or 0) - 0.005 <= amplification <= (found.high or 0) + 0.005
        assert wear.is_emulated


def test_paths_and_flushes_are_nobodys_bytes(guest: Guest) -> None:
    """Two paths would double the bytes, and a flush that counts as a read the reads."""
    before = disk_rows(guest)
    written = Written(guest)
    write(guest, DRIVE, 2 << 20, "--fsync=1")
    wear, after = written.wear(), disk_rows(guest)
    assert not any("c" in name for name in after if name.startswith("nvme")), after.keys()
    assert wear.block_bytes == written.grown(OCP_SMART, 0) == 2 << 20
    reads, flushes = (after["nvme0n1"][at] - before["nvme0n1"][at] for at in (1, 12))
    assert reads == 0
    assert flushes >= 63  # one between each two writes


def test_what_another_namespace_writes_is_told_and_not_taken_for_the_runs(guest: Guest) -> None:
    alone = Written(guest)
    write(guest, DRIVE, 64 << 20)
    assert ask(check_foreign_drive_writer, alone.record()).level is VALID
    assert ask(check_drive_counters, alone.record()).level is VALID
    disturbed = Written(guest)
    write(guest, DRIVE, 64 << 20)
    write(guest, "/dev/nvme0n2", 48 << 20)
    assert ask(check_foreign_drive_writer, disturbed.record()).level is INDICATIVE
    wear = disturbed.wear()
    assert wear.write_amplification is None
    assert "something else wrote" in wear.reason
