"""From the tables of a study file without faults to the `Study` of the model."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from iolab.core.configuration import (
    AxisSampling,
    Capacity,
    Configuration,
    ProcurementCost,
    Redundancy,
)
from iolab.core.host import HostRole, HostSpec, HostTransport, HypervisorHints, SshRoute
from iolab.core.kubernetes import PodFleet
from iolab.core.object_store import ObjectStore
from iolab.core.power import MeterSettings, MeterSpec
from iolab.core.scenario import ScenarioPlan
from iolab.core.study import (
    FailurePolicy,
    Method,
    MethodKind,
    RunOrder,
    Study,
    TargetSettings,
    TelemetrySettings,
)
from iolab.core.target_state import Precondition
from iolab.core.workload import VMS_PER_NODE_AXIS, Workload
from iolab.study.file import (
    XFS,
    ConfigurationTable,
    HostTable,
    MeterTable,
    MethodTable,
    ObjectStoreTable,
    PreconditionTable,
    TargetTable,
    host_transport,
    stopping_rule_settings_from_table,
)
from iolab.study.kinds import StudyKinds
from iolab.study.load_tables import LoadTable
from iolab.study.scenario import build_scenario_plan, neighbour_workload_ids
from iolab.study.ssh_addresses import parse_jump_host
from iolab.study.tables import StudyTables, expand_nodes_to_clients
from iolab.study.values import program_option_text
from iolab.units import parse_size

ADAPTIVE_REPEATS: Final = 2
"""Without a second run there is no spread."""

DEFAULT_RETRIES: Final = 1
"""Tries after a run that failed; what fails twice is rarely chance."""


def build_study(
    tables: StudyTables,
    kinds: StudyKinds,
    *,
    scale: str,
    text: str,
    overrides: tuple[str, ...],
    inventory: str = "",
    kubernetes: PodFleet | None = None,
) -> Study:
    """The study; ValueError if the tables still had faults."""
    if tables.heading is None:
        raise ValueError("the heading has faults")
    heading, method = tables.heading, tables.method
    settings: dict[str, Any] = {
        section.study_field: section.settings(tables) for section in kinds.sections
    }
    hosts = tuple(build_host_spec(table) for _, table in tables.items_of_table("host", HostTable))
    hosts += kinds.hosts.booted_host_specs(tables, hosts)
    clients = {host.name: host.hypervisor for host in hosts if host.role is HostRole.CLIENT}
    nodes = tuple(host.name for host in hosts if host.role is HostRole.STORAGE)
    workloads = tuple(
        _with_knee_candidates_as_headline_loads(
            _adapted_to_separate_targets_if_in_pods(
                kinds.kind_for_table(type(table)).build_workload(item, table, tables), kubernetes
            ),
            *(tables, kinds),
        )
        for item, table in tables.items_of_table("workload", LoadTable)
    )
    begun_by_events = neighbour_workload_ids(tables)
    scenario = build_scenario_plan(
        tables, tuple(workload for workload in workloads if workload.id in begun_by_events)
    )
    return Study(
        id=heading.id,
        title=heading.title or heading.id,
        question=heading.question,
        answer=heading.answer,
        source=heading.source,
        configurations=tuple(
            _build_configuration(
                table, expand_nodes_to_clients(table.hosts, clients), nodes, tables.target
            )
            for _, table in tables.items_of_table("configuration", ConfigurationTable)
        ),
        hosts=hosts,
        workloads=tuple(item for item in workloads if item.id not in begun_by_events),
        method=_method_with_runtime_of_phases(_method_settings(method), scenario),
        telemetry=TelemetrySettings(
            round(tables.telemetry.interval * 1000),
            slow_ios=tables.telemetry.slow_ios,
            recorded_ios=tables.telemetry.recorded_ios,
        ),
        meters=MeterSettings(tables.meters.interval, tables.meters.idle),
        target=_target_settings(tables.target),
        scale=scale,
        text=text,
        overrides=overrides,
        inventory=inventory,
        precondition=_precondition_settings(tables.precondition),
        kubernetes=kubernetes,
        scenario=scenario,
        **settings,
    )


def _adapted_to_separate_targets_if_in_pods(workload: Workload, fleet: PodFleet | None) -> Workload:
    """The workload without what clients of one file system do, where each pod has its own."""
    if fleet is None or fleet.volumes_per_class == 1:
        return workload
    return replace(workload, job=workload.job.adapted_to_separate_targets())


def _target_settings(table: TargetTable) -> TargetSettings:
    makes_xfs = table.filesystem == XFS
    image = parse_size(table.image) if makes_xfs and table.image is not None else None
    return TargetSettings(
        table.keep_files,
        table.allow_memory,
        table.rotate,
        table.overwrite,
        make_xfs=makes_xfs,
        image_bytes=image,
        volume=table.volume,
        cloud_metadata=table.cloud_metadata,
    )


def _precondition_settings(table: PreconditionTable) -> Precondition:
    return Precondition(
        purge=table.purge,
        fill=table.fill,
        steady=table.steady,
        round_s=table.round,
        rounds_max=table.rounds,
        restore=table.restore,
    )


def _method_settings(table: MethodTable) -> Method:
    return Method(
        kind=table.kind,
        warmup_s=table.warmup,
        runtime_s=table.runtime,
        repeats=_repeats_or_adaptive_default(table),
        settle_s=table.settle,
        idle_watch_s=table.idle_watch,
        generator_limit=table.generator_limit,
        link_timeout_s=table.link_timeout,
        order=_run_order(table),
        seed=table.seed,
        drop_caches=table.drop_caches,
        on_failure=table.on_failure,
        retries=_retry_count(table),
        rule=stopping_rule_settings_from_table(table)
        if table.kind is MethodKind.ADAPTIVE
        else None,
        repeats_max=max(table.repeats_max, _repeats_or_adaptive_default(table)),
        target_half_width=table.target_half_width,
        sentinel=table.sentinel or "",
    )


def _method_with_runtime_of_phases(method: Method, scenario: ScenarioPlan | None) -> Method:
    """A run of phases is as long as they are."""
    return method if scenario is None else replace(method, runtime_s=scenario.max_duration_s)


def _repeats_or_adaptive_default(table: MethodTable) -> int:
    """As written; the adaptive method needs a spread, so where nothing is written it begins so."""
    is_set = table.kind is MethodKind.FIXED or "repeats" in table.model_fields_set
    return table.repeats if is_set else ADAPTIVE_REPEATS


def _run_order(table: MethodTable) -> RunOrder:
    """As written; where nothing is, the adaptive method lets no drift follow an axis."""
    is_set = table.kind is MethodKind.FIXED or "order" in table.model_fields_set
    return table.order if is_set else RunOrder.RANDOMISED


def _retry_count(method: MethodTable) -> int:
    """How often a failed run is tried again: as written, once where only the policy is."""
    if method.on_failure is not FailurePolicy.RETRY:
        return 0
    return method.retries or DEFAULT_RETRIES


def build_host_spec(table: HostTable) -> HostSpec:
    """A host without faults, of the kind that its keys call for where it names none."""
    kind = host_transport(table)
    ssh = None
    if kind is HostTransport.SSH:
        hops = tuple(hop for text in table.jump or () if (hop := parse_jump_host(text)) is not None)
        address = table.address or table.name
        ssh = SshRoute(address, table.user, table.port, hops, table.key, table.known_hosts)
    return HostSpec(
        name=table.name,
        transport=kind,
        role=table.role,
        command_prefix=tuple(table.command),
        path=table.device or table.path,
        ssh=ssh,
        devices=tuple(table.devices or ()),
        numjobs=table.numjobs,
        serial=table.serial if table.device else None,
        hypervisor=table.node or "",
        storage_address=table.storage_address or "",
        hypervisor_hints=HypervisorHints(table.cores, table.numa_nodes, table.queues),
        meters=tuple(map(_build_meter_spec, table.meters)),
    )


def _build_meter_spec(table: MeterTable) -> MeterSpec:
    return MeterSpec(
        name=table.name,
        kind=table.kind,
        boundary=table.boundary,
        command=tuple(table.command),
        address=table.address,
        user=table.user,
        password_variable=table.password_variable or "",
        object_id=table.object_id or "",
        scale=table.scale,
        cipher_suite=table.cipher_suite,
        ca_file=table.ca_file or "",
    )


def _build_configuration(
    table: ConfigurationTable,
    hosts: tuple[str, ...],
    nodes: tuple[str, ...],
    common_target: TargetTable,
) -> Configuration:
    # A target of its own hides the common one whole, its serial too.
    target = table if table.device or table.path else common_target
    cost, factors = table.cost, table.redundancy
    return Configuration(
        id=table.id,
        title=table.title or table.id,
        hosts=hosts,
        path=target.device or target.path or "",
        nodes=table.nodes,
        capacity=Capacity(table.capacity.raw_tb, table.capacity.usable_tb),
        cost=ProcurementCost(
            cost.currency, cost.servers, cost.network, cost.storage, cost.kwh_price
        )
        if cost
        else None,
        hardware=tuple(
            (name, program_option_text(value)) for name, value in table.hardware.items()
        ),
        storage=tuple(nodes if table.storage is None else table.storage),
        redundancy=Redundancy(factors.write_factor, factors.read_factor) if factors else None,
        serial=target.serial if target.device else None,
        object_store=_object_store(table if table.endpoint else common_target),
    )


def _object_store(table: ObjectStoreTable) -> ObjectStore | None:
    if table.endpoint is None or table.bucket is None:
        return None
    return ObjectStore(
        endpoints=tuple(table.endpoint),
        bucket=table.bucket,
        region=table.region,
        addressing=table.addressing,
        spread=table.endpoint_use,
        payload=table.payload,
        ca_file=table.ca_file,
        profile=table.profile,
        credentials_command=tuple(table.credentials_command),
        create_bucket=table.create_bucket,
    )


def _with_knee_candidates_as_headline_loads(
    workload: Workload, tables: StudyTables, kinds: StudyKinds
) -> Workload:
    """The workload with its fleet measured in any case where its nodes' load may turn."""
    aim, axes = workload.search_goal, {axis.name: axis.values for axis in workload.sweep}
    if aim.axis_sampling is not AxisSampling.ADAPTIVE or VMS_PER_NODE_AXIS not in axes:
        return workload
    forced = kinds.hosts.knee_load_candidates_per_node(
        tables, [int(load) for load in axes[VMS_PER_NODE_AXIS]]
    )
    if not forced:
        return workload
    return replace(
        workload,
        search_goal=replace(aim, headline_loads=tuple(sorted({*aim.headline_loads, *forced}))),
    )
