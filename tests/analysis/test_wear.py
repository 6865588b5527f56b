"""What a run wrote on its drives, by their own counters."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest
from msgspec.structs import replace

from iolab.analysis.checks.drives import (
    check_drive_counters,
    check_drive_power_state,
    check_drive_throttled,
    check_foreign_drive_writer,
)
from iolab.analysis.drive_pages import (
    DATA_UNIT_BYTES,
    SMART,
    VENDOR_SMART,
    media_bytes,
    power_measurement,
    rated_endurance_bytes,
    smart_counters,
)
from iolab.analysis.steady import judge_steadiness
from iolab.analysis.wear import (
    drive_wear_of_run,
    media_counter_step_bytes,
    write_amplification,
    write_amplification_metrics,
)
from iolab.core.drive import DriveReading, DriveReadingPair, LogPage
from iolab.core.host import HostFacts
from iolab.core.metric import DrivePowerMeasurement, DriveWear, MediaCounter, Metric
from iolab.core.run import DeviceDelta, RunRecord
from iolab.core.stopping import SteadinessStatus
from iolab.core.workload import Direction
from tests.analysis.checks_on import INDICATIVE, VALID, ask
from tests.analysis.drives import (
    IDENTITY,
    STEPS,
    ocp_page,
    reading,
    recorded_reading,
    smart_page,
    written_on,
)
from tests.analysis.records import WRITES, facts_of, healthy, view_of

GB = 1_000_000_000


def on_drive(delta: DeviceDelta, readings: DriveReadingPair) -> RunRecord:
    return healthy(devices=(delta,), drives=(readings,))


def wear_of(delta: DeviceDelta, readings: DriveReadingPair) -> DriveWear:
    (wear,) = drive_wear_of_run(view_of(on_drive(delta, readings)))
    return wear


def recorded_wear(first: str, last: str) -> DriveWear:
    """Of QEMU's drive between two steps."""
    written = STEPS[last]["block_bytes"] - STEPS[first]["block_bytes"]
    delta = DeviceDelta("nvme0n1", 0, written, 0, 1)
    return wear_of(delta, DriveReadingPair(recorded_reading(first), recorded_reading(last)))


@pytest.mark.parametrize(
    ("last", "expected"), [("reclaim-unit-closed", 3.88), ("written-and-closed", 5.23)]
)
def test_the_amplification_of_the_emulated_drive_is_found(last: str, expected: float) -> None:
    """By its recorded pages; a run that wrote as little would be told to last longer."""
    before, after = media_bytes(recorded_reading("new")), media_bytes(recorded_reading(last))
    assert before is not None
    assert after is not None
    assert after.counter is MediaCounter.FDP
    written = STEPS[last]["block_bytes"] - STEPS["new"]["block_bytes"]
    grown = after.written_bytes - before.written_bytes
    found = write_amplification(written, grown, media_counter_step_bytes(before, after))
    assert found.low is not None
    assert found.high is not None
    assert found.low <= expected + 0.005
    assert found.high >= expected - 0.005
    assert found.value == pytest.approx(expected, abs=0.005)
    wear = recorded_wear("new", last)
    assert wear.is_emulated
    assert wear.media_bytes is not None
    assert wear.media_bytes.value == grown


def test_so_few_units_tell_no_amplification_but_how_long_a_run_would() -> None:
    wear = recorded_wear("new", "written")
    assert wear.write_amplification is None
    assert wear.reason.startswith("the run wrote only 16.5 MiB: a run of ")
    assert wear.host_bytes is not None
    assert wear.host_bytes.low is not None
    assert wear.host_bytes.low <= wear.block_bytes <= (wear.host_bytes.high or 0)


def test_pages_are_decoded_as_the_drive_meant_them() -> None:
    written = recorded_reading("written-and-closed")
    controller = smart_counters(written)
    assert controller is not None
    assert controller.units_written == 51
    media = media_bytes(written)
    assert media is not None
    assert (media.counter, media.written_bytes) == (MediaCounter.FDP, 134_217_728)
    pages = tuple(page for page in written.pages if page.page != 0x22)
    media = media_bytes(replace(written, pages=pages))
    assert media is not None
    assert (media.counter, media.written_bytes) == (MediaCounter.OCP, 25_681_920)


