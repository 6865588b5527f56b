"""The study file as it is written: one pydantic model a table, with every default and limit.

`docs/reference/study.md` says what each key means; `schema/study.json` is generated from here.
Those of `[[workload]]` belong to the kinds of load; faults of several keys are of `checks.py`.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Protocol, Union

from msgspec.structs import replace
from pydantic import Field, create_model

from iolab.core import study
from iolab.core.engine import EngineName
from iolab.core.host import HostRole, HostTransport
from iolab.core.limits import ENDPOINTS_MAX, SLOW_IOS_MAX
from iolab.core.object_store import DEFAULT_REGION, Addressing, EndpointChoice, PayloadSigning
from iolab.core.power import ExternalMeterKind, PowerBoundary
from iolab.core.stopping import PRESETS, StoppingPresetName, StoppingRuleSettings
from iolab.core.study import AnswerKind, FailurePolicy, MethodKind, RunOrder
from iolab.core.target_state import NO_PRECONDITION, PurgeMethod, RestorePolicy
from iolab.core.volume import VOLUME_TYPES
from iolab.record import Record
from iolab.study import ssh_addresses, values
from iolab.study.document import StudyDocument
from iolab.study.host_ranges import HOSTS_MAX
from iolab.study.kubernetes import KubernetesTable
from iolab.study.load_tables import Id, Label, LoadTable, NumJobs, Prose, StudyTable, Title
from iolab.study.scenario_tables import ActionTable, EventTable, PhaseTable, WitnessTable
from iolab.text import nearest_word, quote_value

FILL_MAX: Final = 100.0
"""A device that is not steady after so many times its size will never be."""

ROUND_S_MAX: Final = 3600.0
ROUNDS_MIN: Final = 5
"""As many as one window has."""

ROUNDS_MAX: Final = 1000
ARGUMENT_CHARACTERS: Final = 4096
REGION_CHARACTERS: Final = 64
BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""The names that every server takes."""

SERIAL_CHARACTERS: Final = 1024
"""As long as a path: the serial of a loop device is the path of its file."""


AS_FOUND: Final = "as-found"
XFS: Final = "xfs"
"""File systems that a target may have: the one that is there, or an XFS that a session makes."""

IMAGE_BYTES_MIN: Final = 320 << 20
"""mkfs.xfs makes none in less than 300 MiB."""

IMAGE_BYTES_MAX: Final = 1 << 50

REPEATS_MAX: Final = 1000
Flag = Annotated[bool, values.flag_value()]
TargetPath = Annotated[str, values.absolute_path_value()]
EndpointUrl = Annotated[str, values.server_url_value()]
BucketName = Annotated[
    str,
    values.matching_text_value(
        BUCKET.fullmatch,
        "Give 3 to 63 lower-case letters, digits, '.' and '-', as servers take them.",
        {"pattern": f"^{BUCKET.pattern}$"},
    ),
]
DevicePath = Annotated[str, values.device_path_value()]
Serial = Annotated[str, values.text_value(SERIAL_CHARACTERS)]

WARMUP_S_MAX: Final = 86_400.0

RUNTIME_S_MIN: Final = 0.1
"""Too short for any result, and long enough to try things; below it a unit was mistaken."""

RUNTIME_S_MAX: Final = 7 * 86_400.0

SETTLE_S_MAX: Final = 86_400.0
"""A day of waiting, a week of load: longer is a slip of the unit."""

IDLE_WATCH_S_MAX: Final = 3600.0
"""An hour: what others do now and then belongs into the run itself."""

IDLE_WATCH_S_MIN: Final = 1.0
"""A shorter look would miss who writes once a second, and still call the devices idle."""

LINK_TIMEOUT_S_MIN: Final = 5.0
"""Less is a pause that every loaded host and busy controller makes."""

LINK_TIMEOUT_S_MAX: Final = 86_400.0
"""A day: in effect hosts go on without their controller."""

RULE_S_MAX: Final = 86_400
"""A day: a rule that watches a run for longer is a slip of the unit."""

RETRIES_MAX: Final = 10
"""A run that fails more often will fail again."""

LOOKS_MAX: Final = 100
"""Looks in a row, batches, cycles: more of them would let no run end."""

SEED_MAX: Final = 2**32 - 1
_TIMES: Final = ("shortest", "longest", "step", "retained", "block", "cut_least")

