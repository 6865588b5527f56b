"""What metadata workloads are refused for: over several keys, and on hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iolab.core.host import HostFacts
from iolab.core.run import Plan, Point
from iolab.core.study import Study
from iolab.errors import MAKE_ROOM, Fault
from iolab.loads.metadata.table import MetadataTable
from iolab.loads.metadata.workload import (
    MDTEST_ENGINE,
    MDTEST_OPTIONS,
    MetadataJob,
    space_bytes_per_client,
)
from iolab.study.cost import with_free_space_margin
from iolab.study.document import StudyDocument
from iolab.study.file import ConfigurationTable
from iolab.study.host_targets import (
    HostTarget,
    group_by_file_system,
    host_targets_with_facts,
    is_surely_other_directory,
)
from iolab.study.tables import (
    ElementFault,
    StudyTables,
    add_element_faults,
    add_option_faults,
    target_host_names,
)
from iolab.study.targets import Target
from iolab.text import quote_value
from iolab.units import format_bytes, parse_size

TOTAL_RANKS_MAX: Final = 1 << 20
"""Ranks of a fleet, as many as the wire can number."""

BUFFERS_MAX: Final = 1 << 30
"""Contents that the ranks of one host hold in memory, as the wire has it."""

_SHARE: Final = (
    "Mount one shared file system on all clients, give one client, or set "
    "workload.*.rank_shift=0 with engine = 'metadata', and clients work on what they made."
)

_HINT: Final = f"{MAKE_ROOM}give another path, or set fewer workload.*.files_per_rank or ranks."


def add_metadata_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add every fault of metadata workloads that no single key shows."""
    clients = _largest_client_count(tables)
    for item in tables.items_by_section["workload"]:
        add_option_faults(document, item, "mdtest", MetadataTable, MDTEST_OPTIONS)
    for item, workload in tables.items_of_table("workload", MetadataTable):
        add_element_faults(document, item, _workload_element_faults(workload, clients))


def _workload_element_faults(workload: MetadataTable, client_count: int) -> Iterator[ElementFault]:
    engine, ranks = f"engine = {quote_value(workload.engine)}", max(workload.ranks)
    if ranks * client_count > TOTAL_RANKS_MAX:
        has = f"ranks = {ranks}, which makes {ranks * client_count} on {client_count} clients"
        yield ElementFault(("ranks",), has, f"Keep ranks x clients at most {TOTAL_RANKS_MAX}.")
    # With several ranks one shift fits one point; left out, it is each point's own.
    if workload.rank_shift and len(workload.ranks) > 1:
        has = f"rank_shift = {workload.rank_shift} for several ranks, {quote_value(workload.ranks)}"
        hint = "Leave rank_shift out, and it follows ranks; or write 0."
        yield ElementFault(("rank_shift",), has, hint)
    buffers = ranks * parse_size(workload.file_bytes)
    if buffers > BUFFERS_MAX:
        has = (
            f"file_bytes = {quote_value(workload.file_bytes)}, which takes {format_bytes(buffers)} "
        )
        has += f"of memory for {ranks} ranks"
        hint = f"Keep file_bytes x ranks at most {format_bytes(BUFFERS_MAX)}."
        yield ElementFault(("file_bytes",), has, hint)
    if workload.mdtest and workload.engine != MDTEST_ENGINE:
        hint = "Leave it out, or write engine = 'mdtest'."
        yield ElementFault(("mdtest",), f"mdtest, which does not go with {engine}", hint)
    if workload.phase_runtime is not None and workload.engine == MDTEST_ENGINE:
        has = f"phase_runtime, which does not go with {engine}: that needs a number of files"
        hint = "Leave it out and set files_per_rank, or write engine = 'metadata'."
        yield ElementFault(("phase_runtime",), has, hint)


def _largest_client_count(tables: StudyTables) -> int:
    """Hosts of the configuration that has most of them."""
    written = tables.items_of_table("configuration", ConfigurationTable)
    return max((len(target_host_names(tables, table)) for _, table in written), default=1)


