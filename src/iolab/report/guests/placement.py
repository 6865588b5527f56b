"""The guests of a session in its test configuration: what each was given, where each lived."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iolab.model.guest import GuestFleet
from iolab.model.study import Study
from iolab.report.brief import Brief
from iolab.report.guests.tables import placement_table, settings_table
from iolab.report.table import Table
from iolab.report.wording import count


def guest_tables(brief: Brief) -> tuple[Table, ...]:
    """The settings of the guests and, of the run with the most of them, where each lived."""
    fleet = fullest(brief.fleets.values())
    if fleet is None:
        return ()
    settings = fleet.settings or brief.study.guests
    found = (settings_table(settings), placement_table(fleet))
    return tuple(table for table in found if table is not None)


def fullest(fleets: Iterable[GuestFleet]) -> GuestFleet | None:
    """The fleet with the most guests, the first of several."""
    return max(fleets, key=lambda fleet: len(fleet.guests), default=None)


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
