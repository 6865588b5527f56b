"""What checkpoint workloads are refused for: over several keys, and on hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iolab.core.host import HostFacts
from iolab.core.run import Plan, Point
from iolab.core.study import Study
from iolab.errors import MAKE_ROOM, Fault
from iolab.loads.checkpoint.layouts import CheckpointLayout
from iolab.loads.checkpoint.models import CUSTOM, MODELS
from iolab.loads.checkpoint.placement import other_client_indexes_to_restore_from
from iolab.loads.checkpoint.table import PARALLEL_KEYS, SHAPE_KEYS, CheckpointTable
from iolab.loads.checkpoint.workload import CheckpointJob
from iolab.study.cost import with_free_space_margin
from iolab.study.document import StudyDocument
from iolab.study.file import ConfigurationTable
from iolab.study.host_targets import (
    HostTarget,
    group_by_file_system,
    host_targets_with_facts,
    is_surely_other_directory,
)
from iolab.study.tables import ElementFault, StudyTables, add_element_faults, target_host_names
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
            max(len(target_host_names(tables, table)), 1)
            for _, table in tables.items_of_table("configuration", ConfigurationTable)
        }
    ) or [1]
    for item, table in tables.items_of_table("workload", CheckpointTable):
        add_element_faults(document, item, _checkpoint_element_faults(table, clients))
        if document.tree.get("precondition", {}).get("steady"):
            message = f"steady of [precondition] does not go with workload {table.id}."
            hint = "Leave steady out: a checkpoint is saved to new files each time."
            document.add_fault(("precondition", "steady"), message, hint)


def _model_and_shape_key_faults(table: CheckpointTable) -> Iterator[ElementFault]:
    """Of a model of the study's own too few keys, of another one any."""
    own = (*SHAPE_KEYS, *PARALLEL_KEYS)
    if table.model != CUSTOM:
        for key in own:
            if (value := getattr(table, key)) is not None:
                has = f"{key} = {value}, but {table.model} has a shape of its own"
                yield ElementFault((key,), has, f"Leave {key} out, or write model = '{CUSTOM}'.")
        return
    for key in SHAPE_KEYS:
        if getattr(table, key) is None:
            hint = f"Write for example {key} = {getattr(MODELS['llama3-8b'], key)}."
            yield ElementFault((key,), f"model = '{CUSTOM}' and no {key}", hint)
    hidden, heads, kv_heads = table.hidden or 1, table.heads or 1, table.kv_heads or 1
    if table.hidden and hidden % heads:
        has = f"heads = {heads}, which do not divide hidden = {hidden}"
        yield ElementFault(("heads",), has, "Give a divisor of hidden.")
    if table.heads and kv_heads > heads:
        has = f"kv_heads = {kv_heads}, more than heads = {heads}"
        yield ElementFault(("kv_heads",), has, f"Give at most {heads}.")


