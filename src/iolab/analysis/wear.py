"""What a run wrote at each layer below the application, and how much of it was the drive's own.

A write amplification is the ratio of two differences of counters. Each counter counts in steps and
rounds up, so that a difference D of a counter with the step s lies within D - s and D + s; the
interval of the ratio follows from that. A step that no specification gives is taken as the greatest
common divisor of the counter before and after the run, which is never smaller than it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from iolab.analysis.drive_pages import (
    DATA_UNIT_BYTES,
    MediaBytesWritten,
    SmartCounters,
    media_bytes,
    power_measurement,
    rated_endurance_bytes,
    smart_counters,
)
from iolab.analysis.storage_bytes import names_of_devices_on_no_other
from iolab.analysis.view import RunView
from iolab.core.drive import DriveReading, DriveReadingPair
from iolab.core.limits import NUMBER_MAX
from iolab.core.metric import DriveWear, Metric
from iolab.core.run import DeviceDelta, HostRun
from iolab.core.stopping import SteadinessStatus
from iolab.core.wear import (
    BLOCK_WRITE_AMPLIFICATION,
    ENGINE_WRITE_AMPLIFICATION,
    HOST_WRITE_AMPLIFICATION,
    MEDIA_WRITE_AMPLIFICATION,
    RATIO_UNIT,
    WRITE_AMPLIFICATION,
)
from iolab.record import Record
from iolab.text import list_text
from iolab.units import format_bytes, format_duration_s

STEPS_MIN: Final = 100
"""Steps of a counter that a difference must have: with fewer the interval is wider than 1 %."""

FOREIGN_SHARE: Final = 0.02
"""Share of what the block layer wrote by which the drive may have counted more before another
writer is behind it. Chosen: one that writes less changes an amplification by less than that.
Journals of the run's own file system are in both counts."""

EMULATED_MODELS: Final = ("QEMU", "VMware", "Amazon Elastic Block Store", "Virtual")
"""How the models of drives begin that are software: what their flash wrote is not a drive's.

Amazon's instance store is a drive of the machine. `Virtual` is VirtualBox's, too."""


NAMESPACES_NAMED: Final = 4
"""In a reason; more are counted."""


class DriveCounterChange(Record):
    """One drive over a run: its SMART counters before and after, and its block device's delta.

    `fault` says why its counters cannot be compared; all else may be missing then. Its controller
    counts the `other_namespaces` of the target on the same drive, too, to which the block layer
    wrote `other_block_bytes`.
    """

    host: HostRun
    before: DriveReading
    after: DriveReading | None = None
    delta: DeviceDelta | None = None
    smart_before: SmartCounters | None = None
    smart_after: SmartCounters | None = None
    fault: str = ""
    other_namespaces: tuple[str, ...] = ()
    other_block_bytes: int = 0

    @property
    def name(self) -> str:
        """The drive's device with its host."""
        return f"{self.before.device} of {self.host.host}"

    @property
    def written_data_units(self) -> int:
        """How far the controller's data units written rose; 0 where they are not known."""
        if self.smart_before is None or self.smart_after is None:
            return 0
        return self.smart_after.units_written - self.smart_before.units_written

    @property
    def was_reset(self) -> bool:
        """Whether the drive was switched off between the readings, or a counter of it fell."""
        before, after = self.smart_before, self.smart_after
        if before is None or after is None:
            return False
        rose = after.power_cycles > before.power_cycles
        rose = rose or after.unsafe_shutdowns > before.unsafe_shutdowns
        fell = after.units_written < before.units_written
        return rose or fell or after.units_read < before.units_read

    @property
    def throttled_s(self) -> int | None:
        """Seconds in which heat slowed the drive down; None where its counters are not known."""
        if self.smart_before is None or self.smart_after is None or self.was_reset:
            return None
        return max(self.smart_after.throttled_s - self.smart_before.throttled_s, 0)

    @property
    def block_layer_written_bytes(self) -> int:
        """What the block layer wrote on the drive, in bytes."""
        return self.delta.write_bytes if self.delta else 0

    @property
    def has_stuck_counters(self) -> bool:
        """Whether the drive counted nothing while so much was written that it must have."""
        expected = self.block_layer_written_bytes // DATA_UNIT_BYTES
        return (
            self.smart_after is not None and expected >= STEPS_MIN and self.written_data_units == 0
        )

    @property
    def foreign_written_bytes(self) -> int:
        """What the drive counted as written beyond the block layer's bytes, if certainly so."""
        least = (self.written_data_units - 1) * DATA_UNIT_BYTES
        own = self.block_layer_written_bytes + self.other_block_bytes
        excess = least - own
        is_foreign = excess > max(FOREIGN_SHARE * own, DATA_UNIT_BYTES)
        return min(excess, NUMBER_MAX) if is_foreign else 0


