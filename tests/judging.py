"""Judge a record as the command line does: with every kind of load, and of host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.analysis import kinds as judging
from iolab.analysis.view import RunView
from iolab.core.host import HostFacts
from iolab.core.metric import RunResult, Verdict
from iolab.core.run import RunRecord
from iolab.importers.foreign_run import ImportedJob
from iolab.loads.fileio.workload import Job
from iolab.loads.keyvalue.workload import DbBenchJob
from iolab.loads.metadata.workload import MetadataJob
from iolab.registry import LOADS, analysis_kinds

CHECKS: Final = analysis_kinds().checks_for_job(Job)
METADATA_CHECKS: Final = analysis_kinds().checks_for_job(MetadataJob)
KEY_VALUE_CHECKS: Final = analysis_kinds().checks_for_job(DbBenchJob)

IMPORTED_CHECKS: Final = analysis_kinds().checks_for_job(ImportedJob)

CHECKS_OF_KINDS: Final = tuple(
    made
    for kind in reversed(LOADS)
    for job in kind.job_types
    for made in analysis_kinds().checks_for_job(job)
)
"""Those of every kind of load, which may answer one question in several ways."""

EVERY_CHECK: Final = tuple({made.code: made for made in CHECKS_OF_KINDS}.values())
"""Each code once."""


def judge(record: RunRecord, facts: Mapping[str, HostFacts]) -> RunResult:
    """The run's result."""
    return judging.judge_run(record, facts, analysis_kinds())


def verdict_of(view: RunView) -> Verdict:
    """The verdict alone."""
    return judging.judge_view(view, analysis_kinds())
