"""From the tables of a study file without faults to the `Study` of the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from iolab.model.configuration import Capacity, Configuration, Cost, Redundancy
from iolab.model.engine import EngineName
from iolab.model.fio_options import option_text
from iolab.model.host import HostKind, HostSpec, Role, Room, SshRoute
from iolab.model.metadata import MetadataJob
from iolab.model.native_options import AUTO
from iolab.model.objective import Aim, AxisMode
from iolab.model.state import Precondition
from iolab.model.study import (
    Method,
    MethodKind,
    OnFailure,
    Order,
    Study,
    TargetSettings,
    TelemetrySettings,
)
from iolab.model.workload import Axis, Indicator, Job, Workload
from iolab.plan.aim_tables import aim_of
from iolab.plan.guest_build import forced_loads, guest_hosts, guest_settings
from iolab.plan.guest_members import members
from iolab.plan.guest_tables import HOSTS, PER_NODE
from iolab.plan.key_value_build import key_value_workload, server_of
from iolab.plan.key_value_tables import DbBenchTable, YcsbTable
from iolab.plan.method_table import MethodTable, rule_of
from iolab.plan.routes import parse_hop
from iolab.plan.study_file import (
    AXES,
    METADATA_AXES,
    ConfigurationTable,
    HostTable,
    MetadataTable,
    WorkloadTable,
    kind_of,
)
from iolab.plan.tables import Item, Tables
from iolab.plan.target_tables import XFS, PreconditionTable, Table, TargetTable
from iolab.units import parse_size

BANDWIDTH_BLOCK_BYTES: Final = 64 * 1024
"""From this block size on, throughput is the figure that a device is bought for."""

ADAPTIVE_REPEATS: Final = 2
"""Without a second run there is no spread."""

DEFAULT_RETRIES: Final = 1
"""Tries after a run that failed; what fails twice is rarely chance."""

DEFAULT_READ_PERCENT: Final = 50
"""fio's own rwmixread."""


def build_study(
    tables: Tables, *, scale: str, text: str, overrides: tuple[str, ...], inventory: str = ""
) -> Study:
    """The study; ValueError if the tables still had faults."""
    if tables.heading is None:
        raise ValueError("the heading has faults")
    heading, method = tables.heading, tables.method
    hosts = tuple(host_spec(table) for _, table in tables.read("host", HostTable))
    hosts += guest_hosts(tables, hosts)
    clients = {host.name: host.node for host in hosts if host.role is Role.CLIENT}
    nodes = tuple(host.name for host in hosts if host.role is Role.STORAGE)
    return Study(
        id=heading.id,
        title=heading.title or heading.id,
        question=heading.question,
        source=heading.source,
        configurations=tuple(
            _configuration(table, members(table.hosts, clients), nodes, tables.target)
            for _, table in tables.read("configuration", ConfigurationTable)
        ),
        hosts=hosts,
        workloads=tuple(
            _workload(item, table, tables)
            for item, table in tables.read("workload", Table)
            if isinstance(table, WorkloadTable | MetadataTable | DbBenchTable | YcsbTable)
        ),
        method=_method(method),
        telemetry=TelemetrySettings(round(tables.telemetry.interval * 1000)),
        target=_target(tables.target),
        scale=scale,
        text=text,
        overrides=overrides,
        inventory=inventory,
        precondition=_precondition(tables.precondition),
        server=server_of(tables.server),
        guests=guest_settings(tables),
    )


def _target(table: TargetTable) -> TargetSettings:
    made = table.filesystem == XFS
    image = parse_size(table.image) if made and table.image is not None else None
    return TargetSettings(
        table.keep_files,
        table.allow_memory,
        table.rotate,
        table.overwrite,
        make_xfs=made,
        image_bytes=image,
    )


def _precondition(table: PreconditionTable) -> Precondition:
    return Precondition(
        purge=table.purge,
        fill=table.fill,
        steady=table.steady,
        round_s=table.round,
        rounds_max=table.rounds,
        restore=table.restore,
    )


def _method(table: MethodTable) -> Method:
    return Method(
        kind=table.kind,
        warmup_s=table.warmup,
        runtime_s=table.runtime,
        repeats=_repeats(table),
        settle_s=table.settle,
        order=_order(table),
        seed=table.seed,
        drop_caches=table.drop_caches,
        on_failure=table.on_failure,
        retries=_retries(table),
        rule=rule_of(table) if table.kind is MethodKind.ADAPTIVE else None,
        repeats_max=max(table.repeats_max, _repeats(table)),
        target_half_width=table.target_half_width,
        sentinel=table.sentinel or "",
    )


def _repeats(table: MethodTable) -> int:
    """As written; the adaptive method needs a spread, so where nothing is written it begins so."""
    written = table.kind is MethodKind.FIXED or "repeats" in table.model_fields_set
    return table.repeats if written else ADAPTIVE_REPEATS


def _order(table: MethodTable) -> Order:
    """As written; where nothing is, the adaptive method lets no drift follow an axis."""
    written = table.kind is MethodKind.FIXED or "order" in table.model_fields_set
    return table.order if written else Order.RANDOMISED


def _retries(method: MethodTable) -> int:
    """How often a failed run is tried again: as written, once where only the policy is."""
    if method.on_failure is not OnFailure.RETRY:
        return 0
    return method.retries or DEFAULT_RETRIES


