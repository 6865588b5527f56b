"""Real block devices and the agent: what it refuses to write to, how it holds one, that it purges.

Only loop and zram devices of these tests are ever opened for writing.
"""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.agent.conftest import program  # noqa: F401 - a fixture
from tests.agent.speaker import Agent, until
from tests.agent.test_schema import VALIDATOR
from tests.e2e.devices import Spare, spare_loop, spare_zram, write_at
from tests.e2e.targets import command
from tests.needs import require

pytestmark = pytest.mark.e2e

MD_MAGIC = b"\xfc\x4e\x2b\xa9"


@pytest.fixture
def agent(program: Path) -> Iterator[Agent]:  # noqa: F811 - the fixture
    with Agent(program) as agent:
        yield agent


@pytest.fixture
def spare() -> Iterator[Spare]:
    with spare_loop() as spare:
        yield spare


def told(agent: Agent, path: str, **wishes: Any) -> dict[str, Any]:
    said = agent.ask("device", path=path, **{"serial": None, **wishes})
    assert said.is_ == "device", said.header
    VALIDATOR.validate(said.header)
    return said.header


def codes(agent: Agent, path: str, **wishes: Any) -> list[str]:
    return [one["code"] for one in told(agent, path, **wishes)["objections"]]


def taken(agent: Agent, spare: Spare, **wishes: Any) -> str:
    said = agent.ask("device_open", path=spare.path, serial=spare.serial, **wishes)
    return "taken" if said.is_ == "device" else f"{said['code']}: {said['message']}"


def test_an_unused_device_can_be_taken_by_its_serial_alone(agent: Agent, spare: Spare) -> None:
    facts = told(agent, spare.path, serial=spare.serial)
    assert facts["objections"] == []
    assert (facts["serial"], facts["size_bytes"]) == (spare.serial, 64 << 20)
    wrong = agent.ask("device_open", path=spare.path, serial="S5-OTHER")
    assert (wrong.is_, wrong["code"]) == ("error", "refused")
    assert "S5-OTHER" in wrong["message"]
    assert taken(agent, spare) == "taken"


