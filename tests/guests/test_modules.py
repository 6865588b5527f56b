"""Modules in the order in which they can be loaded."""

from __future__ import annotations

import pytest

from iolab.guests.kit.image import in_order, is_module, module_name
from tests.guests.kernels import module

DRIVERS = "kernel/drivers"
DEBIAN_12 = {
    f"{DRIVERS}/virtio/virtio.ko": module("virtio_ring"),
    f"{DRIVERS}/virtio/virtio_ring.ko": module(),
    f"{DRIVERS}/virtio/virtio_mmio.ko": module("virtio_ring", "virtio"),
    f"{DRIVERS}/virtio/virtio_pci.ko": module(
        "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio"
    ),
    f"{DRIVERS}/virtio/virtio_pci_modern_dev.ko": module(),
    f"{DRIVERS}/virtio/virtio_pci_legacy_dev.ko": module(),
    f"{DRIVERS}/virtio/virtio_balloon.ko": module("virtio_ring", "virtio"),
    f"{DRIVERS}/block/virtio_blk.ko": module("virtio", "virtio_ring"),
    f"{DRIVERS}/char/virtio_console.ko": module("virtio", "virtio_ring"),
}


def test_each_comes_behind_what_it_depends_on() -> None:
    found = in_order(list(DEBIAN_12), [], DEBIAN_12.__getitem__)
    assert list(found) == [
        "virtio_ring",
        "virtio",
        "virtio_mmio",
        "virtio_pci_modern_dev",
        "virtio_pci_legacy_dev",
        "virtio_pci",
        "virtio_blk",
        "virtio_console",
    ]
    assert found["virtio"] == module("virtio_ring")


def test_what_is_built_in_is_left_out() -> None:
    built_in = [
        f"{DRIVERS}/virtio/{name}.ko" for name in ("virtio", "virtio_ring", "virtio_pci")
    ] + [f"{DRIVERS}/char/virtio_console.ko", ""]
    paths = {
        f"{DRIVERS}/block/virtio_blk.ko.xz": module("virtio", "virtio_ring"),
        f"{DRIVERS}/virtio/virtio-mmio.ko.zst": module("virtio-ring"),
    }
    assert list(in_order(list(paths), built_in, paths.__getitem__)) == ["virtio_mmio", "virtio_blk"]


def test_a_kernel_without_disks_is_none_for_guests() -> None:
    with pytest.raises(ValueError, match="no virtio_blk and no virtio_console"):
        in_order([], [], lambda path: b"")


def test_a_module_that_is_nowhere_is_named() -> None:
    paths = {"virtio_blk.ko": module("sg_pool"), "virtio_console.ko": module()}
    with pytest.raises(ValueError, match="no sg_pool, which another module needs"):
        in_order(list(paths), [], paths.__getitem__)


def test_modules_that_depend_on_each_other_end() -> None:
    paths = {"virtio_blk.ko": module("virtio_console"), "virtio_console.ko": module("virtio_blk")}
    assert set(in_order(list(paths), [], paths.__getitem__)) == {"virtio_blk", "virtio_console"}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("kernel/drivers/virtio/virtio_ring.ko", "virtio_ring"),
        ("char/hw_random/virtio-rng.ko.xz", "virtio_rng"),
        ("a.ko.zst", "a"),
        ("a.ko.gz", "a"),
    ],
)
def test_names_are_those_of_the_kernel(path: str, name: str) -> None:
    assert is_module(path)
    assert module_name(path) == name
