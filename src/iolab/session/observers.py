"""Hosts of a run that make no load: storage nodes and hypervisors, watched while others work.

Nothing that happens to them ends a run or a session. One that is lost is told of once and keeps its
error in every record from then on; it is not reached again before the session is resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from msgspec import Struct

from iolab.core.events import CpuUseReported, Notice
from iolab.core.host import HostSpec
from iolab.core.run import MonitoredHost, PlannedRun
from iolab.errors import HostError
from iolab.hosts.barrier import gather_hosts
from iolab.hosts.clock import ClockOffset, ClockStepDetector, measure_clock_offset
from iolab.hosts.device_counters import (
    HostDisksSnapshot,
    cpu_busy_share,
    device_deltas,
    parse_core_total_and_idle_ns,
    take_disks_snapshot,
    take_disks_snapshot_and_sample,
)
from iolab.hosts.host import Host
from iolab.hosts.message import HostLostError, ReplyStream
from iolab.hosts.telemetry import CounterCollector
from iolab.session.context import SessionContext
from iolab.study.targets import monitored_host_specs

SILENCE_LIMIT_S: Final = 30.0
"""Beyond the interval: a host that shows no sample for so long is lost, however busy it was."""

FIRST_SAMPLE_LIMIT_S: Final = 20.0
"""The first one comes at once, on a host that does nothing yet."""

UNWATCH_LIMIT_S: Final = 20.0
"""Calling a watch off on a host under full load."""


class HostWatch:
    """A watch on one host from before the start of a run until after its end.

    `begin`, `collect_and_report_until_cancelled` and `end` are called in this order; all but `end`
    raise HostError, and give the host up when it falls silent or sends nonsense. With
    `inode_count_path` the inodes of that path's file system are counted, too.
    """

    def __init__(
        self,
        session: SessionContext,
        host: Host,
        index: int,
        counters: CounterCollector,
        inode_count_path: str | None = None,
    ) -> None:
        self._session = session
        self._host = host
        self._index = index
        self._counters = counters
        self._inode_path = inode_count_path
        self._interval_ms = session.study.telemetry.interval_ms
        self._stream: ReplyStream | None = None
        self._held: Mapping[str, Any] | None = None
        self._steps = ClockStepDetector()

    @property
    def clock_step_ns(self) -> int | None:
        """The largest step of the host's clock since `begin`, 0 for none, None if not known."""
        return self._steps.step_ns

    async def begin(self) -> None:
        """Start it and see the first sample."""
        self._stream = self._host.stream(
            "watch", interval_ms=self._interval_ms, inodes_of=self._inode_path
        )
        self._held = await self._receive_sample(self._stream, FIRST_SAMPLE_LIMIT_S)

    async def collect_and_report_until_cancelled(self, go_real_ns: int) -> None:
        """Collect from the last sample before `go_real_ns` (the host's clock) until cancelled."""
        if self._stream is None or self._held is None:
            raise ValueError("a watch begins before it is followed")
        times = parse_core_total_and_idle_ns(self._held.get("cpu"))
        while True:
            sample = await self._receive_sample(
                self._stream, self._interval_ms / 1000 + SILENCE_LIMIT_S
            )
            before, times = times, parse_core_total_and_idle_ns(sample.get("cpu"))
            if sample["real_ns"] >= go_real_ns:
                self._add_sample(self._held)
                busy = cpu_busy_share(before, times)
                if busy is not None:
                    self._session.emit(CpuUseReported(self._host.name, busy))
            self._held = sample

    async def end(self, final_sample_if_taken: Mapping[str, Any] | None) -> None:
        """End the watch in any case; `final_sample_if_taken` counts as its newest, else one now.

        Without that one a run shorter than the interval would have a single sample, and no rate.
        """
        if self._stream is None:
            return
        await self._stream.aclose()
        with suppress(HostError):
            if self._held is not None:
                self._add_sample(self._held)
                newest = final_sample_if_taken
                if newest is None:
                    _, newest = await take_disks_snapshot_and_sample(self._host, self._inode_path)
                self._steps.add_reading(newest.get("real_ns"), newest.get("boot_ns"))
                # The watch may have shown a newer one since.
                if newest["mono_ns"] > self._held["mono_ns"]:
                    self._add_sample({**newest, "seq": self._held["seq"] + 1})
            await self._host.request("unwatch", deadline_s=UNWATCH_LIMIT_S, watch=self._stream.id)

    async def _receive_sample(self, stream: ReplyStream, limit_s: float) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(limit_s):
                header = (await anext(stream)).header
        except TimeoutError:
            reason = f"showed no sign of life for {limit_s:g} s"
            raise self._host.end_as_lost(reason) from None
        except StopAsyncIteration:
            raise self._host.end_as_lost("ended its telemetry unasked") from None
        if not all(isinstance(header.get(clock), int) for clock in ("real_ns", "mono_ns")):
            raise self._mark_host_lost_for_invalid_sample("it has no time")
        self._steps.add_reading(header["real_ns"], header.get("boot_ns"))
        return header

    def _add_sample(self, sample: Mapping[str, Any]) -> None:
        try:
            self._counters.add(self._index, sample)
        except ValueError as fault:
            raise self._mark_host_lost_for_invalid_sample(str(fault)) from None

    def _mark_host_lost_for_invalid_sample(self, why: str) -> HostLostError:
        return self._host.end_as_lost(f"sent malformed telemetry: {why.rstrip('.')}")


