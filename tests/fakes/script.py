"""How a fake host behaves, and the clock that it shares with the controller in a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import chain, repeat
from typing import Final

from msgspec import field

from iolab.core.host import HostFacts, TargetProbe
from iolab.record import Record
from tests.fakes.fio import FakeJob, FakeLoad
from tests.fakes.machine import DiskUse, sample
from tests.fakes.metadata import FakeMetadata
from tests.fakes.process import FakeProcess, Machine
from tests.fakes.programs import FakeProgram

BEGINNING_NS: Final = 1_700_000_000_000_000_000
"""CLOCK_REALTIME when the loop's own time is zero."""

_SPOKEN_AFTER_S: Final = 2.0


class FakeGuest(Record):
    """How one boot of a guest goes; times in seconds from its start.

    It speaks after `boots_s`, as the agent of `script` does; what it says on its console before is
    `console`. It `hangs` instead, or `ends` with `exit_code`, or says `garbage`. At `dies_at_s` its
    console has `last_words` and its QEMU ends in any case. Without `monitor` its QEMU never greets;
    that ends after so many `answers`. A guest that `stays`, or hangs, does not power off by itself.
    """

    script: FakeScript | None = None
    boots_s: float = _SPOKEN_AFTER_S
    console: bytes = b""
    hangs: bool = False
    ends: bool = False
    exit_code: int = 0
    garbage: bytes = b""
    dies_at_s: float | None = None
    last_words: bytes = b""
    monitor: bool = True
    answers: int | None = None
    stays: bool = False


_OPERATIONS: Final = FakeMetadata()
_NULL: Final = FakeLoad(iops=1_000_000, lat_ns=1000)
_FREE: Final = TargetProbe(direct_error=None, direct_align_bytes=512, held_by=None)


class FakeScript(Record):
    """How a fake host behaves.

    `silent`, `dies` and `garbage` name verbs that are never answered, at which the host breaks
    off, or which it answers with nonsense; `refuses` gives (code, sentence) by verb;
    `leftovers_at_close` are what its last answer says to stay. `loads` are
    the engine's measured runs in order, the last one again and again; `layouts` likewise, and
    `null` is every run on the device that does nothing.
    `offset_ns` is how far its clock is ahead, `delay_s` how long each way of a message takes.
    `held_undos` are what other agents that live have yet to undo.
    `shared` are the files of a file system that all hosts with the same dict see.
    `objections` are the words that speak against its disk as a target.
    `programs` are those that it has beside fio, by name; with any it has no others.
    `contents` are the files that lie there for them.
    `kept_image` and `direct_image` are what it tells of an image for a file system.
    `metadata` is how it does metadata operations. Of a run whose memory is bounded it tells the
    `memory_peak_bytes` (the bound itself if None) and the `oom_kills`.
    `process` makes the engine's processes, `machine` the `sample` messages, where other ones than
    the small ones are wanted. An undo takes `undo_s`, writing it down `undo_add_s`, an event's
    steps `step_s`, and looking at what an action would do `resolve_s`; `abandoned_undos` are what
    dead agents left.
    With `guests` it is a node: how each boot of a guest goes, by the guest's name and which boot of
    it that is, from 1.
    """

    facts: HostFacts | None = None
    probe: TargetProbe = _FREE
    offset_ns: int = 0
    delay_s: float = 0.0002
    silent: frozenset[str] = frozenset()
    dies: frozenset[str] = frozenset()
    garbage: frozenset[str] = frozenset()
    refuses: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    leftovers_at_close: tuple[Mapping[str, str], ...] = ()
    held_undos: tuple[Mapping[str, object], ...] = ()
    loads: tuple[FakeLoad, ...] = (FakeLoad(),)
    layouts: tuple[FakeLoad, ...] = (FakeLoad(),)
    null: FakeLoad = _NULL
    hole_bytes: int = 0
    extents_method: str = "fiemap"
    resident_bytes: int = 1 << 20
    idle_bytes_per_sample: int = 0
    left_over_bytes: int = 0
    objections: tuple[str, ...] = ()
    shared: dict[str, int] | None = None
    metadata: FakeMetadata = _OPERATIONS
    programs: Mapping[str, FakeProgram] = field(default_factory=dict)
    contents: Mapping[str, bytes] = field(default_factory=dict)
    kept_image: bool = False
    direct_image: bool = True
    memory_peak_bytes: int | None = None
    oom_kills: int = 0
    process: Callable[[Machine, int, FakeJob, FakeLoad], FakeProcess] = FakeProcess
    guests: Callable[[str, int], FakeGuest] | None = None
    machine: Callable[[DiskUse, int, int, int], dict[str, object]] = sample
    resolve_s: float = 0.0
    undo_s: float = 0.0
    undo_add_s: float = 0.0
    step_s: float = 0.0
    abandoned_undos: tuple[Mapping[str, object], ...] = ()


class RefusedOnce(dict[str, tuple[str, str]]):
    """What a host refuses the first time alone."""

    def __getitem__(self, verb: str) -> tuple[str, str]:
        return self.pop(verb)


class FakeProcesses:
    """Starts the engine on a host: each process with the next load of its kind in the script."""

    def __init__(self, script: FakeScript) -> None:
        self._script = script
        self._loads = chain(script.loads, repeat(script.loads[-1]))
        self._layouts = chain(script.layouts, repeat(script.layouts[-1]))

    def start(self, machine: Machine, request_id: int, job: FakeJob) -> FakeProcess:
        """A process for the job; on the device that does nothing always a plain one."""
        if job.null:
            return FakeProcess(machine, request_id, job, self._script.null)
        load = next(self._layouts if job.runtime_s is None else self._loads)
        return self._script.process(machine, request_id, job, load)


class LoopClock:
    """The controller's clocks by the running loop's time: a test's loop may let it jump."""

    def real_ns(self) -> int:
        """CLOCK_REALTIME."""
        return loop_real_ns()

    def mono_ns(self) -> int:
        """CLOCK_MONOTONIC."""
        return loop_real_ns() - BEGINNING_NS


def loop_real_ns() -> int:
    """The running loop's time as CLOCK_REALTIME."""
    return BEGINNING_NS + round(asyncio.get_running_loop().time() * 1e9)
