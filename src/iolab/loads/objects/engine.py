"""The agent's engine of load on objects: what it is told, and what it tells."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from iolab.core import limits
from iolab.core.object_store import ObjectStore
from iolab.core.run import EngineTotals
from iolab.core.workload import OperationEnum
from iolab.hosts.agent_engine import compact_ascii_json
from iolab.hosts.engine import Command
from iolab.hosts.engine_lines import (
    EngineLineReader,
    LineError,
    count_or_zero,
    parse_bins,
    parse_operation_interval,
    printable_sentences,
    require_count,
    require_object,
    require_operation_table,
    table_or_empty,
)
from iolab.hosts.engine_totals import parse_engine_totals, parse_io_and_service_time_intervals
from iolab.hosts.intervals import DirectionInterval
from iolab.loads.objects.credentials import Credentials
from iolab.loads.objects.workload import (
    OPERATION_KINDS,
    ContentlessObjectOperation,
    EndpointCount,
    EndpointLatency,
    ObjectOperation,
    ObjectOperationCount,
    ObjectOrder,
    ObjectsHostDetails,
    ObjectsJob,
    ReadBackCounts,
    SizeClassCount,
)
from iolab.record import Record
from iolab.text import excerpt
from iolab.units import NS_PER_S

FORMAT: Final = 1
ARGV: Final = ("iolab-agent", "objects")
INTERVAL_MS: Final = 1000
READ_BACK_RETRIES: Final = 5
"""A store that has lost a part of itself may answer late or with a fault: that is no lost object.
What it says it has not is missing at once."""

CONTENT_ERROR_CLASSES: Final = ("wrong-content", "torn-content", "wrong-length")
"""Classes of errors of objects that are there, and not as they were put."""

END_LIMIT_S: Final = 60.0
"""From the end of submission: requests that hang are given up after their own limit."""

REPORT_LIMIT_BYTES: Final = 256 << 10
SPARE_REPORTS: Final = 64
"""A line an interval, of bins that are in use, and some more for the head and the end."""

TASK_OUTPUT_BYTES: Final = 4 << 20
MS_MAX: Final = 10 * 365 * 86_400_000
"""How far a server's clock may be told to be from ours."""

Document = dict[str, Any]


class ObjectStoreAccess(Record):
    """What every request to a store needs: where it is, its authorities, and the keys to it."""

    store: ObjectStore
    ca_pem: str | None
    credentials: Credentials

    def document_without_keys(self, endpoints: Sequence[str], timeout_s: float) -> Document:
        """The same for an agent."""
        return {
            "format": FORMAT,
            "target": {
                "endpoints": list(endpoints),
                "bucket": self.store.bucket,
                "region": self.store.region,
                "style": self.store.addressing.value,
                "ca_pem": self.ca_pem,
                "payload": self.store.payload.value,
            },
            "timeout_s": timeout_s,
        }


def engine_command(
    access: ObjectStoreAccess,
    document: Mapping[str, Any],
    directory: str,
    *,
    limit_s: float,
    output_limit_bytes: int = TASK_OUTPUT_BYTES,
    waits_for_start: bool = False,
) -> Command:
    """A process of the engine; the keys are in its standard input alone."""
    recorded = compact_ascii_json(document)
    with_secret = {**document, "secret": access.credentials.secret_document()}
    return Command(
        argv=ARGV,
        cwd=directory,
        stdin=compact_ascii_json(with_secret).encode("ascii"),
        job_file=recorded,
        wall_limit_s=limit_s,
        output_limit_bytes=output_limit_bytes,
        waits_for_start=waits_for_start,
    )


