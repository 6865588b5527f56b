"""The first page: what was found in a sentence, how sure that is, and the best of each workload.

A matrix of workloads and configurations holds every figure once. What is invalid is no figure: it
stands there as not measurable, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from iolab.analysis.pairs import GainsByPair
from iolab.analysis.points import PointSummary
from iolab.core.configuration import DEFAULT_CONFIGURATION
from iolab.core.host import HostFacts
from iolab.core.metric import Level, Result
from iolab.core.run import RunStatus
from iolab.core.study import AnswerKind, Study
from iolab.record import Record
from iolab.report.best import BestFigure, VerdictCounts, count_verdicts
from iolab.report.choice import MEASURE_AGAIN, choice_sentence
from iolab.report.fast_facts import FastFact, fast_facts
from iolab.report.hardware import demonstration_text
from iolab.report.low_load import (
    is_surely_lower,
    low_load_rows,
    workloads_with_low_load_latency,
)
from iolab.report.matrix import (
    WorkloadRow,
    best_figures_by_operation,
    marks_note,
    matrix_table,
    workload_rows,
)
from iolab.report.not_in_study import not_in_study_sentence
from iolab.report.numbers import (
    NOT_MEASURABLE,
    TOO_FEW_REPEATS,
    axis_name_text,
    metric_value_text,
    missing_interval_reason,
)
from iolab.report.other_load import (
    OTHER_LOAD_CODES,
    is_explained_by_other_load,
    other_load_sentence,
)
from iolab.report.phrases import (
    Objection,
    configuration_titles_if_several,
    merge_objections,
    run_with_configuration_text,
)
from iolab.report.short_names import column_names
from iolab.report.storage_classes import storage_classes_sentence
from iolab.report.table import Table
from iolab.report.value import cost_capacity_rows, with_storage_alone_notes
from iolab.text import capitalised, counted_noun, list_text, percent_text, uncapitalised

if TYPE_CHECKING:
    from iolab.core.run import RunKey
    from iolab.report.brief import Brief, LoadReportKinds
    from iolab.report.charts.chart import Figure, ReportSection

CAVEATS_SHOWN: Final = 3
"""Caveats on the first page; the appendix has all."""

DOUBTS_SHOWN: Final = 1
"""Checks whose sentences say why runs are not valid; the caveats have more."""

CHECK_CODES_SHOWN: Final = 2
"""Checks named in the line on how sure figures are."""

UNKNOWN_SHOWN: Final = 4
"""Figures that are not measurable which the answer names; others are counted."""

DEPTH_WORKLOADS_SHOWN: Final = 3
"""Workloads named for a depth; others are counted."""

FROM_MEMORY: Final = "Not a storage result, since memory answered the reads: "
"""What stands before figures of reads that memory answered, where there are no others."""

MORE_DATA: Final = " Measure with more data than memory holds."
"""What follows them."""

TARGET: Final = "The target"
"""What a configuration without a name is called."""

CHART_BARS_MIN: Final = 2
"""A chart of one bar says no more than its number."""

_OPERATIONS: Final = ("1/s", "ops/s")
"""Units of rates that have their latency in the answer; of large blocks it says their size."""


class Answer(Record):
    """The first page: the answer, how far it can be trusted, its figures and their charts.

    `conclusion` says what to take and why. `detail_texts` are sentences on the load that it needs,
    on what limits it and on what was not measured, `trust_texts` on runs, repeats, intervals, and
    on what is wrong with the session as a whole. `failed_runs_text` is a sentence on runs that did
    not end well. `caveats` are those of the `caveat_count` that there are which touch a figure of
    the page, the gravest of them.
    """

    sentence: str
    conclusion: str
    detail_texts: tuple[str, ...]
    trust_texts: tuple[str, ...]
    facts: tuple[FastFact, ...]
    best_table: Table
    table_note: str
    charts: tuple[Figure, ...]
    failed_runs_text: str
    caveats: tuple[Objection, ...]
    caveat_count: int

    @property
    def hidden_caveat_count(self) -> int:
        """Caveats that the appendix alone has."""
        return self.caveat_count - len(self.caveats)


class AnswerSource(Record, dict=True):
    """What best figures are taken from: all that a `Brief` has, and a screen has too."""

    study: Study
    points: tuple[PointSummary, ...]
    results: tuple[Result, ...]

    @cached_property
    def gains_by_pair(self) -> GainsByPair:
        """See `Brief`."""
        return GainsByPair(self.study, self.points)


def build_answer(
    brief: Brief,
    best_figures: Sequence[BestFigure],
    verdict_counts: VerdictCounts,
    caveats: Sequence[Objection],
    best_charts: ReportSection | None,
) -> Answer:
    """The first page of a brief with these best figures; `best_charts` has charts of them."""
    from iolab.report.bottleneck import bottlenecks_sentence, rows_with_limit_texts
    from iolab.report.conclusion import conclusion_sentences
    from iolab.report.provenance import repeats_sentence, scale_sentence, verdicts_sentence

    rows, anchors = rows_with_limit_texts(brief, workload_rows(best_figures)), brief.run_anchors
    costs = cost_capacity_rows(brief, best_figures)
    labels = {name: style.label for name, style in brief.series_styles.items()}
    failed = _failed_runs_text(brief)
    quoted = {figure.run for figure in best_figures}
    touching = sorted(
        caveats,
        key=lambda caveat: (
            -caveat.level.rank,
            not is_explained_by_other_load(caveat),
            not _is_about_quoted_run(caveat, quoted),
        ),
    )
    trust = (
        verdicts_sentence(verdict_counts),
        other_load_sentence(brief.study, brief.results),
        gravest_caveats_sentence(touching),
        " ".join(
            filter(
                None,
                (
                    confidence_line(best_figures) if best_figures else "",
                    _supported_leads_sentence(brief, rows),
                    repeats_sentence(verdict_counts, brief),
                ),
            )
        ),
        scale_sentence(brief.study),
    )
    conclusion = conclusion_sentences(brief, rows, costs)
    other_rows = (*low_load_rows(brief), *with_storage_alone_notes(costs))
    return Answer(
        sentence=answer_sentence(
            brief.study,
            best_figures,
            verdict_counts,
            caveats,
            brief.points,
            brief.kinds.answer_text(brief.study, brief.points),
            labels,
            demonstration=demonstration_text(brief.study, brief.facts),
        ),
        conclusion=conclusion,
        detail_texts=tuple(
            text
            for text in (
                sufficient_load_sentence(best_figures),
                bottlenecks_sentence(brief.study, brief.bottlenecks),
                not_in_study_sentence(brief),
            )
            if text and not conclusion.startswith(text)
        ),
        trust_texts=tuple(filter(None, trust)),
        facts=fast_facts(brief, rows, costs),
        best_table=matrix_table(
            rows,
            labels,
            anchors,
            brief.series_styles,
            other_rows,
        ),
        table_note=marks_note(rows, other_rows),
        charts=_best_figure_charts(best_figures, best_charts),
        failed_runs_text=failed,
        caveats=tuple(touching[: CAVEATS_SHOWN - bool(failed)]),
        caveat_count=len(caveats),
    )


def gravest_caveats_sentence(caveats: Sequence[Objection]) -> str:
    """Why runs are not valid, by the gravest of what is not other load; empty for nothing.

    Other load has a sentence of its own.
    """
    own = [caveat for caveat in caveats if caveat.code not in OTHER_LOAD_CODES]
    if not own:
        return ""
    level = max((caveat.level for caveat in own), key=lambda level: level.rank)
    first = [caveat for caveat in own if caveat.level is level][:DOUBTS_SHOWN]
    texts = [
        f"{caveat.message} ({caveat.code}, {_affected_run_count_text(caveat)})" for caveat in first
    ]
    return f"Why {level.value}: {' '.join([*texts, *_other_reason_texts(own, first, level)])}"


def _other_reason_texts(
    caveats: Sequence[Objection], quoted: Sequence[Objection], level: Level
) -> Iterator[str]:
    """Which checks make the runs invalid that those quoted do not; nothing of lesser levels."""
    if level is not Level.INVALID:
        return
    covered = {run.key for caveat in quoted for run in caveat.runs}
    parts = []
    for caveat in caveats:
        more = {run.key for run in caveat.runs} - covered
        if caveat.level is level and more:
            covered |= more
            parts.append(f"{caveat.code} in {counted_noun(len(more), 'run')}")
    if parts:
        yield f"Of the others: {', '.join(parts)}."
    of_same_runs = [
        caveat.code
        for caveat in caveats
        if caveat.level is level
        and caveat not in quoted
        and {run.key for run in caveat.runs} == {run.key for own in quoted for run in own.runs}
    ]
    if of_same_runs:
        yield f"Invalid, too, by {list_text(of_same_runs, CHECK_CODES_SHOWN)}."


def _affected_run_count_text(objection: Objection) -> str:
    runs = counted_noun(objection.run_count, "run")
    return f"all {runs}" if objection.concerns_every_run else f"{len(objection.runs)} of {runs}"


def _supported_leads_sentence(brief: Brief, rows: Sequence[WorkloadRow]) -> str:
    """In how many workloads intervals support the best figure, and the lowest latency.

    `They support a winner in 0 of 4 workloads and a lowest mean latency in 1 of 2 (4 KiB random
    read: C).` Latencies are those at one load. Empty of a single configuration.
    """
    compared = [row for row in rows if row.figure_count > 1]
    if not compared:
        return ""
    decided = sum(row.has_supported_winner for row in compared)
    parts = [f"a winner in {decided} of {counted_noun(len(compared), 'workload')}"]
    labels = {name: style.label for name, style in brief.series_styles.items()}
    shown = {row.title for row in low_load_rows(brief)}
    for name, text in (("mean", "mean latency"), ("p99", "p99 latency")):
        places = [
            (workload, ranked)
            for workload, ranked in workloads_with_low_load_latency(brief, f"lat_ns_{name}")
            if workload.title in shown and len(ranked) > 1
        ]
        sure = [
            f"{workload.title}: {labels.get(ranked[0].point.key.configuration, '')}"
            for workload, ranked in places
            if is_surely_lower(brief, *ranked[:2])
        ]
        if places:
            where = f" ({'; '.join(sure)})" if sure else ""
            parts.append(f"a lowest {text} in {len(sure)} of {len(places)}{where}")
    return f"They support {list_text(parts)}."


class SessionAnswer(Record):
    """A session's answer: a sentence, a line on how sure it is, and what speaks against it.

    `figures` are the best of each workload in each configuration.
    """

    sentence: str
    confidence: str
    objections: tuple[Objection, ...]
    figures: tuple[BestFigure, ...]


def session_answer(
    kinds: LoadReportKinds,
    study: Study,
    points: Sequence[PointSummary],
    results: Sequence[Result],
    facts: Mapping[str, HostFacts],
) -> SessionAnswer:
    """The answer of results on hosts with `facts`; points are `summarise(results, study)`."""
    figures = kinds.best_figures(AnswerSource(study, tuple(points), tuple(results)))
    objections = merge_objections(results)
    own = kinds.answer_text(study, points)
    names = column_names(study)
    demonstration = demonstration_text(study, facts)
    sentence = answer_sentence(
        study,
        figures,
        count_verdicts(results),
        objections,
        points,
        own,
        names,
        demonstration=demonstration,
    )
    return SessionAnswer(sentence, confidence_line(figures), objections, tuple(figures))


def answer_sentence(
    study: Study,
    best_figures: Sequence[BestFigure],
    verdict_counts: VerdictCounts,
    caveats: Sequence[Objection],
    points: Sequence[PointSummary] = (),
    load_text: str = "",
    titles: Mapping[str, str] | None = None,
    *,
    demonstration: str = "",
) -> str:
    """The answer, of the kind that the study's question wants.

    `load_text` is what its kind of load says of one configuration, if it has words of its own;
    `titles` are what configurations are called, if not by their titles; `demonstration` is how it
    begins where no drives were measured.
    """
    rows = workload_rows(best_figures)
    measured = [row for row in rows if row.best is not None]
    if not verdict_counts.runs:
        return "Nothing is measured yet."
    if not measured:
        why = next(
            (
                caveat
                for caveat in caveats
                if caveat.level is Level.INVALID and caveat.concerns_every_run
            ),
            None,
        )
        every = (
            "the only run is" if verdict_counts.runs == 1 else f"all {verdict_counts.runs} runs are"
        )
        lost = (
            every
            if verdict_counts.invalid == verdict_counts.runs
            else "no workload has a figure that is not"
        )
        reason = f" {why.message}" if why else ""
        # What was lost is a result even where it makes the figures none.
        load_prefix = f"{load_text} " if load_text else ""
        return f"{load_prefix}No usable result: {lost} invalid.{reason}"
    if study.answer is AnswerKind.MACHINES:
        from iolab.report.machines import TOO_FEW_COUNTS, scaling_limits, scaling_limits_sentence

        if carried := list(scaling_limits(study, points)):
            return scaling_limits_sentence(study, carried)
        caveat = f"How many machines the target carries is not known: {TOO_FEW_COUNTS}. "
    elif study.answer is AnswerKind.ORDER and len(study.configurations) == 1:
        caveat = "Only one configuration was measured: there is no order. "
    else:
        caveat = ""
    if classes := storage_classes_sentence(study, points):
        return f"{caveat}{classes}"
    if _has_several_configurations(best_figures):
        names = titles or study.configuration_titles
        choice = choice_sentence(rows, names, is_advice=not demonstration)
        return f"{demonstration}{caveat}{choice}"
    if load_text and all(
        row.best.level is Level.INDICATIVE for row in measured if row.best is not None
    ):
        load_text = f"{load_text} {MEASURE_AGAIN}"
    text = f"{caveat}{load_text or _best_figures_sentence(rows, study)}"
    is_noun_first = text.startswith((TARGET, FROM_MEMORY))
    return f"{demonstration}{uncapitalised(text) if demonstration and is_noun_first else text}"


def _best_figures_sentence(rows: Sequence[WorkloadRow], study: Study) -> str:
    """The best figure of each operation of the only configuration."""
    measured = [row for row in rows if row.best is not None]
    owner = measured[0].cells[0].configuration
    title = study.configuration_titles.get(owner, owner)
    # An imported configuration has no name but the session's.
    name = TARGET if owner == DEFAULT_CONFIGURATION or title == study.title else title
    only = len(rows) == 1 and rows[0].title in study.title
    lost = _unknown_figures_sentence([row.title for row in rows if row.best is None])
    # A rate that was requested is no limit of the target.
    verb = (
        "serves"
        if all(row.best is not None and row.best.is_paced for row in measured)
        else "reaches"
    )
    bests = [row.best for row in measured if row.best is not None]
    from_storage = [best for best in bests if not best.is_mostly_read_from_memory]
    bests = from_storage or bests
    are_indicative = all(best.level is Level.INDICATIVE for best in bests)
    texts = list(
        _best_per_operation_texts(
            bests,
            with_title=not only,
            with_level=not are_indicative,
        )
    )
    doubt = ""
    if are_indicative:
        doubt = f" {MEASURE_AGAIN}"
    reached = f"{name} {verb} {list_text(texts)}."
    if not from_storage:
        reached = f"{FROM_MEMORY}{uncapitalised(reached) if name == TARGET else reached}{MORE_DATA}"
    return f"{reached}{lost}{doubt}"


def _unknown_figures_sentence(titles: Sequence[str]) -> str:
    """Which figures are not measurable; what all their titles begin with is told once."""
    if not titles:
        return ""
    begins = {title.partition(": ")[0] for title in titles}
    if len(titles) > 1 and len(begins) == 1 and all(": " in title for title in titles):
        names = list_text([title.partition(": ")[2] for title in titles], UNKNOWN_SHOWN)
        return f" {capitalised(NOT_MEASURABLE)}: {begins.pop()} ({names})."
    return f" {capitalised(NOT_MEASURABLE)}: {list_text(titles, UNKNOWN_SHOWN)}."


def confidence_line(best_figures: Sequence[BestFigure]) -> str:
    """How sure the best figures are, in one line: verdict and reason, then their intervals."""
    if not best_figures:
        return "Nothing is measured yet."
    sound = [figure for figure in best_figures if figure.is_quotable]
    groups = (
        (Level.VALID.value, [figure for figure in sound if figure.level is Level.VALID]),
        (Level.INDICATIVE.value, [figure for figure in sound if figure.level is Level.INDICATIVE]),
        (NOT_MEASURABLE, [figure for figure in best_figures if not figure.is_quotable]),
    )
    parts = [
        f"{len(best_figures)} {name}{_check_codes_text(best_figures)}"
        for name, best_figures in groups
        if best_figures
    ]
    return (
        f"{counted_noun(len(best_figures), 'figure')}: "
        f"{', '.join(parts)}.{_interval_widths_text(best_figures)}"
    )


def _check_codes_text(best_figures: Sequence[BestFigure]) -> str:
    """The checks behind figures of one level, the most frequent first."""
    codes = [
        code
        for code, _ in Counter(figure.objection[0] for figure in best_figures).most_common()
        if code
    ]
    more = f" and {len(codes) - CHECK_CODES_SHOWN} more" if len(codes) > CHECK_CODES_SHOWN else ""
    return f" ({', '.join(codes[:CHECK_CODES_SHOWN])}{more})" if codes else ""


def _has_several_configurations(best_figures: Sequence[BestFigure]) -> bool:
    return len({figure.configuration for figure in best_figures}) > 1


def _failed_runs_text(brief: Brief) -> str:
    bad = [result for result in brief.results if result.status is not RunStatus.DONE]
    if not bad:
        return ""
    name = run_with_configuration_text(bad[0], configuration_titles_if_several(brief.study))
    why = bad[0].failure or "It was interrupted."
    number = f"{len(bad)} of {counted_noun(len(brief.results), 'run')}"
    return (
        f"{number} failed or {'was' if len(bad) == 1 else 'were'} interrupted, first {name}. {why}"
    )


def _is_about_quoted_run(objection: Objection, quoted: set[RunKey | None]) -> bool:
    return any(run.key in quoted for run in objection.runs)


def _best_per_operation_texts(
    best_figures: Sequence[BestFigure],
    *,
    with_title: bool,
    with_level: bool,
) -> Iterator[str]:
    """The highest figure of each unit and operation, of operations with their latency too.

    Figures of mixed operations stand where no other has their unit. Without `with_title` the title
    of the study has the workload's; `with_level` marks what is indicative.
    """
    for figure in best_figures_by_operation(best_figures):
        texts = (
            [f"at {text} {name}" for name, text in figure.latencies[:1]]
            if figure.value.unit in _OPERATIONS
            else []
        )
        context = " ".join((*([figure.title] if with_title else []), *texts))
        doubt = "indicative" if with_level and figure.level is Level.INDICATIVE else ""
        paced = "paced: the load asks for no more" if figure.is_paced else ""
        note = ", ".join(filter(None, (context, paced, figure.left_out_repeats_text, doubt)))
        value = metric_value_text(figure.value)
        yield f"{value} ({note})" if note else value


def sufficient_load_sentence(best_figures: Sequence[BestFigure]) -> str:
    """The least load whose figure lies within the interval of the best, by workloads.

    Empty where not one load alone is varied, or the figures have no intervals.
    """
    sound = [figure for figure in best_figures if figure.is_quotable]
    names = {name for figure in sound for name, _ in figure.sufficient_axis}
    if len(names) != 1 or not all(len(figure.sufficient_axis) == 1 for figure in sound):
        return ""
    loads: dict[str, list[int]] = {}
    for figure in sound:
        ((_, load),) = figure.sufficient_axis
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


def _interval_widths_text(best_figures: Sequence[BestFigure]) -> str:
    """How far the intervals of the figures reach."""
    sound = [figure.value for figure in best_figures if figure.is_quotable]
    if not sound:
        return ""
    halves = [half for value in sound if (half := value.half_width) is not None]
    lacking = Counter(missing_interval_reason(value) for value in sound if value.half_width is None)
    if not halves:
        are_few = set(lacking) == {TOO_FEW_REPEATS}
        hint = "measure at least three" if are_few else "measure more, or find what disturbs them"
        return f" {' or '.join(lacking).capitalize()} for an interval: {hint}."
    least, most = min(halves), max(halves)
    reach = f"±{percent_text(most)}"
    if percent_text(least) != percent_text(most):
        reach = f"±{percent_text(least)} to {reach}"
    few = "".join(
        f"; {number} of {len(sound)} have "
        f"{'too few repeats for their spread' if why == TOO_FEW_REPEATS else why}"
        for why, number in lacking.items()
    )
    return f" 95 % intervals of the figures: {reach}{few}."


def _best_figure_charts(
    best_figures: Sequence[BestFigure], best_charts: ReportSection | None
) -> tuple[Figure, ...]:
    """The charts of best figures, one for each unit, that have figures to compare."""
    if (
        best_charts is None
        or not best_charts.groups
        or not any(best.is_quotable for best in best_figures)
    ):
        return ()
    return tuple(
        figure
        for figure in best_charts.groups[0].figures
        if _quotable_row_count(figure.table) >= CHART_BARS_MIN
    )


def _quotable_row_count(table: Table) -> int:
    return sum(
        any(cell.level in (Level.VALID, Level.INDICATIVE) for cell in row) for row in table.rows
    )
