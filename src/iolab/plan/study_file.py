"""The study file as it is written: one pydantic model a table, with every default and limit.

`docs/reference/study.md` says what each key means; `schema/study.json` is generated from here.
Checks that look at more than one key are in `cross.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from iolab.model.engine import EngineName
from iolab.model.fio_options import IOENGINES
from iolab.model.host import HostKind, Role
from iolab.model.workload import Access, Arrivals, Contents, Indicator
from iolab.plan import routes, values
from iolab.plan.aim_tables import AimTable
from iolab.plan.guest_tables import HOSTS, PER_NODE, PerNode, VmTable
from iolab.plan.key_value_tables import (
    DB_BENCH_AXES,
    DB_BENCH_ENGINES,
    YCSB_AXES,
    YCSB_ENGINES,
    DbBenchTable,
    ServerTable,
    YcsbTable,
)
from iolab.plan.method_table import REPEATS_MAX, MethodTable
from iolab.plan.table_types import Id, Label, Numbers, Prose, Sizes, Title
from iolab.plan.target_tables import (
    DevicePath,
    Flag,
    PreconditionTable,
    Serial,
    Table,
    TargetPath,
    TargetTable,
)
from iolab.plan.wording import nearest, shown

FORMAT: Final = 1
"""The only version of the file format so far."""

RATES: Final = ("rate_iops", "rate", "fleet_rate_iops")
"""Keys of a workload that say how fast it goes, of which it has one at most."""

AXES: Final = ("bs", "iodepth", "numjobs", "rwmixread", "filesize", *RATES, PER_NODE, HOSTS)
"""Keys of a workload that may be lists; several lists make a product, the first varies slowest."""

METADATA_AXES: Final = ("ranks", "files_per_rank")
"""The same of workloads of metadata operations."""

EVERY_AXIS: Final = tuple(dict.fromkeys((*AXES, *METADATA_AXES, *DB_BENCH_AXES, *YCSB_AXES)))
"""The same of workloads of any kind."""

METADATA_ENGINES: Final = (EngineName.METADATA, EngineName.MDTEST)
"""Engines of metadata operations."""

RANKS_MAX: Final = 4096
FILES_PER_RANK_MAX: Final = 1_000_000
RANK_FILE_BYTES_MAX: Final = 1 << 20
RANK_SHIFT_MAX: Final = (1 << 20) - 1
"""Limits of the wire."""

SECTOR_BYTES: Final = 512
"""The smallest block that any device has."""

BLOCK_BYTES_MAX: Final = 1 << 30
"""fio allocates iodepth x bs for each job; more than 1 GiB a block fits no client."""

FILE_BYTES_MAX: Final = 1 << 50
"""A pebibyte: larger than any file that a layout could finish."""

IODEPTH_MAX: Final = 65536
"""The largest queue that the kernel grants an io_uring or (by default) all of libaio."""

NUMJOBS_MAX: Final = 4096
"""As many jobs as one fio takes (REAL_MAX_JOBS in fio's os headers)."""

FILES_MAX: Final = 10_000
"""Files of one job; fio keeps them open."""

RATE_MAX: Final = 100_000_000
"""I/Os per second of one job; no job comes near."""

RATE_BYTES_MAX: Final = 1 << 40
"""The same in bytes: more than any host's memory moves."""

FLEET_RATE_MAX: Final = RATE_MAX * 1000
"""The same of all jobs of all hosts."""

ROOM_MAX: Final = 65536
"""More cores, NUMA nodes or queues than any machine has."""

INTERVAL_S_MIN: Final = 0.1
INTERVAL_S_MAX: Final = 60.0
NODES_MAX: Final = 100_000
ARGUMENT_CHARACTERS: Final = 4096


Amount = Annotated[float, values.amount()]
Count = Annotated[int, values.whole(1, NODES_MAX)]
Argument = Annotated[str, values.text(ARGUMENT_CHARACTERS)]
BlockSize = Annotated[int | str, values.size(SECTOR_BYTES, BLOCK_BYTES_MAX, multiple=SECTOR_BYTES)]
FileSize = Annotated[int | str, values.size(SECTOR_BYTES, FILE_BYTES_MAX, multiple=SECTOR_BYTES)]
IoDepth = Annotated[int, values.whole(1, IODEPTH_MAX)]
NumJobs = Annotated[int, values.whole(1, NUMJOBS_MAX)]
Percent = Annotated[int, values.whole(0, 100)]
Rate = Annotated[int, values.whole(1, RATE_MAX)]
RateBytes = Annotated[int | str, values.size(1, RATE_BYTES_MAX, multiple=1)]
FleetRate = Annotated[int, values.whole(1, FLEET_RATE_MAX)]
Port = Annotated[int, values.whole(1, routes.PORT_MAX)]
Devices = Annotated[list[Annotated[str, values.block_device()]], values.Listed(lone=True)]
Room = Annotated[int, values.whole(1, ROOM_MAX)]
IpAddress = Annotated[str, routes.ip_address()]
WRITTEN_KINDS: Final = tuple(kind for kind in HostKind if kind is not HostKind.VM)
"""Guests are of a kind that nobody writes: a study's [vm] makes them."""

WrittenKind = Annotated[HostKind, values.choice(HostKind, "kinds of host", WRITTEN_KINDS)]
IO_ENGINES: Final = (EngineName.FIO, EngineName.NATIVE)
OPERATIONS: Final = (Indicator.OPERATIONS,)
IO_INDICATORS: Final = (Indicator.IOPS, Indicator.BANDWIDTH, Indicator.LATENCY)
IoIndicator = Annotated[Indicator, values.choice(Indicator, "indicators", IO_INDICATORS)]
OperationsIndicator = Annotated[Indicator, values.choice(Indicator, "indicators", OPERATIONS)]


class CapacityTable(Table):
    """`capacity` of a configuration, in decimal terabytes."""

    raw_tb: Amount | None = None
    usable_tb: Amount | None = None


class CostTable(Table):
    """`cost` of a configuration by part, in one currency."""

    currency: Annotated[str, values.text(16)]
    servers: Amount
    network: Amount
    storage: Amount


class RedundancyTable(Table):
    """`redundancy` of a configuration: bytes that its disks move for one byte of a client."""

    write_factor: Annotated[float, values.factor()]
    read_factor: Annotated[float, values.factor()] = 1.0


class ConfigurationTable(Table):
    """`[[configuration]]`: a named set of hosts, target, hardware, capacity and cost."""

    id: Id
    title: Title | None = None
    path: TargetPath | None = None
    device: DevicePath | None = None
    serial: Serial | None = None
    hosts: Annotated[list[Annotated[str, values.host_name()]], values.Listed()] | None = None
    nodes: Count | None = None
    capacity: CapacityTable = CapacityTable()
    cost: CostTable | None = None
    hardware: dict[str, Label] = Field(default_factory=dict)
    storage: Annotated[list[Annotated[str, values.host_name()]], values.Listed()] | None = None
    redundancy: RedundancyTable | None = None


class HostTable(Table):
    """`[[host]]`: a machine and how it is reached."""

    name: Annotated[str, values.host_name()]
    kind: WrittenKind | None = None
    role: Annotated[Role, values.choice(Role, "roles")] = Role.CLIENT
    command: list[Argument] = Field(default_factory=list)
    path: TargetPath | None = None
    device: DevicePath | None = None
    serial: Serial | None = None
    address: Annotated[str, routes.address()] | None = None
    user: Annotated[str, routes.user()] | None = None
    port: Port | None = None
    jump: Annotated[list[Annotated[str, routes.hop()]], values.Listed(lone=True)] | None = None
    key: Annotated[str, routes.file()] | None = None
    known_hosts: Annotated[str, routes.file()] | None = None
    devices: Devices | None = None
    numjobs: NumJobs | None = None
    node: Annotated[str, values.host_name()] | None = None
    storage_address: IpAddress | None = None
    cores: Room | None = None
    numa_nodes: Room | None = None
    queues: Room | None = None


class WorkloadTable(AimTable):
    """`[[workload]]`: a described behaviour; the keys of `AXES` may be lists."""

    id: Id
    title: Title | None = None
    engine: Annotated[EngineName, values.choice(EngineName, "engines", IO_ENGINES)] = EngineName.FIO
    rw: Annotated[Access, values.choice(Access, "access patterns")]
    bs: Annotated[list[BlockSize], Sizes]
    iodepth: Annotated[list[IoDepth], Numbers] = Field(default=[1])
    numjobs: Annotated[list[NumJobs], Numbers] = Field(default=[1])
    filesize: Annotated[list[FileSize], Sizes]
    files: Annotated[int, values.whole(1, FILES_MAX)] = 1
    rwmixread: Annotated[list[Percent], Numbers] | None = None
    rate_iops: Annotated[list[Rate], Numbers] | None = None
    rate: Annotated[list[RateBytes], Sizes] | None = None
    fleet_rate_iops: Annotated[list[FleetRate], Numbers] | None = None
    vms_per_node: Annotated[list[PerNode], Numbers] | None = None
    hosts: Annotated[list[PerNode], Numbers] | None = None
    arrivals: Annotated[Arrivals, values.choice(Arrivals, "arrivals")] | None = None
    shared_file: Flag = False
    direct: Flag = True
    ioengine: Annotated[str, values.word(IOENGINES, "I/O engines")] = "libaio"
    contents: Annotated[Contents, values.choice(Contents, "contents")] = Contents.SCRAMBLED
    indicator: IoIndicator | None = None
    verify: Flag = False
    fio: dict[str, Label] = Field(default_factory=dict)


class MetadataTable(Table):
    """`[[workload]]` of metadata operations; the keys of `METADATA_AXES` may be lists."""

    id: Id
    title: Title | None = None
    engine: Annotated[EngineName, values.choice(EngineName, "engines", METADATA_ENGINES)]
    ranks: Annotated[list[Annotated[int, values.whole(1, RANKS_MAX)]], Numbers]
    files_per_rank: Annotated[list[Annotated[int, values.whole(1, FILES_PER_RANK_MAX)]], Numbers]
    rank_shift: Annotated[int, values.whole(0, RANK_SHIFT_MAX)] | None = None
    file_bytes: Annotated[int | str, values.size(0, RANK_FILE_BYTES_MAX, multiple=1)] = 0
    iterations: Annotated[int, values.whole(1, REPEATS_MAX)] | None = None
    indicator: OperationsIndicator = Indicator.OPERATIONS
    mdtest: dict[str, Label] = Field(default_factory=dict)


class TelemetryTable(Table):
    """`[telemetry]`: how often the hosts are watched."""

    interval: Annotated[float, values.seconds(INTERVAL_S_MIN, INTERVAL_S_MAX)] = 1.0


class HeadingTable(Table):
    """The keys before the first table."""

    format: Annotated[int, values.exactly(FORMAT, f"This iolab reads format = {FORMAT}.")]
    id: Id
    title: Title | None = None
    question: Prose = ""
    source: Prose = ""


class StudyFile(HeadingTable):
    """The whole file."""

    target: TargetTable = TargetTable()
    precondition: PreconditionTable = PreconditionTable()
    configuration: list[ConfigurationTable] = Field(default_factory=list)
    host: list[HostTable] = Field(default_factory=list)
    workload: Annotated[
        list[WorkloadTable | MetadataTable | DbBenchTable | YcsbTable], Field(min_length=1)
    ]
    server: ServerTable = ServerTable()
    vm: VmTable | None = None
    method: MethodTable = MethodTable()
    telemetry: TelemetryTable = TelemetryTable()
    scale: dict[str, dict[str, Any]] = Field(default_factory=dict)


HeadingTable.whole = StudyFile

SSH_KEYS: Final = ("address", "user", "port", "jump", "key", "known_hosts")
"""Keys of a host that only ssh reads."""

SECTIONS: Final[Mapping[str, type[Table]]] = {
    "target": TargetTable,
    "precondition": PreconditionTable,
    "server": ServerTable,
    "vm": VmTable,
    "method": MethodTable,
    "telemetry": TelemetryTable,
}
"""Tables that stand once, `vm` only where guests are to be booted."""

ROOM_KEYS: Final = ("storage_address", "cores", "numa_nodes", "queues")
"""Keys of a host that only hypervisors have."""

ITEMS: Final[Mapping[str, tuple[type[Table], str]]] = {
    "configuration": (ConfigurationTable, "id"),
    "host": (HostTable, "name"),
    "workload": (WorkloadTable, "id"),
}
"""Arrays of tables, each with the key that names an element."""

WORKLOADS: Final[Mapping[type[Table], tuple[EngineName, ...]]] = {
    WorkloadTable: IO_ENGINES,
    MetadataTable: METADATA_ENGINES,
    DbBenchTable: DB_BENCH_ENGINES,
    YcsbTable: YCSB_ENGINES,
}
"""The kinds of workload, each with the engines that it may name."""


EXAMPLES: Final[Mapping[str, str]] = {
    "format": str(FORMAT),
    "id": '"read-4k"',
    "name": '"client-1"',
    "rw": '"randread"',
    "bs": '"4k"',
    "filesize": '"2g"',
    "ranks": "16",
    "files_per_rank": "1000",
    "benchmark": '"readrandom"',
    "keys": "400000",
    "block_size": '"4k"',
    "threads": "16",
    "mix": "{ read = 0.5, update = 0.5 }",
    "records": "100000",
    "cost.currency": '"EUR"',
    "cost.servers": "40000",
    "cost.network": "8000",
    "cost.storage": "90000",
    "redundancy.write_factor": "3",
    "vcpus": "4",
    "memory": '"8g"',
    "disk": '"32g"',
}
"""What to write for each key that may not be left out."""


def kind_of(host: HostTable) -> HostKind:
    """How a host is reached: as it says, else as its other keys imply."""
    if host.kind is not None:
        return host.kind
    if host.command:
        return HostKind.COMMAND
    written = any(getattr(host, key) is not None for key in SSH_KEYS)
    return HostKind.SSH if written else HostKind.LOCAL


def kinds_of(section: str) -> tuple[type[Table], ...]:
    """The tables that elements of an array may be."""
    return tuple(WORKLOADS) if section == "workload" else (ITEMS[section][0],)


def table_of(section: str, written: Mapping[str, Any]) -> type[Table]:
    """The table that an element is: of a workload its engine decides, misspelt or not."""
    engine = written.get("engine")
    if section == "workload" and isinstance(engine, str):
        meant = nearest(engine, [name.value for name in EngineName])
        for table, engines in WORKLOADS.items():
            if meant in engines:
                return table
    return ITEMS[section][0]


def engines_with(key: str, table: type[Table]) -> str | None:
    """The engines of workloads that have a key which this kind lacks; None when none have."""
    if table not in WORKLOADS:
        return None
    having = [
        shown(engine.value)
        for kind, engines in WORKLOADS.items()
        for engine in engines
        if kind is not table and key in kind.model_fields
    ]
    return " or ".join(having) or None


def study_schema() -> dict[str, Any]:
    """The JSON Schema of a study file, as `schema/study.json` holds it."""
    schema = _without_null(StudyFile.model_json_schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "study.json",
        **schema,
        "title": "iolab study, format 1",
    }


def _without_null(schema: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """The schema without null, which TOML cannot write: an optional key is left out instead."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema if item != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _without_null(value)
        for key, value in schema.items()
        if value is not None and not (key == "title" and isinstance(value, str))
    }
    alternatives = kept.get("anyOf")
    if isinstance(alternatives, list) and len(alternatives) == 1:
        del kept["anyOf"]
        kept.update(alternatives[0])
    return kept