class _MonitoredHostInProgress(Struct):
    """One of them in one run."""

    spec: HostSpec
    host: Host
    watch: HostWatch
    error: str | None = None
    clock_offset: ClockOffset | None = None
    before: HostDisksSnapshot | None = None
    after: HostDisksSnapshot | None = None

    @property
    def name(self) -> str:
        return self.spec.name


class HostMonitors:
    """All of them in one run; their counters are numbered from `first` on.

    `below` are the devices below the paths of those that have one, by name.
    """

    def __init__(
        self,
        session: SessionContext,
        run: PlannedRun,
        counters: CounterCollector,
        *,
        first: int,
        path_devices: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._session = session
        self._below = path_devices
        specs = monitored_host_specs(session.study, run.point.configuration)
        self.host_indexes = {spec.name: first + place for place, spec in enumerate(specs)}
        """The number of each among the hosts that counters name."""
        self._states = [
            _MonitoredHostInProgress(
                spec,
                host,
                HostWatch(session, host, self.host_indexes[spec.name], counters),
                error=host.lost_reason,
            )
            for spec in specs
            if (host := session.monitored_hosts.get(spec.name)) is not None
        ]

    @asynccontextmanager
    async def watch_all(self) -> AsyncIterator[None]:
        """Their clocks are read and their disks counted before and after what is done within."""
        await self._run_on_each_or_record_error(self._reachable_hosts(), self._begin_watch)
        following = asyncio.create_task(
            self._run_on_each_or_record_error(self._reachable_hosts(), self._follow_watch)
        )
        try:
            yield
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await self._run_on_each_or_record_error(self._reachable_hosts(), self._end_watch)

    def monitored_hosts(self) -> tuple[MonitoredHost, ...]:
        """What is to be recorded of them."""
        return tuple(
            MonitoredHost(
                host=observer.name,
                role=observer.spec.role,
                error=observer.error,
                devices=device_deltas(
                    observer.before, observer.after, self._device_names(observer.spec)
                )
                if observer.before and observer.after
                else (),
                clock_offset_ns=observer.clock_offset.offset_ns if observer.clock_offset else 0,
                clock_error_ns=observer.clock_offset.error_ns if observer.clock_offset else 0,
            )
            for observer in self._states
        )

    def _device_names(self, spec: HostSpec) -> tuple[str, ...]:
        """Those that its table names, else those below its path."""
        return spec.devices or self._below.get(spec.name, ())

    def _reachable_hosts(self) -> list[_MonitoredHostInProgress]:
        return [observer for observer in self._states if observer.error is None]

    async def _run_on_each_or_record_error(
        self,
        members: Iterable[_MonitoredHostInProgress],
        work: Callable[[_MonitoredHostInProgress], Awaitable[None]],
    ) -> None:
        async def run_or_record_error(monitored: _MonitoredHostInProgress) -> None:
            try:
                await work(monitored)
            except HostError as fault:
                monitored.error = fault.message
                self._session.emit(Notice(f"{fault.message} The run goes on without a look at it."))

        await gather_hosts(members, run_or_record_error)

    async def _begin_watch(self, monitored: _MonitoredHostInProgress) -> None:
        await monitored.watch.begin()
        monitored.clock_offset = await measure_clock_offset(monitored.host, self._session.clock)
        monitored.before = await take_disks_snapshot(monitored.host)

    async def _follow_watch(self, monitored: _MonitoredHostInProgress) -> None:
        now_ns = self._session.clock.real_ns()
        await monitored.watch.collect_and_report_until_cancelled(
            now_ns + (monitored.clock_offset.offset_ns if monitored.clock_offset else 0)
        )

    async def _end_watch(self, monitored: _MonitoredHostInProgress) -> None:
        monitored.after, sample = await take_disks_snapshot_and_sample(monitored.host)
        await monitored.watch.end(sample)
