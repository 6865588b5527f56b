"""A host whose clock is set while it works, and one whose clock nobody sets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iolab.core.events import SessionStatus
from tests.fakes.machine import DiskUse, sample
from tests.fakes.script import FakeScript
from tests.session.stage import HOST, STUDY, Stage

STEP_NS = 3_000_000_000
LATER = 10
"""The sample from which its clock is ahead: in the midst of the first run."""


def set_ahead(disk: DiskUse, seq: int, mono_ns: int, real_ns: int) -> dict[str, object]:
    return sample(disk, seq, mono_ns, real_ns + (STEP_NS if seq >= LATER else 0))


@pytest.mark.parametrize(("machine", "step_ns"), [(sample, 0), (set_ahead, STEP_NS)])
def test_the_record_tells_by_how_much_a_hosts_clock_was_set(
    machine: Callable[[DiskUse, int, int, int], dict[str, object]], step_ns: int
) -> None:
    hosts = "".join(HOST.format(name=name) for name in ("c1", "c2"))
    scripts = {"c1": FakeScript(), "c2": FakeScript(machine=machine)}
    played = Stage(scripts, text=STUDY.format(hosts=hosts)).play()
    assert played.status is SessionStatus.DONE, played.fault
    steps = [[host.clock_step_ns for host in record.hosts] for record in played.records]
    assert all(first == 0 for first, _ in steps)
    assert max(second or 0 for _, second in steps) == step_ns
