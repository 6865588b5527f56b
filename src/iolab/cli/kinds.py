"""The registry of what is done with results: every kind of load, and of host that is booted.

What studies and sessions need of each kind stands in registries of their own: whoever reads a study
need not wait for drivers.
"""

from __future__ import annotations

from typing import Final

from iolab.analysis.kinds import Analyses
from iolab.core.workload import Job
from iolab.guests.analysis import GuestAnalysis
from iolab.guests.brief import GuestsReport
from iolab.loads.fileio.analysis import FileAnalysis
from iolab.loads.fileio.brief import FileReport
from iolab.loads.keyvalue.analysis import KeyValueAnalysis
from iolab.loads.keyvalue.brief import KeyValueReport
from iolab.loads.keyvalue.workload import KeyValueJob, YcsbJob
from iolab.loads.metadata.analysis import MetadataAnalysis
from iolab.loads.metadata.brief import MetadataReport
from iolab.loads.metadata.workload import MetadataJob
from iolab.report.kinds import Kinds

_KEY_VALUE: Final = KeyValueAnalysis()

ANALYSES: Final = Analyses(
    loads={
        Job: FileAnalysis(),
        MetadataJob: MetadataAnalysis(),
        KeyValueJob: _KEY_VALUE,
        YcsbJob: _KEY_VALUE,
    },
    hosts=(GuestAnalysis(),),
)
"""What results are judged by."""

_GUESTS: Final = GuestsReport()

REPORTED: Final = Kinds(
    (FileReport(_GUESTS), MetadataReport(), KeyValueReport()), _GUESTS, ANALYSES
)
"""What reports and exports ask of each kind."""
