"""Databases that are copied whole before each run, since their file system shares no blocks.

Which file systems do is known only when the hosts were asked, so a plan is made without, and what
the copies take is added to it here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from iolab.model.run import Plan, PlannedRun
from iolab.model.study import Study
from iolab.model.ycsb import ServerKind
from iolab.plan.key_value_budget import on_clients
from iolab.plan.key_value_cost import KeyJob, store_bytes
from iolab.plan.wording import shown
from iolab.units import format_bytes, format_duration_s, format_rate_bytes

Reflinks = Mapping[tuple[str, str], bool]
"""Whether files may share blocks, by configuration and host, where that is known."""


def copy_notes(
    study: Study, runs: Iterable[PlannedRun], reflinks: Reflinks, rate: float
) -> Iterator[str]:
    """What is told of hosts whose file systems have no reflinks; `rate` is in bytes/s."""
    copies = list(_copies(study, runs, reflinks))
    if copies:
        largest = max(copies, key=lambda copy: copy.size_bytes)
        yield (
            f"each run copies its database whole on {shown(largest.hosts[0])}, whose file system "
            f"has no reflinks: {format_duration_s(largest.size_bytes / rate)} each at "
            f"{format_rate_bytes(rate)}"
        )


def with_copies(study: Study, plan: Plan, reflinks: Reflinks, rate: float) -> Plan:
    """The plan with the seconds and the bytes of whole copies in its cost."""
    copies = list(_copies(study, plan.runs, reflinks))
    if not copies:
        return plan
    budget = plan.budget
    # The hosts of a run copy at the same time.
    seconds = sum(copy.size_bytes for copy in copies) / rate
    written = sum(copy.size_bytes * len(copy.hosts) for copy in copies)
    largest = format_bytes(max(copy.size_bytes for copy in copies))
    whole = "1 whole copy" if len(copies) == 1 else f"{len(copies)} whole copies"
    says = f"{whole} of up to {largest} without reflinks at {format_rate_bytes(rate)} (assumed)"
    least = None if budget.least_seconds is None else budget.least_seconds + seconds
    return replace(
        plan,
        budget=replace(
            budget,
            seconds=budget.seconds + seconds,
            reasons=(*budget.reasons, (says, seconds)),
            write_bytes_estimate=budget.write_bytes_estimate + written,
            least_seconds=least,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Copy:
    """Of one run: how large the database is, and the hosts that copy it whole."""

    hosts: tuple[str, ...]
    size_bytes: int


def _copies(study: Study, runs: Iterable[PlannedRun], reflinks: Reflinks) -> Iterator[_Copy]:
    """Of each run that has any; an XFS that the session makes has reflinks."""
    if study.target.make_xfs:
        return
    clients = {item.id: item.hosts for item in study.configurations}
    for run in runs:
        job = run.point.job
        if isinstance(job, KeyJob):
            here = run.point.configuration
            holders = _holders(study, job, clients[here])
            whole = tuple(host for host in holders if not reflinks.get((here, host), True))
            if whole:
                yield _Copy(whole, store_bytes(job))


def _holders(study: Study, job: KeyJob, clients: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts on whose targets the copies lie; none for a cluster that the user has."""
    if on_clients(study, job):
        return clients
    if study.server.kind is ServerKind.GIVEN:
        return ()
    return (study.server.host or clients[0],)
