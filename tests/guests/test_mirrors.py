"""Who has a copy of which image, and by which commands."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from iolab.guests.copies import FIRST_PORT, Mirror, copy_argv, mirrors, server_argv
from iolab.guests.machine import Replica
from iolab.guests.vm_table import COPIES

NODES: Final = {"n1": "192.0.2.1", "n2": "192.0.2.2", "n3": "192.0.2.3"}
GUESTS: Final = {f"{node}-vm{number}": node for node in NODES for number in (1, 2)}
MIRROR: Final = Mirror("n1-vm1", "n2", Replica("192.0.2.2", 10810, "n1-vm1-copy1"))


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_every_guest_has_its_copies_on_other_nodes(replicas: int) -> None:
    found = mirrors(NODES, GUESTS, replicas, "s")
    assert Counter(mirror.guest for mirror in found) == Counter(
        {guest: replicas - 1 for guest in GUESTS if replicas > 1}
    )
    assert all(mirror.node != GUESTS[mirror.guest] for mirror in found)
    assert len({(mirror.guest, mirror.node) for mirror in found}) == len(found)
    assert all(mirror.replica.address == NODES[mirror.node] for mirror in found)


def test_every_node_has_as_many_copies() -> None:
    held = Counter(mirror.node for mirror in mirrors(NODES, GUESTS, 2, "s"))
    assert held == {"n1": 2, "n2": 2, "n3": 2}


def test_no_port_and_no_name_is_given_twice_even_behind_one_address() -> None:
    found = mirrors(dict.fromkeys(NODES, "127.0.0.1"), GUESTS, 3, "s")
    assert [mirror.replica.port for mirror in found] == list(range(FIRST_PORT, FIRST_PORT + 12))
    assert len({mirror.image for mirror in found}) == 12


def test_no_session_takes_the_copies_of_another_for_its_own() -> None:
    names = [{one.replica.export for one in mirrors(NODES, GUESTS, 3, of)} for of in ("s", "t")]
    assert len(names[0] | names[1]) == 24


def test_more_than_there_can_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"4 replicas .* 3"):
        mirrors(NODES, GUESTS, 4, "s")
    many = {f"vm{number}": "n1" for number in range(COPIES + 1)}
    with pytest.raises(ValueError, match="at most 4096 copies"):
        mirrors(NODES, many, 2, "s")


def test_a_server_listens_on_the_storage_address_alone() -> None:
    assert server_argv(MIRROR, "/mnt/a, b/n1-vm1-copy1.img", "qemu-nbd") == (
        *("qemu-nbd", "--persistent", "--shared=2", "--format=raw"),
        *("--cache=none", "--aio=native", "--discard=ignore"),
        *("--bind=192.0.2.2", "--port=10810", "--export-name=n1-vm1-copy1"),
        "/mnt/a, b/n1-vm1-copy1.img",
    )


@pytest.mark.parametrize("image", ["a.img", "nbd:127.0.0.1:1", "-x", ""])
def test_an_image_that_could_be_something_else_is_refused(image: str) -> None:
    with pytest.raises(ValueError, match="not absolute"):
        server_argv(MIRROR, image, "qemu-nbd")


def test_the_first_copy_has_every_byte() -> None:
    argv = copy_argv(MIRROR, "/mnt/n1-vm1.img", "qemu-img")
    assert argv[:5] == ("qemu-img", "convert", "-n", "-S", "0")
    assert argv[-2:] == ("/mnt/n1-vm1.img", "nbd://192.0.2.2:10810/n1-vm1-copy1")