_OTHERS: Final = (
    "precision",
    "consecutive",
    "batches_min",
    "cycles_min",
    "equivalence",
    "bias_share",
)

FORMAT: Final = 1
"""The only version of the file format so far."""

HYPERVISOR_HINT_MAX: Final = 65536
"""More cores, NUMA nodes or queues than any machine has."""

INTERVAL_S_MIN: Final = 0.1
INTERVAL_S_MAX: Final = 60.0

METER_INTERVAL_S_MIN: Final = 0.1
METER_INTERVAL_S_MAX: Final = 60.0
IDLE_POWER_S_MAX: Final = 3600.0

VARIABLE_PATTERN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""The name of an environment variable."""

OBJECT_ID_PATTERN: Final = re.compile(r"\.?[0-9]{1,10}(?:\.[0-9]{1,10}){1,63}")
"""An object of SNMP, by its numbers."""
RECORDED_IOS_MAX: Final = 1_000_000
"""I/Os of a host that the native engine records, at some 45 bytes each."""

NODES_MAX: Final = 100_000

WRITTEN_KINDS: Final = tuple(kind for kind in HostTransport if kind is not HostTransport.VM)
"""Guests are of a kind that nobody writes: a study's [vm] makes them."""

SSH_KEYS: Final = ("address", "user", "port", "jump", "key", "known_hosts")
"""Keys of a host that only ssh reads."""

HYPERVISOR_HINT_KEYS: Final = ("storage_address", "cores", "numa_nodes", "queues")
"""Keys of a host that only hypervisors have."""

EXAMPLES: Final[Mapping[str, str]] = {
    "format": str(FORMAT),
    "id": '"read-4k"',
    "storage_class": '"standard"',
    "volume": '"20Gi"',
    "name": '"client-1"',
    "cost.currency": '"EUR"',
    "cost.servers": "40000",
    "cost.network": "8000",
    "cost.storage": "90000",
    "redundancy.write_factor": "3",
}
"""What to write for each key that may not be left out."""

_OPTIONAL_SECTIONS: Final[Mapping[str, type[StudyTable]]] = {"kubernetes": KubernetesTable}


class ObjectStoreTable(StudyTable):
    """The keys of an object store, in `[target]` or of a configuration of its own."""

    endpoint: (
        Annotated[list[EndpointUrl], values.ListValue(allow_scalar=True, max_values=ENDPOINTS_MAX)]
        | None
    ) = None
    bucket: BucketName | None = None
    region: Annotated[str, values.text_value(REGION_CHARACTERS)] = DEFAULT_REGION
    addressing: Annotated[Addressing, values.choice_value(Addressing, "kinds of addressing")] = (
        Addressing.PATH
    )
    endpoint_use: Annotated[
        EndpointChoice, values.choice_value(EndpointChoice, "ways to use endpoints")
    ] = EndpointChoice.ALL
    payload: Annotated[PayloadSigning, values.choice_value(PayloadSigning, "ways to sign")] = (
        PayloadSigning.UNSIGNED
    )
    ca_file: Annotated[str, ssh_addresses.controller_file_value()] | None = None
    profile: Annotated[str, values.text_value(REGION_CHARACTERS)] | None = None
    credentials_command: list[Annotated[str, values.text_value(ARGUMENT_CHARACTERS)]] = Field(
        default_factory=list
    )
    create_bucket: Flag = False


class TargetTable(ObjectStoreTable):
    """`[target]`: where the load goes and what may happen there."""

    path: TargetPath | None = None
    device: DevicePath | None = None
    serial: Serial | None = None
    overwrite: Flag = False
    keep_files: Flag = False
    allow_memory: Flag = False
    rotate: Annotated[int, values.integer_value(0, HOSTS_MAX - 1)] = 0
    filesystem: Annotated[str, values.word_value((AS_FOUND, XFS), "file systems")] = AS_FOUND
    image: (
        Annotated[int | str, values.size_value(IMAGE_BYTES_MIN, IMAGE_BYTES_MAX, multiple=512)]
        | None
    ) = None
    volume: Annotated[str, values.word_value(VOLUME_TYPES, "volume types")] | None = None
    cloud_metadata: Flag = False


