"""`[[phase]]` and `[[event]]` of a study, `[[action]]` and `[[witness]]` of an inventory."""

from __future__ import annotations

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

INVENTORY_ONLY: Final = ("action", "witness")
"""Tables that say what is run on hosts: a study that is passed around has none of them."""

Seconds = Annotated[float, values.seconds_value(PHASE_S_MIN, PHASE_S_MAX)]
State = Annotated[str, values.text_value(EXPECTATION_CHARACTERS)]
Argument = Annotated[str, values.text_value(ARGUMENT_CHARACTERS)]
Timeout = Annotated[float, values.seconds_value(0.1, TIMEOUT_S_MAX)]
HostFile = Annotated[str, values.absolute_path_value()]
HostName = Annotated[str, values.host_name_value()]
SettingText = Annotated[str, values.text_value(ARGUMENT_CHARACTERS)]


class PhaseTable(StudyTable):
    """`[[phase]]`: a part of a run, while its load goes on."""

    id: Id
    seconds: Seconds | None = None
    until: State | None = None
    longest: Seconds | None = None


class EventTable(StudyTable):
    """`[[event]]`: an action of the inventory at a moment of the run."""

    id: Id
    title: Title | None = None
    action: Id
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
    stop: HostFile | None = None
    kill: HostFile | None = None
    file: HostFile | None = None
    text: SettingText | None = None
    undo_text: SettingText | None = None
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
