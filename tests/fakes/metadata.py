"""Metadata phases on a fake host: a rate, a latency, and what may go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from iolab.core.histogram import bin_index_of_ns
from tests.fakes.process import Machine, comes_within

TREES = frozenset({"tree-create", "tree-remove"})


@dataclass(frozen=True, slots=True)
class FakeMetadata:
    """How a fake host does metadata operations.

    `ops_per_s` is of the whole host, and every latency the same. `errors` are counted in that phase
    in place of operations done; `dies_in` names the phase in which, half a second after its start,
    the host breaks off; `lies_in` one whose account is not the sum of its intervals; `late_in` one
    that hits its wall limit at once, `slow_in` one at a tenth of the rate.
    """

    ops_per_s: float = 1000.0
    lat_ns: int = 1_000_000
    errors: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    dies_in: str | None = None
    lies_in: str | None = None
    late_in: str | None = None
    slow_in: str | None = None


class FakePhase:
    """Plays one phase; `strike` is how signals reach it."""

    def __init__(
        self, machine: Machine, request_id: int, asked: Mapping[str, Any], load: FakeMetadata
    ) -> None:
        self._machine = machine
        self._id = request_id
        self._asked = asked
        self._load = load
        self._struck = asyncio.Event()
        self._start_ns = 0
        self._told = 0

    @property
    def _rate(self) -> float:
        slow = self._asked["phase"] == self._load.slow_in
        return self._load.ops_per_s / (10 if slow else 1)

    @property
    def operations(self) -> int:
        """How many were requested."""
        if self._asked["phase"] in TREES:
            return int(self._asked["ranks"])
        if found := self._asked.get("files"):
            return sum(found)
        return int(self._asked["ranks"]) * int(self._asked["files_per_rank"])

    def strike(self, _: str) -> None:
        """A signal arrives: each ends the phase."""
        self._struck.set()

    async def live(self, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """From the start to the end; the final message. Intervals go to `tell`."""
        start_ns = self._asked.get("start_at_real_ns") or 0
        ahead_s = (start_ns - self._machine.real_ns()) / 1e9
        if await comes_within(self._struck, ahead_s):
            return self._measured(0, 0)
        self._start_ns = self._machine.real_ns()
        phase = str(self._asked["phase"])
        failed = sum(self._load.errors.get(phase, {}).values())
        wanted = self.operations - failed
        if phase == self._load.late_in:
            return self._measured(0, failed, timed_out=True)
        length_s = wanted / self._rate
        runtime_s = self._asked.get("runtime_s")
        if runtime_s is not None and runtime_s < length_s:
            length_s, wanted = runtime_s, round(runtime_s * self._rate)
        interval_s = self._asked["interval_ms"] / 1000
        elapsed_s = 0.0
        while length_s - elapsed_s > 1e-6:
            step_s = min(interval_s, length_s - elapsed_s)
            if phase == self._load.dies_in and elapsed_s == 0:
                await asyncio.sleep(0.5)
                self._machine.break_off()
            struck = await comes_within(self._struck, step_s)
            elapsed_s = (self._machine.real_ns() - self._start_ns) / 1e9
            done = min(wanted, round(elapsed_s * self._rate))
            self._tell(tell, done if struck or elapsed_s < length_s - 1e-6 else wanted)
            if struck:
                return self._measured(self._told, failed)
        return self._measured(wanted, failed)

    def _tell(self, tell: Callable[[dict[str, Any]], None], done: int) -> None:
        now_ns = self._machine.real_ns()
        tell(
            {
                "is": "interval",
                "seq": 0,
                "from_real_ns": self._start_ns,
                "to_real_ns": now_ns,
                "ops": done - self._told,
                "errors": {},
                "bins": self._bins(done - self._told),
            }
        )
        self._told = done

    def _measured(self, done: int, failed: int, *, timed_out: bool = False) -> dict[str, Any]:
        phase = str(self._asked["phase"])
        now_ns = self._machine.real_ns()
        worked = self._start_ns > 0
        skipped = self.operations - done - failed
        counted = done + 1 if phase == self._load.lies_in else done
        return {
            "is": "measured",
            "phase": phase,
            "ranks": self._asked["ranks"],
            "ops": done,
            "errors": dict(self._load.errors.get(phase, {})),
            "skipped": skipped,
            **({"tried": self._tried(done + failed)} if "runtime_s" in self._asked else {}),
            "bins": self._bins(counted),
            "latency_min_ns": self._load.lat_ns if done else None,
            "latency_max_ns": self._load.lat_ns if done else None,
            "latency_sum_ns": done * self._load.lat_ns,
            "ready_real_ns": self._start_ns,
            "first_start_real_ns": self._start_ns if worked else None,
            "last_start_real_ns": self._start_ns if worked else None,
            "first_end_real_ns": now_ns if worked else None,
            "last_end_real_ns": now_ns if worked else None,
            "user_s": 0.1,
            "system_s": 0.2,
            "waits": 0,
            "preemptions": 3,
            "cancelled": skipped > 0 and not timed_out and done < self._in_time(),
            "timed_out": timed_out,
        }

    def _in_time(self) -> int:
        """Operations that the phase's own time allows."""
        runtime_s = self._asked.get("runtime_s")
        return self.operations if runtime_s is None else round(runtime_s * self._rate)

    def _tried(self, operations: int) -> list[int]:
        """Spread over the ranks."""
        ranks = int(self._asked["ranks"])
        return [operations // ranks + (nth < operations % ranks) for nth in range(ranks)]

    def _bins(self, count: int) -> list[list[int]]:
        return [[int(bin_index_of_ns(self._load.lat_ns)), count]] if count else []
