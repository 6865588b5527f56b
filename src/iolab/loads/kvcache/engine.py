"""The agent's engine of KV-cache load: what it is told of a host's requests, and what it tells."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from iolab.core.run import EngineTotals
from iolab.errors import EngineError
from iolab.hosts.agent_engine import (
    TIMED_INTERVAL_MS,
    compact_ascii_json,
    timed_agent_engine_command,
)
from iolab.hosts.engine import Command
from iolab.hosts.engine_lines import (
    EngineLineReader,
    count_or_zero,
    parse_operation_interval,
    require_count,
    require_operation_table,
)
from iolab.hosts.engine_totals import parse_engine_totals, parse_io_and_service_time_intervals
from iolab.hosts.intervals import DirectionInterval
from iolab.loads.kvcache.replay import ReplayPlan, encode_requests, ideal_lru_hit_counts
from iolab.loads.kvcache.workload import (
    BlockPlacement,
    KvCacheHostDetails,
    KvCacheJob,
    KvCacheOperation,
    WriteDurability,
)

FORMAT: Final = 1
ARGV: Final = ("iolab-agent", "kv-cache")
SPEC_BYTES_MAX: Final = 1 << 20
"""What one message to the agent holds."""

SPEC_HEAD_BYTES: Final = 1024
"""Of it, beside the requests."""


def kv_cache_command(
    job: KvCacheJob,
    replay: ReplayPlan,
    host_index: int,
    directory: str,
    *,
    seconds: float,
    seed: int,
) -> Command:
    """The process of one host. EngineError where it has more requests than a message holds."""
    warm, requests = replay.warm_and_replayed_requests(host_index)
    data_set = job.data_set("")
    spec: dict[str, Any] = {
        "format": FORMAT,
        "object_bytes": job.object_bytes,
        "objects": job.objects_per_block,
        "slots": job.store_slot_count,
        "capacity": job.capacity_blocks_per_client,
        "memory": job.memory_blocks_per_client,
        "place": job.placement.value,
        "path": f"{data_set.id}.0."
        if job.placement is BlockPlacement.FILES
        else f"{data_set.id}.0.0",
        "write": job.write.value,
        "fsync": job.durable is WriteDurability.FSYNC,
        "direct": job.direct,
        "verify": job.verifies_blocks,
        "reads_in_flight": job.reads_in_flight,
        "writes_in_flight": job.writes_in_flight,
        "closed": job.requests_per_s is None,
        "runtime_s": seconds,
        "interval_ms": TIMED_INTERVAL_MS,
        "seed": seed,
        "warm": len(warm),
    }
    encoded = compact_ascii_json(encode_requests((*warm, *requests)))
    text = compact_ascii_json({**spec, "requests": []}).replace(
        '"requests":[]', f'"requests":{encoded}'
    )
    if len(text) > SPEC_BYTES_MAX:
        message = f"A host's requests take {len(text):,} bytes, a message to the agent holds 1 MiB."
        raise EngineError(message, "Give fewer requests_per_s, or a shorter method.runtime.")
    # The requests follow from the study; their checksum says what they were.
    recorded = {**spec, "requests_sha256": hashlib.sha256(encoded.encode()).hexdigest()}
    return timed_agent_engine_command(
        ARGV, directory, text, seconds, recorded_spec=compact_ascii_json(recorded)
    )


def max_requests_message_bytes(replay: ReplayPlan, host_index: int) -> int:
    """What a host is told of its requests, and somewhat more for all else."""
    warm, requests = replay.warm_and_replayed_requests(host_index)
    return len(compact_ascii_json(encode_requests((*warm, *requests)))) + SPEC_HEAD_BYTES


class KvCacheLineReader(EngineLineReader):
    """Reads what the engine prints on one host; `details` when it has ended."""

    engine_title = "kv-cache"

    def __init__(self, job: KvCacheJob, replay: ReplayPlan, host_index: int) -> None:
        super().__init__()
        self._job = job
        self._replay = replay
        self._host = host_index
        self._backlog: list[int] = []
        self._write_backlog: list[int] = []
        self.details: KvCacheHostDetails | None = None

    def parse_interval_line(self, document: dict[str, Any]) -> tuple[DirectionInterval, ...]:
        """Reads and writes of objects, and the operations that are made of them."""
        parts: list[DirectionInterval] = []
        for direction in self._job.data_directions:
            parts += parse_io_and_service_time_intervals(
                direction, require_operation_table(document, direction.key)
            )
        parts += (
            parse_operation_interval(operation, require_operation_table(document, operation.key))
            for operation in KvCacheOperation
        )
        return tuple(parts)

    def keep_backlog(self, document: dict[str, Any]) -> None:
        """See `EngineLineReader`."""
        self._backlog.append(require_count(document, "backlog"))
        self._write_backlog.append(require_count(document, "write_backlog"))

    def keep_load_details(self, first_line: dict[str, Any], last_line: dict[str, Any]) -> None:  # noqa: ARG002
        """What was counted of requests."""
        self.details = self._parse_run_details(require_operation_table(last_line, "requests"))

    def parse_totals(self, first_line: dict[str, Any], last_line: dict[str, Any]) -> EngineTotals:
        """See `EngineLineReader`."""
        return parse_engine_totals(first_line, last_line, self._job.data_directions, 1)

    def add_incomplete_run_faults(self, totals: EngineTotals, last_line: dict[str, Any]) -> None:
        """A run of nothing but failures."""
        generator = totals.generator
        failed = generator.failed_ios if generator else 0
        ways = (totals.read, totals.write)
        if failed and not any(way.ios for way in ways if way is not None):
            self.faults.add_fault(f"all {failed} I/Os failed")
        if not require_operation_table(last_line, "requests").get("requests"):
            self.faults.add_fault("no request came")

    def _parse_run_details(self, counts: Mapping[str, Any]) -> KvCacheHostDetails:
        warm, requests = self._replay.warm_and_replayed_requests(self._host)
        came = requests[: require_count(counts, "requests")]
        ideal = ideal_lru_hit_counts(self._job, warm, came)
        return KvCacheHostDetails(
            requests=require_count(counts, "requests"),
            blocks=require_count(counts, "blocks"),
            hits=require_count(counts, "hits"),
            memory_hits=count_or_zero(counts, "memory_hits"),
            ideal_hits=ideal.hits,
            hits_awaiting_write=count_or_zero(counts, "waits"),
            requests_with_reads=require_count(counts, "loads"),
            unfinished_requests=require_count(counts, "unloaded"),
            blocks_admitted=require_count(counts, "stores"),
            blocks_dropped_unwritten=count_or_zero(counts, "unwritten"),
            evictions=count_or_zero(counts, "evictions"),
            held_at_start=require_count(counts, "held_at_start"),
            held_at_end=require_count(counts, "held_at_end"),
            capacity_blocks=self._job.capacity_blocks_per_client,
            input_tokens=sum(request.input_tokens for request in came),
            clock_factor=self._replay.clock_factor,
            backlog=tuple(self._backlog),
            write_backlog=tuple(self._write_backlog),
        )
