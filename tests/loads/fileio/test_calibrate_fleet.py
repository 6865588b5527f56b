"""`iolab calibrate` on fake hosts: in step, and nothing stays however it ends."""

from __future__ import annotations

import asyncio
from pathlib import PurePath
from typing import Any

import pytest
from msgspec.structs import replace

from iolab.core.host import ToolFacts
from iolab.errors import EngineError, HostError, IolabError
from iolab.hosts.remnants import close_hosts
from iolab.loads.fileio.calibration import DEV_NULL_HINT, CalibrationRequest, calibrate_on
from iolab.loads.fileio.calibration_model import Calibration
from iolab.loads.fileio.engine_facts import FIO_ENGINE, NATIVE_ENGINE
from iolab.loads.fileio.engines.fio import NULL_FOLDER
from iolab.loads.fileio.workload import Access, Job
from tests.fakes.fio import FakeLoad
from tests.fakes.host import FakeHost
from tests.fakes.machine import machine_facts
from tests.fakes.script import FakeScript, LoopClock
from tests.fakes.virtual_time import run_virtually
from tests.loads.fileio.fake_native import FakeNative

JOB = Job(FIO_ENGINE, Access.RANDREAD, 4096, 32, 1, 16 << 20)
WISH = CalibrationRequest(JOB, pairs=2, seconds=3.0)
ORDER = ["iolab-agent", "fio", "iolab-agent", "iolab-agent", "fio", "fio", "iolab-agent"]
"""The layout, two pairs, and the two ceilings."""


def hosts(count: int, native: FakeNative | None = None, **changes: Any) -> dict[str, FakeHost]:
    """Hosts whose clocks are apart; `changes` are of the last one's script, as `native` is."""
    found = {}
    for number in range(count):
        name, last = f"c{number + 1}", number == count - 1
        programs = ((native if last else None) or FakeNative()).programs
        script = FakeScript(programs=programs, offset_ns=number * 5_000_000_000)
        host = found[name] = FakeHost(name, replace(script, **changes) if last else script)
        host.spec = replace(host.spec, path="/mnt/t")
    return found


def played(made: dict[str, FakeHost], wish: CalibrationRequest = WISH) -> Calibration:
    async def body() -> Calibration:
        try:
            return await calibrate_on(made, wish, lambda _: None, LoopClock())
        finally:
            await close_hosts(made.values())

    return run_virtually(body())


def refused(made: dict[str, FakeHost], wish: CalibrationRequest = WISH) -> IolabError:
    with pytest.raises((HostError, EngineError)) as caught:
        played(made, wish)
    return caught.value


def programs(host: FakeHost) -> list[str]:
    """What ran there, by name, in its order."""
    argvs = [request["argv"] for request in host.asked("run")]
    return [PurePath(argv[0]).name for argv in argvs if isinstance(argv, list)]


def assert_nothing_stays(made: dict[str, FakeHost], *, swept_on: tuple[str, ...] = ()) -> None:
    """No folder and no process, and none that only the end of a connection has removed."""
    for name, host in made.items():
        assert host.left_behind == []
        if name not in swept_on:
            assert host.agent.swept == []


def test_all_hosts_run_one_engine_at_a_time_from_one_moment_on() -> None:
    made = hosts(3)
    found = played(made)
    starts = []
    for number, host in enumerate(made.values()):
        assert programs(host) == ORDER
        told = [request["start_at_real_ns"] for request in host.asked("run")]
        assert told[0] is None  # the layout
        starts.append([at - number * 5_000_000_000 for at in told[1:] if isinstance(at, int)])
    assert all(len(one) == len(ORDER) - 1 for one in starts)
    for together in zip(*starts, strict=True):
        assert max(together) - min(together) < 1_000_000
    assert [(one.pair, one.engine) for one in found.trials] == [
        (1, "fio"),
        (1, "native"),
        (2, "native"),
        (2, "fio"),
    ]
    assert_nothing_stays(made)


