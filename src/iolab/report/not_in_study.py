"""What a reader looks for on the first page, and the study did not measure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from iolab.core.workload import Direction
from iolab.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from iolab.analysis.points import PointSummary
    from iolab.core.workload import AnyJob, Workload
    from iolab.report.brief import Brief

_MEAN_LATENCY: Final = "_lat_ns_mean"
"""The end of the key of each operation's mean latency."""

_ONE_REQUEST: Final = "latency at one request at a time"

_DIRECTION_NAMES: Final = ((Direction.READ, "reads"), (Direction.WRITE, "writes"))

SMALL_BYTES: Final = 64 << 10
"""Blocks beyond it tell bandwidth, not operations."""

_READ_OPERATIONS: Final = frozenset({"read", "scan", "seek", "read_modify_write"})
_WRITE_OPERATIONS: Final = frozenset(
    {"write", "update", "insert", "delete", "merge", "read_modify_write"}
)


def not_in_study_sentence(brief: Brief) -> str:
    """`Not in this study: pure writes, prices.`; empty where it has all.

    Loads with an answer of their own are not told by reads and writes.
    """
    has_own_answer = bool(brief.kinds.extra_answer_text(brief.study, brief.points))
    missing = [] if has_own_answer else [*_missing_load_texts(brief)]
    if not any(owner.cost for owner in brief.study.configurations):
        missing.append("prices")
    texts = [f"Not in this study: {', '.join(missing)}."] if missing else []
    if not has_own_answer and _has_only_invalid_one_request_points(brief):
        texts.append(f"Measured, but invalid: {_ONE_REQUEST}.")
    return " ".join(texts)


def _has_only_invalid_one_request_points(brief: Brief) -> bool:
    """Whether one request at a time was measured, and no point of it has a usable figure."""
    singles = {
        (point.configuration, point.workload, point.axis_values)
        for point in brief.plan.points
        if _may_keep_one_request(point.job)
    }
    measured = [
        point
        for point in brief.points
        if (point.key.configuration, point.key.workload, point.key.axis_values) in singles
    ]
    return bool(measured) and not any(point.is_trusted for point in measured)


def _missing_load_texts(brief: Brief) -> Iterator[str]:
    """The operations that no workload does alone, a mix, and the latency without a queue."""
    measured = [
        _does_read_and_does_write(workload, brief.points) for workload in brief.study.workloads
    ]
    known = [kinds for kinds in measured if any(kinds)]
    if not known:
        return
    if (True, False) not in known:
        yield "pure reads"
    if (False, True) not in known:
        yield "pure writes"
    if (True, True) not in known:
        yield "mixed reads and writes"
    yield from _missing_access_texts(brief)
    if not any(_may_keep_one_request(point.job) for point in brief.plan.points):
        yield _ONE_REQUEST


def _missing_access_texts(brief: Brief) -> Iterator[str]:
    """Small and sequential reads or writes, where these are done alone, and in other ways only.

    Sequential ones are missed in one direction where the other one has them.
    """
    sizes: dict[Direction, list[int]] = {}
    random: dict[Direction, set[bool]] = {}
    for point in brief.plan.points:
        size = getattr(point.job, "block_bytes", None)
        if size and len(point.job.data_directions) == 1:
            sizes.setdefault(point.job.data_directions[0], []).append(size)
            if access := getattr(point.job, "access", None):
                random.setdefault(point.job.data_directions[0], set()).add(access.is_random)
    for direction, name in _DIRECTION_NAMES:
        if sizes.get(direction) and min(sizes[direction]) > SMALL_BYTES:
            least = format_bytes(min(sizes[direction]))
            yield f"pure {name} of small blocks (the smallest: {least})"
    for direction, name in _DIRECTION_NAMES:
        if random.get(direction) == {True} and any(False in kinds for kinds in random.values()):
            yield f"sequential {name}"


def _does_read_and_does_write(
    workload: Workload, points: Sequence[PointSummary]
) -> tuple[bool, bool]:
    """Whether a workload reads, and whether it writes; by its results where its job does not say.

    A job that only trims does neither, and so does one without results.
    """
    if directions := workload.job.data_directions:
        return Direction.READ in directions, Direction.WRITE in directions
    operations = {
        key.removesuffix(_MEAN_LATENCY)
        for point in points
        if point.key.workload == workload.id
        for key in point.metrics
        if key.endswith(_MEAN_LATENCY)
    }
    return bool(operations & _READ_OPERATIONS), bool(operations & _WRITE_OPERATIONS)


def _may_keep_one_request(job: AnyJob) -> bool:
    """Whether a client keeps one request in flight, also where that is not known."""
    loads = [getattr(job, axis, 0) for axis in job.load_axes]
    return (job.iodepth_per_client or math.prod(loads or [0])) <= 1
