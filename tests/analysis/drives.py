"""Readings of drives for tests: pages of an emulated drive as they were read, and pages made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from iolab.analysis.drive_pages import DATA_UNIT_BYTES, OCP_GUID, OCP_SMART, SMART
from iolab.core.drive import DriveIdentity, DriveReading, DriveReadingPair, LogPage
from iolab.core.run import DeviceDelta

DEVICE: Final = "nvme0n1"
STEPS: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "drive_pages.json").read_text(encoding="utf-8")
)["steps"]
"""What QEMU's drive gave as it was written on; `block_bytes` is what its guest's kernel counted."""

IDENTITY: Final = DriveIdentity(
    vendor=0x144D, serial="S1", model="EXAMPLE 7680", firmware="1", power_states_mw=(25_000, 9_000)
)
QEMU: Final = DriveIdentity(
    vendor=0x1B36, serial="IOLAB001", model="QEMU NVMe Ctrl", firmware="10.0.2"
)


def recorded_reading(step: str) -> DriveReading:
    """QEMU's drive at one of the steps."""
    pages = tuple(LogPage(**page) for page in STEPS[step]["pages"])
    return DriveReading(device=DEVICE, namespace=1, identity=QEMU, power_state=0, pages=pages)


def smart_page(
    written: int = 0, *, cycles: int = 7, throttled_s: int = 0, energy_wh: int = 0
) -> LogPage:
    """SMART's page of a controller that counted so many data units as written."""
    page = bytearray(512)
    page[32:48] = (1000).to_bytes(16, "little")
    page[48:64] = written.to_bytes(16, "little")
    page[112:128] = cycles.to_bytes(16, "little")
    page[228:232] = throttled_s.to_bytes(4, "little")
    page[232:240] = energy_wh.to_bytes(8, "little")
    return LogPage(page=SMART, hex=page.hex())


def ocp_page(
    media_bytes: int, *, guid: bytes = OCP_GUID, rated_endurance_bytes: int = 0
) -> LogPage:
    """The OCP's page of a drive whose flash wrote so many bytes."""
    page = bytearray(512)
    page[0:16] = media_bytes.to_bytes(16, "little")
    page[176:192] = rated_endurance_bytes.to_bytes(16, "little")
    page[496:512] = guid
    return LogPage(page=OCP_SMART, hex=page.hex())


def reading(*pages: LogPage, power_state: int = 0, fault: str | None = None) -> DriveReading:
    """The example drive with these pages."""
    return DriveReading(
        device=DEVICE,
        namespace=1,
        identity=IDENTITY,
        power_state=power_state,
        pages=pages,
        fault=fault,
    )


def written_on(
    block_bytes: int,
    *,
    amplification: float = 2.5,
    units: int | None = None,
    throttled_s: int = 0,
    cycles: int = 7,
    power_state: int = 0,
) -> tuple[DeviceDelta, DriveReadingPair]:
    """A run that wrote so much on the example drive, whose counters are else in order."""
    rounded_up = -(-block_bytes // DATA_UNIT_BYTES)
    step, start = 1 << 20, 10_000_000
    media = round(block_bytes * amplification / step) * step
    before = reading(smart_page(start), ocp_page(3 << 40, rated_endurance_bytes=14_000 * 10**12))
    after = reading(
        smart_page(
            start + (rounded_up if units is None else units), cycles=cycles, throttled_s=throttled_s
        ),
        ocp_page((3 << 40) + media, rated_endurance_bytes=14_000 * 10**12),
        power_state=power_state,
    )
    delta = DeviceDelta(DEVICE, 0, block_bytes, 0, block_bytes // 4096)
    return delta, DriveReadingPair(before, after)
