"""What stands under a report's title: when and where was measured, what is wrong, how many runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from iolab.model.event import SessionStatus
from iolab.report.brief import Brief
from iolab.report.guests.caveats import caveats
from iolab.report.guests.placement import hosts_word
from iolab.report.headline import Tally
from iolab.report.key_value.evidence import engine_notes
from iolab.report.sessions import Member
from iolab.report.wording import count, listing

LABELS_SHOWN: Final = 8
"""Sessions named under the title; the table has them all."""


def facts_of(brief: Brief) -> tuple[tuple[str, str], ...]:
    """When was measured, on how many hosts, how many runs, at which scale, in which session."""
    return (
        ("Measured", _when(brief)),
        ("Hosts", _hosts(brief)),
        ("Runs", _run_count(brief)),
        ("Scale", brief.study.scale),
        _which(brief),
        *(("Engine", text) for text in engine_notes(brief.study, brief.host_runs)),
        *((("Source", brief.study.source),) if brief.study.source else ()),
    )


def alerts_of(brief: Brief) -> tuple[str, ...]:
    """What is wrong with a session as a whole, or with several of them together."""
    damage = [f"Damaged and left out: {hurt.path}. {hurt.says}" for hurt in brief.damaged]
    guests = caveats(brief.fleets.values(), brief.facts)
    return tuple(text.strip() for text in (*_told(brief), *damage, *guests) if text)


def summary_of(tallied: Tally, brief: Brief) -> str:
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
        f"{count(number, 'run')} {name}"
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
        f"{'; ' + ', '.join(ended) if ended else ''}.{means}"
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
        missing = brief.plan.missing(made) - len(brief.damaged)
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
