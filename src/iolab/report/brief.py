"""A report's whole content, and what each kind of load and hosts that are booted add to it.

The command line says which kinds there are; all else asks the kind that a run or a workload is of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias

from msgspec import field

from iolab.core.tagged import type_tag_of
from iolab.core.workload import COMPOSITES_FROM, Direction, ServiceTimeDirection
from iolab.record import Record
from iolab.report.user_text import EMPTY_USER_TEXT, UserText

if TYPE_CHECKING:
    from iolab.analysis.differences import Difference
    from iolab.analysis.findings import BestPointFinding, BottleneckFinding
    from iolab.analysis.kinds import AnalysisKinds
    from iolab.analysis.pairs import GainsByPair
    from iolab.analysis.points import PointKey, PointSummary
    from iolab.analysis.window import Window
    from iolab.core.host import HostFacts
    from iolab.core.metric import Metric, RunResult
    from iolab.core.resources import RunResources
    from iolab.core.run import HostRun, Plan, RunKey, RunRecord
    from iolab.core.study import Study
    from iolab.core.target_state import PreconditioningRounds
    from iolab.core.workload import AnyJob, OperationEnum, Workload
    from iolab.hosts.rates import CounterSeries
    from iolab.report.best import BestFigure, BestPointHeadline
    from iolab.report.charts.chart import Chart, ChartGroup, ReportSection, SeriesStyles
    from iolab.report.charts.palette import ColorToken
    from iolab.report.charts.series import (
        LatencyCurve,
        NodeTimeline,
        Panel,
        RunAnchors,
        RunChartData,
        TimeGrid,
    )
    from iolab.report.table import Table
    from iolab.report.terminal import Screen
    from iolab.store.documents import Manifest, SessionDocument
    from iolab.store.verify import Damage


Charts: TypeAlias = "Mapping[str, Sequence[ChartGroup]]"
"""The charts of workloads by their ids."""


NodeMetrics: TypeAlias = "Mapping[PointKey, Mapping[str, Mapping[str, Metric]]]"
"""Published metrics of each point's nodes by their names."""


SectionMaker: TypeAlias = "Callable[[Brief], ReportSection | None]"
"""Makes a section of a brief; None where the results have nothing for it."""


class PublishedResultTables(Record):
    """What was published: where, on what, and a table of its figures.

    `node_table` are those of one node from inside, None where none were.
    """

    source: str
    notes: tuple[tuple[str, str], ...]
    results_table: Table
    node_table: Table | None = None


class UnionMember(Record):
    """One of the sessions by itself, under the names that it has without the others.

    `label` is how the report calls it. `results` are its own, and `damaged_run_count` is how many
    of its runs cannot be read. `segment_starts_ns` is when each of its segments began (UTC, ns).
    `configuration_titles` are those of its configurations, as the report calls them.
    """

    label: str
    session: SessionDocument
    study: Study
    plan: Plan
    results: tuple[RunResult, ...]
    damaged_run_count: int
    segment_starts_ns: tuple[int, ...]
    configuration_titles: tuple[str, ...]


class RunSource(Record):
    """Where a run of the report is stored: the session's label, and the point's digest there."""

    label: str
    digest: str
    repeat: int

    @property
    def run_folder(self) -> str:
        """The run's folder within its session."""
        return f"points/{self.digest}/run-{self.repeat}"


class SessionDifferences(Record):
    """In what a session differs from the first one besides its results."""

    label: str
    differences: tuple[Difference, ...]


class SessionUnion(Record):
    """Several sessions in one report; `run_sources` lead from its runs to where they are stored."""

    members: tuple[UnionMember, ...] = ()
    run_sources: Mapping[RunKey, RunSource] = field(default_factory=dict)
    differences: tuple[SessionDifferences, ...] = ()

    @property
    def is_merged(self) -> bool:
        """Whether there are any."""
        return bool(self.members)

    def session_labels_and_forbidding_differences(self) -> Iterator[tuple[str, Difference]]:
        """Every difference that forbids comparing a session with the first one, with its label."""
        for session in self.differences:
            for difference in session.differences:
                if difference.forbids_comparison:
                    yield session.label, difference

    def run_source(self, run_key: RunKey) -> RunSource:
        """Where a run is stored; of a single session without a label."""
        return self.run_sources.get(run_key, RunSource("", *run_key))


