"""What is gathered on one host during a run, filled in phase by phase; the record is made of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from iolab.model.key_value_run import KeyValueRun
from iolab.model.metadata import OperationRun
from iolab.model.packed import Packed
from iolab.model.run import CacheProof, DeviceDelta, ExtentProof, HostRun, IdleProof, ProcessUse
from iolab.run.barrier import joined, together
from iolab.run.clock import ClockOffset
from iolab.run.counters import Look, deltas
from iolab.run.drive import Ending
from iolab.run.engines.base import Command, EngineReading
from iolab.run.engines.log import IntervalLog
from iolab.run.site import Site


@dataclass(slots=True)
class Evidence:
    """One host's share of a run. What a failed phase did not reach stays None.

    Metadata load, which is no process of its own, fills in `phases`, what it `asked` for,
    `engine_version`, whether it was `halted`, and while files of it lie there is `unclean`.
    With `enough` seen, the load was halted by its rule. Load on a key-value store fills in
    `key_value`, and `span` where it has no reading: when its first and last operation ended.
    `files` is whatever else its engine left, by name, beside the `output` that it printed, and
    `ceiling_iops` what it reached on a target that does nothing (`ceiling_fault`: why it did not).
    """

    site: Site
    extents: ExtentProof | None = None
    cache: CacheProof | None = None
    idle: IdleProof | None = None
    offset: ClockOffset | None = None
    offset_after: ClockOffset | None = None
    command: Command | None = None
    before: Look | None = None
    after: Look | None = None
    intervals: IntervalLog = field(default_factory=IntervalLog)
    output: Packed | None = None
    files: dict[str, Packed] = field(default_factory=dict)
    reading: EngineReading | None = None
    ending: Ending | None = None
    phases: list[OperationRun] = field(default_factory=list)
    asked: str = ""
    engine_version: str = ""
    halted: bool = False
    unclean: bool = False
    error: str | None = None
    enough: bool = False
    key_value: KeyValueRun | None = None
    span: tuple[int, int] | None = None
    ceiling_iops: float | None = None
    ceiling_fault: str = ""

    @property
    def name(self) -> str:
        """The host's name."""
        return self.site.name

    @property
    def devices(self) -> tuple[DeviceDelta, ...]:
        """What the target's devices moved; empty when a look is missing."""
        if self.before is None or self.after is None:
            return ()
        return deltas(self.before, self.after, self.site.devices)

    @property
    def stopped_early(self) -> bool:
        """Whether the load ended on our wish, the user's or its rule's."""
        return self.ending.halted if self.ending else self.halted

    @property
    def times(self) -> tuple[int | None, int | None]:
        """When the load began and ended on the host's clock."""
        if self.reading:
            return self.reading.start_real_ns, self.reading.end_real_ns
        if self.span:
            return self.span
        starts = [one.first_start_real_ns for one in self.phases if one.first_start_real_ns]
        ends = [one.last_end_real_ns for one in self.phases if one.last_end_real_ns]
        return min(starts, default=None), max(ends, default=None)

    def host_run(self) -> HostRun:
        """The same for the record."""
        command, reading, ending = self.command, self.reading, self.ending
        exited = ending.exited if ending else None
        use = ProcessUse(exited.user_s, exited.system_s, exited.max_rss_bytes) if exited else None
        return HostRun(
            host=self.name,
            error=self.error,
            argv=command.argv if command else (),
            job_file=command.job_file if command else self.asked,
            engine_version=reading.version if reading else self.engine_version,
            start_real_ns=self.times[0],
            end_real_ns=self.times[1],
            exit_code=exited.code if exited else None,
            exit_signal=exited.signal if exited else None,
            stopped_early=self.stopped_early,
            totals=reading.totals if reading else None,
            devices=self.devices,
            extents=self.extents,
            cache=self.cache,
            idle=self.idle,
            process=use,
            clock_offset_ns=self.offset.offset_ns if self.offset else 0,
            clock_error_ns=self.offset.error_ns if self.offset else 0,
            stderr_tail=ending.stderr_tail if ending else "",
            target_key=self.site.key,
            phases=tuple(self.phases),
            clock_offset_after_ns=self.offset_after.offset_ns if self.offset_after else None,
            clock_error_after_ns=self.offset_after.error_ns if self.offset_after else None,
            read_from=self.site.read_from,
            key_value=self.key_value,
            ceiling_iops=self.ceiling_iops,
            ceiling_fault=self.ceiling_fault,
        )


async def on_each(
    evidence: Sequence[Evidence], work: Callable[[Evidence], Awaitable[None]]
) -> None:
    """The work on every host at once; each that fails gets its error, then all are raised as one.

    Raises HostError or EngineError.
    """
    outcomes = await together(evidence, work)
    for mine in evidence:
        fault = outcomes.failed.get(mine.name)
        if fault and mine.error is None:
            mine.error = fault.happened
    if outcomes.failed:
        raise joined(tuple(outcomes.failed.values()))
