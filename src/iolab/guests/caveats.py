"""What is to be known of guests before their figures: emulated, modelled disks, limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from iolab.core.host import HostFacts, is_emulator
from iolab.core.metric import Level, Result
from iolab.guests.guest import (
    Accelerator,
    DiskKind,
    GuestFleet,
    GuestRun,
    GuestSettings,
)
from iolab.report.numbers import show_value
from iolab.units import format_count

EMULATED: Final = (
    "The guests were emulated, without KVM: these figures measure the emulator as much as the "
    "storage."
)


EMULATED_CHECK: Final = "emulated-guest"
"""The check that tells of emulated processors."""

Facts = Mapping[str, HostFacts]
"""What hosts told of themselves: of guests that the session did not boot, all that is known."""


def caveats(fleets: Iterable[GuestFleet], facts: Facts) -> tuple[str, ...]:
    """A sentence for each: emulated guests, modelled disks, limited disks; none where all is real.

    Settings are those of the session, so the first fleet that has any tells them.
    """
    found = list(fleets)
    return tuple(
        text for text in (_emulated(found, facts), *_of_settings(_settings(found))) if text
    )


def caveats_of(settings: GuestSettings | None, results: Iterable[Result]) -> tuple[str, ...]:
    """The same by a study's settings of its guests and by what the checks of its runs found."""
    emulated = any(
        check.code == EMULATED_CHECK and check.level is not Level.VALID
        for result in results
        for check in result.verdict.checks
    )
    return (*((EMULATED,) if emulated else ()), *_of_settings(settings))


def is_emulated(fleets: Iterable[GuestFleet], facts: Facts) -> bool:
    """Whether any guest's processors were emulated, as its node or the guest itself tells."""
    return any(_runs_emulated(guest, facts) for fleet in fleets for guest in fleet.guests)


def _runs_emulated(guest: GuestRun, facts: Facts) -> bool:
    seen = facts.get(guest.guest)
    itself = seen is not None and is_emulator(seen.kernel.hypervisor)
    return guest.accelerator is Accelerator.TCG or itself


def subtitle(fleets: Iterable[GuestFleet], facts: Facts) -> str:
    """The same in a few words, to stand before what a chart shows; empty where all is real."""
    found = list(fleets)
    settings = _settings(found)
    parts = ["guests emulated"] if is_emulated(found, facts) else []
    if settings is not None:
        if settings.disk is DiskKind.MODELLED:
            parts.append(f"disks modelled{_latency(settings, ' at ')}")
        if settings.iops_limit is not None:
            parts.append(f"each disk limited to {format_count(settings.iops_limit)} IOPS")
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}. " if text else ""


def _emulated(fleets: list[GuestFleet], facts: Facts) -> str:
    return EMULATED if is_emulated(fleets, facts) else ""


def _of_settings(settings: GuestSettings | None) -> Iterable[str]:
    if settings is None:
        return
    if settings.disk is DiskKind.MODELLED:
        yield (
            f"The guests’ disks were modelled{_latency(settings, ': every I/O takes ')}, and no "
            "storage is behind them."
        )
    if settings.iops_limit is not None:
        limit = format_count(settings.iops_limit)
        yield f"Each guest’s disk was limited to {limit} IOPS by its hypervisor."


def _latency(settings: GuestSettings, before: str) -> str:
    latency = settings.latency_ns
    return "" if latency is None else f"{before}{show_value(latency, 'ns')}"


def _settings(fleets: list[GuestFleet]) -> GuestSettings | None:
    return next((fleet.settings for fleet in fleets if fleet.settings is not None), None)