def drive_counter_changes(view: RunView, host_index: int) -> Iterator[DriveCounterChange]:
    """Every drive of a host of the run whose log pages were asked for."""
    host = view.hosts[host_index]
    deltas = {delta.device: delta for delta in host.devices}
    for readings in host.drives:
        change = _drive_counter_change(host, readings, deltas.get(readings.before.device))
        others = [
            other.before.device
            for other in host.drives
            if other is not readings and is_same_drive(other.before, readings.before)
        ]
        yield replace(
            change,
            other_namespaces=tuple(others),
            other_block_bytes=sum(deltas[each].write_bytes for each in others if each in deltas),
        )


def is_same_drive(first_reading: DriveReading, second_reading: DriveReading) -> bool:
    """Whether two block devices of a host are namespaces of one NVMe subsystem.

    Vendor, model and serial number together are its own (NVMe base specification, 5.1.13); a drive
    with two controllers is one.
    """
    first, second = first_reading.identity, second_reading.identity
    if first is None or second is None or not first.serial:
        return False
    return (first.vendor, first.model, first.serial) == (
        second.vendor,
        second.model,
        second.serial,
    )


def _drive_counter_change(
    host: HostRun, readings: DriveReadingPair, delta: DeviceDelta | None
) -> DriveCounterChange:
    before, after = readings.before, readings.after
    fault = before.fault or (after.fault if after else "it was not read again after the run") or ""
    if not fault and after and before.identity and after.identity:
        first, second = before.identity.serial, after.identity.serial
        if first != second:
            fault = f"it was the drive '{first}' before the run and '{second}' after it"
    smart_before, smart_after = smart_counters(before), smart_counters(after) if after else None
    if not fault and (smart_before is None or smart_after is None):
        fault = "it gave no SMART log page"
    if not fault and delta is None:
        fault = "the kernel's counters of its block device are missing"
    return DriveCounterChange(host, before, after, delta, smart_before, smart_after, fault)


def drive_wear_of_run(view: RunView) -> tuple[DriveWear, ...]:
    """What the run wrote on each drive, in the order of hosts and their drives."""
    return tuple(
        _drive_wear(view, index, change)
        for index in range(len(view.hosts))
        for change in drive_counter_changes(view, index)
    )


def _drive_wear(view: RunView, host_index: int, change: DriveCounterChange) -> DriveWear:
    is_only_drive = len(change.host.drives) == 1
    identity = change.before.identity
    model = identity.model if identity else ""
    wear = DriveWear(
        host=change.host.host,
        device=change.before.device,
        model=model,
        is_emulated=model.startswith(EMULATED_MODELS),
        block_bytes=change.block_layer_written_bytes,
        application_bytes=view.application_written_bytes(host_index) if is_only_drive else None,
        engine_bytes=view.engine_written_bytes(host_index) if is_only_drive else None,
        throttled_s=change.throttled_s,
    )
    if change.fault or change.was_reset or change.after is None:
        reset = "the drive was switched off or its counters fell during the run"
        return replace(wear, reason=change.fault or reset)
    if change.other_namespaces:
        others = list_text(change.other_namespaces, NAMESPACES_NAMED)
        return replace(wear, reason=f"the drive counts {others} with it: they are one drive")
    wear = replace(
        wear,
        host_bytes=_counter_difference_metric(
            change.written_data_units * DATA_UNIT_BYTES, DATA_UNIT_BYTES
        ),
        energy_wh=_drive_energy_metric(change),
        power_measurement=power_measurement(change.after),
    )
    before, after = media_bytes(change.before), media_bytes(change.after)
    if before is None or after is None or before.counter is not after.counter:
        return replace(wear, reason="the drive has no counter of what its flash wrote")
    grown, step = (
        after.written_bytes - before.written_bytes,
        media_counter_step_bytes(before, after),
    )
    if grown < 0:
        return replace(wear, reason="the counter of what the flash wrote fell")
    rated = rated_endurance_bytes(change.before)
    wear = replace(
        wear,
        media_bytes=_counter_difference_metric(grown, step),
        media_counter=before.counter,
        endurance_share=grown / rated if rated else None,
    )
    if reason := _no_amplification_reason(view, change, grown, step):
        return replace(wear, reason=reason)
    return replace(
        wear, write_amplification=write_amplification(change.block_layer_written_bytes, grown, step)
    )


def write_amplification(block_bytes: int, media_bytes: int, step_bytes: int) -> Metric:
    """What the flash wrote over what the block layer did, with what the counter's step leaves."""
    low, high = (media_bytes - step_bytes) / block_bytes, (media_bytes + step_bytes) / block_bytes
    return Metric(media_bytes / block_bytes, "", low, high)


