"""Disks whose curve is known in advance: the study must find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.core.run import RunStatus
from iolab.guests.guest import guest_fleet_of_run
from tests.e2e.guest_sessions import Stored, iolab, left_on, study, workload

pytestmark = [pytest.mark.e2e, pytest.mark.long]

LATENCY_MS = 100
JOBS = 4
EACH_IOPS = JOBS * 1000 / LATENCY_MS
"""Of each guest: so slow a disk that emulated processors are not the limit, on a busy machine."""
HOST = '[[host]]\nname = "node"\nrole = "hypervisor"\n'


RUNTIME = "10s"
"""fio takes seconds to start in an emulated guest: the time that two of them share is less."""


def test_iops_grow_with_the_guests_as_the_model_says(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    file = study(
        tmp_path,
        f'disk = "32m"\ndisk_kind = "modelled"\nlatency = "{LATENCY_MS}ms"\naccel = "tcg"',
        workload("read", "randread", numjobs=JOBS, vms=(1, 2)),
        hosts=HOST,
        runtime=RUNTIME,
    )
    iolab("run", file, "--path", target, "--out", tmp_path / "S", "--quiet")
    stored = Stored.at(tmp_path / "S")
    rates = {}
    for run, record, result in stored.runs():
        assert result.status is RunStatus.DONE, result.failure
        guest_fleet = guest_fleet_of_run(record)
        assert guest_fleet is not None
        rates[run.point.per_node] = result.metrics["iops"].value or 0.0
        assert len(guest_fleet.guests) == run.point.per_node
        assert len(guest_fleet.idle) == 2 - run.point.per_node
        mean = result.metrics["read_lat_ns_mean"].value or 0.0
        assert mean >= LATENCY_MS * 1e6
        assert stored.level_of(result, "modelled-disk").startswith("indicative")
    assert rates == {count: pytest.approx(count * EACH_IOPS, rel=0.15) for count in (1, 2)}
    assert left_on(target) == []
