"""From a study to its points: each combination of configuration, workload and axis values."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from types import MappingProxyType
from typing import Any, Final

from iolab.model.configuration import Configuration
from iolab.model.guest import GuestSettings
from iolab.model.key_value import KeyValueJob
from iolab.model.metadata import MetadataJob
from iolab.model.run import DataSet, Point
from iolab.model.study import Study
from iolab.model.workload import AnyJob, Arrivals, Contents, Job, Workload
from iolab.model.ycsb import YcsbJob
from iolab.plan.guest_tables import HOSTS, PER_NODE
from iolab.plan.guests import participants
from iolab.plan.key_value_build import key_value_job_at, server_told
from iolab.units import parse_size

RATE: Final = "rate_iops"
"""The axis of a max-load search, whose values are made as it goes: I/Os per second of one job."""

ARRIVALS: Final = "rate_process"
"""fio's option for how I/Os come under a rate."""

DIGEST_CHARACTERS: Final = 16
"""64 bits: no two of 10,000 points meet, and a path stays short."""


def expand(study: Study) -> tuple[Point, ...]:
    """All points: configurations as written, in each its workloads, the first axis slowest."""
    return tuple(
        _point(study, configuration, workload, values)
        for configuration in study.configurations
        for workload in study.workloads
        for values in _combinations(workload)
    )


def point_at(
    study: Study, configuration: str, workload: str, axis: tuple[tuple[str, int | str], ...]
) -> Point:
    """The point at these axis values, also where the study lists no such; KeyError for ids unknown.

    Under a rate that the study does not list, I/Os arrive as independent users make them where the
    workload says nothing else.
    """
    owner = {item.id: item for item in study.configurations}[configuration]
    behaviour = {item.id: item for item in study.workloads}[workload]
    if RATE in dict(axis) and not _says_how_io_arrives(behaviour.io):
        job = replace(behaviour.io, arrivals=Arrivals.POISSON)
        behaviour = replace(behaviour, job=job)
    return _point(study, owner, behaviour, axis)


def _says_how_io_arrives(job: Job) -> bool:
    return job.arrivals is not None or ARRIVALS in dict(job.options)


def data_sets(study: Study, points: tuple[Point, ...]) -> tuple[DataSet, ...]:
    """The files that the points share: one set for each size, as many jobs as the widest point.

    A client with a number of jobs of its own has files for these; where clients read each other's
    files, all of them have files for the widest.
    """
    found: dict[str, DataSet] = {}
    for point in points:
        if not isinstance(point.job, Job):
            continue
        known = found.get(point.data_set)
        numjobs = max(point.io.numjobs, known.numjobs if known else 0)
        # A point may be of some of the clients alone; the files are of all that any point is of.
        before = known.host_numjobs if known else ()
        own = tuple({**dict(before), **dict(point.host_numjobs)}.items())
        if study.target.rotate:
            numjobs = max(numjobs, *(count for _, count in own), 0)
            own = ()
        found[point.data_set] = DataSet(
            id=point.data_set,
            configuration=point.configuration,
            numjobs=numjobs,
            files_per_job=point.io.files_per_job,
            file_bytes=point.job.file_bytes,
            host_numjobs=own,
            shared_file=point.io.shared_file,
        )
    return tuple(found.values())


