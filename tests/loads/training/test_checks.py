"""Training whose parts do not add up, whose later epochs are faster, or whose timers are late."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.analysis.kinds import judge_run
from iolab.core.metric import RunResult, VerdictLevel
from iolab.loads.training.checks import lru_hit_share
from iolab.registry import analysis_kinds
from tests.analysis.records import facts_of
from tests.loads.training.records import EPOCH, JOB, RUN, STEP_NS, trained

KINDS = analysis_kinds()


def result(**changes: Any) -> RunResult:
    record = trained(**changes)
    return judge_run(record, {host.host: facts_of(host.host) for host in record.hosts}, KINDS)


def level(code: str, **changes: Any) -> VerdictLevel | None:
    return {check.code: check.level for check in result(**changes).verdict.checks}[code]


FASTER = replace(RUN.later_epochs, step_ns=340 * STEP_NS)
SLOW_FIRST = replace(EPOCH, step_ns=320 * STEP_NS)
BUFFERED = replace(JOB, direct=False)


@pytest.mark.parametrize(
    ("code", "changes", "expected"),
    [
        ("step-parts", {}, VerdictLevel.VALID),
        ("step-parts", {"parts": {"storage": 9}}, VerdictLevel.INVALID),
        ("step-parts", {"parts": {"barrier": 0}}, VerdictLevel.INVALID),
        ("step-parts", {"steps": 500}, VerdictLevel.INVALID),
        ("step-parts", {"steps_least": 250}, VerdictLevel.INVALID),
        (
            "step-parts",
            {"steps_least": 250, "job": replace(JOB, barrier=False)},
            VerdictLevel.VALID,
        ),
        ("first-epoch", {}, VerdictLevel.VALID),
        ("first-epoch", {"later_epochs": FASTER}, VerdictLevel.INDICATIVE),
        ("first-epoch", {"later_epochs": FASTER, "first_epoch": SLOW_FIRST}, VerdictLevel.INVALID),
        ("first-epoch", {"later_epochs": replace(EPOCH, steps=0, step_ns=0)}, None),
        ("generator-late", {}, VerdictLevel.VALID),
        ("generator-late", {"parts": {"storage": 3, "lateness": 3}}, VerdictLevel.INDICATIVE),
        ("generator-late", {"parts": {"storage": 0, "lateness": 6}}, VerdictLevel.INVALID),
        ("files-fit-in-memory", {}, None),
        ("files-fit-in-memory", {"job": BUFFERED}, VerdictLevel.INVALID),
        (
            "files-fit-in-memory",
            {"job": replace(BUFFERED, files=10_000_000)},
            VerdictLevel.INDICATIVE,
        ),
        ("files-fit-in-memory", {"job": replace(BUFFERED, files=100_000_000)}, VerdictLevel.VALID),
    ],
)
def test_training_is_judged_by_where_its_time_went(
    code: str, changes: dict[str, Any], expected: VerdictLevel | None
) -> None:
    assert level(code, **changes) is expected


def test_the_parts_of_steps_add_up_and_the_published_formula_stands_beside_them() -> None:
    metrics = {key: metric.value or 0.0 for key, metric in result().metrics.items()}
    parts = ("storage_wait_share", "barrier_wait_share", "emulator_lateness_share")
    utilisation = metrics["accelerator_utilisation"]
    assert utilisation == pytest.approx(0.92)
    assert utilisation + sum(metrics[key] for key in parts) == pytest.approx(1)
    assert metrics["published_utilisation"] == pytest.approx(0.92)
    assert metrics["samples_per_s"] == pytest.approx(600 * 7 / 30, rel=0.05)


def test_an_lru_memory_of_a_fifth_answers_two_per_cent() -> None:
    assert lru_hit_share(0.2) == pytest.approx(0.021, abs=0.001)
    assert lru_hit_share(1.5) == 1
