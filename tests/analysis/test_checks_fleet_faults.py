"""Checks of fleets in which a host failed or is not like the others."""

from __future__ import annotations

import pytest
from bench.synthetic import Shape, make_facts, make_plan, make_record
from msgspec.structs import replace

from iolab.core.host import HostFacts
from iolab.core.metric import CheckResult, VerdictLevel
from tests.judging import judge

SHAPE = Shape(points=1, seconds=2, hosts=3, cores=2, disks=1, nics=1)
RECORD = make_record(make_plan(SHAPE).runs[0], SHAPE)
FACTS = make_facts(SHAPE)
LAST = list(FACTS)[-1]


def other(facts: HostFacts) -> HostFacts:
    return replace(facts, tools=tuple(replace(tool, version="fio-9.9") for tool in facts.tools))


def said(code: str, **changes: object) -> CheckResult:
    facts = {**FACTS, **{name: value for name, value in changes.items() if name in FACTS}}
    record = replace(RECORD, excluded_hosts=changes.get("without", ()))
    checks = judge(record, facts).verdict.checks  # type: ignore[arg-type]
    return next(check for check in checks if check.code == code)


def test_a_host_that_was_left_out_is_named() -> None:
    check = said("hosts-left-out", without=("c3",))
    assert check.level is VerdictLevel.INDICATIVE
    assert "without c3" in check.message


def test_a_host_with_another_fio_is_named() -> None:
    check = said("versions-differ", **{LAST: other(FACTS[LAST])})
    assert check.level is VerdictLevel.INDICATIVE
    assert f"fio-9.9 on {LAST}, " in check.message


@pytest.mark.parametrize("attempt", [1, 3])
def test_a_result_says_which_attempt_it_is(attempt: int) -> None:
    record = replace(RECORD, run=replace(RECORD.run, attempt=attempt), excluded_hosts=("c3",))
    result = judge(record, FACTS)
    assert (result.attempt, result.excluded_hosts) == (attempt, ("c3",))
