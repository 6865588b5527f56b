"""Guests whose images lie on several nodes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

import pytest
from msgspec.structs import replace

from iolab.core.events import SessionStatus
from iolab.core.host import ToolFacts
from iolab.guests.copies import (
    FIRST_PORT,
    DiskReplica,
    nbd_copy_command,
    nbd_server_command,
    plan_replicas,
)
from iolab.guests.machine import Replica
from iolab.guests.vm_table import COPIES
from tests.fakes.agent import FakeAgent
from tests.fakes.programs import FakeCall, FakeProgram
from tests.fakes.script import FakeScript
from tests.guests.fleet import NODES, boots_of, fleet, node_script
from tests.session.stage import Stage

ADDRESS = 'role = "hypervisor"\nstorage_address = "10.0.0.1"'


async def truncate(call: FakeCall) -> int:
    machine, path = call.machine, call.argv[-1]
    assert isinstance(machine, FakeAgent)
    folder, _, name = path.rpartition("/")
    machine.files[f"{folder}/{name.partition('.')[0]}"] = int(call.argv[2])
    return 0


async def truncate_alone(call: FakeCall) -> int:
    assert isinstance(call.machine, FakeAgent)
    call.machine.hole_bytes = 4096
    return await truncate(call)


async def serve(_: FakeCall) -> int:
    await asyncio.Event().wait()
    return 0


async def taken(call: FakeCall) -> int:
    await asyncio.sleep(0.5)
    call.say(b"qemu-nbd: Failed to bind socket: Address already in use\n", "stderr")
    return 1


class Image:
    """qemu-img: the first copies come before the server listens, or another session's answers."""

    def __init__(self, early: int = 0, *, foreign: bool = False) -> None:
        self.early = early
        self.foreign = foreign
        self.copied: list[str] = []

    async def __call__(self, call: FakeCall) -> int:
        if self.early:
            self.early -= 1
            call.say(b"qemu-img: Failed to connect: Connection refused\n", "stderr")
            return 1
        if self.foreign:
            call.say(b"qemu-img: Could not open: Requested export not available\n", "stderr")
            return 1
        self.copied.append(call.argv[-1])
        return 0


def mirrored(server: FakeProgram = serve, image: Image | None = None) -> Stage:
    """A session on two nodes with two replicas of each image, not played yet."""
    more: dict[str, FakeProgram] = {
        "truncate": truncate,
        "qemu-nbd": server,
        "qemu-img": image or Image(),
    }

    def script() -> FakeScript:
        base = node_script()
        assert base.facts is not None
        tools = tuple(ToolFacts(name, f"/usr/bin/{name}", "7.2") for name in more)
        facts = replace(base.facts, tools=(*base.facts.tools, *tools))
        return replace(base, facts=facts, programs={**base.programs, **more})

    stage = fleet(vm="replicas = 2")
    stage.text = stage.text.replace('role = "hypervisor"', ADDRESS)
    stage.scripts = {name: script() for name in NODES}
    return stage


def test_each_image_has_a_copy_on_another_node_before_its_guest_boots() -> None:
    image = Image(early=3)
    stage = mirrored(image=image).play()
    assert stage.status is SessionStatus.DONE, stage.fault
    assert len(image.copied) == len(set(image.copied)) == 4
    for node, other in (NODES, NODES[::-1]):
        servers = [str(run["argv"]) for run in stage.hosts[other].asked("run")]
        offered = [words for words in servers if "qemu-nbd" in words]
        assert len(offered) == 2
        assert all(f"--export-name={node}-vm0" in words for words in offered)
        for qemu in boots_of(stage, node)[1:]:
            (disk,) = [word for word in qemu.argv if '"driver":"quorum"' in word]
            assert f'"export":"{qemu.name}-copy1-trial-1"' in disk
    stage.assert_left_clean()


