"""The sessions that one report is made of, where it is made of several.

A report on a single session has none of this: `ALONE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from iolab.analysis.differences import Difference
from iolab.core.metric import Result
from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.report.series import DetailKey
from iolab.store.documents import Session


@dataclass(frozen=True, slots=True)
class Member:
    """One of the sessions by itself, under the names that it has without the others.

    `label` is how the report calls it. `results` are its own, and `damaged` is how many of its runs
    cannot be read. `begun` is when each of its sittings began (UTC, ns). `titles` are those of its
    configurations, as the report calls them.
    """

    label: str
    session: Session
    study: Study
    plan: Plan
    results: tuple[Result, ...]
    damaged: int
    begun: tuple[int, ...]
    titles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a run of the report is stored: the session's label, and the point's digest there."""

    label: str
    digest: str
    repeat: int

    @property
    def place(self) -> str:
        """The run's folder within its session."""
        return f"points/{self.digest}/run-{self.repeat}"


@dataclass(frozen=True, slots=True)
class Apart:
    """In what a session differs from the first one besides its results."""

    label: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Several sessions in one report; `traces` lead from its runs to where they are stored."""

    members: tuple[Member, ...] = ()
    traces: Mapping[DetailKey, Trace] = field(default_factory=dict)
    apart: tuple[Apart, ...] = ()

    @property
    def several(self) -> bool:
        """Whether there are any."""
        return bool(self.members)

    def forbidding(self) -> Iterator[tuple[str, Difference]]:
        """Every difference that forbids comparing a session with the first one, with its label."""
        for one in self.apart:
            yield from ((one.label, found) for found in one.differences if found.forbids)

    def trace(self, key: DetailKey) -> Trace:
        """Where a run is stored; of a single session without a label."""
        return self.traces.get(key, Trace("", *key))


ALONE: Final = Sessions()
"""A report on a single session."""
