"""A session is resumed on the hosts that it began on, and on no others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench.synthetic import make_facts

from iolab.model.host import HostFacts
from iolab.plan.sameness import changes
from tests.cli.command_line import SHAPE

BEFORE = make_facts(SHAPE)
NAME = next(iter(BEFORE))
ONE = BEFORE[NAME]
assert ONE.target is not None


def test_nothing_changed() -> None:
    assert changes(BEFORE, make_facts(SHAPE)) == ()


def test_what_grows_and_shrinks_all_the_time_is_no_change() -> None:
    assert ONE.target is not None
    target = replace(ONE.target, free_bytes=1, free_inodes=2, mount_options="rw,relatime")
    now = {**BEFORE, NAME: replace(ONE, target=target, kernel=replace(ONE.kernel, boot_id="new"))}
    assert changes(BEFORE, now) == ()


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
    (fault,) = changes(BEFORE, {**BEFORE, NAME: now})
    assert fault.happened.startswith(f"The {what} of host '{NAME}' was ")
