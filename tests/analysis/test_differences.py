"""What two measurements have otherwise, and what of it forbids comparing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.analysis.check import ACKNOWLEDGED, ON_DEVICES
from iolab.analysis.differences import (
    ComparisonSide,
    Difference,
    DifferenceArea,
    find_differences,
    read_comparison_side,
)
from iolab.core.configuration import Configuration
from iolab.core.engine import EngineName
from iolab.core.host import UNKNOWN_MACHINE, HostFacts, MachineFacts
from iolab.core.metric import CheckResult, VerdictLevel
from iolab.core.run import Plan
from iolab.core.stopping import PRESETS, StoppingPresetName
from iolab.core.study import Method
from iolab.guests.guest import GuestSettings
from iolab.importers.foreign_run import ImportedJob
from iolab.loads.fileio.engine_facts import NATIVE_ENGINE
from iolab.loads.fileio.workload import Job
from iolab.store.reader import SessionReader
from tests.cli.compared import Target, make_target


@pytest.fixture(scope="module")
def side(tmp_path_factory: pytest.TempPathFactory) -> ComparisonSide:
    directory = make_target(tmp_path_factory.mktemp("one") / "A", Target(name="a", points=1))
    return read_comparison_side("A", SessionReader(directory))


def with_method(side: ComparisonSide, **settings: object) -> ComparisonSide:
    method: Method = replace(side.study.method, **settings)
    return replace(side, study=replace(side.study, method=method))


def with_facts(side: ComparisonSide, change: Callable[[HostFacts], HostFacts]) -> ComparisonSide:
    first, *others = side.facts
    facts = {first: change(side.facts[first]), **{name: side.facts[name] for name in others}}
    return replace(side, facts=facts)


def with_configuration(side: ComparisonSide, **parts: object) -> ComparisonSide:
    changed: Configuration = replace(side.configuration, **parts)
    return replace(side, configuration=changed)


def firmware(facts: HostFacts) -> HostFacts:
    return replace(facts, disks=tuple(replace(disk, firmware="FW2") for disk in facts.disks))


def tool(facts: HostFacts) -> HostFacts:
    return replace(facts, tools=tuple(replace(one, version="fio-3.39") for one in facts.tools))


@dataclass(frozen=True)
class Case:
    change: Callable[[ComparisonSide], ComparisonSide]
    expected: Difference


CASES = (
    Case(
        lambda side: with_facts(side, firmware),
        Difference(
            DifferenceArea.HOSTS,
            "devices below the target",
            "Model 3.84 TB FW1",
            "Model 3.84 TB FW1 (1), Model 3.84 TB FW2 (1)",
        ),
    ),
    Case(
        lambda side: with_facts(side, tool),
        Difference(DifferenceArea.SOFTWARE, "fio", "fio-3.33", "fio-3.33, fio-3.39"),
    ),
    Case(
        lambda side: with_method(side, drop_caches=False),
        Difference(DifferenceArea.METHOD, "drop caches", "yes", "no", forbids_comparison=True),
    ),
    Case(
        lambda side: with_method(side, warmup_s=5.0),
        Difference(DifferenceArea.METHOD, "warmup s", "0", "5"),
    ),
    Case(
        lambda side: replace(side, study=replace(side.study, overrides=())),
        Difference(DifferenceArea.STUDY, "overrides", "method.settle=1s", "not set"),
    ),
    Case(
        lambda side: with_configuration(side, hosts=("client-1",)),
        Difference(DifferenceArea.WORKLOAD, "clients", "2", "1", forbids_comparison=True),
    ),
    Case(
        lambda side: with_configuration(side, hardware=(("Drives", "QLC"),)),
        Difference(DifferenceArea.TARGET, "Drives", "12 × 3.84 TB", "QLC"),
    ),
    Case(
        lambda side: replace(side, analysis_versions=(1, 2)),
        Difference(
            DifferenceArea.SOFTWARE,
            "analysis version (what percentiles and verdicts mean)",
            "1",
            "1, 2",
            forbids_comparison=True,
        ),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.expected.setting)
def test_a_difference_is_told_with_both_values(case: Case, side: ComparisonSide) -> None:
    assert find_differences(side, case.change(side)) == (case.expected,)


@pytest.mark.parametrize(
    ("mine", "theirs"), [("KVM", "TCG"), ("TCG", "KVM"), ("KVM", "Xen"), (None, "KVM")]
)
def test_emulated_processors_compare_with_their_like_alone(
    mine: str | None, theirs: str, side: ComparisonSide
) -> None:
    def run_by(name: str | None) -> ComparisonSide:
        kernels = {
            host: replace(facts, kernel=replace(facts.kernel, hypervisor=name))
            for host, facts in side.facts.items()
        }
        return replace(side, facts=kernels)

    (found,) = find_differences(run_by(mine), run_by(theirs))
    assert (found.setting, found.forbids_comparison) == ("hypervisor", "TCG" in {mine, theirs})
    assert find_differences(run_by("TCG"), run_by("TCG")) == ()


def test_another_machine_differs_but_not_from_one_that_is_untold(side: ComparisonSide) -> None:
    def on(product: str | None) -> ComparisonSide:
        machine = MachineFacts("Amazon EC2", product, None) if product else UNKNOWN_MACHINE
        hosts = {host: replace(facts, machine=machine) for host, facts in side.facts.items()}
        return replace(side, facts=hosts)

    (found,) = find_differences(on("m5.large"), on("m5.xlarge"))
    assert (found.setting, found.forbids_comparison) == ("machine", False)
    assert "m5.large" in found.baseline
    assert find_differences(on(None), on("m5.large")) == ()


def asked(side: ComparisonSide, **parts: object) -> ComparisonSide:
    """The side with that in every job."""
    points = {
        place: replace(point, job=replace(Job.require_type(point.job), **parts))
        for place, point in side.points.items()
    }
    return replace(side, points=points)


def test_two_engines_may_make_the_same_load_and_one_must_go_about_it_alike(
    side: ComparisonSide,
) -> None:
    other = find_differences(side, asked(side, engine=NATIVE_ENGINE, ioengine="auto"))
    assert [(one.setting, one.forbids_comparison) for one in other] == [
        ("engine", False),
        ("ioengine", False),
    ]
    deeper = find_differences(side, asked(side, engine=NATIVE_ENGINE, iodepth=7))
    assert [one.setting for one in deeper if one.forbids_comparison] == ["iodepth"]
    (alone,) = find_differences(side, asked(side, ioengine="psync"))
    assert alone.forbids_comparison


def test_options_are_compared_one_by_one_and_places_do_not_forbid(side: ComparisonSide) -> None:
    def of(**options: str) -> ComparisonSide:
        job = ImportedJob(EngineName("fio, imported"), ("read",), tuple(options.items()))
        points = {place: replace(point, job=job) for place, point in side.points.items()}
        return replace(side, points=points)

    one = of(bs="4k", filename="/dev/sda", iodepth="8")
    moved = find_differences(one, of(bs="4k", filename="/dev/sdb", iodepth="8"))
    assert [(found.setting, found.forbids_comparison) for found in moved] == [("filename", False)]
    (deeper,) = find_differences(one, of(bs="4k", filename="/dev/sda", iodepth="9"))
    assert (deeper.baseline, deeper.candidate, deeper.forbids_comparison) == ("8", "9", True)


def test_what_differs_alike_in_every_workload_is_told_once(side: ComparisonSide) -> None:
    def doubled(side: ComparisonSide) -> ComparisonSide:
        again = {("again", *place[1:]): point for place, point in side.points.items()}
        return replace(side, points={**side.points, **again})

    one = doubled(side)
    both = doubled(asked(side, engine=NATIVE_ENGINE, ioengine="auto"))
    assert [other.subject for other in find_differences(one, both)] == [
        "every workload: engine",
        "every workload: ioengine",
    ]
    first = asked(side, engine=NATIVE_ENGINE, ioengine="auto")
    mixed = replace(both, points={**one.points, **first.points})
    assert len(find_differences(one, mixed)) == 2
    assert not any("every" in other.subject for other in find_differences(one, mixed))


def test_nothing_differs_from_itself_and_no_seed_matters(side: ComparisonSide) -> None:
    assert find_differences(side, side) == ()
    assert find_differences(side, with_method(side, seed=99)) == ()


def test_what_forbids_comes_first(side: ComparisonSide) -> None:
    other = with_facts(with_method(side, drop_caches=False, warmup_s=5.0), firmware)
    assert [one.forbids_comparison for one in find_differences(side, other)] == [True, False, False]


def test_the_settings_of_a_rule_are_told_one_by_one(side: ComparisonSide) -> None:
    one = with_method(side, rule=PRESETS[StoppingPresetName.RAW_BLOCK])
    other = with_method(side, rule=PRESETS[StoppingPresetName.QUICK])
    found = {difference.setting: difference for difference in find_differences(one, other)}
    assert all(name.startswith("rule ") for name in found)
    assert len(found) >= 2


def test_a_point_that_no_plan_foresaw_is_known(tmp_path: Path) -> None:
    planned = make_target(tmp_path / "A", Target(name="a", points=2))
    searched = make_target(tmp_path / "B", Target(name="b", points=2, foreseen=first_point))
    one, other = (read_comparison_side("S", SessionReader(path)) for path in (planned, searched))
    assert len(SessionReader(searched).plan.points) == 1
    assert one.points == other.points


def first_point(plan: Plan) -> Plan:
    return replace(plan, runs=tuple(run for run in plan.runs if run.point == plan.points[0]))


def with_guests(side: ComparisonSide, guests: GuestSettings | None) -> ComparisonSide:
    return replace(side, study=replace(side.study, guests=guests))


def test_guests_that_have_something_else_are_told_and_another_disk_forbids(
    side: ComparisonSide,
) -> None:
    two = GuestSettings(vcpus=2, memory_bytes=1 << 30, disk_bytes=1 << 30)
    four = replace(two, vcpus=4, memory_bytes=2 << 30)
    assert find_differences(with_guests(side, two), with_guests(side, four)) == (
        Difference(DifferenceArea.WORKLOAD, "guests: vcpus", "2", "4"),
        Difference(DifferenceArea.WORKLOAD, "guests: memory bytes", "1 GiB", "2 GiB"),
    )
    limited = with_guests(side, replace(two, iops_limit=200))
    (found,) = find_differences(with_guests(side, two), limited)
    assert found == Difference(
        DifferenceArea.WORKLOAD, "guests: iops limit", "not set", "200", forbids_comparison=True
    )
    (other,) = find_differences(side, limited)
    assert other == Difference(DifferenceArea.WORKLOAD, "guests", "existed already", "booted")


def test_a_larger_fleet_on_as_many_nodes_has_the_same_points(side: ComparisonSide) -> None:
    points = {place: replace(point, per_node=2) for place, point in side.points.items()}
    hosts = tuple(
        replace(side.study.hosts[0], name=f"g{n}", hypervisor=f"n{n % 2}") for n in range(6)
    )
    study = replace(side.study, hosts=hosts)
    names = tuple(host.name for host in hosts)

    def of(count: int) -> ComparisonSide:
        chosen = replace(side.configuration, hosts=names[:count])
        return replace(side, study=study, points=points, configuration=chosen)

    assert find_differences(of(4), of(6)) == ()
    (found,) = find_differences(of(4), of(1))
    assert (found.baseline, found.candidate, found.forbids_comparison) == (
        *("guests on 2 nodes", "guests on 1 nodes"),
        True,
    )


def with_acknowledged(side: ComparisonSide, text: str) -> ComparisonSide:
    """The side with a check that says where writes were when they were acknowledged."""
    check = CheckResult("puts-in-memory", VerdictLevel.VALID, "So it is.", {ACKNOWLEDGED: text})
    results = tuple(
        replace(result, verdict=replace(result.verdict, checks=(*result.verdict.checks, check)))
        for result in side.results
    )
    return replace(side, results=results)


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        (ON_DEVICES, ON_DEVICES, 0),
        (ON_DEVICES, "in memory", 1),
        ("in memory", "in memory", 1),
        ("not known", "not known", 1),
    ],
)
def test_writes_of_memory_are_never_compared_unsaid(
    side: ComparisonSide, first: str, second: str, count: int
) -> None:
    sides = (with_acknowledged(side, text) for text in (first, second))
    found = [one for one in find_differences(*sides) if one.setting == "writes acknowledged"]
    assert [(one.baseline, one.candidate) for one in found] == [(first, second)] * count