def host_spec(table: HostTable) -> HostSpec:
    """A host without faults, of the kind that its keys call for where it names none."""
    kind = kind_of(table)
    ssh = None
    if kind is HostKind.SSH:
        hops = tuple(hop for text in table.jump or () if (hop := parse_hop(text)) is not None)
        address = table.address or table.name
        ssh = SshRoute(address, table.user, table.port, hops, table.key, table.known_hosts)
    return HostSpec(
        name=table.name,
        kind=kind,
        role=table.role,
        command=tuple(table.command),
        path=table.device or table.path,
        ssh=ssh,
        devices=tuple(table.devices or ()),
        numjobs=table.numjobs,
        serial=table.serial if table.device else None,
        node=table.node or "",
        storage_address=table.storage_address or "",
        room=Room(table.cores, table.numa_nodes, table.queues),
    )


def _configuration(
    table: ConfigurationTable, hosts: tuple[str, ...], nodes: tuple[str, ...], common: TargetTable
) -> Configuration:
    # A target of its own hides the common one whole, its serial too.
    target = table if table.device or table.path else common
    cost, factors = table.cost, table.redundancy
    return Configuration(
        id=table.id,
        title=table.title or table.id,
        hosts=hosts,
        path=target.device or target.path or "",
        nodes=table.nodes,
        capacity=Capacity(table.capacity.raw_tb, table.capacity.usable_tb),
        cost=Cost(cost.currency, cost.servers, cost.network, cost.storage) if cost else None,
        hardware=tuple((name, option_text(value)) for name, value in table.hardware.items()),
        storage=tuple(nodes if table.storage is None else table.storage),
        redundancy=Redundancy(factors.write_factor, factors.read_factor) if factors else None,
        serial=target.serial if target.device else None,
    )


def _workload(
    item: Item,
    table: WorkloadTable | MetadataTable | DbBenchTable | YcsbTable,
    tables: Tables,
) -> Workload:
    if isinstance(table, DbBenchTable | YcsbTable):
        return key_value_workload(item.written, table, tables.server)
    sweep = tuple(
        Axis(name, tuple(getattr(table, name)))
        for name in (METADATA_AXES if isinstance(table, MetadataTable) else AXES)
        # Who makes the load is told of every point that says so.
        if isinstance(item.written.get(name), list)
        or (name in (PER_NODE, HOSTS) and name in item.written)
    )
    if isinstance(table, MetadataTable):
        return Workload(
            id=table.id,
            title=table.title or table.id,
            job=_metadata_job(table),
            sweep=sweep,
            indicator=table.indicator,
            repeats=table.iterations,
        )
    return Workload(
        id=table.id,
        title=table.title or table.id,
        job=_job(table),
        sweep=sweep,
        indicator=table.indicator or _usual_indicator(table),
        aim=_aim(table, tables),
    )


def _aim(table: WorkloadTable, tables: Tables) -> Aim:
    """What is looked for; the fleet is measured in any case where its nodes' load may turn."""
    aim, guests = aim_of(table), guest_settings(tables)
    if guests is None or aim.axis is not AxisMode.ADAPTIVE or table.vms_per_node is None:
        return aim
    rooms = (host_spec(host).room for _, host in tables.read("host", HostTable))
    forced = forced_loads(rooms, guests.vcpus, table.vms_per_node)
    return replace(aim, headline=tuple(sorted({*aim.headline, *forced})))


def _metadata_job(table: MetadataTable) -> MetadataJob:
    """The job at the first value of every axis; a shift that is left out is a client's ranks."""
    return MetadataJob(
        engine=table.engine,
        ranks=table.ranks[0],
        files_per_rank=table.files_per_rank[0],
        rank_shift=table.ranks[0] if table.rank_shift is None else table.rank_shift,
        file_bytes=parse_size(table.file_bytes),
        options=tuple((name, option_text(value)) for name, value in table.mdtest.items()),
    )


def _job(table: WorkloadTable) -> Job:
    """The job at the first value of every axis."""
    mix = table.rwmixread[0] if table.rwmixread else DEFAULT_READ_PERCENT
    return Job(
        engine=table.engine,
        access=table.rw,
        block_bytes=parse_size(table.bs[0]),
        iodepth=table.iodepth[0],
        numjobs=table.numjobs[0],
        file_bytes=parse_size(table.filesize[0]),
        files_per_job=table.files,
        shared_file=table.shared_file,
        read_percent=mix if table.rw.mixed else None,
        direct=table.direct,
        ioengine=_ioengine(table),
        contents=table.contents,
        rate_iops=table.rate_iops[0] if table.rate_iops else None,
        rate_bytes_per_s=parse_size(table.rate[0]) if table.rate else None,
        fleet_rate_iops=table.fleet_rate_iops[0] if table.fleet_rate_iops else None,
        arrivals=table.arrivals,
        verify=table.verify,
        options=tuple((name, option_text(value)) for name, value in table.fio.items()),
    )


def _ioengine(table: WorkloadTable) -> str:
    """How I/O is asked for: of the native engine the best way it finds, unless one is named."""
    free = table.engine is EngineName.NATIVE and "ioengine" not in table.model_fields_set
    return AUTO if free else table.ioengine


def _usual_indicator(table: WorkloadTable) -> Indicator:
    large = parse_size(table.bs[0]) >= BANDWIDTH_BLOCK_BYTES
    return Indicator.BANDWIDTH if large else Indicator.IOPS