def digest_of(content: object) -> str:
    """The first characters of the SHA-256 of the content's canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:DIGEST_CHARACTERS]


def _combinations(workload: Workload) -> Iterator[tuple[tuple[str, int | str], ...]]:
    names = [axis.name for axis in workload.sweep]
    for values in itertools.product(*(axis.values for axis in workload.sweep)):
        yield tuple(zip(names, values, strict=True))


def _point(
    study: Study,
    configuration: Configuration,
    workload: Workload,
    axis: tuple[tuple[str, int | str], ...],
) -> Point:
    if isinstance(workload.job, MetadataJob):
        return _own_point(configuration, workload, _metadata_job_at(workload.job, axis), axis)
    if isinstance(workload.job, KeyValueJob | YcsbJob):
        made = key_value_job_at(workload.job, axis)
        return _own_point(configuration, workload, made, axis, server_told(study, made))
    job = _job_at(workload.io, axis)
    per_node, host_count = (int(dict(axis).get(name, 0)) for name in (PER_NODE, HOSTS))
    hosts = participants(study, configuration.id, per_node, host_count)
    own = _host_numjobs(study, hosts)
    if job.fleet_rate_iops is not None:
        # Whatever does not come out even was refused when the study was read.
        jobs = sum(dict(own).get(name, job.numjobs) for name in hosts)
        job = replace(job, rate_iops=max(job.fleet_rate_iops // max(jobs, 1), 1))
    content: dict[str, object] = {
        "configuration": configuration.id,
        "hosts": hosts,
        "workload": workload.id,
        "axis": axis,
        "job": _told(job),
        # What most studies do without is left out, so that their digests stay.
        **({"host_numjobs": own} if own else {}),
        **({"rotate": study.target.rotate} if study.target.rotate and job.access.reads else {}),
        **({"guests": told_guests(study.guests)} if study.guests else {}),
    }
    data_set = _data_set_id(job, configuration.id if len(study.configurations) > 1 else None)
    digest = digest_of(content)
    return Point(
        digest, configuration.id, workload.id, axis, job, data_set, own, per_node, host_count
    )


def told_guests(settings: GuestSettings) -> dict[str, object]:
    """What of the guests changes what they measure: not where their kernel came from."""
    told = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return {name: value for name, value in told.items() if name not in _OF_BOOTING}


_OF_BOOTING: Final = ("boots_at_once", "boot_limit_s", "kernel")


def _host_numjobs(study: Study, hosts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """The clients that have a number of jobs of their own."""
    return tuple(
        (name, numjobs) for name in hosts if (numjobs := study.host(name).numjobs) is not None
    )


def _own_point(
    configuration: Configuration,
    workload: Workload,
    job: AnyJob,
    axis: tuple[tuple[str, int | str], ...],
    more: Mapping[str, object] = MappingProxyType({}),
) -> Point:
    """A point that makes its files or its database itself."""
    content = {
        "configuration": configuration.id,
        "hosts": configuration.hosts,
        "workload": workload.id,
        "axis": axis,
        "job": _told(job),
        **more,
    }
    return Point(digest_of(content), configuration.id, workload.id, axis, job, "")


def _told(job: AnyJob) -> dict[str, object]:
    """The job without what is as usual, so that a field added later keeps every digest."""
    told = {
        field.name: getattr(job, field.name)
        for field in fields(job)
        if getattr(job, field.name) != field.default
    }
    if isinstance(job, KeyValueJob):
        told["loaded"] = asdict(job.loaded)
    return told


def _metadata_job_at(job: MetadataJob, axis: tuple[tuple[str, int | str], ...]) -> MetadataJob:
    """The job with the axis values; a shift of a client's ranks stays one, whatever they are."""
    changes: dict[str, Any] = dict(axis)
    if "ranks" in changes and job.rank_shift == job.ranks:
        changes["rank_shift"] = changes["ranks"]
    return replace(job, **changes)


def _job_at(job: Job, axis: tuple[tuple[str, int | str], ...]) -> Job:
    """The job with the axis values in place of its first ones."""
    changes: dict[str, Any] = {}
    for name, value in axis:
        match name:
            case "bs":
                changes["block_bytes"] = parse_size(value)
            case "filesize":
                changes["file_bytes"] = parse_size(value)
            case "rate":
                changes["rate_bytes_per_s"] = parse_size(value)
            case "rwmixread":
                changes["read_percent"] = value
            case "vms_per_node" | "hosts":
                pass  # It says who has the job, not what it is.
            case _:
                changes[name] = value
    return replace(job, **changes)


def _data_set_id(job: Job, configuration: str | None) -> str:
    """`s256m`, with `x4` for four files a job, `shared`, `c`, `v4k`, the configuration.

    One file of all jobs is `shared`. Compressible contents (`c`) have files of their own: written
    over shared ones, they would make later reads easier than they look. So have those that are
    verified, for each size of blocks (`v4k`): others write over them what cannot be, and of a
    larger block smaller ones would be its parts.
    """
    parts = [f"s{_short_size(job.file_bytes)}"]
    if job.files_per_job > 1:
        parts.append(f"x{job.files_per_job}")
    if job.shared_file:
        parts.append("shared")
    if _compressible(job):
        parts.append("c")
    if job.verify:
        parts.append(f"v{_short_size(job.block_bytes)}")
    if configuration is not None:
        parts.append(f"-{configuration}")
    return "".join(parts)


def _compressible(job: Job) -> bool:
    easy = ("buffer_compress_percentage", "dedupe_percentage")
    return job.contents is Contents.ZEROS or any(name in easy for name, _ in job.options)


def _short_size(count: int) -> str:
    for power, unit in ((4, "t"), (3, "g"), (2, "m"), (1, "k")):
        if count % 1024**power == 0:
            return f"{count // 1024**power}{unit}"
    return f"{count}b"