NO_UNION: Final = SessionUnion()
"""A report on a single session."""


class Brief(Record, dict=True):
    """A report's whole content.

    `points` are the results' repeats together. `chart_data_by_run` holds the runs that get charts;
    `manifests` those of these runs, and of others that `kinds` have more to tell of. `published` is
    what others published of the same study, and `sections` are made after those of every report.
    `node_timeline` is a node of guests over one run.
    """

    kinds: LoadReportKinds
    session: SessionDocument
    study: Study
    plan: Plan
    facts: Mapping[str, HostFacts]
    results: tuple[RunResult, ...]
    points: tuple[PointSummary, ...]
    chart_data_by_run: Mapping[RunKey, RunChartData]
    manifests: Mapping[RunKey, Manifest]
    damaged_runs: tuple[Damage, ...]
    published: PublishedResultTables | None = None
    node_timeline: NodeTimeline | None = None
    sections: tuple[SectionMaker, ...] = ()
    segment_starts_ns: tuple[int, ...] = ()
    """When each segment of the session began (UTC, ns), oldest first."""
    session_union: SessionUnion = NO_UNION
    """The sessions that it is made of, where there are several."""
    run_resources: Mapping[RunKey, RunResources] = field(default_factory=dict)
    """What runs of the best points tell of the resources under their load."""
    preconditioning_rounds: tuple[PreconditioningRounds, ...] = ()
    """How targets came to their steady state before they were measured."""
    user_text: UserText = EMPTY_USER_TEXT
    """What the user says beside it."""

    @cached_property
    def series_styles(self) -> SeriesStyles:
        """How charts call and colour its configurations."""
        from iolab.report.charts.chart import series_styles

        return series_styles(self.study)

    @cached_property
    def run_anchors(self) -> RunAnchors:
        """Where its page tells of each run."""
        return {run.key: f"run-{i}" for i, run in enumerate(self.results, 1)}

    @cached_property
    def best_figures(self) -> tuple[BestFigure, ...]:
        """The best of each workload in each configuration, as its kind of load tells them."""
        return self.kinds.best_figures(self)

    @cached_property
    def best_points(self) -> tuple[BestPointFinding, ...]:
        """The best point of each workload in each configuration."""
        from iolab.analysis.findings import best_point_findings

        return tuple(best_point_findings(self.study, self.points))

    @cached_property
    def bottlenecks(self) -> tuple[BottleneckFinding, ...]:
        """What limits the best points, of those that were watched."""
        from iolab.analysis.findings import bottleneck_findings

        return tuple(
            bottleneck_findings(
                self.study, self.points, self.best_points, self.resources_by_run_without_noise_runs
            )
        )

    @property
    def resources_by_run_without_noise_runs(self) -> Mapping[RunKey, RunResources]:
        """Those of the runs behind best figures: what can be no more than noise has no limit."""
        noise = {best.run_key for best in self.best_figures if best.noise_text}
        return {key: known for key, known in self.run_resources.items() if key not in noise}

    @cached_property
    def gains_by_pair(self) -> GainsByPair:
        """How its configurations compare with each other."""
        from iolab.analysis.pairs import GainsByPair

        return GainsByPair(self.study, self.points)

    @property
    def host_runs(self) -> Mapping[RunKey, tuple[HostRun, ...]]:
        """How those runs went on each host."""
        return {key: manifest.hosts for key, manifest in self.manifests.items()}

    @property
    def engine_versions(self) -> tuple[str, ...]:
        """The engines that made the load, each version once."""
        return _distinct_engine_versions(self.host_runs.values())

    def engine_versions_of_session(self, session_label: str) -> tuple[str, ...]:
        """Those of one of several sessions."""
        runs = self.host_runs.items()
        return _distinct_engine_versions(
            hosts
            for key, hosts in runs
            if self.session_union.run_source(key).label == session_label
        )


