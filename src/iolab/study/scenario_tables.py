"""`[[phase]]` and `[[event]]` of a study, `[[action]]` and `[[witness]]` of an inventory."""

import re
from typing import Annotated, Final

from iolab.study import values
from iolab.study.load_tables import Id, StudyTable, Title

PHASE_S_MIN: Final = 1.0
PHASE_S_MAX: Final = 7 * 86_400.0
TIMEOUT_S_MAX: Final = 3600.0
INTERVAL_S_MIN: Final = 0.2
INTERVAL_S_MAX: Final = 3600.0
ARGUMENT_CHARACTERS: Final = 4096
EXPECTATION_CHARACTERS: Final = 80
LIMIT_MAX: Final = 1 << 40
"""I/Os or bytes a second: beyond any device."""
LINK_PATTERN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,14}")
PROCESS_PATTERN: Final = re.compile(
    r"/[^\x00-\x1f]{1,1023}|[A-Za-z0-9_][A-Za-z0-9:_.@\\-]{0,240}\.(?:service|scope|slice|socket)"
)

INVENTORY_ONLY: Final = ("action", "witness")
"""Tables that say what is run on hosts: a study that is passed around has none of them."""

Seconds = Annotated[float, values.seconds_value(PHASE_S_MIN, PHASE_S_MAX)]
State = Annotated[str, values.text_value(EXPECTATION_CHARACTERS)]
Argument = Annotated[str, values.text_value(ARGUMENT_CHARACTERS)]
Timeout = Annotated[float, values.seconds_value(0.1, TIMEOUT_S_MAX)]
HostFile = Annotated[str, values.absolute_path_value()]
HostName = Annotated[str, values.host_name_value()]
DevicePath = Annotated[str, values.device_path_value()]
LinkName = Annotated[
    str,
    values.matching_text_value(
        LINK_PATTERN.fullmatch,
        "Give the name of a network interface, such as 'eth1'.",
        {"pattern": f"^{LINK_PATTERN.pattern}$"},
    ),
]
ProcessName = Annotated[
    str,
    values.matching_text_value(
        PROCESS_PATTERN.fullmatch,
        "Give the absolute path of a pid file, or a unit of systemd such as 'ceph-osd@1.service'.",
        {"pattern": f"^{PROCESS_PATTERN.pattern}$"},
    ),
]
IopsLimit = Annotated[int, values.integer_value(1, LIMIT_MAX)]
BandwidthLimit = Annotated[int | str, values.size_value(1, LIMIT_MAX, multiple=1)]
SettingText = Annotated[str, values.text_value(ARGUMENT_CHARACTERS)]


class PhaseTable(StudyTable):
    """`[[phase]]`: a part of a run, while its load goes on."""

    id: Id
    seconds: Seconds | None = None
    until: State | None = None
    longest: Seconds | None = None


class IoLimitTable(StudyTable):
    """`io_limit` of an event: what a neighbour may do on each disk of its target."""

    read_iops: IopsLimit | None = None
    write_iops: IopsLimit | None = None
    read_bw: BandwidthLimit | None = None
    write_bw: BandwidthLimit | None = None


class EventTable(StudyTable):
    """`[[event]]`: an action of the inventory, or a neighbour's load, at a moment of the run."""

    id: Id
    title: Title | None = None
    action: Id | None = None
    workload: Id | None = None
    hosts: list[HostName] | None = None
    limits: Id | None = None
    io_limit: IoLimitTable | None = None
    phase: Id
    after: Annotated[float, values.seconds_value(0, PHASE_S_MAX)] = 0.0
    expect: State | None = None
    within: Seconds = 60.0
    undo_phase: Id | None = None


class ActionTable(StudyTable):
    """`[[action]]`: what an event may do to a host, and how it is undone."""

    id: Id
    host: HostName
    command: list[Argument] | None = None
    undo: list[Argument] | None = None
    stop: ProcessName | None = None
    kill: ProcessName | None = None
    detach: DevicePath | None = None
    offline: DevicePath | None = None
    cut_link: LinkName | None = None
    limit: HostFile | None = None
    device: DevicePath | None = None
    read_iops: IopsLimit | None = None
    write_iops: IopsLimit | None = None
    read_bw: BandwidthLimit | None = None
    write_bw: BandwidthLimit | None = None
    file: HostFile | None = None
    text: SettingText | None = None
    undo_text: SettingText | None = None
    undo_after: Seconds | None = None
    destructive: Annotated[bool, values.flag_value()] = False
    timeout: Timeout = 30.0


class WitnessTable(StudyTable):
    """`[[witness]]`: what a phase or an event is known by."""

    id: Id
    host: HostName
    command: list[Argument] | None = None
    field: State | None = None
    rebuilt_field: State | None = None
    throttle_field: State | None = None
    file: HostFile | None = None
    equals: SettingText | None = None
    every: Annotated[float, values.seconds_value(INTERVAL_S_MIN, INTERVAL_S_MAX)] = 1.0
    timeout: Timeout = 5.0
