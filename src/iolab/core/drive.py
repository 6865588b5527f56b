"""What NVMe drives counted around a run: their log pages as they were read."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from iolab.core import limits
from iolab.record import Record

_Word = Annotated[str, Meta(max_length=limits.WORD_CHARACTERS_MAX)]
_Number = Annotated[int, Meta(ge=0, le=limits.NUMBER_MAX)]


class LogPage(Record, kw_only=True):
    """One log page as the drive gave it.

    `hex` is its content, None where the drive refused it with an NVMe `status`: then it does not
    offer the page. `namespace` is None for a page of the whole controller;
    sessions of earlier versions have such a page of one namespace, too.
    """

    page: Annotated[int, Meta(ge=0, le=255)]
    namespace: _Number | None = None
    took_ns: _Number = 0
    status: _Number | None = None
    hex: Annotated[str, Meta(max_length=limits.LOG_PAGE_CHARACTERS_MAX)] | None = None


class DriveIdentity(Record, kw_only=True):
    """What a controller says of itself (Identify Controller, NVMe base specification).

    `attributes` are the bits of CTRATT; `power_states_mw` the most power of each of its states.
    """

    vendor: _Number
    serial: _Word
    model: _Word
    firmware: _Word
    attributes: _Number = 0
    power_states_mw: Annotated[tuple[_Number, ...], Meta(max_length=32)] = ()


class DriveReading(Record, kw_only=True):
    """One drive's pages at one moment; `fault` says why some or all could not be read."""

    device: _Word
    namespace: _Number | None = None
    identity: DriveIdentity | None = None
    power_state: _Number | None = None
    pages: Annotated[tuple[LogPage, ...], Meta(max_length=limits.LOG_PAGES_MAX)] = ()
    fault: _Word | None = None


class DriveReadingPair(Record):
    """The same drive just before the load of a run and after its end.

    `after` is None where it could not be read again.
    """

    before: DriveReading
    after: DriveReading | None
