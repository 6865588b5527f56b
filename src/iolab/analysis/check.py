"""What a check is: a registered pure function with a code, a title and a page of its own.

A check looks at a run and says how far the result can be trusted as far as it can see. It speaks
also when all is well, with its evidence. Where it could have looked and did not, it lets the result
go no further than indicative: what was not verified is not valid. Where it does not apply, or
nothing on these hosts can tell, it says n/a, which neither supports nor weakens.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, Generic, TypeVar

from msgspec import field

from iolab.analysis.view import RunView
from iolab.core.metric import CheckResult, Evidence, VerdictLevel
from iolab.core.run import HostRun, RunStatus
from iolab.record import Record

EvidenceValue = int | float | str | bool | None

EvidenceValues = dict[str, EvidenceValue]
"""Evidence while it is being put together."""

ACKNOWLEDGED: Final = "acknowledged"
"""The evidence that says where writes were when they were acknowledged: a comparison names it."""

ON_DEVICES: Final = "on devices"

View = TypeVar("View", bound=RunView)
Asked = TypeVar("Asked", bound=RunView, contravariant=True)
"""What a check looks at: a run, or a run of one kind of load."""


class HostKindCheckSlot(Enum):
    """Where the checks of a load leave room for those of a kind of host."""

    PROCESSORS_REAL = "what ran the hosts"
    LIMITS = "what held their disks"
    BYTES = "what moved below them"
    LATENCY = "where their latency was spent"
    PROCESSORS_FREE = "what processors they had"


class CheckAnswer(Record):
    """A check's answer: how far the result may go, one sentence, the numbers behind it."""

    level: VerdictLevel | None
    message: str
    evidence: Evidence = field(default_factory=dict)


class Check(Record, Generic[Asked]):
    """One registered check; those that judge measured I/O are not asked where there is none.

    Nor are those of phases where a run has none.
    """

    code: str
    title: str
    judge: Callable[[Asked], CheckAnswer]
    needs_load: bool
    needs_phases: bool = False

    def __call__(self, view: Asked) -> CheckResult:
        """The check's answer under its code."""
        answer = self.judge(view)
        return CheckResult(self.code, answer.level, answer.message, answer.evidence)

    def override(self, judge: Callable[[View], CheckAnswer]) -> Check[View]:
        """The same question to a kind of load that answers it in a way of its own."""
        return Check(self.code, self.title, judge, self.needs_load, self.needs_phases)


def check(
    code: str, title: str, *, needs_load: bool = True, needs_phases: bool = False
) -> Callable[[Callable[[View], CheckAnswer]], Check[View]]:
    """Make a function a check; its documentation is docs/reference/checks/<code>.md."""

    def check_decorator(judge: Callable[[View], CheckAnswer]) -> Check[View]:
        return Check(code, title, judge, needs_load, needs_phases)

    return check_decorator


class AnswerToGrade(Record):
    """An answer whose level follows from the thresholds of its check.

    `text` is the sentence without its end; `indicative_end` and `invalid_end` go on with it where
    the number is beyond the limit of that level, the latter like the former unless it is said.
    """

    text: str
    evidence: Evidence
    indicative_end: str = ""
    invalid_end: str | None = None

    def grade(
        self,
        number: str,
        valid_threshold: float | None,
        invalid_threshold: float | None,
        *,
        is_more_worse: bool,
    ) -> CheckAnswer:
        """The answer by what its evidence has of the number; TypeError where that has none."""
        value = self.evidence.get(number)
        if not isinstance(value, int | float):
            raise TypeError(f"no number {number!r} to be graded by in {self.evidence}")

        def is_beyond_threshold(threshold: float | None) -> bool:
            return threshold is not None and (
                value >= threshold if is_more_worse else value < threshold
            )

        if is_beyond_threshold(invalid_threshold):
            end = self.indicative_end if self.invalid_end is None else self.invalid_end
            return invalid_answer(f"{self.text}{end}.", **self.evidence)
        if is_beyond_threshold(valid_threshold):
            return indicative_answer(f"{self.text}{self.indicative_end}.", **self.evidence)
        return valid_answer(f"{self.text}.", **self.evidence)