def test_rates_add_up_and_percentiles_are_those_of_all_ios() -> None:
    slow = FakeNative(iops=1000, lat_ns=300_000, null_iops=1_000_000)
    found = played(hosts(2, slow, loads=(FakeLoad(iops=500, lat_ns=900_000),)))
    fast_host, slow_host = found.hosts
    assert (fast_host.host, slow_host.host) == ("c1", "c2")
    whole = next(one for one in found.trials if one.engine == NATIVE_ENGINE)
    assert whole.iops == pytest.approx(3000)
    assert whole.lat_ns_mean == pytest.approx((2 * 100_000 + 300_000) / 3)
    assert slow_host.trials[1].iops == pytest.approx(1000)
    fio = found.trials[0]
    assert fio.iops == pytest.approx(1500, rel=0.01)
    # Two thirds of fio's I/Os are of the host that takes 0.25 ms.
    assert fio.lat_ns_p50 == pytest.approx(fast_host.trials[0].lat_ns_p50, rel=0.02)
    assert fio.lat_ns_p99 > 900_000
    assert found.ceilings[NATIVE_ENGINE] == pytest.approx(5_000_000)
    assert slow_host.ceilings[NATIVE_ENGINE] == pytest.approx(1_000_000)
    assert found.ceilings[FIO_ENGINE] == pytest.approx(2_000_000)


def test_a_lone_host_begins_when_it_is_asked() -> None:
    made = hosts(1)
    found = played(made)
    assert {request["start_at_real_ns"] for request in made["c1"].asked("run")} == {None}
    assert found.trials == found.hosts[0].trials
    assert_nothing_stays(made)


def test_a_hosts_own_number_of_jobs_holds() -> None:
    made = hosts(2)
    made["c2"].spec = replace(made["c2"].spec, numjobs=3)
    found = played(made)
    assert [host.job.numjobs for host in found.hosts] == [1, 3]


def test_one_host_without_fio_and_nothing_begins_anywhere() -> None:
    facts = replace(machine_facts("/mnt/t"), tools=(ToolFacts("fio", None, None),))
    made = hosts(3, facts=facts)
    fault = refused(made)
    assert fault.message == "Host 'c3': fio is not installed."
    for host in made.values():
        assert host.asked("scratch_open") == []
        assert programs(host) == []


def test_a_folder_that_is_held_on_one_host_is_held_on_none_in_the_end() -> None:
    made = hosts(2, refuses={"scratch_open": ("busy", "held by another")})
    fault = refused(made)
    assert "Host 'c2': held by another" in fault.message
    assert_nothing_stays(made)


def test_a_folder_that_cannot_be_removed_costs_nothing_that_was_found() -> None:
    made = hosts(2, refuses={"scratch_close": ("EBUSY", "somebody is in it")})
    assert len(played(made).trials) == 4
    assert_nothing_stays({"c1": made["c1"]})


def test_who_makes_nothing_of_nothing_is_not_sent_for_longer_runs() -> None:
    fault = refused(hosts(1, FakeNative(null_iops=0)))
    assert (fault.message, fault.hint) == ("native completed no I/O.", DEV_NULL_HINT)
    fault = refused(hosts(1, FakeNative(iops=0)))
    assert "--seconds" in fault.hint


def test_an_engine_that_fails_on_one_host_ends_it_on_all() -> None:
    made = hosts(2, FakeNative(fails=True))
    fault = refused(made, replace(WISH, seconds=60.0))
    assert "on host 'c2' (It has no more memory)." in fault.message
    assert "c1" not in fault.message
    signals = [request["signal"] for request in made["c1"].asked("signal")]
    assert signals == ["INT"]
    assert_nothing_stays(made)


def test_a_host_that_is_lost_takes_nothing_of_the_others_with_it() -> None:
    made = hosts(2, loads=(FakeLoad(host_dies_at_s=1.0),))
    fault = refused(made, replace(WISH, seconds=60.0))
    assert isinstance(fault, HostError)
    assert "c2" in fault.message
    assert len(made["c1"].asked("scratch_close")) == 1
    assert_nothing_stays(made, swept_on=("c2",))


@pytest.mark.parametrize("after_s", [1.0, 7.0, 16.5])
def test_who_interrupts_it_leaves_nothing(after_s: float) -> None:
    made = hosts(2)

    async def body() -> None:
        work = asyncio.ensure_future(calibrate_on(made, WISH, lambda _: None, LoopClock()))
        await asyncio.sleep(after_s)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await close_hosts(made.values())

    run_virtually(body())
    for host in made.values():
        assert len(host.asked("scratch_close")) == 1
    assert_nothing_stays(made)


def test_nothing_is_measured_in_the_null_folder_but_ceilings() -> None:
    made = hosts(1)
    played(made)
    folders = [request["cwd"] for request in made["c1"].asked("run")]
    assert folders[-2:] == [NULL_FOLDER] * 2
    assert set(folders[:-2]) == {"/mnt/t/iolab-scratch-c1-calibrate"}