def test_a_port_that_another_session_has_is_told_and_nothing_is_left() -> None:
    stage = mirrored(taken, Image(foreign=True)).play()
    assert stage.fault is not None
    told = " ".join(fault.message for fault in stage.fault.faults)
    assert "'node-1-vm01' cannot be offered on node 'node-2': " in told
    assert "Address already in use" in told
    stage.assert_left_clean()


def test_copies_with_holes_are_refused() -> None:
    stage = mirrored()
    stage.scripts = {
        name: replace(script, programs={**script.programs, "truncate": truncate_alone})
        for name, script in stage.scripts.items()
    }
    stage.play()
    assert stage.fault is not None
    assert stage.fault.faults[0].message.startswith("4 KiB of the copies")
    stage.assert_left_clean()


ADDRESSES: Final = {"n1": "192.0.2.1", "n2": "192.0.2.2", "n3": "192.0.2.3"}
GUESTS: Final = {f"{node}-vm{number}": node for node in ADDRESSES for number in (1, 2)}
MIRROR: Final = DiskReplica("n1-vm1", "n2", Replica("192.0.2.2", 10810, "n1-vm1-copy1"))


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_every_guest_has_its_copies_on_other_nodes(replicas: int) -> None:
    found = plan_replicas(ADDRESSES, GUESTS, replicas, "s")
    assert Counter(mirror.guest for mirror in found) == Counter(
        {guest: replicas - 1 for guest in GUESTS if replicas > 1}
    )
    assert all(mirror.node != GUESTS[mirror.guest] for mirror in found)
    assert len({(mirror.guest, mirror.node) for mirror in found}) == len(found)
    assert all(mirror.replica.address == ADDRESSES[mirror.node] for mirror in found)


def test_every_node_has_as_many_copies() -> None:
    held = Counter(mirror.node for mirror in plan_replicas(ADDRESSES, GUESTS, 2, "s"))
    assert held == {"n1": 2, "n2": 2, "n3": 2}


def test_no_port_and_no_name_is_given_twice_even_behind_one_address() -> None:
    found = plan_replicas(dict.fromkeys(ADDRESSES, "127.0.0.1"), GUESTS, 3, "s")
    assert [mirror.replica.port for mirror in found] == list(range(FIRST_PORT, FIRST_PORT + 12))
    assert len({mirror.image_file_name for mirror in found}) == 12


def test_no_session_takes_the_copies_of_another_for_its_own() -> None:
    names = [
        {one.replica.export for one in plan_replicas(ADDRESSES, GUESTS, 3, of)} for of in ("s", "t")
    ]
    assert len(names[0] | names[1]) == 24


def test_more_than_there_can_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"4 replicas .* 3"):
        plan_replicas(ADDRESSES, GUESTS, 4, "s")
    many = {f"vm{number}": "n1" for number in range(COPIES + 1)}
    with pytest.raises(ValueError, match="at most 4096 copies"):
        plan_replicas(ADDRESSES, many, 2, "s")


def test_a_server_listens_on_the_storage_address_alone() -> None:
    assert nbd_server_command(MIRROR, "/mnt/a, b/n1-vm1-copy1.img", "qemu-nbd") == (
        *("qemu-nbd", "--persistent", "--shared=2", "--format=raw"),
        *("--cache=none", "--aio=native", "--discard=ignore"),
        *("--bind=192.0.2.2", "--port=10810", "--export-name=n1-vm1-copy1"),
        "/mnt/a, b/n1-vm1-copy1.img",
    )


@pytest.mark.parametrize("image", ["a.img", "nbd:127.0.0.1:1", "-x", ""])
def test_an_image_that_could_be_something_else_is_refused(image: str) -> None:
    with pytest.raises(ValueError, match="not absolute"):
        nbd_server_command(MIRROR, image, "qemu-nbd")


def test_the_first_copy_has_every_byte() -> None:
    argv = nbd_copy_command(MIRROR, "/mnt/n1-vm1.img", "qemu-img")
    assert argv[:5] == ("qemu-img", "convert", "-n", "-S", "0")
    assert argv[-2:] == ("/mnt/n1-vm1.img", "nbd://192.0.2.2:10810/n1-vm1-copy1")
