"""The check of bytes on their way down: from guests through their hypervisor to the devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.analyse.checks.registry import (
    Numbers,
    Said,
    check,
    indicative,
    invalid,
    percent,
    unchecked,
    valid,
    worst,
)
from iolab.analyse.checks.storage import is_accounted
from iolab.analyse.guests.byte_account import FleetBytes, GuestBytes, guest_bytes_of
from iolab.analyse.guests.placement import is_modelled
from iolab.analyse.view import RunView
from iolab.units import format_bytes

MISSING_GOOD: Final = 0.99
"""Share of the bytes from above that each layer must have moved: all of them count a byte when it
is done, and are looked at before the first and after the last, so nothing of an honest run is
missing; a hundredth covers what was on its way."""

MISSING_BAD: Final = 0.95
"""With less than this of what guests read or wrote at the devices, more than one byte in twenty
was answered by somebody else: the page cache of a node, or holes in an image."""

EXCESS_SHARE: Final = 0.05
"""Bytes beyond those from above, that journals and metadata of the nodes' file systems add."""

SLACK_BYTES: Final = 1 << 20
"""Of each guest, or device: what a kernel reads and writes of a disk by itself at the edges of a
run, tables of partitions and superblocks."""

BACKGROUND_BYTES_PER_S: Final = 1 << 20
"""What an idle system writes and reads by itself on each device (logs, journals)."""

_WAYS: Final = (("read", 0), ("written", 1))


@check("guest-bytes", "Bytes of guests and of their nodes")
def guest_bytes(view: RunView) -> Said:
    """Whether what guests moved is what their hypervisor served and their nodes' devices moved."""
    account = guest_bytes_of(view)
    if account is None:
        return valid("No guest of a known node made load.")
    evidence = _evidence(account)
    answers = [said for one in account.guests for said in _served(one, evidence)]
    return worst([*answers, *_moved(view, account, evidence)])


def _served(guest: GuestBytes, evidence: Numbers) -> Iterator[Said]:
    """One guest's own block device against what its hypervisor counted."""
    if guest.served is None:
        return
    numbers = {
        **evidence,
        "guest": guest.name,
        "guest_asked_bytes": sum(guest.asked),
        "guest_served_bytes": sum(guest.served),
    }
    for way, place in _WAYS:
        asked, served = guest.asked[place], guest.served[place]
        said = (
            f"The hypervisor of {guest.name} counted {format_bytes(served)} {way} where the guest "
            f"counted {format_bytes(asked)}"
        )
        if served < MISSING_GOOD * asked - SLACK_BYTES:
            yield invalid(f"{said}: the counts or the disk are others.", **numbers)
        elif served > (1 + EXCESS_SHARE) * asked + SLACK_BYTES:
            yield indicative(f"{said}: more than the load passed.", **numbers)


def _moved(view: RunView, account: FleetBytes, evidence: Numbers) -> Iterator[Said]:
    """What left all guests against what the devices of all nodes moved."""
    below = format_bytes(sum(account.below))
    if is_modelled(view.record):
        yield valid(f"The {below} of the guests went to modelled disks.", **evidence)
    elif is_accounted(view):
        yield valid(
            f"The {below} of the guests are held against the storage nodes' disks.", **evidence
        )
    elif account.expected is None:
        yield valid(
            f"The guests moved {below}; no redundancy is declared, so that nothing is held against "
            "it.",
            **evidence,
        )
    elif account.moved is None:
        yield unchecked(f"the devices of {account.blind} were not counted", **evidence)
    else:
        yield from _against(view, account, account.expected, account.moved, evidence)


def _against(
    view: RunView,
    account: FleetBytes,
    expected: tuple[float, float],
    moved: tuple[int, int],
    evidence: Numbers,
) -> Iterator[Said]:
    spans = [span.seconds for span in view.load.cut.hosts if span is not None]
    slack = account.devices * (SLACK_BYTES + BACKGROUND_BYTES_PER_S * max(spans, default=0.0))
    for way, place in _WAYS:
        wanted, found = expected[place], moved[place]
        said = (
            f"The nodes' devices have {format_bytes(found)} {way} where {format_bytes(wanted)} "
            "were expected for the guests"
        )
        if wanted and found < MISSING_GOOD * wanted:
            share = found / wanted
            verdict = invalid if share < MISSING_BAD else indicative
            yield verdict(f"{said}: {percent(1 - share)} never reached them.", **evidence)
        elif found > (1 + EXCESS_SHARE) * wanted + slack:
            yield indicative(f"{said}: amplification, or others' work.", **evidence)
    yield valid(
        f"The nodes' devices moved {format_bytes(sum(moved))} where {format_bytes(sum(expected))} "
        f"were expected for the {format_bytes(sum(account.below))} of the guests.",
        **evidence,
    )


def _evidence(account: FleetBytes) -> Numbers:
    served = [one.served for one in account.guests if one.served is not None]
    asked = [one.asked for one in account.guests]
    expected, moved = account.expected, account.moved
    return {
        "guests": len(account.guests),
        "asked_read_bytes": sum(read for read, _ in asked),
        "asked_write_bytes": sum(written for _, written in asked),
        "served_read_bytes": sum(read for read, _ in served) if served else None,
        "served_write_bytes": sum(written for _, written in served) if served else None,
        "expected_read_bytes": expected[0] if expected else None,
        "expected_write_bytes": expected[1] if expected else None,
        "devices_read_bytes": moved[0] if moved else None,
        "devices_write_bytes": moved[1] if moved else None,
        "devices": account.devices,
    }
