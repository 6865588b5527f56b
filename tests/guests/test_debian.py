"""What apt prints, of four distributions."""

from __future__ import annotations

import pytest

from iolab.guests.kit.debian import KernelOffer, offered, stanzas
from iolab.guests.kit.image import libraries_of
from tests.recorded import recorded


@pytest.mark.parametrize(
    ("system", "name", "version"),
    [
        ("debian-12", "linux-image-6.1.0-56-cloud-amd64", "6.1.192-2"),
        ("debian-13", "linux-image-6.12.107+deb13-cloud-amd64", "6.12.107-1"),
        ("ubuntu-22.04", "linux-image-5.15.0-1113-kvm", "5.15.0.1113.109"),
        # Its linux-image-kvm depends on another meta package, and is passed over.
        ("ubuntu-24.04", "linux-image-6.8.0-151-generic", "6.8.0-151.151"),
    ],
)
def test_the_kernel_for_guests_is_found(system: str, name: str, version: str) -> None:
    text = recorded(f"apt/{system}.meta.txt").decode()
    assert offered(text) == KernelOffer(name, version)


@pytest.mark.parametrize(
    "depends",
    [
        "linux-image-6.1.0-9-amd64-unsigned | linux-image-6.1.0-9-amd64",
        "linux-image-6.1.0-9-amd64 | linux-image-6.1.0-9-amd64-unsigned",
        "kmod, linux-image-6.1.0-9-amd64 (= 6.1.5-1), linux-modules-6.1.0-9",
    ],
)
def test_a_signed_kernel_is_preferred(depends: str) -> None:
    text = f"Package: linux-image-cloud-amd64\nVersion: 6.1.5-1\nDepends: {depends}\n"
    assert offered(text) == KernelOffer("linux-image-6.1.0-9-amd64", "6.1.5-1")


@pytest.mark.parametrize(
    "text",
    ["", "N: Unable to locate package", "Package: linux-image-cloud-amd64\nDepends: kmod\n"],
)
def test_without_a_kernel_there_is_no_offer(text: str) -> None:
    assert offered(text) is None


def test_a_kernel_names_the_package_of_its_modules() -> None:
    (stanza,) = stanzas(recorded("apt/ubuntu-22.04.image.txt").decode())
    assert stanza["Depends"].endswith("linux-modules-5.15.0-1113-kvm")
    # A value may hold the mark that ends a name.
    assert stanza["Bugs"] == "https://bugs.launchpad.net/ubuntu/+filebug"


def test_libraries_are_those_that_ldd_found() -> None:
    found = libraries_of(recorded("apt/fio.ldd.txt").decode())
    assert len(found) == 63
    assert "/lib64/ld-linux-x86-64.so.2" in found
    assert "/usr/lib/x86_64-linux-gnu/ceph/libceph-common.so.2" in found
    assert libraries_of("\tnot a dynamic executable\n") == ()
    assert libraries_of("\tlibaio.so.1 => not found\n") == ()
