"""Small results of warp, made of the figures that a test names: all else agrees with these."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from iolab.record import Record

MOMENT: Final = datetime(2026, 11, 24, 16, 0, tzinfo=UTC)
COLUMNS: Final = (
    *("idx", "thread", "op", "client_id", "n_objects", "bytes", "endpoint", "file", "error"),
    *("start", "first_byte", "last_byte", "end", "duration_ns", "cat"),
)
COMMAND: Final = (
    "warp {kind} --host=10.0.0.1:9000 --access-key=*REDACTED* --secret-key=*REDACTED* "
    "--concurrent=2 --obj.size=1MiB --duration=1m0s"
)

Document = dict[str, Any]


class Phase(Record):
    """Requests one after the other on two threads: each takes as long, from `begin_s` on."""

    op: str
    begin_s: float
    requests: int
    took_ms: float
    size_bytes: int = 1 << 20
    client: str = "c1"
    failed: int = 0


def moment_text(seconds: float) -> str:
    """A moment as Go prints it, with nanoseconds."""
    moment = MOMENT + timedelta(seconds=seconds)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "123Z")


def log_text(phases: Sequence[Phase], *, command: str = "get") -> str:
    """A log as warp writes it without compression; of a GET half its time is before its body."""
    lines = ["\t".join(COLUMNS)]
    for phase in phases:
        for number in range(phase.requests):
            start = phase.begin_s + number // 2 * phase.took_ms / 1000
            half, end = (start + phase.took_ms / divisor for divisor in (2000, 1000))
            is_get, is_put = phase.op == "GET", phase.op == "PUT"
            cells = (
                *(len(lines) - 1, number % 2, phase.op, phase.client, 1, phase.size_bytes),
                *("http://10.0.0.1:9000", f"p/{number}.rnd"),
                "503 Slow Down" if number < phase.failed else "",
                moment_text(start),
                moment_text(half) if is_get else "",
                moment_text(half) if is_put else "",
                moment_text(end),
                round(phase.took_ms * 1e6),
                0,
            )
            lines.append("\t".join(map(str, cells)))
    return "\n".join([*lines, *([f"# {COMMAND.format(kind=command)}"] * bool(command)), ""])


def window(requests: int, mean_ms: float) -> Document:
    """A window of ten seconds of one client."""
    return {
        "single_sized_requests": {
            "first_byte": {
                "average_millis": mean_ms / 2,
                "fastest_millis": mean_ms / 4,
                "slowest_millis": mean_ms,
            },
            "dur_median_millis": mean_ms,
            "fastest_millis": mean_ms / 2,
            "slowest_millis": mean_ms * 3,
            "dur_99_millis": mean_ms * 2,
            "dur_90_millis": mean_ms * 1.5,
            "dur_avg_millis": mean_ms,
            "requests": requests,
            "obj_size": 1 << 20,
            "merged_entries": 1,
        }
    }


def part(
    windows: Sequence[Document],
    *,
    begin_s: float = 0,
    seconds: int = 60,
    errors: int = 0,
    measured_s: int | None = None,
) -> Document:
    """One operation of a result with those windows: its rate is that of all their requests."""
    requests = sum(one["single_sized_requests"]["requests"] for one in windows)
    segment = {"bytes_per_sec": requests * (1 << 20) / seconds, "obj_per_sec": requests / seconds}
    return {
        "total_requests": requests,
        "total_objects": requests,
        "total_errors": errors,
        "total_bytes": requests << 20,
        "concurrency": 2,
        "start_time": moment_text(begin_s),
        "end_time": moment_text(begin_s + seconds),
        "first_errors": ["503 Slow Down"] * bool(errors),
        "hosts": ["http://10.0.0.1:9000"],
        "clients": ["c1"],
        "throughput": {
            "measure_duration_millis": (measured_s or seconds) * 1000,
            "bytes": requests << 20,
            "objects": requests,
            "ops": requests,
            "errors": errors,
            "segmented": {
                "segment_duration_millis": 1000,
                "segments": [
                    {"start": moment_text(begin_s + second), **segment} for second in range(seconds)
                ],
            },
        },
        "requests_by_client": {"c1": list(windows)},
    }


def result_text(parts: Document, *, command: str = "get", version: int = 2) -> str:
    """A result as `warp --json` and its `.json.zst` have it."""
    document = {
        "v": version,
        "commandline": COMMAND.format(kind=command),
        "final": True,
        "total": {},
        "by_op_type": parts,
    }
    return json.dumps(document)