class PreconditionTable(StudyTable):
    """`[precondition]`: the state in which tests begin."""

    purge: Annotated[PurgeMethod, values.choice_value(PurgeMethod, "ways to purge")] = (
        PurgeMethod.NONE
    )
    fill: Annotated[float, values.multiplier_value(FILL_MAX)] = NO_PRECONDITION.fill
    steady: Flag = False
    round: Annotated[float, values.seconds_value(1, ROUND_S_MAX)] = NO_PRECONDITION.round_s
    rounds: Annotated[int, values.integer_value(ROUNDS_MIN, ROUNDS_MAX)] = (
        NO_PRECONDITION.rounds_max
    )
    restore: Annotated[RestorePolicy, values.choice_value(RestorePolicy, "times to restore")] = (
        RestorePolicy.ONCE
    )


Seconds = Annotated[int, values.whole_seconds_value(1, RULE_S_MAX)]
Few = Annotated[int, values.integer_value(1, LOOKS_MAX)]
Share = Annotated[float, values.share_value()]


class MethodTable(StudyTable):
    """`[method]`: the keys of both kinds may stand in one file, `kind` chooses."""

    kind: Annotated[MethodKind, values.choice_value(MethodKind, "methods")] = MethodKind.FIXED
    warmup: Annotated[float, values.seconds_value(0, WARMUP_S_MAX)] = 5.0
    runtime: Annotated[float, values.seconds_value(RUNTIME_S_MIN, RUNTIME_S_MAX)] = 30.0
    repeats: Annotated[int, values.integer_value(1, REPEATS_MAX)] = 1
    settle: Annotated[float, values.seconds_value(0, SETTLE_S_MAX)] = 1.0
    idle_watch: Annotated[float, values.seconds_value(0, IDLE_WATCH_S_MAX)] = study.IDLE_WATCH_S
    generator_limit: Flag = True
    link_timeout: Annotated[float, values.seconds_value(LINK_TIMEOUT_S_MIN, LINK_TIMEOUT_S_MAX)] = (
        study.LINK_TIMEOUT_S
    )
    order: Annotated[RunOrder, values.choice_value(RunOrder, "orders")] = RunOrder.AS_WRITTEN
    seed: Annotated[int, values.integer_value(0, SEED_MAX)] = 1
    drop_caches: Flag = True
    on_failure: Annotated[FailurePolicy, values.choice_value(FailurePolicy, "ways to go on")] = (
        FailurePolicy.SKIP_POINT
    )
    retries: Annotated[int, values.integer_value(1, RETRIES_MAX)] | None = None
    load_kind: Annotated[
        StoppingPresetName, values.choice_value(StoppingPresetName, "kinds of load")
    ] = StoppingPresetName.RAW_BLOCK
    precision: Share | None = None
    shortest: Seconds | None = None
    longest: Seconds | None = None
    step: Seconds | None = None
    consecutive: Few | None = None
    batches_min: Few | None = None
    cycles_min: Few | None = None
    retained: Seconds | None = None
    equivalence: Share | None = None
    bias_share: Share | None = None
    block: Seconds | None = None
    cut_least: Seconds | None = None
    repeats_max: Annotated[int, values.integer_value(1, REPEATS_MAX)] = study.REPEATS_MAX
    target_half_width: Share = study.TARGET_HALF_WIDTH
    sentinel: Annotated[str, values.identifier_value()] | None = None


def stopping_rule_settings_from_table(table: MethodTable) -> StoppingRuleSettings:
    """The rule: that of the kind of load, with single constants as written.

    Raises ValueError for constants that contradict one another.
    """
    named: dict[str, Any] = {f"{key}_s": getattr(table, key) for key in _TIMES}
    named |= {key: getattr(table, key) for key in _OTHERS}
    constants = {field: value for field, value in named.items() if value is not None}
    return replace(PRESETS[table.load_kind], **constants)


def add_method_faults(document: StudyDocument, method: MethodTable) -> None:
    """Add the faults of keys that do not go together, those of a rule that is not in use too."""
    if method.retries is not None and method.on_failure is not FailurePolicy.RETRY:
        message = f"retries = {method.retries}, but on_failure is '{method.on_failure.value}'."
        hint = f"Set method.on_failure to '{FailurePolicy.RETRY.value}', or leave retries out."
        document.add_fault(("method", "retries"), message, hint)
    if 0 < method.idle_watch < IDLE_WATCH_S_MIN:
        message = f"idle_watch = {method.idle_watch:g} s is too short to see who is busy there."
        hint = f"Give at least {IDLE_WATCH_S_MIN:g} s, or 0 to leave the watch out."
        document.add_fault(("method", "idle_watch"), message, hint)
    try:
        stopping_rule_settings_from_table(method)
    except ValueError as error:
        message = f"The stopping rule contradicts itself: {str(error).replace('_s ', ' ')}."
        hint = "docs/reference/study/method.md says how its keys go together."
        document.add_fault(("method",), message, hint)


