"""What checkpoint workloads are refused for: over several keys, and on hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolab.core.host import HostFacts
from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.errors import Fault
from iolab.loads.checkpoint.layouts import Layout
from iolab.loads.checkpoint.table import CheckpointTable
from iolab.loads.checkpoint.workload import CheckpointJob
from iolab.study.document import StudyDocument
from iolab.study.file import ConfigurationTable
from iolab.study.tables import Problem, StudyTables, add_problems, hosts_needing_paths
from iolab.study.targets import targets_of_study
from iolab.text import counted_noun, quote_value
from iolab.units import format_bytes

THREADS_MAX: Final = 8192
"""Of the engine on one host."""

MEMORY_SHARE: Final = 0.5
"""Part of a host's memory that requests under way may take."""


def add_checkpoint_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add every fault of checkpoint workloads that no single key shows."""
    clients = sorted(
        {
            max(len(hosts_needing_paths(tables, table)), 1)
            for _, table in tables.items_of_table("configuration", ConfigurationTable)
        }
    ) or [1]
    for item, table in tables.items_of_table("workload", CheckpointTable):
        add_problems(document, item, _checkpoint_problems(table, clients))
        if document.tree.get("precondition", {}).get("steady"):
            message = f"steady of [precondition] does not go with workload {table.id}."
            hint = "Leave steady out: a checkpoint is saved to new files each time."
            document.add_fault(("precondition", "steady"), message, hint)


def _checkpoint_problems(table: CheckpointTable, clients: list[int]) -> Iterator[Problem]:
    shape, layout = table.shape, table.used_layout
    ranks = table.ranks or shape.ranks
    if layout is Layout.ZERO3 and shape.pipeline_parallel > 1:
        has = (
            f"layout = 'zero3', but {table.model} has {shape.pipeline_parallel} pipeline stages, "
            "which zero3 does not know"
        )
        yield Problem(("layout",), has, "Write layout = 'megatron' or 'dcp'.")
    if layout is not Layout.DCP and ranks % shape.model_parallel:
        has = (
            f"ranks = {ranks}, but {shape.model_parallel} ranks hold one copy of {table.model} "
            f"({shape.tensor_parallel} tensor x {shape.pipeline_parallel} pipeline parallel)"
        )
        hint = f"Give a multiple of {shape.model_parallel}, or write layout = 'dcp'."
        yield Problem(("ranks",), has, hint)
    yield from _restore_problems(table, layout, ranks)
    for key, count in (("ranks", ranks), ("restore_ranks", table.restore_ranks or ranks)):
        uneven = [hosts for hosts in clients if count % hosts]
        if uneven and (key == "ranks" or table.restore_ranks):
            has = f"{key} = {count}, which {counted_noun(uneven[0], 'host')} cannot share evenly"
            hint = f"Give a multiple of {uneven[0]}, or another number of hosts."
            yield Problem((key,), has, hint)
    for key, flying in (
        ("writes_in_flight", max(table.writes_in_flight)),
        ("reads_in_flight", max(table.reads_in_flight)),
    ):
        threads = -(-ranks // clients[0]) * flying
        if threads > THREADS_MAX:
            has = f"{key} = {flying}, which takes {threads:,} threads on each host"
            yield Problem((key,), has, f"At most {THREADS_MAX:,}: give more hosts, or less of it.")


def _restore_problems(table: CheckpointTable, layout: Layout, ranks: int) -> Iterator[Problem]:
    if not table.restore:
        for key, value in (
            ("restore_ranks", table.restore_ranks),
            ("rank_shift", table.rank_shift),
        ):
            if value is not None:
                has = f"{key} = {value}, but restore = false"
                yield Problem((key,), has, f"Leave {key} out, or write restore = true.")
        return
    if (table.restore_ranks or ranks) != ranks and layout is not Layout.DCP:
        has = (
            f"restore_ranks = {table.restore_ranks} for {ranks} ranks, but files of layout "
            f"{quote_value(layout.value)} are restored by as many ranks as saved them"
        )
        yield Problem(("restore_ranks",), has, "Write layout = 'dcp', or leave restore_ranks out.")
    if table.rank_shift is not None and table.rank_shift >= ranks:
        has = f"rank_shift = {table.rank_shift} of {ranks} ranks"
        yield Problem(("rank_shift",), has, f"Give 0 to {ranks - 1}.")


def memory_faults(study: Study, plan: Plan, facts: Mapping[str, HostFacts]) -> list[Fault]:
    """Hosts whose memory is too small for the requests that their ranks have under way."""
    faults = []
    for target in targets_of_study(study):
        known = facts.get(target.key)
        if known is None:
            continue
        memory = known.memory.usable_bytes
        for point in plan.points:
            job = point.job
            if (
                not isinstance(job, CheckpointJob)
                or point.configuration not in target.configurations
            ):
                continue
            clients = len(study.configuration(point.configuration).hosts)
            needed = job.buffer_bytes(clients)
            if needed > MEMORY_SHARE * memory:
                message = (
                    f"Host {quote_value(target.host)} has {format_bytes(memory)} of memory, and "
                    f"{point.title_text} needs {format_bytes(needed)} for the requests of "
                    f"{counted_noun(job.ranks // clients, 'rank')}."
                )
                hint = (
                    "Set a smaller workload.*.read_size or reads_in_flight, or give more hosts: "
                    f"at most {format_bytes(round(MEMORY_SHARE * memory))} go."
                )
                faults.append(Fault(message, hint))
    return list(dict.fromkeys(faults))
