"""What a sentence on a limit tells, made of planted bottlenecks."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.bottleneck.decision import (
    BottleneckCause,
    BottleneckDecision,
    LoadStep,
    decide_bottleneck,
)
from iolab.analysis.findings import BottleneckFinding
from iolab.core.host import CgroupDeviceIoLimit, HostRole
from iolab.core.metric import VerdictLevel
from iolab.core.resources import Resource, ResourceUse, RunResources
from iolab.report.bottleneck import (
    bottleneck_sentence,
    bottlenecks_sentence,
    leads_of_set_limits_sentence,
    recommended_step_text,
    rows_with_bottleneck_texts,
    small_share_text,
)
from iolab.report.matrix import workload_rows
from iolab.report.phrases import ConfigurationNames
from iolab.stats.curve import UslFit
from tests.analysis.bottleneck.planted import QUIET, cores, disk, facts, port, record, watched
from tests.analysis.records import JOB, Burst, engine_totals, host_run
from tests.facts import tells
from tests.report import shared
from tests.report.test_answer import figure

ONE = ConfigurationNames({"default": "Alpha"})
TWO = ConfigurationNames({"default": "Alpha", "other": "Beta"})
BENT = LoadStep(
    "iodepth", 4, 8, 1.02, is_worthwhile=False, is_certain=True, has_single_runs=False, run_keys=()
)
PAYING = LoadStep(
    "iodepth", 4, 8, 1.9, is_worthwhile=True, is_certain=True, has_single_runs=False, run_keys=()
)
FULL = {**QUIET, **disk(1.0, each_ns=776_000)}


def told(
    seen: RunResources,
    step: LoadStep | None = BENT,
    names: ConfigurationNames = ONE,
    level: VerdictLevel = VerdictLevel.VALID,
    law: UslFit | None = None,
) -> str:
    axis = (("iodepth", 8),)
    found = BottleneckFinding(
        "default", "rand-read-4k", axis, decide_bottleneck(seen, step), seen, law, level, ()
    )
    return bottleneck_sentence(found, names)


AT = ("rand-read-4k", "iodepth 8")
BUSY = ("nvme0n1", "c1", "100 %")
RISES = ("iodepth 4 to 8", "rises", "2 %")
RISES_MUCH = ("rises", "90 %")
LITTLE = ("nvme0n1 40 %", "8.1 %", "30 %", "30 %")
SINGLE = replace(BENT, is_certain=False, has_single_runs=True, rate_ratio=0.98)
SLOW = {**disk(0.4, each_ns=80_000), **cores(0.3)}
ALL_BUSY = watched(record({**disk(0.3, each_ns=80_000), **cores(*[0.97] * 8)}))
IN = Burst(ios=300_000, lat_ns=106_667)
LAW = UslFit(1000.0, 0.08, 0.0, 0.001, fits_well=True)


def jobs_busy() -> RunResources:
    jobs = replace(engine_totals(None, None), user_cpu_percent=31.0, system_cpu_percent=68.0)
    base = record({**disk(0.3, each_ns=80_000), **cores(0.6, 0.6)})
    return watched(replace(base, hosts=(replace(host_run("c1", [Burst()]), totals=jobs),)))


def held(limit: CgroupDeviceIoLimit) -> RunResources:
    """A client whose control group is held to so much of its device."""
    return watched(record(QUIET), {"c1": replace(facts(), io_limits=(limit,))})


def one_at_a_time() -> RunResources:
    slow = {**QUIET, **disk(0.9, ios=1250)}
    return watched(record(slow, job=replace(JOB, iodepth=1, numjobs=1), burst=Burst(ios=1250)))


@pytest.mark.parametrize(
    ("seen", "step", "facts"),
    [
        (watched(record(FULL)), BENT, ("limited", *BUSY, "97 %", *RISES)),
        (watched(record(FULL)), SINGLE, ("seems", *BUSY, "97 %", "falls", "2 %", "single runs")),
        (
            watched(record(FULL)),
            replace(SINGLE, has_single_runs=False),
            ("seems", "low confidence"),
        ),
        (
            watched(record({**FULL, **cores(*[0.97] * 8)})),
            replace(BENT, is_certain=False),
            ("seems", "2 %", "low confidence", "processors of c1"),
        ),
        (watched(record(FULL)), None, (*BUSY, "97 %", "not measured")),
        (watched(record(FULL)), PAYING, ("not saturated", "iodepth 4 to 8", *RISES_MUCH, *BUSY)),
        (ALL_BUSY, None, ("limited", "processors of c1", "97 %")),
        (
            held(CgroupDeviceIoLimit("nvme0n1", read_iops=40_000)),
            None,
            ("limited", "control group of c1", "40 k", "reads", "nvme0n1", "100 %"),
        ),
        (
            held(CgroupDeviceIoLimit("nvme0n1", read_bytes_per_s=170_000_000)),
            None,
            ("limited", "control group of c1", "170 MB/s", "read", "nvme0n1", "96 %"),
        ),
        (
            replace(ALL_BUSY, uses=(replace(ALL_BUSY.uses[0], own_load_share=0.021),)),
            None,
            ("seems", "processors of c1", "97 %", "2.1 %"),
        ),
        (
            replace(ALL_BUSY, stolen_share=0.12, uses=ALL_BUSY.uses[:1]),
            None,
            ("97 %", "hypervisor", "12 %"),
        ),
        (watched(record({**SLOW, **cores(1.0, 0.1)})), BENT, ("c1", "core 0", "100 %", "18 %")),
        (jobs_busy(), None, ("processors of c1", "99 %", "19 %")),
        (
            watched(record({**QUIET, **port(1.225e9)}, burst=IN)),
            BENT,
            ("port ens1", "c1", "received 1.23 GB/s", "98 %"),
        ),
        (
            watched(record({**QUIET, **port(1.225e9), **cores(*[0.97] * 8)}, burst=IN)),
            BENT,
            ("port ens1", "98 %", "processors of c1"),
        ),
        (one_at_a_time(), None, ("one I/O", "80 %", "latency at the device")),
        (
            watched(record(QUIET, burst=Burst(lat_ns=400_000))),
            None,
            ("engine", "32 I/Os", "16", *LITTLE, "ens1", "13 %"),
        ),
        (
            watched(record(QUIET, job=replace(JOB, rate_iops=10_000))),
            None,
            ("rate", "100 %", "40 k IOPS"),
        ),
        (
            watched(record(QUIET, job=replace(JOB, options=(("thinktime", "100"),)))),
            None,
            ("pauses",),
        ),
        (watched(record(SLOW)), BENT, ("software", *RISES, *LITTLE, "8 %")),
        (
            watched(record({**cores(0.3)}), {"c1": facts(device=None, devices=(), network=True)}),
            BENT,
            ("not watched", *RISES, *LITTLE[1:]),
        ),
        (watched(record(QUIET)), None, ("no resource", *LITTLE, "ens1", "13 %", "not measured")),
        (
            watched(record(SLOW)),
            replace(BENT, is_certain=False),
            ("30 %", *RISES, "low confidence"),
        ),
    ],
)
def test_what_limits_is_named_with_its_figures(
    seen: RunResources, step: LoadStep | None, facts: tuple[str, ...]
) -> None:
    level = VerdictLevel.INDICATIVE if step is SINGLE else VerdictLevel.VALID
    text = told(seen, step, level=level, law=LAW if "software" in facts else None)
    assert tells(text, *AT, *facts), text
    assert ("indicative" in text) == (level is VerdictLevel.INDICATIVE)
    doubted = "low confidence" in text or "single runs" in text
    assert doubted == (step is not None and not step.is_certain)
    assert "Alpha" not in text
    assert tells(told(seen, step, TWO), "rand-read-4k", "Alpha", "iodepth 8")


@pytest.mark.parametrize("cause", list(BottleneckCause))
@pytest.mark.parametrize("level", list(VerdictLevel))
def test_every_cause_has_a_sentence(cause: BottleneckCause, level: VerdictLevel) -> None:
    use = ResourceUse(Resource.DEVICE, "s1", HostRole.STORAGE, "sda", 0.99, 1.0, 1.0)
    seen = RunResources(
        (use,), None, memory_backed=False, is_storage_monitored=True, stolen_share=0.0
    )
    for step in (None, BENT):
        decision = BottleneckDecision(cause, is_certain=True, limiting_use=use, step=step)
        found = BottleneckFinding("default", "w", (), decision, seen, None, level, ())
        text = bottleneck_sentence(found, ONE)
        assert text.startswith("w: ")
        assert "None" not in text


def test_a_host_of_another_role_is_called_so() -> None:
    use = ResourceUse(Resource.DEVICE, "s1", HostRole.STORAGE, "sda", 0.99, 1.0, 1.0)
    seen = RunResources(
        (use,), None, memory_backed=False, is_storage_monitored=True, stolen_share=0.0
    )
    assert tells(told(seen), "sda", "storage node s1")
    local = replace(use, host="local", role=HostRole.CLIENT)
    assert "local" not in told(replace(seen, uses=(local,)))


def test_processors_that_others_hold_ask_for_no_more_of_them() -> None:
    def step(own: float) -> str:
        use = ResourceUse(Resource.PROCESSORS, "c1", HostRole.CLIENT, "", 0.98, own_load_share=own)
        decision = BottleneckDecision(BottleneckCause.PROCESSORS, is_certain=True, limiting_use=use)
        one = BottleneckFinding(
            "default", "w", (), decision, ALL_BUSY, None, VerdictLevel.VALID, ()
        )
        return recommended_step_text(one)

    assert step(0.9) != step(0.19)
    assert "Add" in step(0.9)
    assert "Add" not in step(0.19)


def test_a_share_next_to_nothing_has_no_digits() -> None:
    assert [small_share_text(share) for share in (2.8e-9, 2e-4, 0.0)] == [
        "< 0.01 %",
        "0.02 %",
        "0 %",
    ]


@pytest.mark.parametrize(
    ("value", "half", "operation", "unit", "wanted"),
    [
        (160e6, 0.02, "write", "bytes/s", "I/O limit of 170 MB/s"),
        (160e6, 0.2, "write", "bytes/s", "I/O limit of 170 MB/s"),
        (171.7e6, 0.02, "write", "bytes/s", "I/O limit of 170 MB/s"),
        (160e6, 0.2, "read/write", "bytes/s", "I/O limit"),  # its limit is on one of both alone
        (160e6, 0.2, "write", "1/s", "I/O limit"),
    ],
)
def test_a_limit_beside_a_figure_says_how_much_it_is(
    value: float, half: float, operation: str, unit: str, wanted: str
) -> None:
    use = ResourceUse(Resource.IO_LIMIT, "c1", HostRole.CLIENT, "sda bytes written", 0.98, 166.6e6)
    held_at = BottleneckDecision(BottleneckCause.IO_LIMIT, is_certain=True, limiting_use=use)
    other = BottleneckDecision(BottleneckCause.PROCESSORS, is_certain=True, limiting_use=None)
    brief = replace(shared.brief("sweep"))
    brief.__dict__["bottlenecks"] = tuple(
        BottleneckFinding(
            owner, "w", (), decision, held(CgroupDeviceIoLimit("sda")), None, VerdictLevel.VALID, ()
        )
        for owner, decision in (("one", held_at), ("two", other))
    )
    best = replace(figure("one", value, half, title="w", unit=unit), operation=operation)
    (row,) = rows_with_bottleneck_texts(
        brief, workload_rows((best, replace(best, configuration="two")))
    )
    assert dict(row.bottleneck_texts)["one"] == wanted


def test_repeats_that_fell_short_of_a_limit_are_told_beside_the_figure_and_in_the_evidence() -> (
    None
):
    """Also where all have one limit, which a sentence tells once."""
    use = ResourceUse(Resource.PROCESSORS, "c1", HostRole.CLIENT, "", 1.0, own_load_share=0.01)
    seen = replace(ALL_BUSY, uses=(use,))
    brief = replace(shared.brief("sweep"))
    held_rates, short_rates = (1500.0, 1499.0, 1497.0), (1500.0, 1499.0, 1497.0, 1294.0)
    brief.__dict__["bottlenecks"] = found = tuple(
        BottleneckFinding(
            owner, "w", (), decide_bottleneck(seen, BENT, rates), seen, None, VerdictLevel.VALID, ()
        )
        for owner, rates in (("one", held_rates), ("two", short_rates))
    )
    best = figure("one", 1499.0, 0.002, title="w", unit="1/s")
    (row,) = rows_with_bottleneck_texts(
        brief, workload_rows((best, replace(best, configuration="two")))
    )
    texts = dict(row.bottleneck_texts)
    assert tells(texts["two"], "1 of 4 repeats", "1.29 k IOPS")
    assert "one" not in texts  # a sentence tells of both
    assert tells(bottleneck_sentence(found[1], TWO), "3 of its 4 repeats")
    assert "of its" not in bottleneck_sentence(found[0], TWO)


def test_configurations_that_one_limit_holds_at_one_rate_are_told() -> None:
    """What they have in common is then no property of their drives."""
    use = ResourceUse(Resource.PROCESSORS, "c1", HostRole.CLIENT, "", 1.0, own_load_share=0.01)
    seen = replace(ALL_BUSY, uses=(use,))
    study = shared.brief("two").study
    workload = study.workloads[0].id

    def sentence(other: tuple[float, ...]) -> str:
        found = [
            BottleneckFinding(
                owner,
                workload,
                (),
                decide_bottleneck(seen, BENT, rates),
                seen,
                None,
                VerdictLevel.VALID,
                (),
            )
            for owner, rates in (("alpha", (1500.0, 1499.0, 1497.0, 1294.0)), ("beta", other))
        ]
        return bottlenecks_sentence(study, found)

    same = sentence((1500.6, 1499.0, 1498.0))
    assert tells(same, "Alpha and Beta are held at the same 1.50 k IOPS"), same
    for unlike in ((1600.0, 1599.0, 1598.0), (1500.0, 1400.0, 1300.0)):
        assert "same" not in sentence(unlike)


def test_a_lead_between_limits_that_were_set_is_theirs() -> None:
    use = ResourceUse(Resource.IO_LIMIT, "c1", HostRole.CLIENT, "sda reads", 0.98, 9000.0)
    held_at = BottleneckDecision(BottleneckCause.IO_LIMIT, is_certain=True, limiting_use=use)
    other = BottleneckDecision(BottleneckCause.PROCESSORS, is_certain=True, limiting_use=None)
    rows = workload_rows((figure("one", 9000.0, title="w"), figure("two", 5000.0, title="w")))

    def sentence(*decisions: BottleneckDecision) -> str:
        found = [
            BottleneckFinding(owner, "w", (), decision, jobs_busy(), None, VerdictLevel.VALID, ())
            for owner, decision in zip(("one", "two"), decisions, strict=True)
        ]
        return leads_of_set_limits_sentence(rows, found)

    assert sentence(held_at, held_at) == "w: the lead is that of the I/O limits that were set."
    assert not sentence(held_at, other)
    assert not sentence(held_at, replace(held_at, is_certain=False))
