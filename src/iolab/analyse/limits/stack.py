"""Block devices under a target, one upon the other: which of them the I/Os wait for.

A stacked device (loop, md, dm) is busy as long as any below it is, so the lowest busy one is named.
Where those below have time to spare, the device above them is what is slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from iolab.analyse.limits.use import Resource, Use, means
from iolab.analyse.view import RunView
from iolab.analyse.window import Window
from iolab.model.host import HostFacts, Role

ALWAYS_BUSY: Final = 0.95
"""Share of the time with an I/O in flight from which a device has none to spare: the kernel counts
busy time at its ticks, and gaps between I/Os of an idle moment cost a per cent or two."""

HELD: Final = 0.5
"""Of the I/Os in flight above it a lower device must hold this share to be what they wait for."""


def device_use(
    view: RunView,
    host: str,
    stack: Sequence[str],
    facts: HostFacts | None,
    window: Window,
    role: Role = Role.CLIENT,
) -> Iterator[Use]:
    """The device of a stack (nearest the file system first) that its I/Os wait for, if watched."""
    busy = means(view, host, "disk", "busy_share", window)
    queue = means(view, host, "disk", "queue_depth", window)
    reads = means(view, host, "disk", "read_iops", window)
    writes = means(view, host, "disk", "write_iops", window)
    uses = [
        Use(
            resource=Resource.DEVICE,
            host=host,
            role=role,
            name=name,
            share=busy[name],
            rate=reads.get(name, 0.0) + writes.get(name, 0.0),
            queue=queue.get(name),
        )
        for name in stack
        if name in busy
    ]
    if uses:
        yield _waited_for(uses, _leaf_count(stack, facts))


def _waited_for(uses: Sequence[Use], leaves: int) -> Use:
    """The lowest that is always busy and holds its part of the queue, else the busiest."""
    longest = max(one.queue or 0.0 for one in uses)
    full = [
        one
        for one in uses
        if (one.share or 0.0) >= ALWAYS_BUSY and (one.queue or 0.0) >= HELD * longest / leaves
    ]
    return full[-1] if full else max(uses, key=lambda one: one.rank)


def _leaf_count(stack: Sequence[str], facts: HostFacts | None) -> int:
    """How many devices of the stack stand on no other of it: a stripe's queue is shared by them."""
    parents = {disk.name: disk.parents for disk in facts.disks} if facts else {}
    members = set(stack)
    return max(sum(1 for name in stack if not members & set(parents.get(name, ()))), 1)
