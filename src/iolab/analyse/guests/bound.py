"""Guests whose own processors, and not the storage, set their numbers.

Two things tell. The loop of a generator that has no processor left runs empty: by Little's law
fewer I/Os are in flight than were asked for. Or they pile up inside the guest: its generator sees a
latency of which its hypervisor knows nothing, while its processors are in use all the time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from iolab.analyse.guests.layers import guest_latency
from iolab.analyse.guests.placement import Guest, guests_in, vcpus_of
from iolab.analyse.littles_law import concurrency, is_closed_loop
from iolab.analyse.view import RunView
from iolab.model.guest import Accelerator
from iolab.model.metric import Layer, Level
from iolab.model.workload import Job
from iolab.run.telemetry.decode import GUESTS
from iolab.run.telemetry.rates import ALL_CORES

RHO_LEAST: Final = 0.8
"""Of the I/Os asked for, in flight: a guest with processors to spare keeps 0.85 and more on
modelled disks, one without 0.04 to 0.22."""

LATENCY_TIMES: Final = 2.0
"""The generator's mean latency over the hypervisor's: from here on more than half of it was spent
inside the guest."""

LATENCY_FLOOR_NS: Final = 50_000
"""Least difference of the two that is told: entering and leaving a guest takes tens of us by
itself, which is more than a fast device."""

IOS_LEAST: Final = 50
"""Of fewer I/Os a mean latency at either place is chance."""

PROCESSORS_USED: Final = 0.9
"""Share of the time that a guest's processors ran or waited for one of their node's from which it
has none left."""


@dataclass(frozen=True, slots=True)
class Use:
    """What each of a guest's processors had of the node's, as shares of the time."""

    run: float
    wait: float


@dataclass(frozen=True, slots=True)
class Bound:
    """How far a guest was its own limit, and what tells; None for what is not known.

    `rho` is the share of the I/Os asked for that were in flight, of a closed loop; `edge` what the
    window's edges may hide of it. `busy` is the share of the time that a guest on KVM says its
    processors worked.
    """

    level: Level
    rho: float | None
    edge: float
    engine_ns: float | None
    hypervisor_ns: float | None
    use: Use | None
    busy: float | None = None

    @property
    def runs_empty(self) -> bool:
        """Whether the loop was not kept full."""
        return self.rho is not None and self.rho + self.edge < RHO_LEAST

    @property
    def waits_inside(self) -> bool:
        """Whether most of the latency was spent above the hypervisor's own count."""
        if self.engine_ns is None or self.hypervisor_ns is None:
            return False
        apart = self.engine_ns - self.hypervisor_ns
        return apart > LATENCY_FLOOR_NS and self.engine_ns > LATENCY_TIMES * self.hypervisor_ns


def bound_of(view: RunView, guest: Guest) -> Bound:
    """What is known of one guest; its job is I/O on files."""
    job = view.record.run.point.io_on(guest.name)
    flight = concurrency(view.load, guest.host, job.depth_total) if is_closed_loop(job) else None
    known = int(view.load.ios[guest.host].sum()) >= IOS_LEAST
    kvm = guest.run.accelerator is Accelerator.KVM
    found = Bound(
        level=Level.VALID,
        rho=flight.rho if flight else None,
        edge=flight.edge if flight else 0.0,
        engine_ns=guest_latency(view, guest, Layer.ENGINE) if known else None,
        hypervisor_ns=guest_latency(view, guest, Layer.HYPERVISOR) if known else None,
        use=use_of(view, guest),
        busy=view.mean_of(guest.host, "cpu", ALL_CORES, "busy_share") if kvm else None,
    )
    return replace(found, level=_level(found))


def limited_guests(view: RunView) -> frozenset[str]:
    """The guests of which guest-bound says that they were their own limit.

    Other checks that would say it of them again leave it at that.
    """
    if not isinstance(view.record.run.point.job, Job):
        return frozenset()
    guests = guests_in(view.record)
    return frozenset(one.name for one in guests if bound_of(view, one).level is Level.INVALID)


def counted_guests(view: RunView) -> frozenset[str]:
    """The guests whose processors' use their node counts: guest-starved speaks of those."""
    return frozenset(one.name for one in guests_in(view.record) if use_of(view, one) is not None)


def use_of(view: RunView, guest: Guest) -> Use | None:
    """What its processors had in the measured window, else in the whole run; None if unknown."""
    vcpus = vcpus_of(view, guest)
    if not vcpus:
        return None
    window, node = view.measured(guest.host), guest.run.node
    run = view.mean_on(node, GUESTS, guest.name, "vcpu_run_share", window)
    wait = view.mean_on(node, GUESTS, guest.name, "vcpu_wait_share", window)
    if run is not None and wait is not None:
        return Use(run / vcpus, wait / vcpus)
    told = guest.run.use
    if told is None or told.wall_s <= 0:
        return None
    whole_s = told.wall_s * vcpus
    return Use(told.vcpu_run_s / whole_s, told.vcpu_wait_s / whole_s)


def _level(found: Bound) -> Level:
    if found.runs_empty:
        return Level.INVALID
    if not found.waits_inside:
        return Level.VALID
    return Level.INVALID if _has_none_left(found) else Level.INDICATIVE


def _has_none_left(found: Bound) -> bool:
    """Whether the guest's processors were in use, as its node and the guest itself count it.

    KVM polls for a while before a halted processor sleeps, and its node counts that as run: a guest
    that waits for fast devices would seem busy all the time.
    """
    if found.use is None or found.use.run + found.use.wait < PROCESSORS_USED:
        return False
    return found.busy is None or found.busy + found.use.wait >= PROCESSORS_USED
