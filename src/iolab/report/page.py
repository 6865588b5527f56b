"""A brief arranged for all its forms: what stands in the brief itself, and what in its appendix."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.run import RunStatus
from iolab.record import Record
from iolab.report.answer import BriefAnswer, build_answer
from iolab.report.best import count_runs_by_verdict_and_status
from iolab.report.brief import Brief, PublishedResultTables
from iolab.report.charts.chart import (
    ALL_INDICATIVE_NOTE,
    NO_INTERVAL,
    NONE_VALID_NOTE,
    Chart,
    ChartGroup,
    ReportSection,
    chart_without_hatching,
)
from iolab.report.charts.topology import TopologyDrawing, topology_drawing
from iolab.report.drives import drive_wear_table
from iolab.report.hardware import (
    disks_table,
    group_identical_hosts,
    hardware_tables,
    host_table,
    measured_storage_caveat,
    nics_table,
)
from iolab.report.maxima import ANCHOR as MAXIMA
from iolab.report.narrative import (
    SENTENCES_SHOWN,
    LinkedSentence,
    factor_out_common_doubt,
    linked_finding_sentences,
)
from iolab.report.phrases import Objection, merge_objections, title_by_configuration_if_several
from iolab.report.power import meter_power_table
from iolab.report.provenance import (
    ReproductionInstructions,
    reproduction_instructions,
    run_folders_table,
    session_alerts,
    session_fact_rows,
    session_methods_table,
    session_tables,
    short_method_table,
    study_with_workload_versions,
)
from iolab.report.runs import RunSection, run_charts_note, sections_of_runs
from iolab.report.sections import all_workload_charts, report_sections
from iolab.report.table import Table, table_with_constants_in_title
from iolab.text import counted_noun, list_text

DRAWN_BESIDE_MAX: Final = 2
"""Configurations whose drawing fits beside the table of hardware; of more the appendix has it."""

MAX_FAILURES: Final = 12
"""Failed runs told one by one; the results table has them all."""

_SENTENCES: Final = re.compile(r"(?<=\.) (?=[A-Z0-9])")

FURTHER: Final = "further"


class ReportPage(Record):
    """A brief arranged: what its blocks are made of, and what its appendix holds.

    `findings` are the first ones; `further_findings` and `appendix_sections` are of the appendix.
    """

    fact_rows: tuple[tuple[str, str], ...]
    alerts: tuple[str, ...]
    hardware_caveat: str
    answer: BriefAnswer
    topology: TopologyDrawing | None
    has_topology_in_brief: bool
    gain_tables_with_notes: tuple[tuple[Table, str], ...]
    findings: tuple[LinkedSentence, ...]
    further_findings: tuple[LinkedSentence, ...]
    findings_note: str
    objections: tuple[Objection, ...]
    failures: tuple[RunResult, ...]
    hidden_failures_text: str
    charts_by_workload: tuple[ChartGroup, ...]
    chart_notes: str
    sections: tuple[ReportSection, ...]
    appendix_sections: tuple[ReportSection, ...]
    result_tables: tuple[Table, ...]
    runs: tuple[RunSection, ...]
    runs_note: str
    hardware_tables: tuple[Table, ...]
    guest_tables: tuple[Table, ...]
    host_tables_by_names: tuple[tuple[str, tuple[Table, ...]], ...]
    method_table: Table
    job_tables: tuple[Table, ...]
    published: PublishedResultTables | None
    session_tables: tuple[Table, ...]
    run_folders: Table | None
    reproduction_instructions: tuple[ReproductionInstructions, ...]

    @property
    def further_caveats(self) -> tuple[Objection, ...]:
        """The caveats that the brief has no room for."""
        return tuple(own for own in self.objections if own not in self.answer.caveats)

    @property
    def appendix_anchors_and_titles(self) -> Iterator[tuple[str, str]]:
        """Anchor and title of each part of the appendix."""
        if self.further_findings:
            yield "more-findings", "More findings"
        yield "know", "All caveats"
        if self.gain_tables_with_notes:
            yield "gains", "Gains"
        yield from ((section.anchor, section.title) for section in self.appendix_sections)
        if self.published:
            yield "published", "Published elsewhere"
        yield "results", "Every run"
        if self.runs:
            yield "runs", "Runs in detail"
        yield "hosts", "Hosts and workloads"
        yield "repeat", "How to repeat it"

    @property
    def chart_groups(self) -> Iterator[ChartGroup]:
        """Every group of charts, of the brief and its appendix."""
        yield from self.charts_by_workload
        for section in (*self.sections, *self.appendix_sections):
            yield from section.groups


def build_report_page(brief: Brief) -> ReportPage:
    """The brief arranged; pure, and the same for the same brief."""
    kinds = brief.kinds.reports_of_study(brief.study)
    failures = tuple(r for r in brief.results if r.status is not RunStatus.DONE)
    marked = groups_with_distinguishing_marks(brief, all_workload_charts(brief))
    workloads, notes = factor_out_shared_notes(marked)
    sentences, doubt = factor_out_common_doubt(linked_finding_sentences(brief))
    every_section = [
        replace(section, groups=groups_with_distinguishing_marks(brief, section.groups))
        for section in report_sections(brief)
    ]
    in_brief = tuple(
        _with_shared_notes_told_once(section)
        for section in every_section
        if not section.in_appendix
    )
    backing = (
        *appendix_chart_sections(workloads, in_brief),
        *(section for section in every_section if section.in_appendix),
    )
    gains = tuple(gain for kind in kinds for gain in kind.gain_tables_with_notes(brief))
    caveats = merge_objections(brief.results, title_by_configuration_if_several(brief.study))
    bests = next((section for section in every_section if section.anchor == MAXIMA), None)
    hidden = len(failures) - MAX_FAILURES
    more = f"{counted_noun(hidden, 'more run')} failed or was interrupted." if hidden > 0 else ""
    study = study_with_workload_versions(brief)
    topology = topology_drawing(brief)
    return ReportPage(
        fact_rows=session_fact_rows(brief),
        alerts=session_alerts(brief),
        hardware_caveat=measured_storage_caveat(brief.study, brief.facts),
        answer=build_answer(
            brief,
            brief.best_figures,
            count_runs_by_verdict_and_status(brief.results),
            caveats,
            bests,
        ),
        topology=topology,
        has_topology_in_brief=topology is not None
        and not topology.is_one_host
        and len(brief.study.configurations) <= DRAWN_BESIDE_MAX,
        gain_tables_with_notes=gains,
        findings=sentences[:SENTENCES_SHOWN],
        further_findings=sentences[SENTENCES_SHOWN:],
        findings_note=doubt,
        objections=caveats,
        failures=failures[:MAX_FAILURES],
        hidden_failures_text=more,
        charts_by_workload=workloads,
        chart_notes=notes,
        sections=in_brief,
        appendix_sections=backing,
        result_tables=_result_tables(brief),
        runs=sections_of_runs(
            brief, (link for sentence in sentences for link, _ in sentence.links)
        ),
        runs_note=run_charts_note(brief),
        hardware_tables=hardware_tables(brief.study, brief.facts),
        guest_tables=brief.kinds.booted_hosts.booted_host_tables(brief),
        host_tables_by_names=_host_tables_by_names(brief),
        method_table=short_method_table(session_methods_table(brief)),
        job_tables=tuple(table for kind in kinds for table in kind.job_tables(brief, study)),
        published=brief.published,
        session_tables=session_tables(brief.session_union),
        run_folders=run_folders_table(brief),
        reproduction_instructions=reproduction_instructions(brief),
    )


def _result_tables(brief: Brief) -> tuple[Table, ...]:
    """Every run, a table for each kind of load, and what runs wrote and took."""
    by_kind = brief.kinds.results_by_report(brief.results)
    beside = (drive_wear_table(brief.results), meter_power_table(brief.results))
    return (
        *(kind.result_table(brief.study, own, brief.run_anchors) for kind, own in by_kind.items()),
        *(table for table in beside if table),
    )


def _host_tables_by_names(brief: Brief) -> tuple[tuple[str, tuple[Table, ...]], ...]:
    """The tables of each kind of host under the names of those that are of it."""
    return tuple(
        (
            list_text(names, 8),
            (host_table(facts), disks_table(names, facts), nics_table(facts)),
        )
        for names, facts in group_identical_hosts(brief.facts)
    )


def factor_out_shared_notes(groups: Sequence[ChartGroup]) -> tuple[tuple[ChartGroup, ...], str]:
    """The groups without what the notes of several charts say alike, and that once for all.

    Why figures have no interval is said of all on the first page.
    """
    sentences = [_SENTENCES.split(figure.note) for group in groups for figure in group.charts]
    counted = Counter(
        sentence for note in sentences for sentence in dict.fromkeys(note) if sentence
    )
    few = {sentence for sentence in counted if sentence.startswith(NO_INTERVAL)}
    shared = [
        sentence for sentence, number in counted.items() if number > 1 and sentence not in few
    ]
    dropped = {*shared, *few}

    def without_shared_note(figure: Chart) -> Chart:
        kept = (sentence for sentence in _SENTENCES.split(figure.note) if sentence not in dropped)
        return replace(figure, note=" ".join(kept))

    stripped = tuple(
        replace(group, charts=tuple(map(without_shared_note, group.charts))) for group in groups
    )
    return stripped, " ".join(shared)


def groups_with_distinguishing_marks(
    brief: Brief, groups: Iterable[ChartGroup]
) -> tuple[ChartGroup, ...]:
    """The groups, their bars hatched only where hatching tells indicative from valid ones."""
    levels = {point.verdict_level for point in brief.points}
    if VerdictLevel.VALID in levels or VerdictLevel.INDICATIVE not in levels:
        return tuple(groups)
    note = NONE_VALID_NOTE if VerdictLevel.INVALID in levels else ALL_INDICATIVE_NOTE

    def unhatched(figures: Sequence[Chart]) -> tuple[Chart, ...]:
        return tuple(chart_without_hatching(figure, note) for figure in figures)

    return tuple(
        replace(
            group,
            charts=unhatched(group.charts),
            appendix_charts=unhatched(group.appendix_charts),
        )
        for group in groups
    )


def _with_shared_notes_told_once(section: ReportSection) -> ReportSection:
    """The section, each group of charts with one note for what several of them say alike."""
    groups = []
    for group in section.groups:
        ((stripped,), shared_note) = factor_out_shared_notes([group])
        note = " ".join(filter(None, (group.note, shared_note)))
        groups.append(replace(stripped, note=note))
    return replace(section, groups=tuple(groups))


def appendix_chart_sections(
    workload_groups: Sequence[ChartGroup], sections: Sequence[ReportSection]
) -> Iterator[ReportSection]:
    """What backs the charts of the brief: their other charts and tables, as one section."""
    groups = (*workload_groups, *(group for section in sections for group in section.groups))
    further = tuple(
        replace(
            group,
            table=None,
            note="",
            tables_below_with_notes=(),
            charts=group.appendix_charts,
            appendix_charts=(),
        )
        for group in groups
        if group.appendix_charts or any(table.rows for table, _ in group.detail_tables_with_notes)
    )
    if further:
        shared, notes = factor_out_shared_notes(further)
        yield ReportSection(FURTHER, "More of each workload", notes, shared)


def distinct_chart_tables(figures: Sequence[Chart]) -> list[Table]:
    """The tables behind figures that stand together, without those that others hold."""
    tables = list(dict.fromkeys(figure.table for figure in figures))
    heads = {table: {column.title for column in table.columns} for table in tables}
    whole = [table for table in tables if not any(heads[table] < heads[other] for other in tables)]
    return [table_with_constants_in_title(table) for table in whole]


def page_charts(page: ReportPage) -> Iterator[Chart]:
    """Every figure of the page."""
    yield from page.answer.charts
    for group in page.chart_groups:
        yield from group.charts
    for run in page.runs:
        yield from run.charts