def document_of_load_task(
    job: ObjectsJob, data_set: Document, new_prefix: str, host_count: int
) -> Document:
    """What the load of one host is, as the agent is told; `rate` is this host's part."""
    document: Document = {
        "task": "load",
        "objects": data_set,
        "operations": [
            {"kind": OPERATION_KINDS[kind], "share": float(share)}
            for kind, share in job.operation_weights
        ],
        "order": job.order.value,
        "zipf_theta": job.zipf_theta,
        "put_keys": job.put_keys.value,
        "new_prefix": new_prefix,
        "delete_keys": "new",
        "concurrency": job.concurrency,
        "parts_in_flight": job.parts_in_flight,
        "rate": None if job.rate is None else job.rate / host_count,
        "arrivals": job.arrivals.value,
        "keep_alive": job.keep_alive,
        "verify_every": job.verify_every,
        "retries": {"max": job.retries_max},
        "interval_ms": INTERVAL_MS,
    }
    if job.get_range:
        document["range_bytes"] = job.range_bytes
    if job.list:
        document["list_page"] = job.list_page
    return document


def read_back_task_document(
    job: ObjectsJob,
    data_set: Document,
    new_prefix: str,
    seed: int,
    object_count: int,
    runtime_s: float,
) -> Document:
    """Read and compare the objects that a load of that prefix and seed has put, each once."""
    reading = replace(job, get=1, get_range=0, put=0, head=0, list=0, rate=None)
    reading = replace(
        reading, order=ObjectOrder.ONCE, verify_every=1, retries_max=READ_BACK_RETRIES
    )
    return {
        **document_of_load_task(reading, {**data_set, "count": object_count}, new_prefix, 1),
        "reads_new": True,
        "seed": seed,
        "runtime_s": runtime_s,
        "timeout_s": job.timeout_s,
        # What is read back is of no interval: one line.
        "interval_ms": math.ceil(runtime_s * 1000),
    }


def time_and_output_limits_of_load_task(runtime_s: float, timeout_s: float) -> tuple[float, int]:
    """How long a load of so many seconds may last, and how much it may print."""
    limit_s = runtime_s + END_LIMIT_S + timeout_s
    return limit_s, (math.ceil(limit_s) + SPARE_REPORTS) * REPORT_LIMIT_BYTES


