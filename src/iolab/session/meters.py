"""Power meters in a session: read before it begins, and during each run and around its load.

What the kernel of a host meters comes with its samples. Here are the meters beside a host, and the
moments before and after the load, when no sample is taken otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from iolab.core.events import Notice, SessionPhase
from iolab.core.power import MILLIWATTS_PER_WATT, ExternalMeterKind, MeterSpec
from iolab.core.run import IdleSpan, MeterFault, PlannedRun
from iolab.hosts.barrier import gather_hosts
from iolab.hosts.device_counters import take_disks_snapshot_and_sample
from iolab.hosts.meters import MeterError, MeterReading, open_meter
from iolab.hosts.telemetry import CounterCollector
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress
from iolab.session.observers import HostMonitors
from iolab.text import excerpt

FAULTS_MAX: Final = 100
"""Of one run; a rack whose BMCs are away has one each."""


class MeterWatch:
    """All meters of one run's hosts; what they show goes into its counters.

    `host_runs` are of the hosts that make load, `monitors` watches the others.
    """

    def __init__(
        self,
        session: SessionContext,
        counters: CounterCollector,
        host_runs: Sequence[HostRunInProgress],
        monitors: HostMonitors,
    ) -> None:
        self._session = session
        self._counters = counters
        self._states = host_runs
        self._monitors = monitors
        self._indexes = {host_run.name: index for index, host_run in enumerate(host_runs)}
        self._indexes |= monitors.host_indexes
        self._settings = session.study.meters
        self._seq = 0
        self._readings: list[tuple[str, MeterSpec, MeterReading]] = []
        self._faults: dict[tuple[str, str], MeterFault] = {}
        self.idle_spans: tuple[IdleSpan, ...] = ()
        """When the machines idled, before the load and after it."""

    @property
    def faults(self) -> tuple[MeterFault, ...]:
        """The last reason of every meter that could not be read throughout."""
        return tuple(self._faults.values())[:FAULTS_MAX]

    @asynccontextmanager
    async def watch(self, run: PlannedRun) -> AsyncIterator[None]:
        """All are read while what is done within lasts, and while the machines idle around it."""
        following = [
            asyncio.create_task(
                self._read_until_cancelled(host.name, spec), name=f"meter {spec.name}"
            )
            for host in self._session.study.hosts
            if host.name in self._indexes
            for spec in host.meters
        ]
        try:
            await self._idle_while_sampling(run, "before the load")
            yield
            await self._idle_while_sampling(run, "after the load")
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
            self._add_meter_readings_to_counters()

    async def _idle_while_sampling(self, run: PlannedRun, phase_detail: str) -> None:
        """Let the machines idle, with samples of the meters that their kernels have."""
        idle_s, stop = self._settings.idle_s, self._session.stop
        if not idle_s or stop.is_requested:
            return
        self._session.begin_session_phase(SessionPhase.IDLE_POWER, run, phase_detail, idle_s)
        start_ns, end_s = self._session.clock.real_ns(), asyncio.get_running_loop().time() + idle_s
        while not stop.is_requested:
            await gather_hosts(self._states, self._sample_host_power)  # a lost host ends its load
            left_s = end_s - asyncio.get_running_loop().time()
            if left_s <= 0:
                span = IdleSpan(start_ns, self._session.clock.real_ns())
                self.idle_spans = (*self.idle_spans, span)
                return
            await stop.sleep(min(self._settings.interval_s, left_s))

    async def _sample_host_power(self, host_run: HostRunInProgress) -> None:
        _, sample = await take_disks_snapshot_and_sample(host_run.workdir.host)
        if rows := sample.get("power"):
            try:
                self._add_meter_reading(self._indexes[host_run.name], sample.get("real_ns"), rows)
            except ValueError as error:
                why = str(error).rstrip(".")
                raise host_run.workdir.host.end_as_lost(
                    f"sent malformed telemetry: {why}"
                ) from None

    async def _read_until_cancelled(self, host_name: str, spec: MeterSpec) -> None:
        """Read it until cancelled; what ends it otherwise is noted, and the run goes on."""
        try:
            await self._poll_meter_with_retries(host_name, spec)
        except MeterError as error:
            self._record_and_report_fault(host_name, spec, error.message)
        except Exception as error:  # a meter is no reason to lose a run
            self._record_and_report_fault(
                host_name, spec, f"{type(error).__name__}: {excerpt(str(error), 200)}"
            )

    async def _poll_meter_with_retries(self, host_name: str, spec: MeterSpec) -> None:
        """Where it cannot be read that is noted, and tried again."""
        meter = open_meter(spec)
        try:
            while True:
                try:
                    reading = await meter.read()
                except MeterError as error:
                    self._record_and_report_fault(host_name, spec, error.message)
                    await asyncio.sleep(self._settings.interval_s)
                    continue
                if reading is not None:
                    self._readings.append((host_name, spec, reading))
                if spec.kind is not ExternalMeterKind.COMMAND:  # a program has a pace of its own
                    await asyncio.sleep(self._settings.interval_s)
        finally:
            await meter.close()

    def _record_and_report_fault(self, host_name: str, spec: MeterSpec, reason: str) -> None:
        before = self._faults.get((host_name, spec.name))
        if before is None:
            text = f"The meter '{spec.name}' of host '{host_name}' is not read: {reason}."
            self._session.emit(Notice(text))
        count = before.count + 1 if before else 1
        self._faults[host_name, spec.name] = MeterFault(host_name, spec.series_name, reason, count)

    def _add_meter_readings_to_counters(self) -> None:
        """Each at its moment of the host's clock, which is read only when its load begins."""
        offsets = {
            state.name: state.clock_offset.offset_ns for state in self._states if state.clock_offset
        }
        offsets |= {host.host: host.clock_offset_ns for host in self._monitors.monitored_hosts()}
        for host, spec, reading in self._readings:
            row = [spec.series_name, round(reading.watts * MILLIWATTS_PER_WATT), None, None]
            self._add_meter_reading(
                self._indexes[host], reading.real_ns + offsets.get(host, 0), [row]
            )
        self._readings.clear()

    def _add_meter_reading(self, index: int, real_ns: object, rows: object) -> None:
        self._seq += 1
        self._counters.add(index, {"seq": self._seq, "real_ns": real_ns, "power": rows})