Amount = Annotated[float, values.non_negative_number_value()]
Count = Annotated[int, values.integer_value(1, NODES_MAX)]
Argument = Annotated[str, values.text_value(ARGUMENT_CHARACTERS)]
HostName = Annotated[str, values.host_name_value()]
HostNames = Annotated[list[HostName], values.ListValue()]
SshUser = Annotated[str, ssh_addresses.ssh_user_value()]
Jumps = Annotated[
    list[Annotated[str, ssh_addresses.jump_host_value()]], values.ListValue(allow_scalar=True)
]
ControllerFile = Annotated[str, ssh_addresses.controller_file_value()]
Port = Annotated[int, values.integer_value(1, ssh_addresses.PORT_MAX)]
Devices = Annotated[
    list[Annotated[str, values.block_device_name_value()]], values.ListValue(allow_scalar=True)
]
HypervisorHint = Annotated[int, values.integer_value(1, HYPERVISOR_HINT_MAX)]
IpAddress = Annotated[str, ssh_addresses.ip_address_value()]

WrittenKind = Annotated[
    HostTransport, values.choice_value(HostTransport, "kinds of host", WRITTEN_KINDS)
]


class CapacityTable(StudyTable):
    """`capacity` of a configuration, in decimal terabytes."""

    raw_tb: Amount | None = None
    usable_tb: Amount | None = None


class CostTable(StudyTable):
    """`cost` of a configuration by part, in one currency."""

    currency: Annotated[str, values.text_value(16)]
    servers: Amount
    network: Amount
    storage: Amount
    kwh_price: Amount | None = None


class RedundancyTable(StudyTable):
    """`redundancy` of a configuration: bytes that its disks move for one byte of a client."""

    write_factor: Annotated[float, values.redundancy_factor_value()]
    read_factor: Annotated[float, values.redundancy_factor_value()] = 1.0


class ConfigurationTable(ObjectStoreTable):
    """`[[configuration]]`: a named set of hosts, target, hardware, capacity and cost."""

    id: Id
    title: Title | None = None
    path: TargetPath | None = None
    device: DevicePath | None = None
    serial: Serial | None = None
    hosts: HostNames | None = None
    nodes: Count | None = None
    capacity: CapacityTable = CapacityTable()
    cost: CostTable | None = None
    hardware: dict[str, Label] = Field(default_factory=dict)
    storage: HostNames | None = None
    redundancy: RedundancyTable | None = None


VariableName = Annotated[
    str,
    values.matching_text_value(
        VARIABLE_PATTERN.fullmatch,
        "Name the environment variable that has the password, never the password.",
        {"pattern": f"^{VARIABLE_PATTERN.pattern}$"},
    ),
]
SnmpObject = Annotated[
    str,
    values.matching_text_value(
        OBJECT_ID_PATTERN.fullmatch,
        "Give its numbers, as in '1.3.6.1.2.1.99.1.1.1.4.1'.",
        {"pattern": f"^{OBJECT_ID_PATTERN.pattern}$"},
    ),
]


class MeterTable(StudyTable):
    """An element of `meters` of a host: a power meter that its kernel does not have."""

    name: Id
    kind: Annotated[ExternalMeterKind, values.choice_value(ExternalMeterKind, "kinds of meter")]
    boundary: Annotated[PowerBoundary, values.choice_value(PowerBoundary, "boundaries")] = (
        PowerBoundary.NODE
    )
    command: list[Argument] = Field(default_factory=list)
    address: Annotated[str, values.text_value(ARGUMENT_CHARACTERS)] = ""
    user: Annotated[str, values.text_value(ARGUMENT_CHARACTERS)] = ""
    password_variable: VariableName | None = None
    object_id: SnmpObject | None = None
    scale: Annotated[float, values.number_value(1e-9, 1e9)] = 1.0
    cipher_suite: Annotated[int, values.integer_value(0, 255)] = 17
    ca_file: ControllerFile | None = None


