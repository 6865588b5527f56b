"""Which telemetry is derived to tell what limits a run, bounded for large fleets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.analyse.kinds import kind_of
from iolab.analyse.view import RunView
from iolab.model.host import HostFacts
from iolab.model.run import RunRecord
from iolab.run.telemetry.rates import ALL_CORES, derive

EVERY_CORE_HOSTS_MOST: Final = 64
"""Hosts of which every core is looked at; of more, all cores of each together: a thousand hosts of
a hundred cores are 100,000 series."""


def view_of(record: RunRecord, facts: Mapping[str, HostFacts]) -> RunView:
    """The run with the processors, disks and ports of all of its hosts."""
    large = len(record.host_names) > EVERY_CORE_HOSTS_MOST
    wanted = {"cpu": ALL_CORES if large else None, "disk": None, "nic": None}
    telemetry = derive(record.counters, record.host_names, wanted)
    return kind_of(record).view(record, facts, telemetry)
