"""Every kind of load and of booted host, and its parts for studies, sessions, analysis, reports.

Whoever reads a session imports this module: then every type that stands in stored documents, and
every metric, is known. The jobs and parts of a kind are named as "module:attribute" and imported
when they are asked for: reading results that were judged needs no checks, planning no drivers, and
a session none of the kinds of load that it is not of.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, distributions
from typing import TYPE_CHECKING, Final

import iolab.guests.guest  # noqa: F401 - hosts that are booted have parts of their own
from iolab.core.metric_spec import declare_metrics
from iolab.core.power import POWER_METRICS
from iolab.core.tagged import declare_tagged_classes, import_attribute, type_tag_of
from iolab.core.wear import WEAR_METRICS
from iolab.errors import StudyError
from iolab.loads.kind import LoadKind
from iolab.record import Record

if TYPE_CHECKING:
    from iolab.analysis.kinds import AnalysisKinds
    from iolab.core.study import Study
    from iolab.core.workload import AnyJob
    from iolab.report.brief import BootedHostsReport, LoadReportKinds
    from iolab.session.kinds import SessionKinds
    from iolab.study.kinds import LoadStudyKind, StudyKinds
    from iolab.study.parse import StudyOverrides

ENTRY_POINTS: Final = "iolab.kinds"
"""The group of entry points by which an installed package adds kinds of load: each names a
`LoadKind`."""

KINDS: Final = (
    "iolab.loads.fileio.kind:KIND",
    "iolab.loads.metadata.kind:KIND",
    "iolab.loads.keyvalue.kind:KIND",
    "iolab.loads.kvcache.kind:KIND",
    "iolab.loads.checkpoint.kind:KIND",
    "iolab.loads.objects.kind:KIND",
    "iolab.loads.training.kind:KIND",
    "iolab.importers.kind:KIND",
)
"""iolab's own kinds of load, in the order shown; one line each."""


def _installed_kind_entry_points() -> Iterable[EntryPoint]:
    """The kinds of other packages; `entry_points` parses what any package has to offer."""
    found = (
        point
        for distribution in distributions()
        if ENTRY_POINTS in (distribution.read_text("entry_points.txt") or "")
        for point in distribution.entry_points.select(group=ENTRY_POINTS)
    )
    return dict.fromkeys(found)  # a package may be on the path twice


LOADS: Final[tuple[LoadKind, ...]] = (
    *map(import_attribute, KINDS),
    *(point.load() for point in _installed_kind_entry_points()),
)
"""Every kind of load, in the order shown."""


class BootedHostKind(Record):
    """A kind of host that sessions boot: the names of its parts, each made without arguments."""

    study_kind_path: str
    session_kind_path: str
    analysis_path: str
    report_path: str


GUESTS: Final = BootedHostKind(
    study_kind_path="iolab.guests.study:GuestStudyKind",
    session_kind_path="iolab.guests.fleet:GuestSessionKind",
    analysis_path="iolab.guests.analysis:GuestAnalysis",
    report_path="iolab.guests.report:GuestsReport",
)

for _kind in LOADS:
    declare_tagged_classes(_kind.job_class_path_by_type_tag)
    declare_metrics(_kind.non_operation_metrics)
declare_metrics(POWER_METRICS)
declare_metrics(WEAR_METRICS)


def study_kinds() -> StudyKinds:
    """What studies can ask for."""
    return _study_kinds_by_name(tuple(kind.name for kind in LOADS))


def study_kinds_named_in(text: str) -> StudyKinds:
    """What a study file can ask for that says no more than `text`."""
    return _study_kinds_by_name(
        tuple(
            kind.name
            for kind in LOADS
            if not kind.study_words or any(word in text for word in kind.study_words)
        )
    )


def study_kinds_used_by(study: Study) -> StudyKinds:
    """What a study asks for."""
    neighbours = () if study.scenario is None else study.scenario.neighbours
    tags = {type_tag_of(workload.job) for workload in (*study.workloads, *neighbours)}
    return _study_kinds_by_name(
        tuple(kind.name for kind in LOADS if tags & {*kind.job_class_path_by_type_tag})
    )


def study_kind_of_job(job: AnyJob) -> LoadStudyKind:
    """The kind of a job, for studies and plans."""
    return next(
        kind for kind in LOADS if type_tag_of(job) in kind.job_class_path_by_type_tag
    ).make_study_kind()


def read_study(text: str, file_name: str, overrides: StudyOverrides) -> Study:
    """The study of a file; StudyError with every fault.

    The kinds of load that it names read it, for the models of all take long to build; where it has
    faults all kinds do, for a fault may be the name of another.
    """
    from iolab.study.parse import parse_study

    try:
        return parse_study(text, file_name, overrides, study_kinds_named_in(text))
    except StudyError:
        return parse_study(text, file_name, overrides, study_kinds())


@cache
def _study_kinds_by_name(names: tuple[str, ...]) -> StudyKinds:
    from iolab.study.kinds import StudyKinds

    loads = tuple(kind.make_study_kind() for kind in LOADS if kind.name in names)
    return StudyKinds(loads, import_attribute(GUESTS.study_kind_path)())


@cache
def session_kinds() -> SessionKinds:
    """What sessions can make."""
    from iolab.session.kinds import SessionKinds

    loads = tuple(kind.make_session_kind() for kind in LOADS)
    return SessionKinds(
        loads=loads, hosts=import_attribute(GUESTS.session_kind_path)(), study=study_kinds()
    )


@cache
def analysis_kinds() -> AnalysisKinds:
    """What results are judged by."""
    from iolab.analysis.kinds import AnalysisKinds

    loads = {
        job: cache(kind.make_analysis) for kind in LOADS for job in kind.job_class_path_by_type_tag
    }
    specs = (
        *(spec for kind in LOADS for spec in kind.non_operation_metrics),
        *POWER_METRICS,
        *WEAR_METRICS,
    )
    declared = dict.fromkeys(spec.key for spec in specs)
    return AnalysisKinds(loads, (import_attribute(GUESTS.analysis_path)(),), tuple(declared))


@cache
def report_kinds() -> LoadReportKinds:
    """What reports and exports ask of each kind."""
    from iolab.report.brief import LoadReportKinds

    return LoadReportKinds(LOADS, _guests_report, analysis_kinds)


def _guests_report() -> BootedHostsReport:
    report: BootedHostsReport = import_attribute(GUESTS.report_path)()
    return report