class HostTable(StudyTable):
    """`[[host]]`: a machine and how it is reached."""

    name: HostName
    kind: WrittenKind | None = None
    role: Annotated[HostRole, values.choice_value(HostRole, "roles")] = HostRole.CLIENT
    command: list[Argument] = Field(default_factory=list)
    path: TargetPath | None = None
    device: DevicePath | None = None
    serial: Serial | None = None
    address: Annotated[str, ssh_addresses.ssh_host_value()] | None = None
    user: SshUser | None = None
    port: Port | None = None
    jump: Jumps | None = None
    key: ControllerFile | None = None
    known_hosts: ControllerFile | None = None
    devices: Devices | None = None
    numjobs: NumJobs | None = None
    node: HostName | None = None
    storage_address: IpAddress | None = None
    cores: HypervisorHint | None = None
    numa_nodes: HypervisorHint | None = None
    queues: HypervisorHint | None = None
    meters: list[MeterTable] = Field(default_factory=list)


class MetersTable(StudyTable):
    """`[meters]`: how power meters are read, and how long machines idle around each load."""

    interval: Annotated[float, values.seconds_value(METER_INTERVAL_S_MIN, METER_INTERVAL_S_MAX)] = (
        1.0
    )
    idle: Annotated[float, values.seconds_value(0, IDLE_POWER_S_MAX)] = 0.0


class TelemetryTable(StudyTable):
    """`[telemetry]`: how often the hosts are watched, and what is told one by one."""

    interval: Annotated[float, values.seconds_value(INTERVAL_S_MIN, INTERVAL_S_MAX)] = 1.0
    slow_ios: Annotated[int, values.integer_value(0, SLOW_IOS_MAX)] = 0
    recorded_ios: Annotated[int, values.integer_value(0, RECORDED_IOS_MAX)] = 0


class HeadingTable(StudyTable):
    """The keys before the first table."""

    format: Annotated[int, values.exact_value(FORMAT, f"This iolab reads format = {FORMAT}.")]
    id: Id
    title: Title | None = None
    question: Prose = ""
    answer: Annotated[AnswerKind, values.choice_value(AnswerKind, "answers")] = AnswerKind.FIGURES
    source: Prose = ""


ITEMS: Final[Mapping[str, tuple[type[StudyTable], str]]] = {
    "configuration": (ConfigurationTable, "id"),
    "host": (HostTable, "name"),
    "workload": (LoadTable, "id"),
    "phase": (PhaseTable, "id"),
    "event": (EventTable, "id"),
    "action": (ActionTable, "id"),
    "witness": (WitnessTable, "id"),
}
"""Arrays of tables, each with the key that names an element; the last two are of inventories."""


def host_transport(host: HostTable) -> HostTransport:
    """How a host is reached: as it says, else as its other keys imply."""
    if host.kind is not None:
        return host.kind
    if host.command:
        return HostTransport.COMMAND
    has_ssh_key = any(getattr(host, key) is not None for key in SSH_KEYS)
    return HostTransport.SSH if has_ssh_key else HostTransport.LOCAL


class StudySection(Protocol):
    """A table of its own that a kind has in study files, from which the study has settings."""

    @property
    def name(self) -> str:
        """The table's name."""

    @property
    def table(self) -> type[StudyTable]:
        """The table as it may be written."""

    @property
    def makes_hosts(self) -> bool:
        """Whether it is of hosts that the session makes, none where it is not written."""

    def fallback_table(self, user_value: object) -> StudyTable:
        """What a table that cannot be read counts as."""


