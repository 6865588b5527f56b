"""Phases and events of a run: what a study wants, and what came of it.

A study names phases, events, actions and witnesses; what an action does and what a witness asks is
of the user's own inventory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta
from msgspec.structs import asdict

from iolab.core.host_name import HostName
from iolab.core.workload import Workload
from iolab.record import Record
from iolab.text import excerpt, list_text
from iolab.units import NS_PER_S, format_bytes

NEGATION: Final = "not "
"""Before the name of a witness: the state in which it says no."""

ANSWERS_MAX: Final = 200_000
"""Answers of all witnesses in a run: one a second for two days."""

REASON_CHARACTERS: Final = 4096
"""Of a sentence in a record: more than any errno, less than a host could have it hold."""

Reason = Annotated[str, Meta(max_length=REASON_CHARACTERS)]


def bounded_reason_text(text: str) -> str:
    """The text as a record holds it: on one line, and cut where it is too long."""
    return excerpt(text, REASON_CHARACTERS)


class ActionKind(StrEnum):
    """What an action does."""

    COMMAND = "command"
    STOP = "stop"
    """Have a process stand still; its undo lets it go on."""
    KILL = "kill"
    SETTING = "setting"
    """Write a text to a file of the kernel: a limit of a control group, the state of a device."""
    DETACH = "detach"
    """Have every I/O of a loop device fail."""
    OFFLINE = "offline"
    """Have the kernel refuse every I/O of a SCSI or SATA disk."""
    CUT_LINK = "cut-link"
    """Set a network interface down."""
    LIMIT = "limit"
    """Limit what a control group asks of a device."""


class IoLimit(Record):
    """What a control group may do a second on each disk; None for as much as it can."""

    read_iops: int | None = None
    write_iops: int | None = None
    read_bytes_per_s: int | None = None
    write_bytes_per_s: int | None = None

    def with_missing_limits_from(self, other: IoLimit) -> IoLimit:
        """This limit, with the other's where this one has none."""
        return IoLimit(
            other.read_iops if self.read_iops is None else self.read_iops,
            other.write_iops if self.write_iops is None else self.write_iops,
            other.read_bytes_per_s if self.read_bytes_per_s is None else self.read_bytes_per_s,
            other.write_bytes_per_s if self.write_bytes_per_s is None else self.write_bytes_per_s,
        )

    @property
    def text(self) -> str:
        """The limit for people: `200 read IOPS`."""
        counts = [(self.read_iops, "read IOPS"), (self.write_iops, "write IOPS")]
        sizes = [(self.read_bytes_per_s, "read"), (self.write_bytes_per_s, "written")]
        return list_text(
            [f"{count} {what}" for count, what in counts if count is not None]
            + [f"{format_bytes(size)}/s {what}" for size, what in sizes if size is not None]
        )

    @property
    def limited_rates_by_name(self) -> dict[str, int]:
        """The same for an agent: what is limited, by its name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Action(Record):
    """What an event may do on its host, as the inventory says it.

    `argv` and `undo_argv` are of a command, `pid_file` or a systemd `unit` of `stop` and `kill`; a
    setting writes `text` to the file `path` of the kernel, and `undo_text` to undo it. An
    `io_limit` is of the control group in the folder `group`, for `device`. `undo_after_s` is when
    the host undoes it by itself. A destructive one has no undo, and wants a consent of its own.
    """

    id: str
    host: HostName
    kind: ActionKind
    argv: tuple[str, ...] = ()
    undo_argv: tuple[str, ...] = ()
    pid_file: str = ""
    path: str = ""
    text: str = ""
    undo_text: str = ""
    timeout_s: float = 30.0
    unit: str = ""
    device: str = ""
    interface: str = ""
    group: str = ""
    io_limit: IoLimit | None = None
    undo_after_s: float | None = None
    destructive: bool = False

    @property
    def has_undo(self) -> bool:
        """Whether anything of it can be undone."""
        return bool(self.undo_summary_text)

    @property
    def summary_text(self) -> str:
        """What it does, for people."""
        if self.kind is ActionKind.COMMAND:
            return " ".join(self.argv)
        if self.kind is ActionKind.SETTING:
            return f"write {self.text!r} to {self.path}"
        if self.kind is ActionKind.CUT_LINK:
            return f"set the link {self.interface} down"
        if self.io_limit is not None:
            return f"limit {self.group} on {self.device} to {self.io_limit.text}"
        if self.device:
            return f"{self.kind.value} {self.device}"
        what = f"the unit {self.unit}" if self.unit else f"the process in {self.pid_file}"
        return f"{self.kind.value} {what}"

    @property
    def undo_summary_text(self) -> str:
        """What its undo does; "" where there is none."""
        kind_texts = {
            ActionKind.COMMAND: " ".join(self.undo_argv),
            ActionKind.SETTING: f"write {self.undo_text!r}" if self.undo_text else "",
            ActionKind.STOP: "let it go on",
            ActionKind.KILL: f"start {self.unit}" if self.unit else "",
            ActionKind.DETACH: f"attach all of {self.device}",
            ActionKind.OFFLINE: f"set {self.device} running",
            ActionKind.CUT_LINK: f"set {self.interface} up, with its routes",
            ActionKind.LIMIT: "set the limits of before",
        }
        text = kind_texts[self.kind]
        after = (
            ""
            if self.undo_after_s is None
            else f", by the host itself {self.undo_after_s:g} s later"
        )
        return text and f"{text}{after}"


class Witness(Record):
    """A question that is asked again and again, and answered by yes, no, or not at all.

    A command says yes by exit code 0 and no by 1; with a `field` by that key of the JSON object
    which it prints, where `rebuilt_field` counts the bytes that were copied and `throttle_field`
    names the setting that holds a rebuild back. A `file` of the host says yes where it holds the
    text `equals`.
    """

    id: str
    host: HostName
    argv: tuple[str, ...] = ()
    field: str = ""
    file: str = ""
    equals: str = ""
    interval_s: float = 1.0
    timeout_s: float = 5.0
    rebuilt_field: str = ""
    throttle_field: str = ""


class WitnessExpectation(Record):
    """That a witness says yes, or no."""

    witness: str
    state: bool

    @classmethod
    def parse(cls, text: str) -> WitnessExpectation:
        """What `redundant` or `not redundant` means."""
        return cls(text.removeprefix(NEGATION).strip(), not text.startswith(NEGATION))

    def __str__(self) -> str:
        return self.witness if self.state else f"{NEGATION}{self.witness}"


class PhasePlan(Record):
    """A phase that a study wants: so many `seconds`, or `until` a state, `longest_s` at most."""

    id: str
    seconds: float | None
    until: WitnessExpectation | None = None
    longest_s: float = 0.0

    @property
    def max_duration_s(self) -> float:
        """The longest that it can take."""
        return self.longest_s if self.seconds is None else self.seconds


READBACK_PHASE: Final = "read-back"
"""What follows the last phase where acknowledged writes are verified."""


class EventPlan(Record):
    """An event that a study wants, so many seconds after the beginning of a phase.

    It is an `action` of the inventory, a load that begins (`neighbour`, the id of one of the plan's
    neighbours, on `hosts` alone where it names some), or an `io_limit` of the load that
    `load_event` began.

    An action must make a witness say what is `expected` within `within_s`; None where no witness
    can see what it does. The event is undone (a load ended, a limit lifted) when the phase
    `undo_phase` begins, "" for the end of the run. In `READBACK_PHASE` an action is done after the
    last phase, before blocks are read back. `title` is what sentences call it: `Losing one
    of two disks`.
    """

    id: str
    action: str
    phase: str
    after_s: float = 0.0
    expected: WitnessExpectation | None = None
    within_s: float = 60.0
    undo_phase: str = ""
    title: str = ""
    neighbour: str = ""
    hosts: tuple[str, ...] = ()
    load_event: str = ""
    io_limit: IoLimit | None = None


class ScenarioPlan(Record):
    """All of these, with the actions, witnesses and neighbours' loads that they need."""

    phases: tuple[PhasePlan, ...]
    events: tuple[EventPlan, ...]
    actions: tuple[Action, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    neighbours: tuple[Workload, ...] = ()

    @property
    def max_duration_s(self) -> float:
        """The longest that all phases can take."""
        return sum(phase.max_duration_s for phase in self.phases)

    @property
    def min_duration_s(self) -> float:
        """The shortest: a phase that a witness ends may end at once."""
        return sum(phase.seconds or 0.0 for phase in self.phases)

    def neighbour_load_seconds_range(self, event_id: str) -> tuple[float, float]:
        """The least and the most seconds for which the load of an event goes on.

        A phase that a witness ends may end at once.
        """
        event = next(event for event in self.events if event.id == event_id)
        names = [phase.id for phase in self.phases]
        end = names.index(event.undo_phase) if event.undo_phase else len(names)
        phases = self.phases[names.index(event.phase) : end]
        least = sum(phase.seconds or 0.0 for phase in phases)
        most = sum(phase.max_duration_s for phase in phases)
        return max(least - event.after_s, 0.0), most - event.after_s

    def action(self, name: str) -> Action:
        """The action of that id; KeyError when there is none."""
        return {action.id: action for action in self.actions}[name]

    @property
    def ordered_events(self) -> tuple[EventPlan, ...]:
        """All events by when they begin, those after the last phase at the end."""
        places = {phase.id: place for place, phase in enumerate(self.phases)}
        last = len(places)
        return tuple(
            sorted(self.events, key=lambda event: (places.get(event.phase, last), event.after_s))
        )

    @property
    def expected_witnesses(self) -> frozenset[str]:
        """The witnesses by which phases end and events are known."""
        states = [phase.until for phase in self.phases]
        states += [event.expected for event in self.events]
        return frozenset(state.witness for state in states if state is not None)

    def events_of_phase(self, phase_id: str) -> tuple[EventPlan, ...]:
        """Those that begin with it or in it."""
        return tuple(event for event in self.events if event.phase == phase_id)

    def neighbour_workload(self, name: str) -> Workload:
        """The neighbour's load of that id; KeyError when there is none."""
        return {workload.id: workload for workload in self.neighbours}[name]

    @property
    def neighbour_only_hosts(self) -> frozenset[str]:
        """The clients that make a neighbour's load and not the measured one."""
        return frozenset(name for event in self.events for name in event.hosts)

    def event_consent_names(self, *, is_destructive: bool) -> tuple[str, ...]:
        """How each event of either kind is named on the command line: `lose@node-2`.

        A load that begins, or is limited, needs no consent.
        """
        actions = [(event, self.action(event.action)) for event in self.events if event.action]
        return tuple(
            f"{event.id}@{action.host}"
            for event, action in actions
            if action.destructive is is_destructive
        )


class PhaseEndReason(StrEnum):
    """Why a phase ended."""

    TIME = "time"
    WITNESS = "witness"
    LIMIT = "limit"
    """The witness did not say so in time."""
    LOAD = "load"
    """The load ended, or was stopped, before the phase did."""


class PhaseSpan(Record):
    """A phase that was; moments are of the controller's clock."""

    id: str
    start_real_ns: int
    end_real_ns: int
    ended_by: PhaseEndReason

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_real_ns - self.start_real_ns) / NS_PER_S


