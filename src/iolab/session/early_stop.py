"""Looks at a run while it goes: feeds its rule, and halts the engines when that has seen enough."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from iolab.core.events import RuleLooked
from iolab.core.run import PlannedRun
from iolab.hosts.intervals import Interval
from iolab.session.context import SessionContext
from iolab.session.driver import HostShare
from iolab.session.start_time import offset_of
from iolab.session.stopping_rule import LiveRule


class EarlyStop:
    """Feeds a run's rule, tells what it says, and halts all engines at once when it has enough."""

    def __init__(
        self,
        session: SessionContext,
        run: PlannedRun,
        evidence: Sequence[HostShare],
        halt: asyncio.Event,
    ) -> None:
        self._session = session
        self._run = run
        self._evidence = evidence
        self._halt = halt
        self._rule: LiveRule | None = None
        if session.rule_for is not None:
            self._rule = session.rule_for(run, [mine.name for mine in evidence])
        self._said = ""

    def take(self, mine: HostShare, intervals: Iterable[Interval]) -> None:
        """Take what a host has told. Once engines are to end, nothing more is looked at."""
        rule = self._rule
        if rule is None or self._halt.is_set():
            return
        ahead_ns = offset_of(mine).offset_ns
        for one in intervals:
            rule.take(mine.name, one.end_real_ns - ahead_ns, one.span_ns, one.ios)
        if rule.says != self._said:
            self._said = rule.says
            self._session.tell(RuleLooked(self._run, self._said))
        if rule.finished and not self._session.stop.requested:
            for each in self._evidence:
                each.enough = True
            self._halt.set()
