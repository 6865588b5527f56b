"""The native engine on plain block devices: several of them, used ones, trimmed, and polled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.devices import spare_loop, spare_zram
from tests.e2e.native_engine import MIB, ended, job, lines_of, run, spec, started
from tests.e2e.targets import xfs_on_device
from tests.e2e.test_native_counts import counted

pytestmark = pytest.mark.e2e

SIZE = 16 * MIB
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def on_both(first: str, second: str, rw: str, **more: object) -> dict[str, object]:
    """A job that takes both in turn."""
    files = [{"path": path, "bytes": SIZE} for path in (first, second)]
    return job(first, SIZE, rw, **more) | {"files": files}


@pytest.mark.parametrize("rw", ["randrw", "write", "trim", "randtrim"])
def test_a_job_on_two_devices_does_as_much_on_each(rw: str) -> None:
    with spare_loop(SIZE) as first, spare_loop(SIZE) as second:
        devices = (first, second)
        # Plain calls one at a time, so that neither I/Os nor trims are merged.
        asked = on_both(first.path, second.path, rw, depth=1)
        if "trim" in rw:
            asked["blocks"] = [{"bytes": 65536, "share": 1}]
        engine = started(spec(asked, method="sync", runtime_s=0.3), wait_s=1.0)
        said = lines_of(engine, 1)
        before = [counted(device.name) for device in devices]
        outcome = ended(engine, *said)
        after = [counted(device.name) for device in devices]
    done = [
        [now - then for now, then in zip(*both, strict=True)]
        for both in zip(after, before, strict=True)
    ]
    none = {"ios": 0, "bytes": 0}
    for nth, way in enumerate(("read", "write", "trim")):
        moved = outcome.end.get(way, none)
        assert [sum(at[2 * nth + what] for at in done) for what in (0, 1)] == [
            moved["ios"],
            moved["bytes"],
        ]
    per_device = [at[0] + at[2] + at[4] for at in done]
    assert abs(per_device[0] - per_device[1]) <= 1
    assert per_device[0] > 10


@pytest.mark.parametrize("rw", ["write", "randtrim"])
def test_a_mounted_device_is_not_written_to(rw: str) -> None:
    with spare_zram(512 * MIB) as device, xfs_on_device(device.path):
        refused = run(spec(job(device.path, SIZE, rw)))
        read = run(spec(job(device.path, SIZE, "read")))
    assert f"{device.path} is mounted or held by somebody else" in refused.faults
    assert read.count("read") > 0


def test_a_device_that_another_engine_writes_to_is_held() -> None:
    with spare_loop(SIZE) as device:
        asked = spec(job(device.path, SIZE, "write"), runtime_s=3600.0)
        engine = started(asked)
        said = lines_of(engine, 2)
        refused = run(asked)
        engine.terminate()
        outcome = ended(engine, *said)
    assert f"{device.path} is mounted or held by somebody else" in refused.faults
    assert outcome.count("write") > 0


def test_a_device_without_queues_to_poll_is_not_polled() -> None:
    with spare_loop(SIZE) as device:
        assert Path(f"/sys/block/{device.name}/queue/io_poll").read_text("ascii").strip() == "0"
        faults = run(spec(job(device.path, SIZE), poll=True)).faults
    assert f"the device of {device.path} has no queue to poll" in faults


def test_the_thread_that_looks_for_submissions_counts() -> None:
    with spare_zram(SIZE) as device:
        engine = started(spec(job(device.path, SIZE, depth=16), sqpoll=True, runtime_s=3.0))
        said = lines_of(engine, 2)
        helper, threads = 0.0, set()
        while engine.poll() is None and len(said) < 31:
            said += lines_of(engine, 1)
            for task in Path(f"/proc/{engine.pid}/task").glob("*"):
                name, used_s = seen(task)
                threads.add(name)
                helper = max(helper, used_s if name.startswith("iou-sqp") else 0.0)
        outcome = ended(engine, *said)
    assert any(name.startswith("iou-sqp") for name in threads), threads
    assert any("looks for submissions" in note for note in outcome.hello["notes"])
    assert outcome.count("read") > 1000
    assert not outcome.end["errors"]
    # It does the I/O itself, and whatever it takes is in the figure.
    assert helper > 2 / TICKS_PER_S
    assert outcome.end["cpu"]["system_s"] >= helper - 2 / TICKS_PER_S


def seen(task: Path) -> tuple[str, float]:
    """The name of a thread and the seconds that it has used; nothing of one that has ended."""
    try:
        stat = (task / "stat").read_text("ascii")
    except (FileNotFoundError, ProcessLookupError):
        return "", 0.0
    name, _, rest = stat.partition("(")[2].rpartition(")")
    fields = rest.split()
    return name, (int(fields[11]) + int(fields[12])) / TICKS_PER_S
