"""The agenda of a session that results decide: its blocks, the sentinel in them, and what follows.

It begins with the plan's runs. Then, block by block, it asks every part of the study which points
it still wants, and has these in random order. Everything follows from the study, the plan and the
results in their order, so an agenda that is fed what a session stored goes on where that ended.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from iolab.analyse.agenda.log import Log
from iolab.analyse.agenda.parts import parts_of
from iolab.analyse.sentinels import sentinel_of, told
from iolab.model.metric import Result
from iolab.model.run import Plan, PlannedRun, Point, RunStatus
from iolab.model.study import Order, Study
from iolab.plan.budget import RUN_OVERHEAD_S
from iolab.plan.searches import SENTINEL_EVERY_CELLS, SENTINEL_EVERY_S


def is_decided_by_results(study: Study) -> bool:
    """Whether a session of the study makes other runs than its plan lists."""
    return study.method.sequential or any(item.aim.searches for item in study.workloads)


class DecidingAgenda:
    """Asks for one run after the other; `learn` what came of each before the next."""

    def __init__(self, study: Study, plan: Plan, stored: Iterable[Result] = ()) -> None:
        """Take what earlier sittings have `stored`: runs of it that are done are not made again."""
        self._study = study
        self._parts = parts_of(study, plan)
        self._log = Log(study)
        self._stored = {
            (run.digest, run.repeat): run for run in stored if run.status is RunStatus.DONE
        }
        self._queue: deque[Point] = deque()
        self._asked: Counter[str] = Counter()
        self._order = 0
        self._rounds = 0
        self._sentinel = sentinel_of(study)
        self._blocks = deque(_blocks(plan, self._sentinel))
        self._points: dict[str, Point] = {}
        self._since: list[Result] = []
        self._alarms = 0
        self._redone = False
        self._said: list[str] = []

    def next(self) -> PlannedRun | None:
        """The run to make now; None when nothing more is wanted."""
        while (point := self._choose()) is not None:
            self._order += 1
            self._asked[point.digest] += 1
            self._points[point.digest] = point
            run = PlannedRun(self._order, self._asked[point.digest], point)
            stored = self._stored.pop((point.digest, run.repeat), None)
            if stored is None:
                return run
            self.learn(stored)
            self._said.clear()
        return None

    def learn(self, result: Result) -> None:
        """Take what came of the run that was last asked for."""
        self._log.take(result)
        self._since.append(result)
        if self._sentinel is not None and result.digest == self._sentinel.digest:
            self._look()
            self._since.clear()

    def said(self) -> Sequence[str]:
        """Sentences since it was last asked."""
        said, self._said = tuple(self._said), []
        return said

    def _choose(self) -> Point | None:
        if self._sentinel is not None and self._is_due(self._sentinel):
            return self._sentinel
        while self._queue or self._fill():
            point = self._queue.popleft()
            if not self._log.failed(point.digest):
                return point
        return None

    def _fill(self) -> bool:
        """Queue the next block; whether there is one."""
        if self._blocks:
            self._queue.extend(self._blocks.popleft())
            return True
        wanted = [
            point
            for part in self._parts
            for point in part.wants(self._log)
            if not self._log.failed(point.digest)
        ]
        self._rounds += 1
        if self._study.method.order is Order.RANDOMISED:
            seed = f"{self._study.method.seed} {self._rounds}"
            random.Random(seed).shuffle(wanted)  # noqa: S311 - an order, not a secret
        self._queue.extend(wanted)
        return bool(wanted)

    def _is_due(self, sentinel: Point) -> bool:
        """Whether the sentinel is measured now: after so many other runs, or so long."""
        if self._log.failed(sentinel.digest) or not self._since:
            return False
        method = self._study.method
        each_s = method.settle_s + RUN_OVERHEAD_S
        seconds = sum(run.window_s + each_s for run in self._since)
        return len(self._since) >= SENTINEL_EVERY_CELLS or seconds >= SENTINEL_EVERY_S

    def _look(self) -> None:
        """What the sentinel says; where it has moved, what lies between is measured again, once."""
        found = self._log.look()
        if len(found) <= self._alarms:
            self._redone = False
            return
        self._alarms = len(found)
        if self._redone:
            self._said.append(f"{told(found[-1])} It had been redone before and is left so.")
            return
        self._redone = True
        self._queue.extendleft(
            self._points[run.digest]
            for run in reversed(self._since)
            if found[-1].after < run.order < found[-1].at
        )
        self._said.append(f"{told(found[-1])} The runs between are made again.")


def _blocks(plan: Plan, sentinel: Point | None) -> list[list[Point]]:
    """The plan's runs by repeat, each in the plan's order; of the first the sentinel first."""
    blocks: dict[int, list[Point]] = {}
    for run in plan.runs:
        blocks.setdefault(run.repeat, []).append(run.point)
    found = list(blocks.values())
    if found and sentinel is not None:
        found[0].sort(key=lambda point: point.digest != sentinel.digest)
    return found


def agenda_maker(
    study: Study, plan: Plan, stored: Sequence[Result] = ()
) -> Callable[[], DecidingAgenda] | None:
    """Makes the session's agenda anew at each call; None where the plan lists all runs."""
    if not is_decided_by_results(study):
        return None
    return partial(DecidingAgenda, study, plan, stored)
