"""What is done with results of every kind of load, and of the kind of host that is booted."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from iolab.cli.load_kinds import LOADS
from iolab.report.kinds import Kinds

if TYPE_CHECKING:
    from iolab.analysis.kinds import Analyses
    from iolab.report.kinds import HostsReport


@cache
def analyses() -> Analyses:
    """What results are judged by; reading results that were judged needs none of it."""
    from iolab.analysis.kinds import Analyses
    from iolab.guests.analysis import GuestAnalysis

    loads = {job: made for kind in LOADS for made in (cache(kind.analysis),) for job in kind.jobs}
    return Analyses(loads, hosts=(GuestAnalysis(),))


def _guests() -> HostsReport:
    from iolab.guests.report import GuestsReport

    return GuestsReport()


REPORTED: Final = Kinds(LOADS, _guests, analyses)
"""What reports and exports ask of each kind."""