MEASURED: Final = (
    "00070100580000003c00000003000000008b79c89a0100000800fa000300000000000000000000007e040200"
    "91050200889e79c89a010000030000000000000005000000e803020028000000650402000f00000078050200"
)
ESTIMATED: Final = (
    "00080700400000000300000000000000008b79c89a0100000800fa0000000000000000000000000084030200"
    "89030200889e79c89a010000ff00000000000000"
)
"""Pages of TP4199 made up by hand from the structures of libnvme: no drive gave these."""


def measured(text: str) -> DrivePowerMeasurement | None:
    return power_measurement(reading(LogPage(page=0x25, hex=text)))


def test_a_drives_own_measurement_of_power_is_decoded() -> None:
    found = DrivePowerMeasurement(
        11.5, 14.25, 60, error_percent=3, is_estimated=False, is_contiguous=True
    )
    assert measured(MEASURED) == found
    # The agent reads its header alone.
    assert measured(MEASURED[:128]) == found
    assert measured(ESTIMATED) == replace(
        found, average_w=9.0, maximum_w=9.05, samples=3, error_percent=None, is_estimated=True,
        is_contiguous=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("at", "number", "size"),
    [
        (2, 0, 2),  # nobody has started one
        (4, 63, 4),  # a page that is shorter than its header
        (8, 0, 4),  # no sample yet
        (40, 0x0000_047E, 4),  # a power that is not reported
        (40, 0x0003_047E, 4),  # a scale that there is not
        (40, 0x0002_FFFF, 4),  # a mean above the maximum
    ],
)
def test_a_measurement_that_makes_no_sense_tells_nothing(at: int, number: int, size: int) -> None:
    page = bytearray.fromhex(MEASURED)
    page[at : at + size] = number.to_bytes(size, "little")
    assert measured(page.hex()) is None


@pytest.mark.parametrize("text", ["", "zz" * 64, MEASURED[:126], "ff" * 88, MEASURED[:-1]])
def test_a_broken_measurement_tells_nothing(text: str) -> None:
    assert measured(text) is None


def test_a_vendors_page_counts_in_units_of_32_mib() -> None:
    page = bytearray(512)
    page[12 * 3] = 0xF4
    page[12 * 3 + 5 : 12 * 3 + 11] = (1000).to_bytes(6, "little")
    media = media_bytes(reading(LogPage(page=VENDOR_SMART, hex=page.hex())))
    assert media is not None
    assert media.written_bytes == 1000 << 25
    assert media.step_bytes == 1 << 25


@pytest.mark.parametrize(
    "page",
    [
        ocp_page(5, guid=bytes(16)),
        LogPage(page=0xC0, status=0x4002),
        LogPage(page=0xC0, hex="00" * 511),
        LogPage(page=0xC0, hex="zz" * 512),
        LogPage(page=0xC0, hex=""),
        LogPage(page=VENDOR_SMART, hex="ff" * 512),
    ],
)
def test_a_page_that_is_none_tells_nothing(page: LogPage) -> None:
    assert media_bytes(reading(page)) is None
    assert rated_endurance_bytes(reading(page)) is None


@pytest.mark.parametrize("content", ["", "00" * 511, "zz" * 512, "ff" * 512])
def test_a_smart_page_that_is_none_tells_nothing(content: str) -> None:
    assert smart_counters(reading(LogPage(page=SMART, hex=content))) is None


def test_the_planted_amplification_lies_within_its_interval() -> None:
    wear = wear_of(*written_on(300 * GB, amplification=2.5))
    found = wear.write_amplification
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 2.5 <= found.high
    assert (found.high - found.low) / 2.5 < 0.01
    # The rating is at an amplification of 1: what the flash wrote counts, not what hosts did.
    assert wear.endurance_share == pytest.approx(2.5 * 300 / 14_000_000, rel=1e-3)
    assert wear.reason == ""


