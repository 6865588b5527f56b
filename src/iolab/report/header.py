"""What stands under a report's title: when and where was measured, what is wrong, how many runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePath
from shlex import join
from typing import Final

from iolab.core.events import SessionStatus
from iolab.core.study import Study
from iolab.report.best import VerdictCounts
from iolab.report.brief import ALONE, Brief, Member
from iolab.report.numbers import NOTHING, count, listing
from iolab.report.table import Cell, Table, columns, row

LABELS_SHOWN: Final = 8
"""Sessions named under the title; the table has them all."""


def facts_of(brief: Brief) -> tuple[tuple[str, str], ...]:
    """When was measured, on how many hosts, how many runs, at which scale, in which session."""
    return (
        ("Measured", _when(brief)),
        ("Hosts", _hosts(brief)),
        ("Runs", _run_count(brief)),
        *((("Scale", brief.study.scale),) if brief.study.scale else ()),
        _which(brief),
        *(
            ("Engine", text)
            for kind in brief.kinds.within(brief.study)
            for text in kind.engine_notes(brief)
        ),
        *((("Source", brief.study.source),) if brief.study.source else ()),
        *((("Author", brief.words.author),) if brief.words.author else ()),
    )


def alerts_of(brief: Brief) -> tuple[str, ...]:
    """What is wrong with a session as a whole, or with several of them together."""
    damage = [f"Damaged and left out: {hurt}" for hurt in brief.damaged]
    guests = brief.kinds.hosts.caveats(brief)
    return tuple(text.strip() for text in (*_told(brief), *damage, *guests) if text)


def summary_of(tallied: VerdictCounts, brief: Brief) -> str:
    """How many runs there are, and how far they can be trusted."""
    if not tallied.runs:
        return "No run is committed yet."
    parts = [
        f"{number} {name}"
        for number, name in (
            (tallied.valid, "valid"),
            (tallied.indicative, "indicative"),
            (tallied.invalid, "invalid"),
        )
        if number
    ]
    ended = [
        f"{number} {name}"
        for number, name in ((tallied.failed, "failed"), (tallied.interrupted, "interrupted"))
        if number
    ]
    number = _repeats(brief)
    sound = ", without those that are invalid" if tallied.invalid < tallied.runs else ""
    left_out = sound if tallied.invalid else ""
    means = f" A figure is the geometric mean of {number} repeats{left_out}."
    means = means if number != "1" else ""
    return (
        f"{count(tallied.runs, 'run')}: {', '.join(parts)}"
        f"{'; of these ' + ', '.join(ended) if ended else ''}.{means}"
    )


def _repeats(brief: Brief) -> str:
    """How many repeats stand behind a figure, "its" where that is not the same for all."""
    methods = [one.study.method for one in brief.sessions.members] or [brief.study.method]
    numbers = {one.repeats for one in methods}
    if len(numbers) > 1 or any(one.sequential for one in methods):
        return "its"
    return str(numbers.pop())


def _when(brief: Brief) -> str:
    made = [one.session.created_real_ns for one in brief.sessions.members]
    first, *others = sorted(map(moment, made)) or [moment(brief.session.created_real_ns)]
    text = f"{first:%-d %B %Y, %H:%M}"
    for last in others[-1:]:
        form = "%H:%M" if last.date() == first.date() else "%-d %B %Y, %H:%M"
        text += f" to {last:{form}}"
    return f"{text} UTC"


def moment(real_ns: int) -> datetime:
    """A stored moment (UTC, ns) as a date."""
    return datetime.fromtimestamp(real_ns / 1e9, tz=UTC)


def _hosts(brief: Brief) -> str:
    """How many hosts made load; of several sessions in each, since one host may be in many."""
    studies = [one.study for one in brief.sessions.members] or [brief.study]
    told: dict[str, None] = {}
    for study in studies:
        hosts = list(dict.fromkeys(h for one in study.configurations for h in one.hosts))
        told[hosts_word(study, hosts)] = None
    return f"{', '.join(told)} in each session" if brief.sessions.several else next(iter(told))


def hosts_word(study: Study, hosts: Sequence[str]) -> str:
    """How many hosts make load: `96 guests on 4 nodes`, or a number alone."""
    places = {spec.name: spec.node for spec in study.hosts}
    nodes = {node for host in hosts if (node := places.get(host, ""))}
    if not nodes:
        return str(len(hosts))
    guests = sum(1 for host in hosts if places.get(host))
    told = f"{count(guests, 'guest')} on {count(len(nodes), 'node')}"
    others = len(hosts) - guests
    return f"{told}, and {others} more" if others else told


def _which(brief: Brief) -> tuple[str, str]:
    labels = [one.label for one in brief.sessions.members]
    if not labels:
        return ("Session", brief.session.id)
    return ("Sessions", f"{len(labels)}: {listing(labels, LABELS_SHOWN)}")


def _run_count(brief: Brief) -> str:
    """How many runs there are of how many; where results decide that, as many as there are."""
    made = len(brief.results)
    return str(made) if brief.plan.runs_more else f"{made} of {len(brief.plan.runs)}"


def _told(brief: Brief) -> Iterator[str]:
    """Sessions that did not come to their end, and those that differ by more than they may."""
    made = [(result.digest, result.repeat) for result in brief.results]
    if not brief.sessions.several:
        missing = brief.plan.missing(made) - sum(1 for hurt in brief.damaged if hurt.run)
        reason = brief.session.reason or ""
        yield _status("The session", brief.session.status, missing, reason)
    for one in brief.sessions.members:
        yield _status(f"Session {one.label}", one.session.status, missing_of(one), _reason(one))
    forbidden = [f"{found.what} ({label})" for label, found in brief.sessions.forbidding()]
    if forbidden:
        yield (
            "These sessions were not measured in the same way, and stand side by side all the same,"
            f" as was asked for: {listing(forbidden, LABELS_SHOWN)}."
        )


def missing_of(member: Member) -> int:
    """How many runs a session still had to make."""
    made = [(result.digest, result.repeat) for result in member.results]
    return member.plan.missing(made) - member.damaged


def _reason(member: Member) -> str:
    return member.session.reason or ""


def _status(name: str, status: SessionStatus, missing: int, reason: str) -> str:
    if status is SessionStatus.DONE:
        return ""
    if status is SessionStatus.RUNNING:
        return f"{name} is still running; this is what it has so far."
    how = "was interrupted" if status is SessionStatus.INTERRUPTED else "failed"
    return f"{name} {how} with {count(missing, 'run')} still to make. {reason}"


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
        manifests={key: one for key, one in brief.manifests.items() if key in mine},
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
    return (*words, *(("--scale", scale) if scale not in ("", WHOLE_SCALE) else ()))


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
