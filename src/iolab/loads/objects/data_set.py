"""The objects that lie below a prefix before a run, and who of the fleet puts which of them."""

from __future__ import annotations

import hashlib
from typing import Any, Final, NamedTuple

from iolab.core.run import Point
from iolab.core.study import Study
from iolab.loads.objects.workload import S3_ENGINE, LogNormalSizes, ObjectsJob, SizeShare
from iolab.record import Record

LIST_PAGE: Final = 1000
"""Keys of a page: the most that servers give."""


class ObjectDataSet(Record):
    """Objects that runs of one configuration read; runs that need the same ones share them."""

    configuration: str
    object_count: int
    prefix_count: int
    object_bytes: int
    sizes: tuple[SizeShare, ...]
    size_spread: LogNormalSizes | None
    part_bytes: int | None
    seed: int

    @property
    def id(self) -> str:
        """Its folder below the session's prefix."""
        text = repr(self).encode()
        return f"data-{hashlib.sha256(text).hexdigest()[:12]}"

    @property
    def expected_bytes(self) -> float:
        """Its bytes: exact where all objects are alike."""
        return self.object_count * self._job_with_same_objects.mean_object_bytes

    @property
    def put_request_count(self) -> int:
        """Requests that put all of it; of unlike objects as if all were of the mean size."""
        if self.part_bytes is None or not self._job_with_same_objects.has_multipart_objects:
            return self.object_count
        parts = -(-round(self._job_with_same_objects.mean_object_bytes) // self.part_bytes)
        return self.object_count * (parts + 2 if parts > 1 else 1)

    @property
    def list_request_count(self) -> int:
        """Requests that list all of it: one prefix at a time."""
        pages = -(-self.object_count // (self.prefix_count * LIST_PAGE))
        return self.prefix_count * max(pages, 1)

    @property
    def _job_with_same_objects(self) -> ObjectsJob:
        return ObjectsJob(
            S3_ENGINE,
            self.object_count,
            object_bytes=self.object_bytes,
            sizes=self.sizes,
            size_spread=self.size_spread,
            part_bytes=self.part_bytes,
        )

    def agent_document(self, session_object_prefix: str) -> dict[str, Any]:
        """The same for the agent."""
        document: dict[str, Any] = {
            "prefix": f"{session_object_prefix}{self.id}/",
            "count": self.object_count,
            "prefixes": self.prefix_count,
            "seed": self.seed,
            "part_bytes": self.part_bytes,
        }
        if self.size_spread is not None:
            spread = self.size_spread
            document["log_normal"] = {
                "median_bytes": spread.median_bytes,
                "sigma": spread.sigma,
                "min_bytes": spread.min_bytes,
                "max_bytes": spread.max_bytes,
            }
        else:
            sizes = self.sizes or (SizeShare(self.object_bytes),)
            document["sizes"] = [{"bytes": each.size_bytes, "share": each.share} for each in sizes]
        return document


def required_data_set(study: Study, point: Point) -> ObjectDataSet | None:
    """What must be there before a point's runs; None for load that only puts new objects."""
    job = point.job
    if not isinstance(job, ObjectsJob) or not job.reads_data_set:
        return None
    return point_data_set(study, point)


def point_data_set(study: Study, point: Point) -> ObjectDataSet:
    """The objects as a point's job describes them, which need not be there."""
    job = ObjectsJob.require_type(point.job)
    return ObjectDataSet(
        configuration=point.configuration,
        object_count=job.object_count,
        prefix_count=job.prefix_count,
        object_bytes=job.object_bytes,
        sizes=job.sizes,
        size_spread=job.size_spread,
        part_bytes=job.part_bytes if job.has_multipart_objects else None,
        seed=study.method.seed,
    )


class HostObjectRange(NamedTuple):
    """The first object of a host, and how many it has."""

    first: int
    object_count: int


def host_object_range(object_count: int, host_index: int, host_count: int) -> HostObjectRange:
    """The host's part of the objects of the fleet."""
    first = object_count * host_index // host_count
    return HostObjectRange(first, object_count * (host_index + 1) // host_count - first)
