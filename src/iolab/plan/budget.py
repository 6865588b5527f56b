"""What a plan will cost before anything runs: seconds with reasons, bytes to write, free space."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from iolab.model.configuration import Configuration
from iolab.model.metadata import MetadataJob
from iolab.model.run import Budget, DataSet, PlannedRun
from iolab.model.study import Study
from iolab.model.workload import Job
from iolab.plan.ceilings import ceiling_reasons
from iolab.plan.guest_cost import (
    guest_reasons,
    guests_per_node,
    image_bytes,
    node_bytes,
    write_rate,
)
from iolab.plan.guests import makers_of, nodes_of
from iolab.plan.key_value_budget import (
    key_value_reasons,
    key_value_space_most,
    key_value_written,
)
from iolab.plan.metadata_cost import iteration_seconds, space_of, written_bytes_of
from iolab.plan.state_cost import (
    filled_bytes,
    is_on_device,
    restorations,
    spared_seconds,
    state_reasons,
)
from iolab.units import format_bytes, format_duration_s, format_rate_bytes

ASSUMED_WRITE_BYTES_PER_S: Final = 200e6
"""One client's sequential writing where nothing was measured: a SATA SSD that is neither new nor
empty, or a sixth of a 10 Gbit/s port. Most targets are faster, so plans err on the long side."""

SESSION_OVERHEAD_S: Final = 3.0
"""Connecting hosts, reading facts and cleaning up."""

RUN_OVERHEAD_S: Final = 2.5
"""Proving extents, dropping caches, one second of idle watch, the lead to a common start and the
commit of a run: measured at two seconds on one host, and more hosts take a little longer."""

SPARE_SHARE: Final = 0.05
"""File systems slow down, and keep blocks for themselves, when the last twentieth is used."""

SPARE_BYTES: Final = 64 << 20
"""For journals and metadata of the smallest file systems."""


def budget_of(
    study: Study,
    data_sets: tuple[DataSet, ...],
    runs: tuple[PlannedRun, ...],
    layout_bytes_per_s: float | None = None,
    *,
    runs_more: int = 0,
) -> Budget:
    """The cost of the plan; without a measured write rate of one host an assumed one is used.

    `write_bytes_estimate` is over all hosts: the layout, and what writing runs would write at that
    rate or at their rate limit. `runs_more` may follow the certain runs, as results ask for them.
    """
    rate = layout_bytes_per_s or ASSUMED_WRITE_BYTES_PER_S
    per_host = {
        host: sum(
            data_set.on(host).bytes_per_host
            for data_set in data_sets
            if host in _configuration(study, data_set.configuration).hosts
            # A device is written over as a whole instead.
            and not is_on_device(study, data_set.configuration, host)
        )
        for host in {name for item in study.configurations for name in item.hosts}
    }
    most = max(per_host.values(), default=0)
    reasons = _reasons(study, most, rate, runs, measured=layout_bytes_per_s is not None)
    reasons += tuple(state_reasons(study, data_sets, runs, rate))
    reasons += tuple(key_value_reasons(study, runs, rate))
    reasons += tuple(guest_reasons(study, len(runs), rate))
    images, fleet = image_bytes(study, guests_per_node(study)), node_bytes(study)
    certain_s = sum(seconds for _, seconds in reasons)
    least_s, most_s = study.method.load_s
    spared_s = (most_s - least_s) * sum(isinstance(run.point.job, Job) for run in runs)
    spared_s += spared_seconds(study, runs)
    if runs_more:
        each_s = _longest_s(study, runs) + RUN_OVERHEAD_S + study.method.settle_s
        reasons += ((f"up to {runs_more} more runs, as results ask for them", runs_more * each_s),)
    seconds = sum(seconds for _, seconds in reasons)
    least = certain_s - spared_s
    written = _written_by_runs(study, runs, rate) * (1 + runs_more / max(len(runs), 1))
    written += key_value_written(study, runs, rate)
    hosts = {name for item in study.configurations for name in item.hosts}
    filled = filled_bytes(study, data_sets) * restorations(study, runs) * len(hosts)
    space = most + _metadata_space(runs) + key_value_space_most(study, runs, rate)
    return Budget(
        seconds=seconds,
        reasons=reasons,
        layout_bytes_per_host=most,
        write_bytes_estimate=sum(per_host.values())
        + filled
        + round(written)
        + images * len(nodes_of(study)),
        free_bytes_needed_per_host=_free_bytes(max(space, study.target.image_bytes or 0, fleet)),
        least_seconds=least if least < seconds else None,
    )


def _longest_s(study: Study, runs: Iterable[PlannedRun]) -> float:
    """A run's load at most; without I/O, whose end a rule decides, it is as written."""
    if any(isinstance(run.point.job, Job | MetadataJob) for run in runs):
        return study.method.load_s[1]
    return study.method.warmup_s + study.method.runtime_s