class ObjectsLineReader(EngineLineReader):
    """Reads what the engine prints on one host; `details` when it has ended."""

    engine_title = "s3"

    def __init__(self, job: ObjectsJob) -> None:
        super().__init__()
        self._job = job
        self._backlog: list[int] = []
        self.details: ObjectsHostDetails | None = None

    def parse_interval_line(self, document: Document) -> tuple[DirectionInterval, ...]:
        """Reads and writes of contents, the operations on objects, and their parts."""
        parts: list[DirectionInterval] = []
        for direction in self._job.data_directions:
            parts += parse_io_and_service_time_intervals(
                direction, require_operation_table(document, direction.key)
            )
        parts += (
            parse_operation_interval(operation, table)
            for operation in (*ContentlessObjectOperation, *ObjectOperation)
            if isinstance(table := document.get(operation.key), dict)
        )
        return tuple(parts)

    def keep_backlog(self, document: Document) -> None:
        """See `EngineLineReader`."""
        self._backlog.append(require_count(document, "backlog"))

    def keep_load_details(self, first_line: Document, last_line: Document) -> None:
        """What was counted of requests."""
        self.details = self._parse_run_details(first_line, last_line)

    def parse_totals(self, first_line: Document, last_line: Document) -> EngineTotals:
        """See `EngineLineReader`."""
        # The errors of objects are told by class, and have no number of the kernel's.
        plain = {key: value for key, value in last_line.items() if key != "errors"}
        return parse_engine_totals(first_line, plain, self._job.data_directions, 1)

    def add_incomplete_run_faults(self, totals: EngineTotals, last_line: Document) -> None:  # noqa: ARG002
        """A run of nothing but failures."""
        run = self.details
        if run is None or run.done_count:
            return
        if run.failed_count:
            errors = sorted(run.errors.items(), key=lambda error: -error[1])
            named = ", ".join(f"{count} {name}" for name, count in errors[:3])
            first = f": {run.examples[0]}" if run.examples else ""
            self.faults.add_fault(f"all {run.failed_count} operations failed ({named}){first}")
        else:
            self.faults.add_fault("no operation ended")

    @property
    def _has_several_sizes(self) -> bool:
        return len(self._job.sizes) > 1 or self._job.size_spread is not None

    def _parse_run_details(self, first_line: Document, last_line: Document) -> ObjectsHostDetails:
        counts = require_operation_table(last_line, "objects")
        connections, clock = (
            table_or_empty(counts, "connections"),
            table_or_empty(counts, "server_clock"),
        )
        cpu, parts = table_or_empty(last_line, "cpu"), table_or_empty(counts, "cpu_parts")
        tls = table_or_empty(first_line, "tls")
        words = (tls.get("version"), tls.get("cipher"), tls.get("provider"))
        uploads = table_or_empty(counts, "uploads")
        return ObjectsHostDetails(
            counts=tuple(_request_counts(table_or_empty(counts, "kinds"))),
            endpoints=tuple(_endpoint_counts(counts.get("endpoints"))),
            connections=count_or_zero(connections, "opened_before"),
            opened=count_or_zero(connections, "opened"),
            closed_by_server=count_or_zero(connections, "closed_by_server"),
            connect_failures=count_or_zero(connections, "connect_failures"),
            ahead_min_ms=_signed_milliseconds_or_none(clock, "ahead_min_ms"),
            ahead_max_ms=_signed_milliseconds_or_none(clock, "ahead_max_ms"),
            tls=excerpt(" ".join(str(word) for word in words if word), 100),
            tls_ns=count_or_zero(parts, "tls_ns"),
            contents_ns=count_or_zero(parts, "contents_ns"),
            verify_ns=count_or_zero(parts, "verify_ns"),
            sign_ns=count_or_zero(parts, "sign_ns"),
            cpu_ns=_cpu_ns(cpu),
            verified_bytes=count_or_zero(counts, "verified_bytes"),
            listed_keys=count_or_zero(counts, "listed_keys"),
            put_objects=count_or_zero(counts, "put_objects"),
            put_bytes=count_or_zero(counts, "put_bytes"),
            left_uploads=count_or_zero(uploads, "left"),
            data_set_bytes=0,
            ended_early=excerpt(
                str(counts.get("ended_early") or ""), limits.SENTENCE_CHARACTERS_MAX
            ),
            examples=printable_sentences(counts.get("examples"))[: limits.NOTES_MAX],
            backlog=tuple(self._backlog),
            sizes=tuple(
                _size_class_counts(table_or_empty(counts, "kinds"))
                if self._has_several_sizes
                else ()
            ),
        )


def _cpu_ns(cpu_table: Mapping[str, Any]) -> int:
    seconds = 0.0
    for key in ("user_s", "system_s"):
        value = cpu_table.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
            seconds += value
    return round(seconds * NS_PER_S)


def _signed_milliseconds_or_none(table: Mapping[str, Any], key: str) -> float | None:
    """A number of either sign; None where there is none."""
    value = table.get(key)
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= MS_MAX:
        raise LineError(f"it told no {key}")
    return float(value)


def _request_counts(operation_tables: Mapping[str, Any]) -> list[ObjectOperationCount]:
    counts: list[ObjectOperationCount] = []
    for operation in (*ObjectOperation, *ContentlessObjectOperation):
        table = operation_tables.get(operation.key)
        if isinstance(table, dict):
            counts.append(_operation_request_count(operation, table))
    return counts


def _operation_request_count(
    operation: OperationEnum, table: Mapping[str, Any]
) -> ObjectOperationCount:
    errors = table_or_empty(table, "attempt_errors")
    named = [
        (excerpt(str(name), limits.SENTENCE_CHARACTERS_MAX), count_or_zero(errors, name))
        for name in list(errors)[: limits.RETRY_KINDS_MAX]
    ]
    return ObjectOperationCount(
        operation=operation.key,
        done=require_count(table, "operations"),
        failed=count_or_zero(table, "failed"),
        attempts=count_or_zero(table, "attempts"),
        errors=tuple(error for error in named if error[1]),
    )


