"""What analysis says of a run: metrics with unit and interval, checks, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from iolab.model.run import RunStatus

Evidence = Mapping[str, int | float | str | bool | None]


class Level(StrEnum):
    """How far a result can be trusted; as a check's level, how far the check lets it go."""

    VALID = "valid"
    INDICATIVE = "indicative"
    INVALID = "invalid"

    @property
    def rank(self) -> int:
        """0 for valid, 1 for indicative, 2 for invalid: the worst check decides."""
        return list(Level).index(self)


@dataclass(frozen=True, slots=True)
class Metric:
    """A number with its unit; low, high and n are None where no interval is known."""

    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None
    n: int | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check says: its code, how far it lets the result go, a sentence, the evidence."""

    code: str
    level: Level
    says: str
    evidence: Evidence = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The worst level of all checks, with every check that was made."""

    level: Level
    checks: tuple[CheckResult, ...]

    @property
    def objections(self) -> tuple[CheckResult, ...]:
        """The checks that say less than valid, worst first."""
        hits = [check for check in self.checks if check.level is not Level.VALID]
        return tuple(sorted(hits, key=lambda check: -check.level.rank))


@dataclass(frozen=True, slots=True)
class HostResult:
    """One host's share of a result."""

    name: str
    metrics: Mapping[str, Metric]


@dataclass(frozen=True, slots=True)
class Result:
    """A judged run: never shown without its verdict."""

    configuration: str
    workload: str
    axis: tuple[tuple[str, int | str], ...]
    repeat: int
    digest: str
    status: RunStatus
    failure: str | None
    window_s: float
    metrics: Mapping[str, Metric]
    hosts: tuple[HostResult, ...]
    verdict: Verdict
