"""What a guest's QEMU used of its node's processors, out of two answers of the node's agent."""

from __future__ import annotations

from typing import Final

from iolab.errors import HostError
from iolab.model.guest import GuestUse
from iolab.run.hosts.answers import UseAnswer
from iolab.run.hosts.text import printable

NS_PER_S: Final = 1e9


def guest_use(guest: str, before: UseAnswer, after: UseAnswer) -> GuestUse | None:
    """The use between two looks; None where the node's kernel does not count it.

    HostError when it fell, as it does when the guest was started anew or lost a processor.
    """
    differences = [late - early for early, late in _pairs(before, after) if early is not None]
    if len(differences) < len(_times(after)):
        return None
    if min(differences) < 0:
        happened = f"Guest '{printable(guest)}' had used less time than at the look before."
        raise HostError(happened, "See the last words of the guest's console, and run again.")
    wall, run, wait, user, system = (time / NS_PER_S for time in differences)
    return GuestUse(wall_s=wall, vcpu_run_s=run, vcpu_wait_s=wait, cpu_s=user + system)


def _times(used: UseAnswer) -> tuple[int | None, ...]:
    return (used.real_ns, used.vcpu_run_ns, used.vcpu_wait_ns, used.user_ns, used.system_ns)


def _pairs(before: UseAnswer, after: UseAnswer) -> list[tuple[int | None, int]]:
    """Each time at both looks, where the later one knows it."""
    both = zip(_times(before), _times(after), strict=True)
    return [(early, late) for early, late in both if late is not None]