def answer_to_grade(
    text: str,
    indicative_end: str = "",
    invalid_end: str | None = None,
    /,
    **evidence: EvidenceValue,
) -> AnswerToGrade:
    """What a check of one host found; its thresholds say how good that is."""
    return AnswerToGrade(text, evidence, indicative_end, invalid_end)


HostAnswer = CheckAnswer | AnswerToGrade | Iterable[CheckAnswer]


def per_host(
    *,
    max_key: str | None = None,
    min_key: str | None = None,
    valid_threshold: float | None = None,
    invalid_threshold: float | None = None,
    needs_complete_host_run: bool = False,
) -> Callable[[Callable[[View, int], HostAnswer]], Callable[[View], CheckAnswer]]:
    """Judge a run by the worst of what is found of each host, as `worst_answer` takes it.

    `max_key` or `min_key` is the number in the evidence by which a host is worse than another. From
    `valid_threshold` on, or below it of the `min_key`, it is no longer valid, from
    `invalid_threshold` on invalid (see `answer_to_grade`). What `needs_complete_host_run` is not
    asked of a host whose part of the run broke off, nor of the others of a run that failed: they
    were stopped.
    """
    number = max_key or min_key or ""

    def check_decorator(judge: Callable[[View, int], HostAnswer]) -> Callable[[View], CheckAnswer]:
        def answers_of_host(view: View, host_index: int) -> Iterable[CheckAnswer]:
            is_cut = (
                view.hosts[host_index].error is not None or view.record.status is RunStatus.FAILED
            )
            if needs_complete_host_run and is_cut:
                return (lost_host_answer(view.hosts[host_index]),)
            found = judge(view, host_index)
            if isinstance(found, AnswerToGrade):
                found = found.grade(
                    number, valid_threshold, invalid_threshold, is_more_worse=max_key is not None
                )
            return (found,) if isinstance(found, CheckAnswer) else found

        @functools.wraps(judge)
        def worst_host_answer(view: View) -> CheckAnswer:
            hosts = range(len(view.hosts))
            return worst_answer(
                (answer for index in hosts for answer in answers_of_host(view, index)),
                max_key,
                min_key,
            )

        return worst_host_answer

    return check_decorator


def valid_answer(message: str, **evidence: EvidenceValue) -> CheckAnswer:
    """All is well."""
    return CheckAnswer(VerdictLevel.VALID, message, evidence)


def indicative_answer(message: str, **evidence: EvidenceValue) -> CheckAnswer:
    """The number gives an idea, and is not to be quoted without this sentence."""
    return CheckAnswer(VerdictLevel.INDICATIVE, message, evidence)


def invalid_answer(message: str, **evidence: EvidenceValue) -> CheckAnswer:
    """The number is not what it claims to be."""
    return CheckAnswer(VerdictLevel.INVALID, message, evidence)


def not_applicable_answer(message: str, **evidence: EvidenceValue) -> CheckAnswer:
    """The check does not apply here, or nothing on these hosts can tell it: no word for or against.

    What could have been looked at and was not is `unchecked_answer` instead.
    """
    return CheckAnswer(None, message, evidence)


def lost_host_answer(host: HostRun) -> CheckAnswer:
    """Of a host that was lost in the run: what needs all that it did is not judged."""
    return not_applicable_answer(
        f"The run of {host.host} broke off: there is no whole.", host=host.host
    )


def unchecked_answer(why: str, **evidence: EvidenceValue) -> CheckAnswer:
    """What could not be seen: the result goes no further than indicative."""
    return indicative_answer(f"Could not be checked: {why}.", **evidence)


def worst_answer(
    answers_of_host: Iterable[CheckAnswer], max_key: str | None = None, min_key: str | None = None
) -> CheckAnswer:
    """The worst of several answers; ValueError when there is none.

    Of equally bad ones, that with the `max_key` or the `min_key` of a number in the evidence
    (answers without it come last), else the first.
    """

    def severity_key(answer: CheckAnswer) -> tuple[int, float]:
        rank = -1 if answer.level is None else answer.level.rank
        value = answer.evidence.get(max_key or min_key or "")
        if not isinstance(value, int | float):
            return rank, -math.inf
        return rank, float(value) if max_key else -float(value)

    return max(answers_of_host, key=severity_key)