def _distinct_engine_versions(host_runs_of_runs: Iterable[tuple[HostRun, ...]]) -> tuple[str, ...]:
    every = (run for hosts in host_runs_of_runs for run in hosts)
    return tuple(dict.fromkeys(run.engine_version for run in every if run.engine_version))


class LatencyCurves(Record):
    """A run's latency by percentile: of all I/Os, and apart; `window` is what all hosts shared."""

    all_operations: LatencyCurve
    per_operation: tuple[LatencyCurve, ...]
    window: Window | None


class MeasurementSource(Protocol):
    """What was measured, as a brief or a screen has it."""

    @property
    def study(self) -> Study:
        """The study."""

    @property
    def points(self) -> tuple[PointSummary, ...]:
        """Its results' repeats together."""

    @property
    def results(self) -> tuple[RunResult, ...]:
        """Its results."""

    @property
    def gains_by_pair(self) -> GainsByPair:
        """How its configurations compare with each other."""


class LoadReport(ABC):
    """One kind of load; results that are handed to it are its own.

    `jobs` are what its workloads ask clients to do; `hosts` reports hosts that are booted.
    """

    is_single_figure: ClassVar[bool] = False
    """Whether one figure and one latency tell a run, as they do of I/O."""

    is_single_rate: ClassVar[bool] = True
    """Whether all that a run does adds up to one rate, by which hosts are set side by side."""

    uses_laid_out_files: ClassVar[bool] = False
    """Whether files are laid out for it before its runs."""

    operation_enums: ClassVar[Sequence[type[OperationEnum]]] = (Direction, ServiceTimeDirection)
    """What intervals count."""

    operation_noun: ClassVar[str] = "I/O"
    """What a run is made of."""

    phase_names_by_spread_key: ClassVar[Mapping[str, str]] = {}
    """The parts of a run that follow each other, by their keys in `operation_spreads`."""

    def __init__(self, jobs: tuple[type[AnyJob], ...], hosts: BootedHostsReport) -> None:
        self.job_types = jobs
        self.hosts = hosts

    def handles_workload(self, workload: Workload) -> bool:
        """Whether a workload makes this load."""
        return isinstance(workload.job, self.job_types)

    @abstractmethod
    def has_measurements(self, result: RunResult) -> bool:
        """Whether there is anything to draw of a result."""

    def run_summary_text(self, result: RunResult, workload: Workload) -> str:  # noqa: ARG002 - of kinds with one
        """A run in a line: its rates, unless it has a figure."""
        return self.run_figures_text_if_not_iops(result) or ""

    def run_figures_text_if_not_iops(self, result: RunResult) -> str | None:  # noqa: ARG002 - of kinds without one figure
        """The rates of a run's operations in a line; None where IOPS and bandwidth tell it."""
        return None

    def operation_name(self, operation: int, job: AnyJob) -> str:  # noqa: ARG002 - of jobs that name theirs
        """What intervals of such a job call by that number: `file-create`."""
        return next(
            kind(operation).display_name for kind in self.operation_enums if operation in set(kind)
        )

    def non_overlapping_operations(self, operation_numbers: Iterable[int]) -> set[int]:
        """Those of a run's operations, by their numbers, that together count each of them once."""
        once = set(operation_numbers) - set(ServiceTimeDirection)
        return {number for number in once if number < COMPOSITES_FROM}

    def has_published_figures(self, workload: Workload) -> bool:  # noqa: ARG002 - of kinds that have some
        """Whether figures that others published of a workload are shown beside the measured."""
        return False

    def compared_host_metric_keys(self, result: RunResult) -> Sequence[str]:  # noqa: ARG002 - of all kinds of I/O
        """The metrics that tell a host of a run that lags behind the others."""
        return ("iops", "bw_bytes_per_s", "lat_ns_mean", "lat_ns_p99")

    @abstractmethod
    def metric_keys_and_headings(
        self, metrics: Sequence[Mapping[str, Metric]]
    ) -> Sequence[tuple[str, str]]:
        """Metrics and headings of a table of runs, or of hosts, that have these metrics."""

    @abstractmethod
    def host_ranking_metric_key(self, result: RunResult, workload: Workload) -> str:
        """The metric that tells fast hosts of a run from slow ones."""

    @abstractmethod
    def latency_curves(self, record: RunRecord, whole_curve_name: str) -> LatencyCurves:
        """The latencies of a run; that of all its operations together gets the name."""

    @abstractmethod
    def timeline_panels(self, record: RunRecord, grid: TimeGrid) -> list[Panel]:
        """The load of all hosts together over time."""

    @abstractmethod
    def latency_distribution_chart(
        self, subject: str, chart_data: RunChartData, color: ColorToken
    ) -> Chart | None:
        """One run's latency by percentile; None where none is known."""

    @abstractmethod
    def best_figures(self, measurements: MeasurementSource) -> tuple[BestFigure, ...]:
        """The best of each workload in each configuration."""

    @abstractmethod
    def charts_by_workload(self, brief: Brief) -> Charts:
        """The charts of each workload over its points."""

    @abstractmethod
    def result_table(
        self, study: Study, results: Sequence[RunResult], anchors: RunAnchors
    ) -> Table:
        """One row a run."""

    @abstractmethod
    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:
        """What the workloads of a study ask for, and what they found."""

    def job_count_and_depth_rows(self, study: Study) -> tuple[tuple[str, str], ...]:  # noqa: ARG002
        """What all its workloads ask for alike, for the table of the method."""
        return ()

    def terminal_screen(
        self,
        study: Study,
        results: Sequence[RunResult],
        points: Sequence[PointSummary],  # noqa: ARG002 - of kinds that tell points apart
        *,
        with_run_rows: bool,  # noqa: ARG002 - as above
    ) -> Screen:
        """Its results on the terminal: with `with_run_rows` each run has a line."""
        from iolab.report.terminal import grouped_report_table  # and rich, which pages do without

        yield grouped_report_table(self.result_table(study, results, {}))

    @abstractmethod
    def markdown_tables(self, study: Study, results: Sequence[RunResult]) -> str:
        """Points and runs as tables of Markdown, for an export."""

    def best_point_headlines(
        self,
        study: Study,  # noqa: ARG002 - of kinds that have a figure
        points: Sequence[PointSummary],  # noqa: ARG002 - as above
    ) -> tuple[BestPointHeadline, ...]:
        """The best point of each workload in each configuration."""
        return ()

    def extra_answer_text(
        self,
        study: Study,  # noqa: ARG002 - of kinds whose best figures do not tell it
        points: Sequence[PointSummary],  # noqa: ARG002 - as above
    ) -> str:
        """What its workloads found, in sentences; empty where the best figures tell it."""
        return ""

    def gain_tables_with_notes(self, brief: Brief) -> tuple[tuple[Table, str], ...]:  # noqa: ARG002
        """What configurations gain over the first, each table with its note."""
        return ()

    def runs_needing_manifests(self, results: Sequence[RunResult]) -> tuple[RunKey, ...]:  # noqa: ARG002
        """Runs whose manifests are read although they may get no charts."""
        return ()

    def engine_build_texts(self, brief: Brief) -> tuple[str, ...]:  # noqa: ARG002
        """What is to be known of the engines, under the title."""
        return ()

    def detail_tables_of_run(self, result: RunResult) -> tuple[Table, ...]:  # noqa: ARG002
        """What there is to tell of a run beside its hosts."""
        return ()

    def engine_tables(self, brief: Brief, result: RunResult) -> tuple[Table, ...]:  # noqa: ARG002
        """What engine and server told of themselves in a run."""
        return ()

    def result_document_parts(
        self,
        study: Study,  # noqa: ARG002 - of kinds that have parts of their own
        points: Sequence[PointSummary],  # noqa: ARG002 - as above
        results: Sequence[RunResult],  # noqa: ARG002 - as above
    ) -> dict[str, Any]:
        """Its own parts of `iolab show --json`, of all points and of its own results."""
        return {}


