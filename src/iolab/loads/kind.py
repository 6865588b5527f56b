"""A kind of load: all that the rest of iolab knows of it.

Its parts are named as "module:attribute" and imported when they are asked for: a study is read and
planned without drivers, analysis or report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from iolab.core.tagged import import_attribute
from iolab.record import Record

if TYPE_CHECKING:
    from iolab.analysis.kinds import LoadAnalysis
    from iolab.core.metric_spec import MetricSpec
    from iolab.core.workload import AnyJob
    from iolab.report.brief import BootedHostsReport, LoadReport
    from iolab.session.kinds import LoadSessionKind
    from iolab.study.kinds import LoadStudyKind


class LoadKind(Record):
    """One kind of load: its name, its jobs, and the names of its parts.

    `job_class_path_by_type_tag` has what its workloads ask clients to do, by the names in
    documents; the module of a job has the other parts of records that are the kind's.

    `study_kind_path`, `analysis_path` and `report_path` are of subclasses of `LoadStudyKind`,
    `LoadAnalysis` and `LoadReport`, `session_kind_path` of a `LoadSessionKind`. The defaults
    are those of load whose operations are reads and writes, one figure and one latency a run.
    `non_operation_metrics` are those of its results that are no rates and latencies of operations,
    `document_list_names` the lists that its results add to `iolab show --json`, which are empty for
    other kinds. `study_words` are its engines and its own table: a study file without any of them
    is read without the kind, one with faults by all kinds.
    """

    name: str
    job_class_path_by_type_tag: Mapping[str, str]
    session_kind_path: str
    study_kind_path: str = "iolab.study.kinds:LoadStudyKind"
    analysis_path: str = "iolab.analysis.kinds:LoadAnalysis"
    report_path: str = "iolab.report.single_figure:SingleFigureReport"
    non_operation_metrics: tuple[MetricSpec, ...] = ()
    document_list_names: tuple[str, ...] = ()
    study_words: tuple[str, ...] = ()

    @property
    def job_types(self) -> tuple[type[AnyJob], ...]:
        """What its workloads ask clients to do."""
        return tuple(map(import_attribute, self.job_class_path_by_type_tag.values()))

    def make_study_kind(self) -> LoadStudyKind:
        """Its part of studies and plans."""
        made: LoadStudyKind = import_attribute(self.study_kind_path)()
        return made

    def make_session_kind(self) -> LoadSessionKind:
        """Its part of sessions."""
        session: LoadSessionKind = import_attribute(self.session_kind_path)
        return session

    def make_analysis(self) -> LoadAnalysis[Any]:
        """Its part of analysis."""
        made: LoadAnalysis[Any] = import_attribute(self.analysis_path)()
        return made

    def make_report(self, host_report: BootedHostsReport) -> LoadReport:
        """Its part of reports; `host_report` reports hosts that are booted."""
        made: LoadReport = import_attribute(self.report_path)(self.job_types, host_report)
        return made