def _checkpoint_element_faults(
    table: CheckpointTable, client_counts: list[int]
) -> Iterator[ElementFault]:
    yield from _model_and_shape_key_faults(table)
    shape, layout = table.model_shape, table.effective_layout
    ranks = table.ranks or shape.ranks
    if layout is CheckpointLayout.ZERO3 and shape.pipeline_parallel > 1:
        has = (
            f"layout = 'zero3', but {table.model} has {shape.pipeline_parallel} pipeline stages, "
            "which zero3 does not know"
        )
        yield ElementFault(("layout",), has, "Write layout = 'megatron' or 'dcp'.")
    if layout is not CheckpointLayout.DCP and ranks % shape.ranks_per_model_copy:
        has = (
            f"ranks = {ranks}, but {shape.ranks_per_model_copy} ranks hold one copy of "
            f"{table.model} "
            f"({shape.tensor_parallel} tensor x {shape.pipeline_parallel} pipeline parallel)"
        )
        hint = f"Give a multiple of {shape.ranks_per_model_copy}, or write layout = 'dcp'."
        yield ElementFault(("ranks",), has, hint)
    yield from _restore_element_faults(table, layout, ranks)
    for key, count in (("ranks", ranks), ("restore_ranks", table.restore_ranks or ranks)):
        uneven = [hosts for hosts in client_counts if count % hosts]
        if uneven and (key == "ranks" or table.restore_ranks):
            has = f"{key} = {count}, which {counted_noun(uneven[0], 'host')} cannot share evenly"
            hint = f"Give a multiple of {uneven[0]}, or another number of hosts."
            yield ElementFault((key,), has, hint)
    for key, flying in (
        ("writes_in_flight", max(table.writes_in_flight)),
        ("reads_in_flight", max(table.reads_in_flight)),
    ):
        threads = -(-ranks // client_counts[0]) * flying
        if threads > THREADS_MAX:
            has = f"{key} = {flying}, which takes {threads:,} threads on each host"
            yield ElementFault(
                (key,), has, f"At most {THREADS_MAX:,}: give more hosts, or less of it."
            )


def _restore_element_faults(
    table: CheckpointTable, layout: CheckpointLayout, rank_count: int
) -> Iterator[ElementFault]:
    if not table.restore:
        for key, value in (
            ("restore_ranks", table.restore_ranks),
            ("rank_shift", table.rank_shift),
        ):
            if value is not None:
                has = f"{key} = {value}, but restore = false"
                yield ElementFault((key,), has, f"Leave {key} out, or write restore = true.")
        return
    if (table.restore_ranks or rank_count) != rank_count and layout is not CheckpointLayout.DCP:
        has = (
            f"restore_ranks = {table.restore_ranks} for {rank_count} ranks, but files of layout "
            f"{quote_value(layout.value)} are restored by as many ranks as saved them"
        )
        yield ElementFault(
            ("restore_ranks",), has, "Write layout = 'dcp', or leave restore_ranks out."
        )
    if table.rank_shift is not None and table.rank_shift >= rank_count:
        has = f"rank_shift = {table.rank_shift} of {rank_count} ranks"
        yield ElementFault(("rank_shift",), has, f"Give 0 to {rank_count - 1}.")


def request_buffer_memory_faults(
    study: Study, plan: Plan, facts_by_target: Mapping[str, HostFacts]
) -> list[Fault]:
    """Hosts whose memory is too small for the requests that their ranks have under way."""
    faults = []
    for target in targets_of_study(study):
        known = facts_by_target.get(target.key)
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
            needed = job.in_flight_bytes_max_per_client(clients)
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


def target_space_and_sharing_faults(
    study: Study, plan: Plan, facts_by_target: Mapping[str, HostFacts]
) -> list[Fault]:
    """File systems that are too small for a checkpoint, and hosts that cannot restore theirs.

    Only what is sure is told; a session looks for itself, where it is not.
    """
    places = host_targets_with_facts(study, facts_by_target)
    faults: list[Fault] = []
    for configuration in study.configurations:
        own = [place for place in places if configuration.id in place.target.configurations]
        points = [
            point
            for point in plan.points
            if point.configuration == configuration.id and isinstance(point.job, CheckpointJob)
        ]
        clients = {name: place for place, name in enumerate(configuration.hosts)}
        for point in points:
            faults += _unshared_target_faults(point, own, clients)
            faults += [
                fault
                for group in group_by_file_system(own)
                if (fault := _space_fault(point, group, clients)) is not None
            ]
    return list(dict.fromkeys(faults))


def _unshared_target_faults(
    point: Point, host_targets: Sequence[HostTarget], client_index_by_host: Mapping[str, int]
) -> Iterator[Fault]:
    """The first host that surely does not see what it is to restore."""
    job = CheckpointJob.require_type(point.job)
    by_client = {client_index_by_host[place.target.host]: place for place in host_targets}
    pairs = (
        (place, by_client[maker])
        for client, place in by_client.items()
        for maker in other_client_indexes_to_restore_from(job, len(client_index_by_host), client)
        if maker in by_client
    )
    found = next((pair for pair in pairs if is_surely_other_directory(*pair)), None)
    if found is not None:
        reader, saver = (
            f"{quote_value(place.target.path)} on {quote_value(place.target.host)}"
            for place in found
        )
        message = (
            f"{point.title_text} is restored by other hosts than saved it, but {reader} and "
            f"{saver} are not one directory of a shared file system."
        )
        hint = (
            "Mount one shared file system on all hosts; or set workload.*.rank_shift=0, and hosts "
            "restore what they saved."
        )
        yield Fault(message, hint)


def _space_fault(
    point: Point,
    targets_on_file_system: Sequence[HostTarget],
    client_index_by_host: Mapping[str, int],
) -> Fault | None:
    """Why the ranks of the hosts that share a file system cannot save there."""
    job = CheckpointJob.require_type(point.job)
    each = job.ranks // len(client_index_by_host)
    ranks = [
        rank
        for place in targets_on_file_system
        for client in [client_index_by_host[place.target.host]]
        for rank in range(client * each, (client + 1) * each)
    ]
    needed = with_free_space_margin(sum(map(job.checkpoint_files.bytes_of_rank, ranks)))
    first = targets_on_file_system[0]
    if first.target_facts.free_bytes >= needed:
        return None
    shared = (
        f", shared by {len(targets_on_file_system)} hosts,"
        if len(targets_on_file_system) > 1
        else ""
    )
    message = (
        f"{quote_value(first.target.path)} on host {quote_value(first.target.host)}{shared} has "
        f"{format_bytes(first.target_facts.free_bytes)} free, {point.title_text} needs "
        f"{format_bytes(needed)} for {counted_noun(len(ranks), 'rank')}."
    )
    hint = f"{MAKE_ROOM}give another path or more file systems, or set a larger workload.*.shrink."
    return Fault(message, hint)
