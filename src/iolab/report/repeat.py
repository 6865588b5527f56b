"""How a reader repeats a session: the command over the saved study, versions and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePath
from shlex import join
from typing import Final

from iolab.report.brief import Brief
from iolab.report.sessions import ALONE, Member
from iolab.report.table import Cell, Table, columns, row
from iolab.report.wording import NOTHING

WHOLE_SCALE: Final = "full"
"""The scale that need not be asked for."""

INVENTORY_FILE: Final = "hosts.toml"
"""What the inventory is called where the session had one; its text has addresses and logins, so the
report, which travels, leaves it out."""

_PATH: Final = "target.path="


@dataclass(frozen=True, slots=True)
class Repeat:
    """How one session is repeated; `label` is empty where there is only that.

    `study_file` is what its `text` is saved as; `inventory_file` is empty where it had none.
    """

    label: str
    study_file: str
    inventory_file: str
    command: tuple[str, ...]
    versions: Table
    text: str


def repeats(brief: Brief) -> tuple[Repeat, ...]:
    """How to repeat each of the sessions, of which there is mostly one."""
    members = brief.sessions.members
    if not members:
        return (_repeat("", brief, study_file(brief)),)
    texts: dict[str, str] = {}
    found = []
    for member in members:
        alone = _alone(brief, member)
        # Studies of one id may differ in their text: each is saved under a name of its own.
        name = study_file(alone)
        if texts.setdefault(name, alone.study.text) != alone.study.text:
            name = f"{alone.study.id}-{member.label}.toml"
        found.append(_repeat(member.label, alone, name))
    return tuple(found)


def _alone(brief: Brief, member: Member) -> Brief:
    """The brief with one of its sessions alone, for what is told of how that came about."""
    mine = {key for key, trace in brief.sessions.traces.items() if trace.label == member.label}
    return replace(
        brief,
        session=member.session,
        study=member.study,
        plan=member.plan,
        results=member.results,
        begun=member.begun,
        host_runs={key: hosts for key, hosts in brief.host_runs.items() if key in mine},
        sessions=ALONE,
    )


def _repeat(label: str, brief: Brief, file: str) -> Repeat:
    return Repeat(
        label=label,
        study_file=file,
        inventory_file=INVENTORY_FILE if brief.study.inventory else "",
        command=repeat_command(brief, file),
        versions=versions_table(brief),
        text=brief.study.text,
    )


def study_file(brief: Brief) -> str:
    """The name under which a reader saves the study."""
    return f"{brief.study.id}.toml"


def repeat_command(brief: Brief, file: str) -> tuple[str, ...]:
    """What to type beside the saved study: its hosts, its scale and all that was set over it."""
    scale = brief.session.scale
    words = ["iolab", "run", file]
    for override in brief.session.overrides:
        if override.startswith(_PATH):
            words += ["--path", override.removeprefix(_PATH)]
        else:
            words += ["--set", override]
    if brief.study.inventory:
        words += ["--hosts", INVENTORY_FILE]
    return (*words, *(("--scale", scale) if scale != WHOLE_SCALE else ()))


def versions_table(brief: Brief) -> Table:
    """Which command, programs and seeds made the numbers."""
    session = brief.session
    rows = [
        row("Command as it was", _as_it_was(session.command)),
        row("iolab", session.iolab_version),
        row("Agent", session.agent_version or NOTHING),
        row("Engine", ", ".join(brief.engine_versions) or NOTHING),
        row("Seed of the order", str(brief.study.method.seed)),
        row("Plan", brief.plan.digest),
        *_sittings(brief),
    ]
    return Table("Versions", columns(("What", "Which")), tuple(rows))


def _sittings(brief: Brief) -> Iterator[tuple[Cell, ...]]:
    """Which runs were measured before and after each resume, where there was one."""
    found: dict[int, list[int]] = {}
    order = {(run.point.digest, run.repeat): run.order for run in brief.plan.runs}
    for result in brief.results:
        planned = order.get((result.digest, result.repeat), 0)
        found.setdefault(result.sitting, []).append(result.order or planned)
    if len(found) < 2:
        return
    for sitting, runs in sorted(found.items()):
        what = "Measured at first" if sitting == 1 else "Measured after a resume"
        yield row(what, f"{_time(brief.begun, sitting)}: runs {spans(runs)}")


def _time(begun: tuple[int, ...], sitting: int) -> str:
    if sitting > len(begun):
        return NOTHING
    return datetime.fromtimestamp(begun[sitting - 1] / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")


def spans(numbers: Iterable[int]) -> str:
    """Whole numbers as `1-7, 9`."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("-".join(str(one) for one in part) for part in parts)


def _as_it_was(command: tuple[str, ...]) -> str:
    """The command line, its program by name: where it was installed tells nothing."""
    if not command:
        return NOTHING
    return join((PurePath(command[0]).name, *command[1:]))
