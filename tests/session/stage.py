"""A study, its plan, fake hosts and a recorder: everything that a session needs, in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from iolab.core.events import Event, RunFinished, SessionEnded, SessionStatus
from iolab.core.host import HostSpec, HostTransport
from iolab.core.run import Plan, RunRecord
from iolab.core.study import Study
from iolab.errors import IolabError
from iolab.guests.fleet import GuestKitFactory, GuestSessionKind
from iolab.guests.hosts import booted_guest_specs
from iolab.guests.kit.build import GuestKit
from iolab.hosts.barrier import StopRequest
from iolab.hosts.connect import BootableHost
from iolab.hosts.host import Host
from iolab.registry import session_kinds
from iolab.session.context import StoppingRuleFactory
from iolab.session.loop import RunQueue
from iolab.session.session import NO_EARLIER_SEGMENTS, EarlierSegments, run_session
from iolab.study.inventory import Inventory
from iolab.study.parse import StudyOverrides
from tests.fakes.host import FakeHost
from tests.fakes.script import FakeScript, LoopClock
from tests.fakes.virtual_time import run_virtually
from tests.plans import make_plan, parse_study

STUDY = """
format = 1
id = "trial"
title = "A trial"
question = "Does it work?"

[target]
path = "/mnt/bench"

{hosts}

[[workload]]
id = "rand-read"
title = "Random reads"
engine = "fio"
rw = "randread"
bs = "4k"
iodepth = [1, 8]
numjobs = 2
filesize = "16m"

[[workload]]
id = "seq-write"
title = "Sequential writes"
engine = "fio"
rw = "write"
bs = "1m"
iodepth = 4
numjobs = 1
filesize = "16m"

[method]
warmup = "1s"
runtime = "4s"
repeats = 1
settle = "2s"
order = "as-written"
"""

HOST = '[[host]]\nname = "{name}"\nkind = "command"\ncommand = ["reach", "{name}"]\n'
CONFIGURATION = '[[configuration]]\nid = "fleet"\ntitle = "A fleet"\nhosts = [{names}]\n'

UNREACHABLE = FakeScript(dies=frozenset({"hello"}))
Kind = TypeVar("Kind")


def study_of(*hosts: str, sets: tuple[str, ...] = ()) -> Study:
    """The trial study on those hosts, or on this machine."""
    tables = "\n".join(HOST.format(name=name) for name in hosts)
    if hosts:
        names = ", ".join(f'"{name}"' for name in hosts)
        tables = CONFIGURATION.format(names=names) + tables
    return parse_study(STUDY.format(hosts=tables), "trial.toml", StudyOverrides(set_arguments=sets))


def do_nothing(_: Event) -> None:
    """How most recorders react."""


@dataclass
class Notes:
    """A recorder that keeps everything; `react` may raise, or ask to stop."""

    react: Callable[[Event], None] = do_nothing
    events: list[Event] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self.react(event)

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]


async def given_kit(_: Callable[[str], None], *, package: str = "") -> GuestKit:
    """What guests boot from, which nobody looks at."""
    kit = Path("/kit", package)
    return GuestKit(kit / "vmlinux", kit / "initrd", kit / "tools.img", "6.1", "0", kit)


@dataclass
class Stage:
    """One session on fake hosts; `play` runs it in virtual time.

    `again` has the scripts of hosts that are reached again after they were lost, in order; None for
    a session that cannot reach any. `reached` are the hosts that were made then.
    """

    scripts: dict[str, FakeScript] = field(default_factory=lambda: {"local": FakeScript()})
    sets: tuple[str, ...] = ()
    text: str = ""
    inventory: str = ""
    earlier: EarlierSegments = NO_EARLIER_SEGMENTS
    again: dict[str, list[FakeScript]] | None = None
    notes: Notes = field(default_factory=Notes)
    stop: StopRequest | None = None
    rule_for: StoppingRuleFactory | None = None
    queue: RunQueue | None = None
    status: SessionStatus | None = None
    fault: IolabError | None = None
    hosts: dict[str, FakeHost] = field(default_factory=dict)
    reached: list[FakeHost] = field(default_factory=list)
    vms: dict[str, BootableHost] = field(default_factory=dict)
    kit: GuestKitFactory = given_kit
    host: Callable[[str, FakeScript], FakeHost] = FakeHost

    @property
    def study(self) -> Study:
        names = tuple(self.scripts)
        if self.text:
            hosts = Inventory(self.inventory, "hosts.toml") if self.inventory else None
            wish = StudyOverrides(set_arguments=self.sets, inventory=hosts)
            return parse_study(self.text, "trial.toml", wish)
        return study_of(*(() if names == ("local",) else names), sets=self.sets)

    @property
    def plan(self) -> Plan:
        return make_plan(self.study)

    @property
    def records(self) -> list[RunRecord]:
        return [event.record for event in self.notes.of(RunFinished)]

    @property
    def ended(self) -> SessionEnded:
        (ended,) = self.notes.of(SessionEnded)
        assert self.notes.events[-1] is ended
        return ended

    def play(self) -> Stage:
        """The whole session; an IolabError that it raises is kept in `fault`."""
        self.hosts = {name: self.host(name, script) for name, script in self.scripts.items()}
        self.vms = {spec.name: BootableHost(spec) for spec in booted_guest_specs(self.study)}
        run_virtually(self._body())
        return self

    def _reach(self, spec: HostSpec) -> Host:
        """The host again: its next script, or one that does not even say hello."""
        if spec.transport is HostTransport.VM:
            return BootableHost(spec)
        scripts = (self.again or {}).get(spec.name)
        script = scripts.pop(0) if scripts else UNREACHABLE
        host = FakeHost(spec.name, script)
        self.reached.append(host)
        return host

    async def _body(self) -> None:
        self.stop = self.stop or StopRequest()
        study = self.study
        try:
            self.status = await run_session(
                study,
                make_plan(study),
                {**self.hosts, **self.vms},
                self.notes,
                self.stop,
                session_id="trial-1",
                kinds=replace(session_kinds(), hosts=GuestSessionKind(self.kit)),
                earlier_segments=self.earlier,
                clock=LoopClock(),
                host_factory=self._reach if self.again is not None else None,
                rule_for=self.rule_for,
                queue=self.queue,
            )
        except IolabError as fault:
            self.fault = fault

    def assert_left_clean(self, *, swept_on: tuple[str, ...] = ()) -> None:
        """Every link is closed, and only the named hosts' agents had anything left to remove."""
        for name, host in self.hosts.items():
            assert host.left_behind == []
            if name not in swept_on:
                assert host.agent.swept == []
