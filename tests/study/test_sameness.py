"""A session is resumed on the hosts that it began on, and on no others."""

from __future__ import annotations

import pytest
from bench.synthetic import make_facts
from msgspec.structs import replace

from iolab.core.host import HostFacts
from iolab.core.kubernetes import PodFacts
from iolab.study.readiness import host_change_faults, study_change_faults, version_change_faults
from tests.cli.command_line import SHAPE
from tests.guests.guest_studies import FLEET
from tests.session.stage import study_of
from tests.study.studies import load

BEFORE = make_facts(SHAPE)
NAME = next(iter(BEFORE))
ONE = BEFORE[NAME]
assert ONE.target is not None


def test_nothing_changed() -> None:
    assert host_change_faults(BEFORE, make_facts(SHAPE)) == ()


def test_what_grows_and_shrinks_all_the_time_is_no_change() -> None:
    assert ONE.target is not None
    target = replace(ONE.target, free_bytes=1, free_inodes=2, mount_options="rw,relatime")
    now = {**BEFORE, NAME: replace(ONE, target=target, kernel=replace(ONE.kernel, boot_id="new"))}
    assert host_change_faults(BEFORE, now) == ()


def test_another_volume_of_the_same_class_is_no_change() -> None:
    """A pod that is made again gets a volume of the class, and with it another device."""
    assert ONE.target is not None
    pod = PodFacts("bench", "fast-0", "node1", "Burstable", storage_class="fast")
    before = {**BEFORE, NAME: replace(ONE, pod=pod)}
    moved = replace(ONE, pod=replace(pod, node="node2"), target=replace(ONE.target, devices=("x",)))
    assert host_change_faults(before, {**BEFORE, NAME: moved}) == ()
    slower = replace(moved, pod=replace(pod, storage_class="slow"))
    (fault,) = host_change_faults(before, {**BEFORE, NAME: slower})
    assert "class fast" in fault.message
    limited = replace(moved, pod=replace(pod, cpu_limit="1"))
    (fault,) = host_change_faults(before, {**BEFORE, NAME: limited})
    assert fault.message.startswith("The pod of host")


def test_a_version_that_a_program_failed_to_print_is_no_change() -> None:
    failed = tuple(
        replace(tool, version=None, fault="it was ended by signal 11") for tool in ONE.tools
    )
    assert ONE.tools
    unknown = {**BEFORE, NAME: replace(ONE, tools=failed)}
    assert host_change_faults(BEFORE, unknown) == host_change_faults(unknown, BEFORE) == ()


@pytest.mark.parametrize(
    ("what", "now"),
    [
        ("kernel", replace(ONE, kernel=replace(ONE.kernel, release="7.0"))),
        ("processor", replace(ONE, cpu=replace(ONE.cpu, threads=1))),
        ("fio", replace(ONE, tools=tuple(replace(tool, version="fio-9.9") for tool in ONE.tools))),
        ("fio", replace(ONE, tools=())),
        ("target", replace(ONE, target=replace(ONE.target, devices=("sdz",)))),
        ("target", replace(ONE, target=replace(ONE.target, fs_type="btrfs"))),
        ("target", replace(ONE, target=None)),
    ],
)
def test_what_changes_results_is_named_with_both_values(what: str, now: HostFacts) -> None:
    (fault,) = host_change_faults(BEFORE, {**BEFORE, NAME: now})
    assert fault.message.startswith(f"The {what} of host '{NAME}' was ")


@pytest.mark.parametrize(
    ("began", "now", "differs"),
    [("0.1.0", "0.1.7", False), ("0.1.0", "0.2.0", True), ("1.0.0", "2.0.0", True)],
)
def test_versions_that_may_measure_otherwise_are_named(
    began: str, now: str, *, differs: bool
) -> None:
    found = version_change_faults(began, now)
    assert bool(found) is differs
    for fault in found:
        assert began in fault.message
        assert now in fault.message


def test_each_key_of_the_study_that_changed_is_named() -> None:
    before = study_of("c1", "c2")
    now = study_of("c1", "c3", sets=("method.runtime=9s", "workload.seq-write.bs=2m"))
    told = [fault.message for fault in study_change_faults(before, now)]
    assert study_change_faults(before, before) == ()
    assert any(text.startswith("'method.runtime_s' was '4.0', it is '9.0'") for text in told)
    assert any("'workload.seq-write." in text for text in told)
    assert any("'host.c2' was 'there', it is 'gone'" in text for text in told)
    assert any("'host.c3' was 'not there', it is 'there'" in text for text in told)


def test_guests_that_are_others_than_they_were_are_named() -> None:
    before, now = load(FLEET), load(FLEET, "vm.iops=300")
    assert study_change_faults(before, before) == ()
    assert [fault.message for fault in study_change_faults(before, now)] == [
        "'vm.iops_limit' was 'None', it is '300'."
    ]
    gone = [fault.message for fault in study_change_faults(before, replace(before, guests=None))]
    assert gone == ["'vm' was 'there', it is 'gone'."]
