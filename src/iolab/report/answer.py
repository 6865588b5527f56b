"""The first page: what was found in a sentence, how sure that is, and the best of each workload.

A matrix of workloads and configurations holds every figure once. What is invalid is no figure: it
stands there as not measurable, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolab.core.metric import VerdictLevel
from iolab.core.run import RunStatus
from iolab.record import Record
from iolab.report.best import BestFigure, RunCounts
from iolab.report.check_pages import check_phrase
from iolab.report.choice import StudyAnswer
from iolab.report.fast_facts import FastFact, fast_facts
from iolab.report.hardware import demonstration_answer_prefix
from iolab.report.low_load import (
    latency_tie_texts_by_configuration,
    low_load_rows,
    workloads_with_low_load_latency,
)
from iolab.report.matrix import (
    WorkloadRow,
    matrix_marks_note,
    matrix_table,
    workload_rows,
)
from iolab.report.not_in_study import not_in_study_sentence
from iolab.report.numbers import (
    axis_name_text,
)
from iolab.report.other_load import (
    OTHER_LOAD_CODES,
    is_explained_by_other_load,
    other_load_sentence,
)
from iolab.report.phrases import (
    Objection,
    run_with_configuration_text,
    title_by_configuration_if_several,
)
from iolab.report.session_answer import CHECK_CODES_SHOWN, confidence_line, study_answer
from iolab.report.table import Table
from iolab.report.value import cost_capacity_rows, merge_storage_alone_rows_into_notes
from iolab.text import counted_noun, list_text

if TYPE_CHECKING:
    from iolab.core.run import RunKey
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import Chart, ReportSection

CAVEATS_SHOWN: Final = 3
"""Caveats on the first page; the appendix has all."""

DOUBTS_SHOWN: Final = 1
"""Checks whose sentences say why runs are not valid; the caveats have more."""

DEPTH_WORKLOADS_SHOWN: Final = 3
"""Workloads named for a depth; others are counted."""

CHART_BARS_MIN: Final = 2
"""A chart of one bar says no more than its number."""


class BriefAnswer(Record):
    """The first page: the answer, how far it can be trusted, its figures and their charts.

    `conclusion` says what to take and why. `detail_texts` are sentences on the load that it needs,
    on what limits it and on what was not measured, `trust_texts` on runs, repeats, intervals, and
    on what is wrong with the session as a whole. `failed_runs_text` is a sentence on runs that did
    not end well. `caveats` are those of the `caveat_count` that there are which touch a figure of
    the page, the gravest of them.
    """

    answer: StudyAnswer
    conclusion: str
    detail_texts: tuple[str, ...]
    trust_texts: tuple[str, ...]
    fast_facts: tuple[FastFact, ...]
    best_table: Table
    table_note: str
    charts: tuple[Chart, ...]
    failed_runs_text: str
    caveats: tuple[Objection, ...]
    caveat_count: int

    @property
    def hidden_caveat_count(self) -> int:
        """Caveats that the appendix alone has."""
        return self.caveat_count - len(self.caveats)


def build_answer(
    brief: Brief,
    best_figures: Sequence[BestFigure],
    run_counts: RunCounts,
    caveats: Sequence[Objection],
    best_charts_section: ReportSection | None,
) -> BriefAnswer:
    """The first page of a brief with these best figures; `best_charts_section` draws them."""
    from iolab.report.bottleneck import (
        bottlenecks_sentence,
        leads_of_set_limits_sentence,
        rows_with_bottleneck_texts,
    )
    from iolab.report.conclusion import conclusion_sentences
    from iolab.report.provenance import repeats_sentence, scale_sentence, verdicts_sentence

    rows, anchors = (
        rows_with_bottleneck_texts(brief, workload_rows(best_figures)),
        brief.run_anchors,
    )
    costs = cost_capacity_rows(brief, best_figures)
    labels = {name: style.label for name, style in brief.series_styles.items()}
    failed = _failed_run_count_and_first_run_text(brief)
    quoted = {figure.run_key for figure in best_figures}
    quoted_codes = {
        figure.objection_code_and_text[0] for figure in best_figures if not figure.is_quotable
    }
    touching = sorted(
        caveats,
        key=lambda caveat: (
            -caveat.verdict_level.rank,
            not is_explained_by_other_load(caveat),
            not _is_about_quoted_run(caveat, quoted),
            caveat.code not in quoted_codes,
        ),
    )
    trust = (
        verdicts_sentence(run_counts),
        other_load_sentence(brief.study, brief.results, brief.run_resources),
        gravest_caveats_except_other_load_sentence(touching),
        " ".join(
            filter(
                None,
                (
                    confidence_line(best_figures) if best_figures else "",
                    _supported_lowest_latency_sentence(brief, rows),
                    repeats_sentence(run_counts, brief),
                ),
            )
        ),
        scale_sentence(brief.study),
    )
    conclusion = conclusion_sentences(brief, rows, costs)
    other_rows = (*low_load_rows(brief), *merge_storage_alone_rows_into_notes(costs))
    return BriefAnswer(
        answer=study_answer(
            brief.study,
            best_figures,
            run_counts,
            caveats,
            brief.points,
            brief.kinds.extra_answer_text(brief.study, brief.points),
            labels,
            demonstration_prefix=demonstration_answer_prefix(brief.study, brief.facts),
        ),
        conclusion=conclusion,
        detail_texts=tuple(
            text
            for text in (
                least_sufficient_load_sentence(best_figures),
                " ".join(
                    filter(
                        None,
                        (
                            bottlenecks_sentence(brief.study, brief.bottlenecks),
                            leads_of_set_limits_sentence(rows, brief.bottlenecks),
                        ),
                    )
                ),
                not_in_study_sentence(brief),
            )
            if text and not conclusion.startswith(text)
        ),
        trust_texts=tuple(filter(None, trust)),
        fast_facts=fast_facts(brief, rows, costs),
        best_table=matrix_table(
            rows,
            labels,
            anchors,
            brief.series_styles,
            other_rows,
        ),
        table_note=matrix_marks_note(rows, other_rows),
        charts=_comparable_best_figure_charts(best_figures, best_charts_section),
        failed_runs_text=failed,
        caveats=tuple(_first_and_quoted_caveats(touching, CAVEATS_SHOWN - bool(failed))),
        caveat_count=len(caveats),
    )


def _first_and_quoted_caveats(caveats: Sequence[Objection], max_count: int) -> list[Objection]:
    """The gravest, with that which Trust quotes."""
    shown = list(caveats[:max_count])
    quoted = _gravest_caveats_except_other_load(caveats)[:DOUBTS_SHOWN]
    missing = [caveat for caveat in quoted if caveat not in shown]
    return [*shown[: max_count - len(missing)], *missing]


def _gravest_caveats_except_other_load(caveats: Sequence[Objection]) -> list[Objection]:
    """Those of the gravest level; other load has a sentence of its own."""
    own = [caveat for caveat in caveats if caveat.code not in OTHER_LOAD_CODES]
    level = max(
        (caveat.verdict_level for caveat in own), key=lambda level: level.rank, default=None
    )
    return [caveat for caveat in own if caveat.verdict_level is level]


def gravest_caveats_except_other_load_sentence(caveats: Sequence[Objection]) -> str:
    """Why runs are not valid, by the gravest of what is not other load; empty for nothing.

    Other load has a sentence of its own.
    """
    own = [caveat for caveat in caveats if caveat.code not in OTHER_LOAD_CODES]
    if not own:
        return ""
    level = max((caveat.verdict_level for caveat in own), key=lambda level: level.rank)
    first = _gravest_caveats_except_other_load(caveats)[:DOUBTS_SHOWN]
    texts = [f"{caveat.message} ({_affected_run_count_text(caveat)})" for caveat in first]
    texts = [*texts, *_unquoted_invalid_check_texts(own, first, level)]
    return f"Why {level.value}: {' '.join(texts)}"


def _unquoted_invalid_check_texts(
    caveats: Sequence[Objection], quoted_caveats: Sequence[Objection], verdict_level: VerdictLevel
) -> Iterator[str]:
    """Which checks make the runs invalid that those quoted do not; nothing of lesser levels."""
    if verdict_level is not VerdictLevel.INVALID:
        return
    covered = {run.key for caveat in quoted_caveats for run in caveat.runs}
    parts = []
    for caveat in caveats:
        more = {run.key for run in caveat.runs} - covered
        if caveat.verdict_level is verdict_level and more:
            covered |= more
            about = check_phrase(caveat.code)
            parts.append(f"{about} in {counted_noun(len(more), 'run')}")
    if parts:
        yield f"Of the others: {', '.join(parts)}."
    of_same_runs = [
        check_phrase(caveat.code)
        for caveat in caveats
        if caveat.verdict_level is verdict_level
        and caveat not in quoted_caveats
        and {run.key for run in caveat.runs}
        == {run.key for own in quoted_caveats for run in own.runs}
    ]
    if of_same_runs:
        yield f"Also found: {list_text(of_same_runs, CHECK_CODES_SHOWN)}."


def _affected_run_count_text(objection: Objection) -> str:
    runs = counted_noun(objection.session_run_count, "run")
    return f"all {runs}" if objection.concerns_every_run else f"{len(objection.runs)} of {runs}"


def _supported_lowest_latency_sentence(brief: Brief, rows: Sequence[WorkloadRow]) -> str:
    """Which configuration surely has the lowest latency in which workload.

    `C has the lowest mean latency in 4 KiB random read; the rest is undecided.` Latencies are those
    at one load; of rates the answer says it. Empty of a single configuration.
    """
    if not any(row.figure_count > 1 for row in rows):
        return ""
    parts: list[str] = []
    place_count = sure_count = 0
    labels = {name: style.label for name, style in brief.series_styles.items()}
    shown = {row.title for row in low_load_rows(brief)}
    for name, text in (("mean", "mean latency"), ("p99", "p99 latency")):
        places = [
            (workload, ranked)
            for workload, ranked in workloads_with_low_load_latency(brief, f"lat_ns_{name}")
            if workload.title in shown and len(ranked) > 1
        ]
        sure: dict[str, list[str]] = {}
        for workload, ranked in places:
            if not latency_tie_texts_by_configuration(brief, ranked):
                best = labels.get(ranked[0].point.key.configuration, "")
                sure.setdefault(best, []).append(workload.title)
        place_count += len(places)
        sure_count += sum(map(len, sure.values()))
        parts += [f"{best} has the lowest {text} in {list_text(sure[best])}" for best in sure]
    if not place_count:
        return ""
    if not parts:
        return "Which has the lowest latency is undecided in all workloads."
    rest = "; the rest is undecided" if sure_count < place_count else ""
    return f"{'; '.join(parts)}{rest}."


def _failed_run_count_and_first_run_text(brief: Brief) -> str:
    bad = [result for result in brief.results if result.status is not RunStatus.DONE]
    if not bad:
        return ""
    name = run_with_configuration_text(bad[0], title_by_configuration_if_several(brief.study))
    why = bad[0].failure or "It was interrupted."
    number = f"{len(bad)} of {counted_noun(len(brief.results), 'run')}"
    return (
        f"{number} failed or {'was' if len(bad) == 1 else 'were'} interrupted, first {name}. {why}"
    )


def _is_about_quoted_run(objection: Objection, quoted_runs: set[RunKey | None]) -> bool:
    return any(run.key in quoted_runs for run in objection.runs)


def least_sufficient_load_sentence(best_figures: Sequence[BestFigure]) -> str:
    """The least load whose figure lies within the interval of the best, by workloads.

    Empty where not one load alone is varied, or the figures have no intervals.
    """
    sound = [figure for figure in best_figures if figure.is_quotable]
    names = {name for figure in sound for name, _ in figure.least_sufficient_axis_values}
    if len(names) != 1 or not all(
        len(figure.least_sufficient_axis_values) == 1 for figure in sound
    ):
        return ""
    loads: dict[str, list[int]] = {}
    for figure in sound:
        ((_, load),) = figure.least_sufficient_axis_values
        if not isinstance(load, int):
            return ""
        loads.setdefault(figure.title, []).append(load)
    titles: dict[str, list[str]] = {}
    for title, own in loads.items():
        span = f"{min(own)}" if min(own) == max(own) else f"{min(own)} to {max(own)}"
        titles.setdefault(span, []).append(title)
    name = axis_name_text(names.pop())
    of = "" if len(titles) == 1 else " ({})"
    parts = [
        f"{name} {span}{of.format(list_text(own, DEPTH_WORKLOADS_SHOWN))}"
        for span, own in titles.items()
    ]
    return f"Least load within the interval of the best: {'; '.join(parts)}."


def _comparable_best_figure_charts(
    best_figures: Sequence[BestFigure], best_charts_section: ReportSection | None
) -> tuple[Chart, ...]:
    """The charts of best figures, one for each unit, that have figures to compare."""
    if (
        best_charts_section is None
        or not best_charts_section.groups
        or not any(best.is_quotable for best in best_figures)
    ):
        return ()
    return tuple(
        figure
        for figure in best_charts_section.groups[0].charts
        if _quotable_row_count(figure.table) >= CHART_BARS_MIN
    )


def _quotable_row_count(table: Table) -> int:
    return sum(
        any(cell.verdict_level in (VerdictLevel.VALID, VerdictLevel.INDICATIVE) for cell in row)
        for row in table.rows
    )
