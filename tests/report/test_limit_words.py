"""Golden sentences on what limits, made of planted bottlenecks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iolab.analyse.findings.finding import Limited
from iolab.analyse.limits.decide import Cause, Decision, decide
from iolab.analyse.limits.step import Step
from iolab.analyse.limits.use import Resource, Use
from iolab.analyse.limits.watched import Watched
from iolab.analyse.method.usl import Usl
from iolab.model.host import Role
from iolab.model.metric import Level
from iolab.report.limit_words import limit_words
from iolab.report.phrases import Names
from tests.analyse.limits.planted import QUIET, cores, disk, facts, port, record, watched
from tests.analyse.records import JOB, Burst, engine_totals, host_run

ONE = Names({"default": "Alpha"})
TWO = Names({"default": "Alpha", "other": "Beta"})
BENT = Step("iodepth", 4, 8, 1.02, pays=False, sure=True, single=False, runs=())
PAYING = Step("iodepth", 4, 8, 1.9, pays=True, sure=True, single=False, runs=())
FULL = {**QUIET, **disk(1.0, each_ns=776_000)}


def told(
    seen: Watched,
    step: Step | None = BENT,
    names: Names = ONE,
    level: Level = Level.VALID,
    law: Usl | None = None,
) -> str:
    axis = (("iodepth", 8),)
    found = Limited("default", "rand-read-4k", axis, decide(seen, step), seen, law, level, ())
    return limit_words(found, names)


def test_a_device() -> None:
    assert told(watched(record(FULL))) == (
        "rand-read-4k: the best at iodepth 8 is limited by the device nvme0n1 of c1, which was "
        "busy 100 % of the time and took 97 % of the latency: from iodepth 4 to 8 the rate "
        "rises by 2 %."
    )
    assert told(watched(record(FULL)), names=TWO).startswith("rand-read-4k: Alpha at iodepth 8 is ")


def test_a_device_by_a_step_that_is_not_sure() -> None:
    single = replace(BENT, sure=False, single=True, gain=0.98)
    assert told(watched(record(FULL)), single, level=Level.INDICATIVE) == (
        "rand-read-4k: the best at iodepth 8 seems limited by the device nvme0n1 of c1, which was "
        "busy 100 % of the time and took 97 % of the latency: from iodepth 4 to 8 the rate falls "
        "by 2 %, by single runs. This is indicative only."
    )
    assert told(watched(record(FULL)), replace(single, single=False)).endswith(
        "though not for sure."
    )


def test_what_else_is_full_stands_behind_the_doubt() -> None:
    both = watched(record({**FULL, **cores(*[0.97] * 8)}))
    assert told(both, replace(BENT, sure=False)).endswith(
        "the rate rises by 2 %, though not for sure; the processors of c1 had nothing left either."
    )


def test_a_device_at_one_load_alone() -> None:
    assert told(watched(record(FULL)), None) == (
        "rand-read-4k: the best at iodepth 8 keeps the device nvme0n1 of c1 busy 100 % of the "
        "time, with 97 % of the latency there; whether more load would raise the rate was not "
        "measured."
    )


def test_the_load_over_a_busy_device() -> None:
    assert told(watched(record(FULL)), PAYING) == (
        "rand-read-4k: the best at iodepth 8 is limited by the load that was asked for: from "
        "iodepth 4 to 8 the rate rises by 90 %, and no more was tried, though the device nvme0n1 "
        "of c1 is busy 100 % of the time."
    )


def test_processors() -> None:
    quick = disk(0.3, each_ns=80_000)
    all_busy = watched(record({**quick, **cores(*[0.97] * 8)}))
    assert told(all_busy, None) == (
        "rand-read-4k: the best at iodepth 8 is limited by the processors of c1: all cores were "
        "97 % busy."
    )
    of_others = replace(all_busy.uses[0], own=0.021)
    assert told(replace(all_busy, uses=(of_others,)), None) == (
        "rand-read-4k: the best at iodepth 8 seems limited by the processors of c1: all cores were "
        "97 % busy, 2.1 % with its own jobs."
    )
    stolen = replace(all_busy, stolen=0.12, uses=all_busy.uses[:1])
    assert "97 % busy, of which a hypervisor took 12 % for others." in told(stolen, None)
    assert told(watched(record({**quick, **cores(1.0, 0.1)}))) == (
        "rand-read-4k: the best at iodepth 8 is limited by one core of c1: core 0 was 100 % busy, "
        "all of them 18 %."
    )
    jobs = replace(engine_totals(None, None), user_cpu_percent=31.0, system_cpu_percent=68.0)
    base = record({**quick, **cores(0.6, 0.6)})
    busy = replace(base, hosts=(replace(host_run("c1", [Burst()]), totals=jobs),))
    assert told(watched(busy), None) == (
        "rand-read-4k: the best at iodepth 8 is limited by the processors of c1: each job used "
        "99 % of a core, while all cores were 19 % busy."
    )


def test_a_port() -> None:
    burst = Burst(ios=300_000, lat_ns=106_667)
    found = record({**QUIET, **port(1.225e9)}, burst=burst)
    assert told(watched(found)) == (
        "rand-read-4k: the best at iodepth 8 is limited by the network port ens1 of c1: it "
        "received 1.23 GB/s, 98 % of its speed."
    )
    both = record({**QUIET, **port(1.225e9), **cores(*[0.97] * 8)}, burst=burst)
    assert told(watched(both)).endswith("speed; the processors of c1 had nothing left either.")


def test_the_generator() -> None:
    single = record(
        {**QUIET, **disk(0.9, ios=1250)},
        job=replace(JOB, iodepth=1, numjobs=1),
        burst=Burst(ios=1250),
    )
    assert told(watched(single), None) == (
        "rand-read-4k: the best at iodepth 8 is limited by its load of one I/O at a time, whose "
        "latency is 800 µs, 80 % of it at the device."
    )
    slack = record(QUIET, burst=Burst(lat_ns=400_000))
    assert told(watched(slack), None) == (
        "rand-read-4k: the best at iodepth 8 is limited by its engine: of 32 I/Os asked for, 16 "
        "were in flight (device nvme0n1 40 % busy, processors 8.1 % busy, busiest core 30 %, each "
        "job 30 % of a core, port ens1 in 13 % full)."
    )
    rate = record(QUIET, job=replace(JOB, rate_iops=10_000))
    assert told(watched(rate), None) == (
        "rand-read-4k: the best at iodepth 8 is limited by the rate that was asked for: 100 % of "
        "40 k IOPS were kept."
    )
    paused = record(QUIET, job=replace(JOB, options=(("thinktime", "100"),)))
    assert "the pauses that its load makes between I/Os (" in told(watched(paused), None)


def test_software_and_what_was_not_watched() -> None:
    quick = record({**disk(0.4, each_ns=80_000), **cores(0.3)})
    law = Usl(1000.0, 0.08, 0.0, 0.001, describes=True)
    assert told(watched(quick), law=law) == (
        "rand-read-4k: the best at iodepth 8 is limited by software, as by locks, serial work "
        "or a limit that it sets: from iodepth 4 to 8 the rate rises by 2 % with no resource "
        "watched at its limit (device nvme0n1 40 % busy, processors 8.1 % busy, busiest core 30 %, "
        "each job 30 % of a core); by the Universal Scalability Law 8 % of the work is serial."
    )
    remote = watched(record({**cores(0.3)}), {"c1": facts(device=None, devices=(), network=True)})
    assert told(remote) == (
        "rand-read-4k: the best at iodepth 8 has met a limit that was not watched: from iodepth 4 "
        "to 8 the rate rises by 2 % with no resource watched at its limit (processors 8.1 % busy, "
        "busiest core 30 %, each job 30 % of a core)."
    )


def test_nothing_at_its_limit() -> None:
    assert told(watched(record(QUIET)), None) == (
        "rand-read-4k: the best at iodepth 8 had no resource watched at its limit (device nvme0n1 "
        "40 % busy, processors 8.1 % busy, busiest core 30 %, each job 30 % of a core, port ens1 "
        "in 13 % full); whether more load would raise the rate was not measured."
    )
    quick = record({**disk(0.4, each_ns=80_000), **cores(0.3)})
    assert told(watched(quick), replace(BENT, sure=False)).endswith(
        "each job 30 % of a core): from iodepth 4 to 8 the rate rises by 2 %, though not for sure."
    )


@pytest.mark.parametrize("cause", list(Cause))
@pytest.mark.parametrize("level", list(Level))
def test_every_cause_has_a_sentence(cause: Cause, level: Level) -> None:
    use = Use(Resource.DEVICE, "s1", Role.STORAGE, "sda", 0.99, 1.0, 1.0)
    seen = Watched((use,), None, memory_backed=False, storage_seen=True, stolen=0.0)
    for step in (None, BENT):
        decision = Decision(cause, sure=True, use=use, step=step)
        found = Limited("default", "w", (), decision, seen, None, level, ())
        text = limit_words(found, ONE)
        assert text.startswith("w: the best ")
        assert text.endswith(".")
        assert "None" not in text


def test_a_host_of_another_role_is_called_so() -> None:
    use = Use(Resource.DEVICE, "s1", Role.STORAGE, "sda", 0.99, 1.0, 1.0)
    seen = Watched((use,), None, memory_backed=False, storage_seen=True, stolen=0.0)
    assert "the device sda of the storage node s1" in told(seen)
    local = replace(use, host="local", role=Role.CLIENT)
    assert "the device sda, which" in told(replace(seen, uses=(local,)))