def _metadata_space(planned: Iterable[PlannedRun]) -> int:
    """Space for the largest tree: each run removes its own."""
    jobs = (run.point.job for run in planned)
    return max((space_of(job) for job in jobs if isinstance(job, MetadataJob)), default=0)


def _free_bytes(data_bytes: int) -> int:
    """Free space in a file system; a device needs none."""
    return with_spare(data_bytes) if data_bytes else 0


def with_spare(data_bytes: int) -> int:
    """Free space that data of so many bytes needs."""
    return math.ceil(data_bytes * (1 + SPARE_SHARE)) + SPARE_BYTES


def _reasons(
    study: Study,
    layout_bytes: int,
    rate: float,
    planned: tuple[PlannedRun, ...],
    *,
    measured: bool,
) -> tuple[tuple[str, float], ...]:
    method = study.method
    runs = len(planned)
    timed = sum(isinstance(run.point.job, Job) for run in planned)
    known = "measured" if measured else "assumed"
    least_s, most_s = method.load_s
    length = f"warm-up + runtime of {format_duration_s(method.warmup_s)} + "
    length += format_duration_s(method.runtime_s)
    if method.rule is not None:
        length = f"{format_duration_s(least_s)} to {format_duration_s(most_s)}, until steady"
    says = (
        f"lay out {format_bytes(layout_bytes)} on each host at {format_rate_bytes(rate)} ({known})"
    )
    others = sum(isinstance(run.point.job, Job | MetadataJob) for run in planned)
    proving = f"{others} runs: prove, drop caches, watch, commit"
    settling = f"{runs} runs: settle {format_duration_s(method.settle_s)}"
    return (
        ("connect hosts, read facts, clean up", SESSION_OVERHEAD_S),
        *(((says, layout_bytes / rate),) if layout_bytes else ()),
        *(((f"{timed} runs: {length}", timed * most_s),) if timed else ()),
        *_metadata_reasons(planned),
        *(((proving, others * RUN_OVERHEAD_S),) if others else ()),
        *ceiling_reasons(study, planned),
        *(((settling, runs * method.settle_s),) if method.settle_s else ()),
    )


def _metadata_reasons(planned: Iterable[PlannedRun]) -> tuple[tuple[str, float], ...]:
    """How long metadata load takes; nothing where there is none."""
    jobs = [run.point.job for run in planned if isinstance(run.point.job, MetadataJob)]
    if not jobs:
        return ()
    files = sum(job.ranks * job.files_per_rank for job in jobs)
    says = f"{len(jobs)} runs: {files:,} files on each host made, read, removed (assumed rates)"
    return ((says, sum(iteration_seconds(job) for job in jobs)),)


def _written_by_runs(study: Study, runs: Iterable[PlannedRun], rate: float) -> int:
    _, seconds = study.method.load_s
    total = 0.0
    for run in runs:
        job = run.point.job
        if isinstance(job, MetadataJob):
            clients = len(_configuration(study, run.point.configuration).hosts)
            total += written_bytes_of(job) * clients
            continue
        if not isinstance(job, Job):
            continue
        if not job.access.writes:
            continue
        hosts = makers_of(study, run.point)
        own_rate = write_rate(study, job, hosts, rate)
        for host in hosts:
            jobs = run.point.io_on(host).numjobs
            asked = job.asked_iops
            limit = math.inf if asked is None else asked * jobs * job.mean_block_bytes
            total += min(own_rate, limit) * seconds
    return round(total)


def _configuration(study: Study, configuration_id: str) -> Configuration:
    return next(item for item in study.configurations if item.id == configuration_id)