def test_a_drive_may_write_less_than_it_was_given() -> None:
    found = wear_of(*written_on(300 * GB, amplification=0.6)).write_amplification
    assert found is not None
    assert found.value == pytest.approx(0.6, rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"units": 0}, "stood still"),
        ({"cycles": 8}, "switched off"),
        ({"units": 900_000}, "something else wrote"),
    ],
)
def test_no_amplification_is_told_where_the_counters_are_not_the_runs(
    changes: dict[str, Any], reason: str
) -> None:
    wear = wear_of(*written_on(300 * GB, **changes))
    assert wear.write_amplification is None
    assert reason in wear.reason


def test_no_amplification_is_told_of_a_rate_that_was_not_steady() -> None:
    record = on_drive(*written_on(300 * GB))
    seen = judge_steadiness(record)
    assert seen is not None
    steadiness = replace(seen.steadiness, status=SteadinessStatus.TRANSIENT)
    view = replace(view_of(record), steadiness_view=replace(seen, steadiness=steadiness))
    (wear,) = drive_wear_of_run(view)
    assert wear.write_amplification is None
    assert wear.reason == "the rate was not steady"


def test_what_could_not_be_read_is_said() -> None:
    delta, readings = written_on(300 * GB)
    fault = "its log pages need CAP_SYS_ADMIN"
    denied: DriveReading = reading(fault=fault)
    assert wear_of(delta, replace(readings, before=denied)).reason == fault
    assert "not read again" in wear_of(delta, replace(readings, after=None)).reason
    plain = DriveReadingPair(
        reading(smart_page(5)), reading(smart_page(5 + 300 * GB // DATA_UNIT_BYTES))
    )
    assert "no counter of what its flash wrote" in wear_of(delta, plain).reason


def test_counters_of_two_drives_are_not_compared() -> None:
    delta, readings = written_on(300 * GB)
    assert readings.after is not None
    other = replace(IDENTITY, serial="S2")
    swapped = replace(readings, after=replace(readings.after, identity=other))
    wear = wear_of(delta, swapped)
    assert wear.write_amplification is None
    assert wear.reason == "it was the drive 'S1' before the run and 'S2' after it"
    answer = ask(check_drive_counters, on_drive(delta, swapped))
    assert "'S2'" in answer.message


def test_a_counter_that_leaps_to_its_end_can_be_stored() -> None:
    record = on_drive(*written_on(300 * GB, units=1 << 100))
    answer = ask(check_foreign_drive_writer, record)
    assert answer.level is INDICATIVE
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(answer.evidence))


@pytest.mark.parametrize(
    ("check", "changes"),
    [
        (check_drive_counters, {"units": 0}),
        (check_drive_counters, {"cycles": 8}),
        (check_foreign_drive_writer, {"units": 900_000}),
        (check_drive_throttled, {"throttled_s": 4}),
        (check_drive_power_state, {"power_state": 1}),
    ],
)
def test_each_check_finds_its_fault_and_lets_a_sound_drive_pass(
    check: Any, changes: dict[str, Any]
) -> None:
    assert ask(check, on_drive(*written_on(300 * GB))).level is VALID
    assert ask(check, on_drive(*written_on(300 * GB, **changes))).level is INDICATIVE
    assert ask(check, healthy()).level is None


def test_the_journal_of_the_runs_own_file_system_is_no_foreign_writer() -> None:
    units = -(-300 * GB // DATA_UNIT_BYTES) + 100
    record = on_drive(*written_on(300 * GB, units=units))
    assert ask(check_foreign_drive_writer, record).level is VALID


def test_energy_is_told_where_the_drive_counts_it() -> None:
    delta, _ = written_on(300 * GB)
    units = 300 * GB // DATA_UNIT_BYTES
    before = reading(smart_page(5, energy_wh=100))
    after = reading(smart_page(5 + units, energy_wh=103))
    energy = wear_of(delta, DriveReadingPair(before, after)).energy_wh
    assert energy is not None
    assert (energy.value, energy.low, energy.high) == (3, 2, 4)


def amplification_metrics_of(
    record: RunRecord, facts: dict[str, HostFacts] | None = None
) -> dict[str, Metric]:
    view = view_of(record, facts)
    return write_amplification_metrics(view, drive_wear_of_run(view))


def written_run(*, journal: float = 1.25, amplification: float = 2.5, **changes: Any) -> RunRecord:
    """A run whose file system writes so much more than its load, and whose flash more than that."""
    claimed = view_of(healthy(WRITES)).claimed_run_bytes(0, Direction.WRITE)
    written = round(claimed * journal)
    delta, readings = written_on(written, amplification=amplification, **changes)
    return healthy(WRITES, devices=(delta,), drives=(readings,))


def test_each_layer_has_its_amplification_and_all_together_are_their_product() -> None:
    found = amplification_metrics_of(written_run())
    assert list(found) == [
        "block_write_amplification",
        "host_write_amplification",
        "media_write_amplification",
        "write_amplification",
    ]
    values = {key: metric.value or 0.0 for key, metric in found.items()}
    assert values["block_write_amplification"] == pytest.approx(1.25, rel=1e-6)
    host, media = found["host_write_amplification"], found["media_write_amplification"]
    assert (host.low or 0) <= 1 <= (host.high or 0)
    assert (media.low or 0) <= 2.5 <= (media.high or 0)
    product = values["block_write_amplification"] * values["media_write_amplification"]
    assert values["write_amplification"] == pytest.approx(product)


def test_a_foreign_writer_shows_in_the_hosts_step_and_the_flashs_is_not_told() -> None:
    found = amplification_metrics_of(written_run(units=900_000))
    assert (found["host_write_amplification"].low or 0) > 1.02
    assert "media_write_amplification" not in found
    assert "write_amplification" not in found


def test_a_drive_that_counted_nothing_has_no_step_of_its_own() -> None:
    assert list(amplification_metrics_of(written_run(units=0))) == ["block_write_amplification"]


def test_a_drive_that_is_not_read_or_seen_twice_leaves_amplification_open() -> None:
    record = written_run()
    mirrored = facts_of("c1", devices=("nvme0n1", "sda"))
    assert amplification_metrics_of(record, {"c1": mirrored}) == {}
    # Two clients in one kernel count the same drive.
    twice = replace(record, hosts=(record.hosts[0], replace(record.hosts[0], host="c2")))
    same_kernel = {"c1": facts_of("c1"), "c2": facts_of("c1")}
    assert amplification_metrics_of(twice, same_kernel) == {}
    assert "write_amplification" in amplification_metrics_of(twice)


def test_two_namespaces_of_one_drive_are_counted_once_and_are_no_foreign_writer() -> None:
    delta, readings = written_on(300 * GB, units=2 * 300 * GB // DATA_UNIT_BYTES)
    assert readings.after is not None
    second = DriveReadingPair(
        *(
            replace(each, device="nvme0n2", namespace=2)
            for each in (readings.before, readings.after)
        )
    )
    deltas = (delta, replace(delta, device="nvme0n2"))
    record = healthy(devices=deltas, drives=(readings, second))
    assert ask(check_foreign_drive_writer, record).level is VALID
    wears = drive_wear_of_run(view_of(record))
    assert [wear.host_bytes for wear in wears] == [None, None]
    assert "counts nvme0n2 with it" in wears[0].reason
    # Another drive of the same model is another.
    assert second.after is not None
    other = replace(IDENTITY, serial="S2")
    apart = DriveReadingPair(
        *(replace(each, identity=other) for each in (second.before, second.after))
    )
    record = healthy(devices=deltas, drives=(readings, apart))
    assert ask(check_foreign_drive_writer, record).level is INDICATIVE


def test_a_load_that_writes_nothing_has_no_amplification() -> None:
    delta, readings = written_on(300 * GB)
    assert amplification_metrics_of(healthy(devices=(delta,), drives=(readings,))) == {}
