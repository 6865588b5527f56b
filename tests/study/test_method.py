"""The method of a study: which rule, from which keys."""

from __future__ import annotations

import pytest

from iolab.core.stopping import LSM, RAW_BLOCK
from iolab.core.study import Study
from iolab.errors import StudyError
from iolab.study.parse import StudyOverrides
from tests.plans import make_plan, parse_study
from tests.study.studies import SMALL


def study_of(*sets: str) -> Study:
    return parse_study(SMALL, "small.toml", StudyOverrides("/mnt/t", set_arguments=sets))


def test_fixed_times_have_no_rule() -> None:
    assert study_of("method.shortest=200s").method.rule is None


def test_the_kind_of_load_gives_the_rule_and_keys_change_it() -> None:
    assert study_of("method.kind=adaptive").method.rule == RAW_BLOCK
    assert study_of("method.kind=adaptive", "method.load_kind=lsm").method.rule == LSM
    rule = study_of("method.kind=adaptive", "method.longest=20min", "method.precision=1%")
    assert rule.method.rule is not None
    assert (rule.method.rule.longest_s, rule.method.rule.precision) == (1200, 0.01)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("method.shortest=90s", "contradicts itself"),
        ("method.longest=1min", "contradicts itself"),
        ("method.step=1500ms", "whole seconds"),
        ("method.precision=120%", "between 0 and 1"),
        ("method.load_kind=raw", "raw-block"),
        ("method.idle_watch=10ms", "idle_watch"),
        ("method.idle_watch=2h", "3600"),
        ("method.generator_limit=0", "true or false"),
    ],
)
def test_faults_are_told(key: str, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        study_of(key)
    assert any(words in f"{fault.message} {fault.hint}" for fault in caught.value.faults)


def test_the_plan_tells_rules_apart_and_says_both_times() -> None:
    fixed = make_plan(study_of())
    adaptive = make_plan(study_of("method.kind=adaptive"))
    longer = make_plan(study_of("method.kind=adaptive", "method.longest=800s"))
    assert len({fixed.digest, adaptive.digest, longer.digest}) == 3
    assert fixed.demand.least_seconds is None
    assert adaptive.demand.least_seconds is not None
    assert adaptive.demand.least_seconds < adaptive.demand.seconds
