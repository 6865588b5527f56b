"""KV-cache load in studies and plans: its table, its faults, what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from iolab.core.engine import EngineName
from iolab.core.host import DeviceFacts, HostFacts
from iolab.core.run import Plan, Point
from iolab.core.study import Study
from iolab.errors import Fault
from iolab.loads.kvcache.problems import add_kv_cache_faults
from iolab.loads.kvcache.replay import ideal_lru_hit_counts, plan_replay
from iolab.loads.kvcache.table import KvCacheTable
from iolab.loads.kvcache.trace import RequestTraceError
from iolab.loads.kvcache.workload import KV_CACHE_ENGINE, KvCacheJob, WritePolicy
from iolab.record import Record
from iolab.study.document import StudyDocument
from iolab.study.kinds import HostStudyKind, KnownFacts, LoadStudyKind
from iolab.study.load_tables import LoadTable
from iolab.study.tables import StudyTables
from iolab.study.targets import load_host_names_of_point
from iolab.study.writes import RunWrites
from iolab.text import percent_text
from iolab.units import format_bytes, format_count, format_rate_bytes

PLANNED_S_MAX: Final = 600.0
"""Of a run's requests, by which its reads and writes are told beforehand."""


REQUESTS_HINT: Final = "Give fewer requests_per_s, a shorter method.runtime, or more hosts."


class ReplayDemand(Record):
    """What the requests of a run ask of all hosts together, a second."""

    hit_share: float
    read_bytes_per_s: float
    write_bytes_per_s: float
    clock_factor: float


@lru_cache(maxsize=64)
def replay_demand(
    job: KvCacheJob, seconds: float, host_count: int, seed: int
) -> ReplayDemand | None:
    """What a run asks for at its rate; None without one, or without a trace."""
    if job.requests_per_s is None:
        return None
    seconds = min(seconds, PLANNED_S_MAX)
    try:
        replay = plan_replay(job, seconds, host_count, seed)
    except RequestTraceError:
        return None
    counts = [
        ideal_lru_hit_counts(job, *replay.warm_and_replayed_requests(host))
        for host in range(host_count)
    ]
    blocks, hits = sum(c.references for c in counts), sum(c.hits for c in counts)
    writes = 0 if job.write is WritePolicy.NONE else blocks - hits
    return ReplayDemand(
        hit_share=hits / blocks if blocks else 0.0,
        read_bytes_per_s=hits * job.block_bytes / seconds,
        write_bytes_per_s=writes * job.block_bytes / seconds,
        clock_factor=replay.clock_factor,
    )


class KvCacheStudyKind(LoadStudyKind):
    """The part of KV-cache load in studies and plans."""

    engines_by_table: Mapping[type[LoadTable], tuple[EngineName, ...]] = {
        KvCacheTable: (KV_CACHE_ENGINE,)
    }
    example_by_key: Mapping[str, str] = {"capacity": '"4t"'}

    def job_text(self, job: KvCacheJob) -> str:
        """See `LoadStudyKind`."""
        rate = "as many requests as it can"
        if job.requests_per_s is not None:
            rate = f"{format_count(job.requests_per_s)} requests/s"
        blocks = format_count(job.capacity_blocks_per_client)
        store = f"{blocks} blocks of {format_bytes(job.block_bytes)}"
        start = f"{job.trace} trace from {job.start_s:g} s on"
        return f"{start}, {rate}, {store} on each host ({job.placement})"

    def add_workload_faults(self, document: StudyDocument, tables: StudyTables) -> None:
        """Add every fault of its workloads that no single key shows."""
        add_kv_cache_faults(document, tables)

    def readiness_faults(
        self,
        study: Study,
        plan: Plan,
        facts_by_target: Mapping[str, HostFacts],  # noqa: ARG002 - it is the same of all
        device_facts_by_target: Mapping[str, DeviceFacts],  # noqa: ARG002
    ) -> list[Fault]:
        """Runs with more requests than a host can be told of at once."""
        found = (
            _too_large_requests_message_fault(study, p)
            for p in plan.points
            if isinstance(p.job, KvCacheJob)
        )
        return [fault for fault in found if fault is not None]

    def writes_of_run(self, study: Study, point: Point, host_kind: HostStudyKind) -> RunWrites:  # noqa: ARG002
        """The blocks that its requests bring and the store has not."""
        job = KvCacheJob.require_type(point.job)
        if job.write is WritePolicy.NONE:
            return RunWrites()
        makers = len(load_host_names_of_point(study, point))
        seconds = study.method.load_seconds_range
        demand = _point_replay_demand(study, point)
        if demand is None:
            return RunWrites(host_share_at_target_speed=makers, seconds_range=seconds)
        return RunWrites(limited_bytes_per_s=demand.write_bytes_per_s, seconds_range=seconds)

    def plan_notes(self, study: Study, plan: Plan, facts_by_target: KnownFacts) -> Iterable[str]:  # noqa: ARG002
        """What each rate asks of the store."""
        for point in plan.points:
            if not isinstance(point.job, KvCacheJob):
                continue
            demand = _point_replay_demand(study, point)
            if demand is not None:
                yield (
                    f"{point.title_text}: {demand.clock_factor:.3g} x the trace's clock, "
                    f"{percent_text(demand.hit_share)} hits: reads "
                    f"{format_rate_bytes(demand.read_bytes_per_s)}, writes "
                    f"{format_rate_bytes(demand.write_bytes_per_s)}"
                )


def _point_replay_demand(study: Study, point: Point) -> ReplayDemand | None:
    job = KvCacheJob.require_type(point.job)
    makers = len(load_host_names_of_point(study, point))
    seconds = study.method.load_seconds_range[1]
    return replay_demand(job, seconds, makers, study.method.seed)


def _too_large_requests_message_fault(study: Study, point: Point) -> Fault | None:
    """Why a run cannot be told to its hosts; None where it can."""
    from iolab.loads.kvcache.engine import SPEC_BYTES_MAX, max_requests_message_bytes

    job = KvCacheJob.require_type(point.job)
    hosts = len(load_host_names_of_point(study, point))
    seconds = study.method.load_seconds_range[1]
    try:
        replay = plan_replay(job, seconds, hosts, study.method.seed)
    except RequestTraceError as fault:
        return Fault(f"The trace of {point.title_text}: {fault}.", REQUESTS_HINT)
    most = max(max_requests_message_bytes(replay, host) for host in range(hosts))
    if most <= SPEC_BYTES_MAX:
        return None
    requests = format_count(len(replay.requests) - replay.warm_request_count)
    message = (
        f"{point.title_text} replays {requests} requests, of which a host would be told "
        f"{format_bytes(most)}; {format_bytes(SPEC_BYTES_MAX)} are the most."
    )
    return Fault(message, REQUESTS_HINT)
