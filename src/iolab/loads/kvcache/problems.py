"""What KV-cache workloads are refused for: over several keys, and by their trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.loads.kvcache.generator import CONVERSATION_TRACE_NAME
from iolab.loads.kvcache.replay import (
    GENERATED_STEP_S,
    largest_request_block_count,
    read_or_generate_trace,
)
from iolab.loads.kvcache.table import KvCacheTable
from iolab.loads.kvcache.trace import RequestTraceError, trace_with_block_tokens
from iolab.loads.kvcache.workload import BlockPlacement, KvCacheJob
from iolab.study.document import StudyDocument
from iolab.study.tables import ElementFault, StudyTables, add_element_faults
from iolab.units import format_bytes, parse_size

FILES_MAX: Final = 1_000_000
"""Objects in files of their own on one host: the folder is one, and each is opened anew."""


def add_kv_cache_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add every fault of KV-cache workloads that no single key shows."""
    for item, table in tables.items_of_table("workload", KvCacheTable):
        add_element_faults(document, item, _kv_cache_element_faults(table))
        if document.tree.get("precondition", {}).get("steady"):
            message = f"steady of [precondition] does not go with workload {table.id}."
            hint = "Leave steady out: a store that is full is in the state that a trace leaves."
            document.add_fault(("precondition", "steady"), message, hint)


def _kv_cache_element_faults(table: KvCacheTable) -> Iterator[ElementFault]:
    try:
        trace = read_or_generate_trace(table.trace, GENERATED_STEP_S)
        trace_with_block_tokens(trace, table.block_tokens)
    except RequestTraceError as fault:
        hint = "Give a file of one JSON object a line, or 'conversation'."
        yield ElementFault(("trace",), f"a trace that cannot be replayed: {fault}", hint)
        return
    if table.requests_per_s is None:
        hint = (
            "Write for example requests_per_s = [4, 8]; the trace's own rate is "
            f"{trace.requests_per_s:.3g}."
        )
        yield ElementFault(("requests_per_s",), "no requests_per_s", hint)
    job = table.build_job()
    if table.trace != CONVERSATION_TRACE_NAME and job.start_s * 1e9 > trace.span_ns:
        has = f"start = {job.start_s:g} s, but its trace ends at {trace.span_ns / 1e9:.0f} s"
        yield ElementFault(("start",), has, "Give an earlier start.")
    yield from _capacity_element_faults(table, job)


def _capacity_element_faults(table: KvCacheTable, job: KvCacheJob) -> Iterator[ElementFault]:
    largest = largest_request_block_count(job)
    least = largest * job.block_bytes
    for index, capacity in enumerate(table.capacity):
        if parse_size(capacity) < least:
            has = (
                f"capacity = {capacity}, but the largest request of its trace has {largest} blocks "
                f"of {format_bytes(job.block_bytes)}"
            )
            yield ElementFault(
                ("capacity", index) if len(table.capacity) > 1 else ("capacity",),
                has,
                f"Give at least {format_bytes(least)}.",
            )
    objects = job.store_slot_count * job.objects_per_block
    if job.placement is BlockPlacement.FILES and objects > FILES_MAX:
        has = f"objects = 'files', which makes {objects:,} of them on each host"
        hint = f"Write objects = 'slab', or a capacity of at most {FILES_MAX:,} objects."
        yield ElementFault(("objects",), has, hint)