def write_amplification_metrics(view: RunView, drives: Sequence[DriveWear]) -> dict[str, Metric]:
    """The write amplification of each layer, of all drives of all hosts together.

    A layer of which a host's or a drive's part is not known has none.
    """
    application, engine = (
        _sum_over_hosts_or_none(view, bytes_of)
        for bytes_of in (view.application_written_bytes, view.engine_written_bytes)
    )
    found: dict[str, Metric] = {}
    if application and engine:
        found[ENGINE_WRITE_AMPLIFICATION.key] = Metric(engine / application, RATIO_UNIT)
    block = sum(wear.block_bytes for wear in drives)
    if not application or not block or not _are_all_drives_known(view):
        return found
    source = engine or application  # an engine that has flushed nothing yet wrote its log alone
    found[BLOCK_WRITE_AMPLIFICATION.key] = Metric(block / source, RATIO_UNIT)
    # A counter that stood still while the block layer wrote tells nothing.
    counted = [each for wear in drives if (each := wear.host_bytes) is not None and each.value]
    if len(counted) == len(drives) and block >= STEPS_MIN * DATA_UNIT_BYTES * len(drives):
        found[HOST_WRITE_AMPLIFICATION.key] = _counter_sum_ratio(counted, block)
    media = [
        wear.media_bytes
        for wear in drives
        if wear.write_amplification is not None and wear.media_bytes is not None
    ]
    if len(media) == len(drives):
        found[MEDIA_WRITE_AMPLIFICATION.key] = _counter_sum_ratio(media, block)
        found[WRITE_AMPLIFICATION.key] = _counter_sum_ratio(media, application)
    return found


def _sum_over_hosts_or_none(
    view: RunView, host_index_to_bytes: Callable[[int], int | None]
) -> int | None:
    """Over all hosts; None where one of them does not tell."""
    each = [host_index_to_bytes(index) for index in range(len(view.hosts))]
    return None if None in each else sum(filter(None, each))


def _are_all_drives_known(view: RunView) -> bool:
    """Whether every host's target lies on drives that were read, none of them seen twice."""
    drives: list[tuple[str, str]] = []
    for host in view.hosts:
        facts, devices = view.facts_of_host(host), {pair.before.device for pair in host.drives}
        if facts is None or facts.target is None or not host.drives:
            return False
        if not devices.issuperset(names_of_devices_on_no_other(facts.target.devices, facts)):
            return False
        boot = facts.kernel.boot_id_or_host(host.host)
        drives += [(boot, device) for device in devices]
    return len(drives) == len(set(drives))


def _counter_sum_ratio(counter_metrics: Sequence[Metric], divisor_bytes: int) -> Metric:
    value, low, high = (
        sum(getattr(each, end) or 0.0 for each in counter_metrics) / divisor_bytes
        for end in ("value", "low", "high")
    )
    return Metric(value, RATIO_UNIT, low, high)


def media_counter_step_bytes(before: MediaBytesWritten, after: MediaBytesWritten) -> int:
    """What the counter counts in: as specified, else the largest step that both readings allow."""
    return before.step_bytes or math.gcd(before.written_bytes, after.written_bytes) or 1


def _counter_difference_metric(counter_difference: int, counter_step: int) -> Metric:
    """A difference of a counter that rounds up in steps, with what it leaves open."""
    return Metric(
        float(counter_difference),
        "bytes",
        float(max(counter_difference - counter_step, 0)),
        float(counter_difference + counter_step),
    )


def _drive_energy_metric(change: DriveCounterChange) -> Metric | None:
    before, after = change.smart_before, change.smart_after
    if before is None or after is None or before.energy_wh is None or after.energy_wh is None:
        return None
    grown = after.energy_wh - before.energy_wh
    return None if grown < 0 else Metric(float(grown), "Wh", float(max(grown - 1, 0)), grown + 1.0)


def _no_amplification_reason(
    view: RunView, change: DriveCounterChange, media_bytes: int, counter_step_bytes: int
) -> str:
    """Why no write amplification can be told, with what would do; "" where it can."""
    if change.has_stuck_counters:
        return "the drive's counters stood still"
    if foreign := change.foreign_written_bytes:
        return f"something else wrote {format_bytes(foreign)} on the drive"
    steady = view.steadiness_view.steadiness.status if view.steadiness_view else None
    short_by = max(
        STEPS_MIN * DATA_UNIT_BYTES / max(change.block_layer_written_bytes, 1),
        STEPS_MIN * counter_step_bytes / max(media_bytes, 1),
    )
    if short_by > 1:
        return _run_too_short_and_needed_length_text(view, change, short_by)
    if steady in (SteadinessStatus.TRANSIENT, SteadinessStatus.CYCLE):
        return "the rate was not steady"
    return ""


def _run_too_short_and_needed_length_text(
    view: RunView, change: DriveCounterChange, length_factor: float
) -> str:
    text = f"the run wrote only {format_bytes(change.block_layer_written_bytes)}"
    seconds = float(view.load.seconds.max()) if view.load.seconds.size else 0.0
    if not change.block_layer_written_bytes or not seconds:
        return text
    return f"{text}: a run of {format_duration_s(math.ceil(length_factor * seconds))} would do"
