"""Log pages of NVMe drives, decoded.

Offsets and units are those of the NVMe base specification 2.0 (SMART, endurance group), 2.1 (FDP)
and 2.3 (SMART's energy in watt-hours, power measurement), of the OCP Datacenter NVMe SSD
specification (page 0xC0) and of Intel's page 0xCA. All numbers are little endian. A page that is
shorter than it must be, or that is not hexadecimal, is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from iolab.core.drive import DriveReading, LogPage
from iolab.core.limits import NUMBER_MAX
from iolab.core.metric import DrivePowerMeasurement, MediaCounter
from iolab.record import Record

DATA_UNIT_BYTES: Final = 512_000
"""Of SMART's data units: a thousand blocks of 512 bytes, rounded up."""

SMART: Final = 0x02
ENDURANCE_GROUP: Final = 0x09
FDP_STATISTICS: Final = 0x22
POWER_MEASUREMENT: Final = 0x25
OCP_SMART: Final = 0xC0
VENDOR_SMART: Final = 0xCA

OCP_GUID: Final = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")
"""The last 16 bytes of the OCP's page 0xC0; other vendors have pages of their own there."""

NAND_WRITTEN_KEY: Final = 0xF4
VENDOR_UNIT_BYTES: Final = 32 << 20
"""What Intel's page counts in."""

VENDOR_ITEM_BYTES: Final = 12

MEASUREMENT_BYTES: Final = 64
"""Of the power measurement's header."""

IS_MEASURING, IS_INTERRUPTED, IS_ESTIMATED = 1, 2, 4
"""Bits of its attributes."""

WATT_SCALES: Final = {1: 1e-4, 2: 1e-2}
"""Watts of one, by the scale of a value of power; 0 is for values that are not reported."""

ERROR_NOT_REPORTED: Final = 255

ENDURANCE_UNIT_BYTES: Final = 1_000_000_000
"""What an endurance group counts in, rounded up."""


class SmartCounters(Record):
    """SMART's page: data units in 512,000 bytes; `energy_wh` is None where it is not reported."""

    units_read: int
    units_written: int
    power_cycles: int
    unsafe_shutdowns: int
    throttled_s: int
    energy_wh: int | None


class MediaBytesWritten(Record):
    """What the flash wrote in all its life, in bytes.

    `step_bytes` is what the counter counts in, None where no specification says so.
    """

    counter: MediaCounter
    written_bytes: int
    step_bytes: int | None


def smart_counters(reading: DriveReading) -> SmartCounters | None:
    """SMART's page of the controller; None where the drive has none."""
    page = _page_bytes(reading.pages, SMART, 512)
    if page is None:
        return None
    return SmartCounters(
        units_read=_page_integer(page, 32, 16),
        units_written=_page_integer(page, 48, 16),
        power_cycles=_page_integer(page, 112, 16),
        unsafe_shutdowns=_page_integer(page, 144, 16),
        throttled_s=_page_integer(page, 224, 4) + _page_integer(page, 228, 4),
        energy_wh=_page_integer(page, 232, 8) or None,
    )


def power_measurement(reading: DriveReading) -> DrivePowerMeasurement | None:
    """The drive's own measurement of its power (TP4199); None where none is active and valid."""
    page = _page_bytes(reading.pages, POWER_MEASUREMENT, MEASUREMENT_BYTES)
    if page is None:
        return None
    attributes, size = _page_integer(page, 2, 2), _page_integer(page, 4, 4)
    samples, error = _page_integer(page, 8, 4), page[56]
    average_w, maximum_w = (_decode_watts(_page_integer(page, at, 4)) for at in (40, 44))
    if size < MEASUREMENT_BYTES or not (attributes & IS_MEASURING and samples):
        return None
    if average_w is None or maximum_w is None or average_w > maximum_w:
        return None
    return DrivePowerMeasurement(
        average_w,
        maximum_w,
        samples,
        None if error == ERROR_NOT_REPORTED else error,
        is_estimated=bool(attributes & IS_ESTIMATED),
        is_contiguous=not attributes & IS_INTERRUPTED,
    )


def _decode_watts(number: int) -> float | None:
    """A value of power: 16 bits, and a scale of two bits above them."""
    scale = WATT_SCALES.get(number >> 16)
    return None if scale is None else (number & 0xFFFF) * scale


def media_bytes(reading: DriveReading) -> MediaBytesWritten | None:
    """What the flash wrote, by the best counter that the drive has; None without one.

    FDP's statistics count bytes on both sides; then the OCP's page, the vendor's, the group's.
    """
    if page := _page_bytes(reading.pages, FDP_STATISTICS, 64):
        return MediaBytesWritten(MediaCounter.FDP, _page_integer(page, 16, 16), 1)
    if (page := _ocp_page_bytes(reading)) is not None:
        return MediaBytesWritten(MediaCounter.OCP, _page_integer(page, 0, 16), None)
    if page := _page_bytes(reading.pages, VENDOR_SMART, 512):
        units = _intel_smart_item_value(page, NAND_WRITTEN_KEY)
        if units is not None:
            written = units * VENDOR_UNIT_BYTES
            return MediaBytesWritten(MediaCounter.VENDOR, written, VENDOR_UNIT_BYTES)
    if page := _page_bytes(reading.pages, ENDURANCE_GROUP, 512):
        units = _page_integer(page, 80, 16)
        if units:
            written = units * ENDURANCE_UNIT_BYTES
            return MediaBytesWritten(MediaCounter.ENDURANCE_GROUP, written, ENDURANCE_UNIT_BYTES)
    return None


def rated_endurance_bytes(reading: DriveReading) -> int | None:
    """How much flash the drive is rated to write in its life; None where it does not say so.

    NVMe and the OCP rate what hosts may write at a write amplification of 1.
    """
    if (page := _ocp_page_bytes(reading)) is not None and (rated := _page_integer(page, 176, 16)):
        return rated
    if page := _page_bytes(reading.pages, ENDURANCE_GROUP, 512):
        return _page_integer(page, 32, 16) * ENDURANCE_UNIT_BYTES or None
    return None


def _ocp_page_bytes(reading: DriveReading) -> bytes | None:
    page = _page_bytes(reading.pages, OCP_SMART, 512)
    return page if page is not None and page[496:512] == OCP_GUID else None


def _intel_smart_item_value(page: bytes, key: int) -> int | None:
    """The raw number of an item of Intel's page: key, 2 bytes, normalised, 1 byte, 6 bytes raw."""
    for start in range(0, len(page) - VENDOR_ITEM_BYTES + 1, VENDOR_ITEM_BYTES):
        if page[start] == key:
            return _page_integer(page, start + 5, 6)
    return None


def _page_bytes(pages: Iterable[LogPage], page_number: int, length: int) -> bytes | None:
    for page in pages:
        if page.page == page_number and page.namespace is None and page.hex is not None:
            try:
                content = bytes.fromhex(page.hex)
            except ValueError:
                return None
            is_empty = content.count(0xFF) == len(content)
            return content if len(content) >= length and not is_empty else None
    return None


def _page_integer(page: bytes, start: int, byte_count: int) -> int:
    """A number of the page, at most one that can be stored."""
    return min(int.from_bytes(page[start : start + byte_count], "little"), NUMBER_MAX)
