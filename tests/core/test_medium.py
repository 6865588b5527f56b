"""What a disk is said to be."""

from __future__ import annotations

import pytest
from bench.synthetic import make_facts
from msgspec.structs import replace

from tests.cli.command_line import SHAPE

DISK = next(iter(make_facts(SHAPE).values())).disks[0]


@pytest.mark.parametrize(
    ("name", "model", "medium"),
    [
        ("vda", None, "virtual"),
        ("zram0", None, "virtual"),
        ("loop3", None, "virtual"),
        ("nbd1", None, "virtual"),
        ("sda", "QEMU HARDDISK", "virtual"),
        ("nvme0n1", "Amazon Elastic Block Store", "virtual"),
        ("sda", "ST4000NM0035", "rotational"),
    ],
)
def test_a_virtual_disk_is_not_rotational_by_the_kernels_default(
    name: str, model: str | None, medium: str
) -> None:
    assert replace(DISK, name=name, model=model, rotational=True).medium_kind == medium


def test_a_solid_state_disk_is_told_as_one() -> None:
    assert replace(DISK, name="nvme0n1", model="X", rotational=False).medium_kind == "solid state"