def test_the_disk_of_this_machine_is_refused_for_its_mounts(agent: Agent) -> None:
    """Looked at only: neither mkfs nor a session may ever get it."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    sources = {line.split(" - ")[1].split()[1] for line in mounts}
    disks = [source for source in sources if source.startswith("/dev/") and "loop" not in source]
    for disk in disks:
        assert "mounted" in codes(agent, disk)
        assert {"in-use", "closed"} & {*codes(agent, disk)}
        refused = agent.ask("device_open", path=disk, serial=told(agent, disk)["serial"] or "none")
        assert (refused.is_, refused["code"]) == ("error", "refused")


def test_a_mounted_device_is_refused_with_all_its_faults(agent: Agent, tmp_path: Path) -> None:
    with spare_loop(400 << 20) as spare:
        command("mkfs.xfs", "-q", spare.path)
        assert codes(agent, spare.path) == ["file-system"]
        assert "xfs" in taken(agent, spare)
        place = tmp_path / "mount"
        place.mkdir()
        command("mount", spare.path, place)
        try:
            assert codes(agent, spare.path, serial="S5") == ["mounted", "other-serial", "in-use"]
            assert taken(agent, spare, overwrite=True).startswith("refused: ")
        finally:
            command("umount", place)
            # Name spaces that were begun meanwhile have it, too: it goes with its place.
            place.rmdir()
        assert taken(agent, spare, overwrite=True) == "taken"


def test_partitions_are_refused_and_so_is_the_table_that_is_left_of_them(agent: Agent) -> None:
    with spare_loop(64 << 20, "--partscan") as spare:
        # One partition of type 83, from sector 2048, of 20480 sectors.
        entry = b"\x00\x00\x00\x00\x83\x00\x00\x00" + struct.pack("<II", 2048, 20480)
        write_at(spare.path, 446, entry + bytes(48) + b"\x55\xaa")
        assert codes(agent, spare.path, overwrite=True) == ["signature"]
        command("partx", "--add", spare.path)
        try:
            part = f"{spare.path}p1"
            assert codes(agent, spare.path) == ["partitioned", "signature"]
            assert "partition" in codes(agent, part)
            assert taken(agent, spare, overwrite=True).startswith("refused: ")
        finally:
            command("partx", "--delete", spare.path)


def test_swap_is_refused_in_use_and_by_its_signature(agent: Agent, spare: Spare) -> None:
    command("mkswap", spare.path)
    assert codes(agent, spare.path, overwrite=True) == ["signature"]
    command("swapon", spare.path)
    try:
        assert {"swap", "in-use"} <= {*codes(agent, spare.path)}
    finally:
        command("swapoff", spare.path)


@pytest.mark.parametrize(
    ("offset", "content", "name"),
    [
        (4096, MD_MAGIC, "md member"),
        ((64 << 20) - 65536, MD_MAGIC, "md member"),
        (512, b"LABELONE", "LVM2 physical volume"),
        (512, b"EFI PART", "GPT partition table"),
        ((128 << 10) + 4096, b"\x0c\xb1\xba\x00\x00\x00\x00\x00", "ZFS member"),
        (4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca", "bcache member"),
    ],
)
def test_members_of_something_larger_are_never_overwritten(
    agent: Agent, spare: Spare, offset: int, content: bytes, name: str
) -> None:
    write_at(spare.path, offset, content)
    assert [one["name"] for one in told(agent, spare.path)["signatures"]] == [name]
    assert f"holds {name}" in taken(agent, spare, overwrite=True)


def test_a_read_only_device_is_refused(agent: Agent) -> None:
    with spare_loop(64 << 20, "--read-only") as spare:
        assert "read-only" in codes(agent, spare.path)


def test_a_held_device_is_nobody_elses(
    agent: Agent,
    program: Path,  # noqa: F811 - the fixture
    spare: Spare,
    tmp_path: Path,
) -> None:
    require("mkfs.xfs")
    assert taken(agent, spare) == "taken"
    with Agent(program) as other:
        assert codes(other, spare.path) == ["in-use"]
    assert subprocess.run(["mkfs.xfs", "-f", spare.path], capture_output=True).returncode
    assert agent.ask("device_close", path=spare.path).is_ == "done"
    with Agent(program) as other:
        assert taken(other, spare) == "taken"
    # The end of an agent lets go as well.
    assert taken(agent, spare) == "taken"


def test_an_agent_that_is_killed_lets_its_device_go(
    program: Path,  # noqa: F811 - the fixture
    spare: Spare,
) -> None:
    with Agent(program) as first:
        assert taken(first, spare) == "taken"
        os.kill(int(first.hello["pid"]), 9)
        first.process.wait(20)
    with Agent(program) as second:
        assert taken(second, spare) == "taken"


def test_a_discard_gives_every_block_back(agent: Agent, spare: Spare) -> None:
    write_at(spare.path, 0, os.urandom(8 << 20))
    assert spare.allocated_bytes >= 8 << 20
    refused = agent.ask("discard", path=spare.path)
    assert refused["code"] == "bad-request"
    assert spare.allocated_bytes >= 8 << 20
    assert taken(agent, spare) == "taken"
    purged = agent.ask("discard", path=spare.path)
    VALIDATOR.validate(purged.header)
    assert (purged.is_, purged["bytes"]) == ("purged", 64 << 20)
    assert spare.allocated_bytes < 1 << 20
    with Path(spare.path).open("rb") as device:
        assert device.read(8 << 20) == bytes(8 << 20)


def test_zram_is_known_by_its_name_and_gives_its_memory_back(agent: Agent) -> None:
    with spare_zram() as spare:
        write_at(spare.path, 0, os.urandom(4 << 20))
        assert int(spare.image.read_text().split()[0]) >= 4 << 20
        assert told(agent, spare.path)["memory_backed"]
        assert taken(agent, spare) == "taken"
        assert agent.ask("discard", path=spare.path).is_ == "purged"
        assert int(spare.image.read_text().split()[0]) < 1 << 20
        assert agent.ask("device_close", path=spare.path).is_ == "done"


@pytest.mark.parametrize("use", ["mounted", "swap"])
def test_a_zram_that_another_uses_is_refused_and_stays_as_it_is(agent: Agent, use: str) -> None:
    """Its number may be that of another's by now: the name alone gives no right to write."""
    with spare_zram() as spare, ExitStack() as stack:
        if use == "swap":
            command("mkswap", spare.path)
            command("swapon", spare.path)
            stack.callback(command, "swapoff", spare.path)
        else:
            command("mkfs.ext4", "-q", spare.path)
            folder = stack.enter_context(TemporaryDirectory())
            command("mount", spare.path, folder)
            stack.callback(command, "umount", folder)
            (Path(folder) / "precious").write_text("stays")
            os.sync()
        assert taken(agent, spare) != "taken"
        assert agent.ask("discard", path=spare.path).is_ == "error"
        if use == "mounted":
            assert (Path(folder) / "precious").read_text() == "stays"


def test_a_zram_of_another_name_is_not_the_one_of_the_study(agent: Agent) -> None:
    with spare_zram() as spare, spare_zram() as other:
        write_at(other.path, 0, b"stays")
        said = agent.ask("device_open", path=other.path, serial=spare.serial)
        assert (said.is_, said["code"]) == ("error", "refused")
        with Path(other.path).open("rb") as device:
            assert device.read(5) == b"stays"


def test_a_trim_tells_what_is_free(agent: Agent) -> None:
    with mounted() as (folder, spare):
        file = folder / "file"
        file.write_bytes(os.urandom(32 << 20))
        os.sync()
        before = spare.allocated_bytes
        file.unlink()
        os.sync()

        def is_given_back() -> bool:
            """XFS frees what was unlinked some time later."""
            assert agent.ask("trim", path=str(folder))["bytes"] > 32 << 20
            return spare.allocated_bytes < before - (24 << 20)

        assert until(is_given_back)


@contextmanager
def mounted() -> Iterator[tuple[Path, Spare]]:
    with ExitStack() as stack:
        spare = stack.enter_context(spare_loop(400 << 20))
        command("mkfs.xfs", "-q", spare.path)
        folder = spare.image.with_name("mount")
        folder.mkdir()
        command("mount", spare.path, folder)
        stack.callback(command, "umount", folder)
        yield folder, spare
