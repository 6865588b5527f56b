"""What is done with results of every kind of load, and of the kind of host that is booted."""

from __future__ import annotations

from typing import Final

from iolab.analysis.kinds import Analyses
from iolab.cli.study_kinds import LOADS
from iolab.guests.analysis import GuestAnalysis
from iolab.guests.report import GuestsReport
from iolab.report.kinds import Kinds

ANALYSES: Final = Analyses(
    loads={job: analysis for kind in LOADS for analysis in (kind.analysis(),) for job in kind.jobs},
    hosts=(GuestAnalysis(),),
)
"""What results are judged by."""

_GUESTS: Final = GuestsReport()

REPORTED: Final = Kinds(tuple(kind.reported(_GUESTS) for kind in LOADS), _GUESTS, ANALYSES)
"""What reports and exports ask of each kind."""