def metadata_target_faults(
    study: Study, plan: Plan, facts_by_target: Mapping[str, HostFacts]
) -> list[Fault]:
    """A target that is not shared, too few inodes, or too little space; once a file system.

    A run removes what it made, so that the largest counts. Clients that share a file system need
    room for all of them there: it is known to be one where the network or one kernel tells so.
    """
    places = host_targets_with_facts(study, facts_by_target)
    faults = [
        fault
        for place in places
        for fault in _unsuitable_file_system_faults(study, plan, place.target)
    ]
    faults += _unshared_target_faults(study, plan, places)
    for group in group_by_file_system(places):
        configurations = {name for place in group for name in place.target.configurations}
        for configuration in sorted(configurations):
            sharing = [place for place in group if configuration in place.target.configurations]
            fault = _inodes_or_space_fault(_point_needing_most_inodes(plan, configuration), sharing)
            if fault is not None and fault not in faults:
                faults.append(fault)
    return faults


def _unsuitable_file_system_faults(study: Study, plan: Plan, target: Target) -> Iterator[Fault]:
    """A file system that only one host sees, inside its scratch folder, cannot serve."""
    jobs = [point.job for point in plan.points if point.configuration in target.configurations]
    if study.target.make_xfs and any(isinstance(job, MetadataJob) for job in jobs):
        message = "Metadata load is to run on an XFS that the session makes, which it cannot."
        yield Fault(message, "Give a directory on an XFS, and leave target.filesystem out.")


def _unshared_target_faults(
    study: Study, plan: Plan, host_targets: Sequence[HostTarget]
) -> Iterator[Fault]:
    """Clients that are to work on what others made, and cannot see it.

    Only what is sure is told; a session looks for itself, where it is not.
    """
    for configuration in study.configurations:
        own = [place for place in host_targets if configuration.id in place.target.configurations]
        asking = [
            point
            for point in plan.points
            if point.configuration == configuration.id
            and _uses_files_of_other_clients(point, len(own))
        ]
        if not asking:
            continue
        blind = next((place for place in own[1:] if is_surely_other_directory(own[0], place)), None)
        if blind is not None:
            first, second = (
                f"{quote_value(place.target.path)} on {quote_value(place.target.host)}"
                for place in (own[0], blind)
            )
            message = (
                f"{asking[0].title_text} has clients work on each other's files, but {first} and "
                f"{second} are not one directory of a shared file system."
            )
            yield Fault(message, _SHARE)


def _uses_files_of_other_clients(point: Point, client_count: int) -> bool:
    """Whether a client works on what another one made."""
    job = point.job
    if not isinstance(job, MetadataJob) or client_count < 2:
        return False
    return job.engine == MDTEST_ENGINE or job.rank_shift % (job.ranks * client_count) != 0


def _point_needing_most_inodes(plan: Plan, configuration_id: str) -> Point | None:
    points = [
        point
        for point in plan.points
        if point.configuration == configuration_id and isinstance(point.job, MetadataJob)
    ]
    return max(points, key=_needed_inodes_and_bytes_per_client, default=None)


def _needed_inodes_and_bytes_per_client(point: Point) -> tuple[int, int]:
    """Inodes and bytes that one client needs."""
    job = point.job
    return (
        (job.inodes_per_client, space_bytes_per_client(job))
        if isinstance(job, MetadataJob)
        else (0, 0)
    )


def _inodes_or_space_fault(
    point: Point | None, targets_on_file_system: Sequence[HostTarget]
) -> Fault | None:
    if point is None:
        return None
    inodes, space = (
        need * len(targets_on_file_system) for need in _needed_inodes_and_bytes_per_client(point)
    )
    first = targets_on_file_system[0]
    where = f"{quote_value(first.target.path)} on host {quote_value(first.target.host)}"
    if len(targets_on_file_system) > 1:
        where += f", shared by {len(targets_on_file_system)} hosts,"
    # Some file systems have no fixed number of inodes and say 0.
    if 0 < first.target_facts.free_inodes < inodes:
        message = (
            f"{where} has {first.target_facts.free_inodes} inodes free, "
            f"{point.title_text} needs {inodes}."
        )
        return Fault(message, _HINT)
    if first.target_facts.free_bytes < with_free_space_margin(space):
        message = (
            f"{where} has {format_bytes(first.target_facts.free_bytes)} free, "
            f"{point.title_text} needs {format_bytes(with_free_space_margin(space))}."
        )
        return Fault(message, _HINT)
    return None