class WitnessAnswer(Record):
    """What a witness said, None for nothing that can be used; by the controller's clock.

    `throttle` names the setting that holds a rebuild back, as the witness says. `fault` is why it
    said nothing that can be used, "" of one that was silent.
    """

    witness: str
    asked_real_ns: int
    real_ns: int
    state: bool | None
    rebuilt_bytes: int | None = None
    throttle: Annotated[str, Meta(max_length=200)] = ""
    fault: Annotated[str, Meta(max_length=200)] = ""


UNDO_BY_KEEPER: Final = "the host is lost; its keeper undoes it"


class EventOutcome(Record):
    """What came of an event; moments are of the controller's clock, `due` the one that was meant.

    It is an action, or begins the load of the workload `neighbour`, or limits one.

    With an `io_limit` the load that `load_event` began was limited; "" for the event's own load.
    `title` is what the study calls it. `error` says why it could not be done. `seen_real_ns` is the
    first answer of its witness that shows it, `unseen_real_ns` when the last one was asked before
    that says otherwise; None where there was none. A neighbour's load is undone when it is told to
    end. `is_undone` is None where nothing is to be undone.
    """

    id: str
    host: HostName
    action: Reason
    phase: str
    due_real_ns: int
    start_real_ns: int | None = None
    end_real_ns: int | None = None
    error: Reason = ""
    expected: WitnessExpectation | None = None
    within_s: float = 0.0
    unseen_real_ns: int | None = None
    seen_real_ns: int | None = None
    is_undone: bool | None = None
    undone_real_ns: int | None = None
    undo_error: Reason = ""
    title: str = ""
    load_event: str = ""
    io_limit: IoLimit | None = None
    neighbour: str = ""

    @property
    def is_action(self) -> bool:
        """Whether something was done to its host, and no load begun or limited."""
        return not self.neighbour and self.io_limit is None

    @property
    def not_undone_predicate(self) -> str:
        """What is known of an undo that was not done, or that nobody saw."""
        if self.undo_error == UNDO_BY_KEEPER:
            return "is not confirmed to be undone"
        return "was not undone"

    def witness_answers_since_start(self, answers: Iterable[WitnessAnswer]) -> list[WitnessAnswer]:
        """What its witness answered to questions that were asked since it began."""
        expected, start_ns = self.expected, self.start_real_ns
        if expected is None or start_ns is None:
            return []
        return [
            answer
            for answer in answers
            if answer.witness == expected.witness and answer.asked_real_ns >= start_ns
        ]