class BootedHostsReport(Protocol):
    """Hosts that are booted on nodes, and what is known of the nodes."""

    def is_swept_over_hosts_per_node(self, workload: Workload) -> bool:
        """Whether a workload is told over how many of them there are on a node."""

    def best_point_headlines(
        self, study: Study, points: Sequence[PointSummary]
    ) -> tuple[BestPointHeadline, ...]:
        """The best point of each such workload."""

    def charts_by_workload(self, brief: Brief) -> Charts:
        """The charts of each such workload over its points."""

    def runs_needing_manifests(
        self, study: Study, points: Sequence[PointSummary], results: Sequence[RunResult]
    ) -> tuple[RunKey, ...]:
        """Runs whose manifests are read for what the nodes told."""

    def select_node_timeline_run(
        self, plan: Plan, points: Sequence[PointSummary]
    ) -> RunResult | None:
        """The run that shows a node from inside; None where there is none."""

    def node_timeline(
        self,
        record: RunRecord,
        result: RunResult,
        telemetry: Sequence[CounterSeries],
        facts_by_host: Mapping[str, HostFacts],
        window: Window | None,
    ) -> NodeTimeline | None:
        """A node from inside over that run; None where none was watched."""

    def nodes_terminal_screen(self, study: Study, points: Sequence[PointSummary]) -> Screen:
        """The nodes at the points with the most of them, on the terminal."""

    def nodes_terminal_screen_of_run(self, result: RunResult) -> Screen:
        """The nodes of one run in full, on the terminal."""

    def node_timeline_charts(self, brief: Brief) -> tuple[ChartGroup, ...]:
        """The same as charts."""

    def caveat_texts(self, brief: Brief) -> tuple[str, ...]:
        """What makes their figures no figures of storage."""

    def study_caveat_texts(self, study: Study, results: Sequence[RunResult]) -> tuple[str, ...]:
        """The same by what the study asks of them and what the checks of its runs found."""

    def booted_host_tables(self, brief: Brief) -> tuple[Table, ...]:
        """How they were made, and where they lived."""

    def node_tables_of_run(self, result: RunResult) -> tuple[Table, ...]:
        """What each node did in a run."""

    def guest_tables_of_run(self, brief: Brief, result: RunResult) -> tuple[Table, ...]:
        """What nodes told of their guests in a run."""

    def node_metrics(self, study: Study, points: Sequence[PointSummary]) -> NodeMetrics:
        """The published values of the nodes of those points."""


