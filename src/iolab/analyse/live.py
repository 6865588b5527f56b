"""Rule D on a run as it goes: intervals of all hosts in, and whether the run may end."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from iolab.analyse.method.rule_d import Live, Status
from iolab.analyse.seconds import SECOND_NS
from iolab.model.rule import RuleSettings


class FleetRule:
    """See `run.live_rule.LiveRule`. The seconds are those of `analyse.seconds`.

    A second counts when every host has told of all of it, however late.
    """

    def __init__(self, hosts: Sequence[str], settings: RuleSettings) -> None:
        self._settings = settings
        self._live = Live(settings)
        self._lines = {host: _Line() for host in hosts}
        self._edge_ns: int | None = None
        self._done = 0.0
        self._waiting = len(self._lines)

    def take(self, host: str, end_real_ns: int, span_ns: int, ios: int) -> None:
        """Take a host's next interval, on the controller's clock."""
        line = self._lines[host]
        first, before_ns = line.end_ns is None, line.end_ns or 0
        line.add(end_real_ns, span_ns, ios)
        now_ns = line.end_ns or 0
        edge_ns = self._edge_ns
        if first if edge_ns is None else before_ns < edge_ns <= now_ns:
            self._waiting -= 1
        while self._waiting == 0 and not self._live.is_over:
            self._advance()

    @property
    def finished(self) -> bool:
        """Whether the rule is satisfied; a run at its longest ends by itself."""
        decision = self._live.decision
        satisfied = decision is not None and decision.status is Status.OK
        return satisfied and self._live.seconds < self._settings.longest_s

    @property
    def says(self) -> str:
        """How the run stands, for people: `steady, 1 of 2 looks`."""
        seen = self._live.seen
        if seen is None:
            return f"first look at {self._settings.shortest_s} s"
        if seen.status is Status.OK:
            return f"steady, {self._live.satisfied} of {self._settings.consecutive} looks"
        if seen.status is Status.IMPRECISE:
            return f"imprecise, ±{100 * min(seen.relative, 9.99):.1f} %"
        return seen.status.value

    def _advance(self) -> None:
        """One more edge between seconds: hand the second before it to the rule."""
        lines = self._lines.values()
        if self._edge_ns is None:
            self._edge_ns = max(line.start_ns for line in lines)
            self._done = sum(line.until(self._edge_ns) for line in lines)
        else:
            done = sum(line.until(self._edge_ns) for line in lines)
            self._live.add(max(done - self._done, 0.0))
            self._done = done
        self._edge_ns += SECOND_NS
        edge_ns = self._edge_ns
        self._waiting = sum(line.end_ns is None or line.end_ns < edge_ns for line in lines)


class _Line:
    """One host's I/Os over time, as far as they are still asked for."""

    def __init__(self) -> None:
        self.start_ns = 0
        self.end_ns: int | None = None
        self._ios = 0
        self._open: deque[tuple[int, int, int, int]] = deque()

    def add(self, end_ns: int, span_ns: int, ios: int) -> None:
        """The next interval; its start is put right where the host's clock stepped back."""
        start_ns = end_ns - span_ns
        if self.end_ns is None:
            self.start_ns = start_ns
        else:
            start_ns = max(start_ns, self.end_ns)
        end_ns = max(end_ns, start_ns)
        self._open.append((start_ns, end_ns, self._ios, ios))
        self._ios += ios
        self.end_ns = end_ns

    def until(self, at_ns: int) -> float:
        """I/Os until a moment, which may not come before one that was asked for earlier."""
        while len(self._open) > 1 and self._open[1][0] <= at_ns:
            self._open.popleft()
        start_ns, end_ns, before, ios = self._open[0]
        if at_ns <= start_ns:
            return float(before)
        if at_ns >= end_ns:
            return float(before + ios)
        return before + ios * (at_ns - start_ns) / (end_ns - start_ns)