MOUNT_TEXTS: Final[Mapping[bool | None, str]] = {
    None: "",
    True: ", read back through a new mount",
    False: ", read back through the same mount",
}
"""How blocks were read, by `is_new_mount`, for the end of a sentence."""


class Readback(Record):
    """All blocks of a host, read and held against its ledger of acknowledged writes.

    `data_set_blocks` is how many there are, 0 where that is not known. `fault` says why it could
    not be done. `is_new_mount` says whether an event of this host had unmounted its file system
    since the load; None of a device.
    """

    host: HostName
    checked_blocks: int = 0
    lost_blocks: int = 0
    first_loss_texts: tuple[str, ...] = ()
    fault: Reason = ""
    is_new_mount: bool | None = None
    data_set_blocks: int = 0

    @property
    def incomplete_reason(self) -> str:
        """Why not every block was read; "" where all were."""
        if self.fault or not self.checked_blocks:
            return self.fault or "no block was read"
        if self.checked_blocks < self.data_set_blocks:
            return f"only {self.checked_blocks} of {self.data_set_blocks} blocks were read"
        return ""


class ScenarioOutcome(Record):
    """What came of the phases and events of a run.

    `readbacks` are of what was there after the last phase, `first_readbacks` of before the first
    load of all, `earlier_readbacks` of after the repeat before this one.
    """

    phases: tuple[PhaseSpan, ...]
    events: tuple[EventOutcome, ...]
    answers: Annotated[tuple[WitnessAnswer, ...], Meta(max_length=ANSWERS_MAX)]
    readbacks: tuple[Readback, ...] = ()
    first_readbacks: tuple[Readback, ...] = ()
    earlier_readbacks: tuple[Readback, ...] = ()

    def earlier_lost_blocks(self, host_name: str) -> int:
        """How many blocks of a host an earlier repeat had lost: most are found again."""
        return next((r.lost_blocks for r in self.earlier_readbacks if r.host == host_name), 0)

    def newly_lost_blocks(self, readback: Readback) -> int | None:
        """How many blocks this repeat lost, at least; None where that is not known."""
        lost = readback.lost_blocks
        new = max(lost - self.earlier_lost_blocks(readback.host), 0)
        return None if not new and (lost or readback.incomplete_reason) else new

    @property
    def first_readback_damaged_before_events(self) -> Readback | None:
        """A host whose contents were wrong before anything happened: the path damages them."""
        return next((readback for readback in self.first_readbacks if readback.lost_blocks), None)