class RegisteredLoadKind(Protocol):
    """A kind of load of which it is known what it is called before its report is made."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def job_class_path_by_type_tag(self) -> Mapping[str, str]:
        """What its workloads ask clients to do: "module:attribute" by names in documents."""

    @property
    def document_list_names(self) -> tuple[str, ...]:
        """The names of the lists that its results add to `iolab show --json`."""

    def make_report(self, hosts: BootedHostsReport) -> LoadReport:
        """Its part of reports, where these are the hosts that are booted."""


class LoadReportKinds(Record, eq=False, dict=True):
    """The kinds of load that reports know, in the order shown, and the hosts that are booted.

    Each is made when it is asked for: a session has results of few kinds, and the modules of all
    take longer to import than most sessions to read.
    """

    registered_kinds: tuple[RegisteredLoadKind, ...]
    booted_hosts_factory: Callable[[], BootedHostsReport]
    analyses_factory: Callable[[], AnalysisKinds]
    _reports_by_name: dict[str, LoadReport] = field(default_factory=dict)

    @cached_property
    def booted_hosts(self) -> BootedHostsReport:
        """The hosts that are booted."""
        return self.booted_hosts_factory()

    @cached_property
    def analyses(self) -> AnalysisKinds:
        """What results are judged by."""
        return self.analyses_factory()

    def operation_name(self, study: Study, result: RunResult, operation: int) -> str:
        """What people call that number of a result's tables: `file-create`."""
        return self.report_of_result(result).operation_name(
            operation, study.workload(result.workload).job
        )

    def operation_json_key(self, study: Study, result: RunResult, operation: int) -> str:
        """What other programs call it: `file_create`."""
        word = self.operation_name(study, result, operation)
        return word.replace("-", "_").replace(" ", "_")

    def report_of_result(self, result: RunResult) -> LoadReport:
        """The kind of load that a result is of."""
        return self._cached_report_of_kind(self._kind_of_type_tag(result.load))

    def report_of_workload(self, workload: Workload) -> LoadReport:
        """The kind of load that a workload makes."""
        return self._cached_report_of_kind(self._kind_of_type_tag(type_tag_of(workload.job)))

    def reports_of_study(self, study: Study) -> tuple[LoadReport, ...]:
        """The kinds that workloads of a study are of."""
        names = {
            self._kind_of_type_tag(type_tag_of(workload.job)).name for workload in study.workloads
        }
        return tuple(
            self._cached_report_of_kind(kind)
            for kind in self.registered_kinds
            if kind.name in names
        )

    def results_by_report(self, results: Iterable[RunResult]) -> dict[LoadReport, list[RunResult]]:
        """The results by their kind, those of each in their order."""
        grouped: dict[str, list[RunResult]] = {}
        for result in results:
            grouped.setdefault(self._kind_of_type_tag(result.load).name, []).append(result)
        return {
            self._cached_report_of_kind(kind): grouped[kind.name]
            for kind in self.registered_kinds
            if kind.name in grouped
        }

    def best_figures(self, measurements: MeasurementSource) -> tuple[BestFigure, ...]:
        """The best of each workload in each configuration, with how they compare."""
        from iolab.report.best import best_figures_with_comparisons

        every = [
            figure
            for kind in self.reports_of_study(measurements.study)
            for figure in kind.best_figures(measurements)
        ]
        return best_figures_with_comparisons(every, measurements.gains_by_pair)

    def best_point_headlines(
        self, study: Study, points: Sequence[PointSummary]
    ) -> tuple[BestPointHeadline, ...]:
        """The best points of all workloads that have a figure."""
        return tuple(
            headline
            for kind in self.reports_of_study(study)
            for headline in kind.best_point_headlines(study, points)
        )

    def extra_answer_text(self, study: Study, points: Sequence[PointSummary]) -> str:
        """What all kinds of a study found, where each has sentences of its own; else empty."""
        texts = [kind.extra_answer_text(study, points) for kind in self.reports_of_study(study)]
        return " ".join(texts) if all(texts) else ""

    def single_figure_headlines(
        self, study: Study, points: Sequence[PointSummary]
    ) -> tuple[BestPointHeadline, ...]:
        """The same of those whose runs are told by one figure and one latency."""
        kinds = (kind for kind in self.reports_of_study(study) if kind.is_single_figure)
        return tuple(
            headline for kind in kinds for headline in kind.best_point_headlines(study, points)
        )

    def has_published_figures(self, study: Study) -> bool:
        """Whether figures that others published of the same study are shown beside its own."""
        return any(
            self.report_of_workload(workload).has_published_figures(workload)
            for workload in study.workloads
        )

    def _kind_of_type_tag(self, type_tag: str) -> RegisteredLoadKind:
        """The kind that makes jobs of that name."""
        return next(
            kind for kind in self.registered_kinds if type_tag in kind.job_class_path_by_type_tag
        )

    def _cached_report_of_kind(self, kind: RegisteredLoadKind) -> LoadReport:
        if kind.name not in self._reports_by_name:
            self._reports_by_name[kind.name] = kind.make_report(self.booted_hosts)
        return self._reports_by_name[kind.name]