class StudyFileSchema(Record):
    """What a study file may hold, as far as that is of single kinds of load or host.

    `workloads` are the tables of `[[workload]]`, each with the engines that it may name;
    `example_by_key` says what to write for keys that may not be left out, `advice_by_table_and_key`
    what to do about keys that a table has not, but a tool knows.
    """

    workloads: Mapping[type[LoadTable], tuple[EngineName, ...]]
    sections: tuple[StudySection, ...]
    example_by_key: Mapping[str, str]
    advice_by_table_and_key: Mapping[type[StudyTable], Mapping[str, str]]

    @property
    def axis_keys(self) -> frozenset[str]:
        """Keys of workloads that may be lists."""
        return frozenset(name for table in self.workloads for name in table.axes)

    @property
    def single_table_type_by_name(self) -> Mapping[str, type[StudyTable]]:
        """Tables that stand once."""
        own = {section.name: section.table for section in self.sections}
        return {**_FIRST_SECTIONS, **own, **_OPTIONAL_SECTIONS, **_LAST_SECTIONS}

    @property
    def optional_table_names(self) -> frozenset[str]:
        """Of these the ones that are read only where they are written: they make hosts."""
        making = {section.name for section in self.sections if section.makes_hosts}
        return frozenset((*making, *_OPTIONAL_SECTIONS))

    @property
    def root_keys(self) -> tuple[str, ...]:
        """All that may stand at the root."""
        return tuple(self.file_table_type().model_fields)

    def file_table_type(self) -> type[StudyTable]:
        """The whole file as one table."""
        own = {
            section.name: (section.table | None, None)
            if section.makes_hosts
            else (section.table, section.table())
            for section in self.sections
        }
        each: Any = Union[tuple(self.workloads)]  # noqa: UP007 - types that are known by then
        fields: dict[str, Any] = {
            **{name: (table, table()) for name, table in _FIRST_SECTIONS.items()},
            "configuration": (list[ConfigurationTable], Field(default_factory=list)),
            "host": (list[HostTable], Field(default_factory=list)),
            "workload": (list.__class_getitem__(each), Field(min_length=1)),
            "phase": (list[PhaseTable], Field(default_factory=list)),
            "event": (list[EventTable], Field(default_factory=list)),
            **own,
            **{name: (table | None, None) for name, table in _OPTIONAL_SECTIONS.items()},
            **{name: (table, table()) for name, table in _LAST_SECTIONS.items()},
            "scale": (dict[str, dict[str, Any]], Field(default_factory=dict)),
        }
        return create_model("StudyFile", __base__=HeadingTable, __doc__="The whole file.", **fields)

    def element_table_types(self, section: str) -> tuple[type[StudyTable], ...]:
        """The tables that elements of an array may be."""
        return tuple(self.workloads) if section == "workload" else (ITEMS[section][0],)

    def element_table_type(
        self, section: str, values_as_written: Mapping[str, Any]
    ) -> type[StudyTable]:
        """The table that an element is."""
        return (
            self._workload_table_type_and_engines(values_as_written)[0]
            if section == "workload"
            else ITEMS[section][0]
        )

    def possible_engines(self, values_as_written: Mapping[str, Any]) -> tuple[EngineName, ...]:
        """The engines that can make what a workload is."""
        return self._workload_table_type_and_engines(values_as_written)[1]

    def _workload_table_type_and_engines(
        self, values_as_written: Mapping[str, Any]
    ) -> tuple[type[LoadTable], tuple[EngineName, ...]]:
        """The table and the engines of a workload: its engine decides, misspelt or not.

        Without one they are the first kind's.
        """
        engine, loads = values_as_written.get("engine"), tuple(self.workloads.items())
        if isinstance(engine, str):
            meant = nearest_word(engine, [name for _, names in loads for name in names])
            return next((load for load in loads if meant in load[1]), loads[0])
        return loads[0]

    def other_engines_with_key_text(self, key: str, table_type: type[StudyTable]) -> str | None:
        """The engines of workloads that have a key which this kind lacks; None when none have."""
        if table_type not in self.workloads:
            return None
        having = [
            quote_value(engine)
            for kind, engines in self.workloads.items()
            for engine in engines
            if kind is not table_type and key in kind.model_fields
        ]
        return " or ".join(having) or None


_FIRST_SECTIONS: Final[Mapping[str, type[StudyTable]]] = {
    "target": TargetTable,
    "precondition": PreconditionTable,
}
_LAST_SECTIONS: Final[Mapping[str, type[StudyTable]]] = {
    "method": MethodTable,
    "telemetry": TelemetryTable,
    "meters": MetersTable,
}


def study_schema(file_schema: StudyFileSchema) -> dict[str, Any]:
    """The JSON Schema of a study file, as `schema/study.json` holds it."""
    schema = _schema_without_null(file_schema.file_table_type().model_json_schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "study.json",
        **schema,
        "title": "iolab study, format 1",
    }


def _schema_without_null(schema: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """The schema without null, which TOML cannot write: an optional key is left out instead."""
    if isinstance(schema, list):
        return [_schema_without_null(item) for item in schema if item != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _schema_without_null(value)
        for key, value in schema.items()
        if value is not None and not (key == "title" and isinstance(value, str))
    }
    alternatives = kept.get("anyOf")
    if isinstance(alternatives, list) and len(alternatives) == 1:
        del kept["anyOf"]
        kept.update(alternatives[0])
    return kept
