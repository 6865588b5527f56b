"""What importers of S3 tools share: names of requests, the runs that phases make, and secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

REQUEST_OPERATIONS: Final[Mapping[str, str]] = {
    "GET": "object_get",
    "GET_RANGE": "object_get_range",
    "PUT": "object_put",
    "PUTPART": "object_part",
    "STAT": "object_head",
    "HEAD": "object_head",
    "DELETE": "object_delete",
    "LIST": "object_list",
}
"""Operations by the names of warp and s3dlio."""

SECRET_OPTIONS: Final = frozenset(
    [
        *("access-key", "secret-key", "sts-web-token", "influxdb"),
        *("s3key", "s3secret", "s3sessiontoken", "s3credlist", "s3sseckey", "s3ssekmskey"),
    ]
)
"""Options of commands whose values are secrets: they are in no setting."""

ENDPOINT_OPTIONS: Final = ("host", "s3endpoints")
"""Options that name the store. Sessions compare without them; within an import they tell apart."""

OBJECT_BANDWIDTH_BYTES: Final = 1 << 20
"""From this size on objects are measured by bandwidth, below by how many are done a second."""

OVERLAP_SHARE: Final = 0.5
"""Of the shorter of two phases as much must lie in the other for both to be one mixed load."""

_SECRET: Final = re.compile(
    rb"(--?(?:%s)\"*[= ]+\"*)[^\s\",]+" % "|".join(sorted(SECRET_OPTIONS)).encode()
)


def request_operation_key(name: str) -> str:
    """The key of an operation; of one that is not known by its own name."""
    own = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return REQUEST_OPERATIONS.get(name.upper(), f"object_{own or 'other'}")


def indicator_for_object_size(size_bytes: float | None) -> str:
    """The metric that requests of objects of that size are for."""
    return "bandwidth" if size_bytes and size_bytes >= OBJECT_BANDWIDTH_BYTES else "ops_per_s"


def redact_secrets(content: bytes) -> bytes:
    """A file without the keys that a command line in it names."""
    return _SECRET.sub(rb"\1REDACTED", content)


def group_by_overlap(span_by_name: Mapping[str, tuple[int, int]]) -> list[list[str]]:
    """The names of spans that ran at the same time, in the order of their starts.

    Objects are written before they are read: two phases, not a load of both.
    """
    groups: list[tuple[list[str], tuple[int, int]]] = []
    for name, span in sorted(span_by_name.items(), key=lambda item: item[1]):
        for place, (names, joint) in enumerate(groups):
            if _do_spans_mostly_overlap(span, joint):
                groups[place] = (
                    [*names, name],
                    (min(span[0], joint[0]), max(span[1], joint[1])),
                )
                break
        else:
            groups.append(([name], span))
    return [names for names, _ in groups]


def _do_spans_mostly_overlap(first: tuple[int, int], second: tuple[int, int]) -> bool:
    common = min(first[1], second[1]) - max(first[0], second[0])
    shorter = min(first[1] - first[0], second[1] - second[0])
    return common > 0 and common >= OVERLAP_SHARE * shorter


def request_run_name(tool: str, operations: Sequence[str]) -> str:
    """What a run did, as its name: `warp get put`."""
    kinds = sorted(operation.removeprefix("object_").replace("_", " ") for operation in operations)
    return f"{tool} {' '.join(kinds)}"
