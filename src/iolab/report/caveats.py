"""What to know about the numbers: the checks' objections grouped, worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from iolab.core.metric import CheckResult, Level, Result
from iolab.core.study import Study
from iolab.report.numbers import axis_label, count

NAMES_SHOWN: Final = 3
"""Runs named with an objection; more are counted: the table of runs has them."""


@dataclass(frozen=True, slots=True)
class Objection:
    """One check's objection at one level, and the runs that it was made to.

    `says` is the sentence of the first run. Of several configurations `names` are
    those of all by id, and runs are named with theirs.
    """

    code: str
    level: Level
    says: str
    runs: tuple[Result, ...]
    total: int
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def everywhere(self) -> bool:
        """Whether every run of the session met it."""
        return len(self.runs) == self.total


def objections(
    results: Sequence[Result], titles: Mapping[str, str] = MappingProxyType({})
) -> tuple[Objection, ...]:
    """The objections over all runs: invalid before indicative, then the most frequent first.

    `titles` name configurations by id; where they do not, the id does.
    """
    grouped: dict[tuple[Level, str], list[tuple[Result, CheckResult]]] = {}
    for result in results:
        for check in result.verdict.objections:
            if check.level is not None:
                grouped.setdefault((check.level, check.code), []).append((result, check))
    owners = dict.fromkeys(result.configuration for result in results)
    names = {owner: titles.get(owner, owner) for owner in owners} if len(owners) > 1 else {}
    found = [
        Objection(
            code=code,
            level=level,
            says=hits[0][1].says,
            runs=tuple(result for result, _ in hits),
            total=len(results),
            names=names,
        )
        for (level, code), hits in grouped.items()
    ]
    return tuple(sorted(found, key=lambda item: (-item.level.rank, -len(item.runs), item.code)))


def where(item: Objection) -> str:
    """To which runs an objection was made, in words: their names where they are few."""
    if item.everywhere:
        return f"all {count(item.total, 'run')}" if item.total > 1 else "the only run"
    told = f"{len(item.runs)} of {count(item.total, 'run')}"
    if len(item.runs) > NAMES_SHOWN:
        return told
    return f"{told}: {'; '.join(whose_run(result, item.names) for result in item.runs)}"


def whose_run(result: Result, names: Mapping[str, str]) -> str:
    """A run's name, with its configuration where `names` has any: these are of several, by id."""
    name = names.get(result.configuration)
    return f"{run_name(result)} of {name}" if name else run_name(result)


def failure_words(result: Result, names: Mapping[str, str]) -> str:
    """That a run did not end well, with its reason where there is one."""
    return f"{whose_run(result, names)} failed or was interrupted. {result.failure or ''}".strip()


def names_among_several(study: Study) -> dict[str, str]:
    """The titles of configurations by id, empty where there is one and no need to tell."""
    found = {one.id: one.title for one in study.configurations}
    return found if len(found) > 1 else {}


def run_name(result: Result) -> str:
    """A run for people: `rand-read-4k, iodepth 8`, with the repeat from the second on."""
    axis = axis_label(result.axis)
    parts = [result.workload, axis] if axis else [result.workload]
    if result.repeat > 1:
        parts.append(f"repeat {result.repeat}")
    return ", ".join(parts)
