"""A target that stops while it is written, and one that only takes long."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from iolab.errors import EngineError
from tests.facts import tells
from tests.fakes.fio import FakeLoad
from tests.fakes.machine import DEVICE, DiskUse, sample
from tests.fakes.script import FakeScript
from tests.session.stage import Stage

STUCK = FakeLoad(hangs=True)
LATER_S = 1500
"""When its device, which crawls until then, stands still as well."""


def crawling(disk: DiskUse, seq: int, mono_ns: int, real_ns: int) -> dict[str, object]:
    """An I/O of a device that has hardly any to spare, now and then."""
    done = min(mono_ns // 10**9, LATER_S) // 300
    return sample(replace(disk, write_ios=disk.write_ios + done), seq, mono_ns, real_ns)


@pytest.mark.parametrize("machine", [sample, crawling])
def test_a_layout_hangs_when_its_device_does_and_not_before(
    machine: Callable[[DiskUse, int, int, int], dict[str, object]],
) -> None:
    script = FakeScript(layouts=(STUCK,), machine=machine)
    stage = Stage({"local": script}, sets=("workload.*.filesize=1g",)).play()
    assert isinstance(stage.fault, EngineError)
    assert tells(stage.fault.message, "local", DEVICE, "600 s")
    stage.assert_left_clean()