def _size_class_counts(operation_tables: Mapping[str, Any]) -> Iterator[SizeClassCount]:
    for operation in (*ObjectOperation, *ContentlessObjectOperation):
        rows = table_or_empty(operation_tables, operation.key).get("sizes")
        for row in (rows if isinstance(rows, list) else [])[: limits.LISTED_MAX]:
            match row:
                case [int(limit_bytes), dict(table)]:
                    yield SizeClassCount(
                        operation=operation.key,
                        limit_bytes=limit_bytes,
                        bytes=require_count(table, "bytes"),
                        **_latency_distribution_fields(table),
                    )
                case _:
                    raise LineError(f"it told sizes of '{operation.key}' that are none")


def _latency_distribution_fields(table: Mapping[str, Any]) -> dict[str, Any]:
    """How many operations, the sum of their latencies, and their bins."""
    bins, numbers = parse_bins(table)
    done = require_count(table, "ios")
    if int(numbers.sum()) != done:
        raise LineError(f"it told {done} operations, and latencies of {numbers.sum()}")
    return {
        "done": done,
        "lat_sum_ns": require_count(table, "lat_sum_ns"),
        "bins": tuple(zip(bins.tolist(), numbers.tolist(), strict=True)),
    }


def _endpoint_counts(endpoint_rows: object) -> list[EndpointCount]:
    rows = endpoint_rows if isinstance(endpoint_rows, list) else []
    return [
        EndpointCount(
            endpoint=excerpt(str(row.get("endpoint", "")), limits.SENTENCE_CHARACTERS_MAX),
            operations=count_or_zero(row, "operations"),
            failed=count_or_zero(row, "failed"),
            bytes=count_or_zero(row, "bytes"),
            lat_sum_ns=count_or_zero(row, "lat_sum_ns"),
            latencies=tuple(_endpoint_latencies(table_or_empty(row, "kinds"))),
        )
        for row in rows[: limits.LISTED_MAX]
        if isinstance(row, dict)
    ]


def _endpoint_latencies(operation_tables: Mapping[str, Any]) -> Iterator[EndpointLatency]:
    for operation in (*ObjectOperation, *ContentlessObjectOperation):
        table = operation_tables.get(operation.key)
        if isinstance(table, dict):
            yield EndpointLatency(operation=operation.key, **_latency_distribution_fields(table))


def parse_read_back_counts(answer: object, object_count: int) -> ReadBackCounts:
    """What a load that reads back so many objects told at its end. LineError for anything else."""
    counts = table_or_empty(require_object(answer), "objects")
    table = table_or_empty(table_or_empty(counts, "kinds"), ObjectOperation.OBJECT_GET.key)
    compared, errors = count_or_zero(table, "operations"), table_or_empty(table, "attempt_errors")
    missing = count_or_zero(errors, "NoSuchKey")
    differing = sum(count_or_zero(errors, name) for name in CONTENT_ERROR_CLASSES)
    if (total := compared + missing + differing) > object_count:
        raise LineError(f"it read {total} objects back, where {object_count} were put")
    return ReadBackCounts(
        objects=object_count,
        compared=compared,
        missing=missing,
        differing=differing,
        unread=object_count - total,
    )


def parse_task_answer(output: bytes, answer_key: str) -> Any:  # noqa: ANN401 - of any shape
    """What a task that is no load answered under a key. LineError where it did not."""
    for line in reversed(output.splitlines()):
        document = _parse_json_line(line)
        if answer_key in document:
            return document[answer_key]
    raise LineError(f"it told no {answer_key}")


def task_failure_sentences(output: bytes) -> tuple[str, ...]:
    """The sentences with which a task says that it could not be done."""
    for line in reversed(output.splitlines()):
        document = _parse_json_line(line)
        if "fault" in document:
            faults = document["fault"]
            return printable_sentences(faults if isinstance(faults, list) else [faults])
    return ()


def _parse_json_line(line: bytes) -> Document:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
