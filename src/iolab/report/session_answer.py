"""The answer of a session: a sentence, how sure it is, and what speaks against it.

Terminal, list of sessions and page begin with it; what only a page has is in `report.answer`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.analysis.findings import best_point_findings
from iolab.analysis.pairs import GainsByPair
from iolab.analysis.points import PointSummary
from iolab.analysis.ranked_findings import performance_recommendation
from iolab.core.configuration import DEFAULT_CONFIGURATION
from iolab.core.host import HostFacts
from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.study import AnswerKind, Study
from iolab.record import Record
from iolab.report.best import BestFigure, RunCounts, count_runs_by_verdict_and_status
from iolab.report.check_pages import check_phrase, check_remedy
from iolab.report.choice import MEASURE_AGAIN, StudyAnswer, choice_answer
from iolab.report.hardware import demonstration_answer_prefix
from iolab.report.matrix import (
    WorkloadRow,
    best_figures_by_unit_and_operation,
    workload_rows,
)
from iolab.report.numbers import (
    NOT_MEASURABLE,
    TOO_FEW_REPEATS,
    metric_value_text,
    missing_interval_reason,
)
from iolab.report.phrases import (
    Objection,
    merge_objections,
)
from iolab.report.short_names import screen_name_by_configuration
from iolab.report.storage_classes import storage_classes_sentence
from iolab.text import capitalised, counted_noun, list_text, percent_text, uncapitalised

if TYPE_CHECKING:
    from iolab.report.brief import LoadReportKinds

CHECK_CODES_SHOWN: Final = 2
"""Checks named in the line on how sure figures are."""

LACKING_SHOWN: Final = 2
"""Workloads named whose figures have no interval."""

UNKNOWN_SHOWN: Final = 4
"""Figures that are not measurable which the answer names; others are counted."""

FROM_MEMORY: Final = ", which is no storage result: memory answered the reads."
"""What follows figures of reads that memory answered, where there are no others."""

MORE_DATA: Final = " Measure with more data than memory holds."
"""What follows them."""

TARGET: Final = "The target"
"""What a configuration without a name is called."""

_OPERATIONS: Final = ("1/s", "ops/s")
"""Units of rates that have their latency in the answer; of large blocks it says their size."""


class SessionAnswer(Record):
    """A session's answer, a line on how sure it is, and what speaks against it.

    `figures` are the best of each workload in each configuration, `demonstration_prefix` is how the
    answer begins where no drives were measured; else it is empty.
    """

    answer: StudyAnswer
    confidence_text: str
    objections: tuple[Objection, ...]
    figures: tuple[BestFigure, ...]
    demonstration_prefix: str = ""


def session_answer(
    load_kinds: LoadReportKinds,
    study: Study,
    points: Sequence[PointSummary],
    results: Sequence[RunResult],
    facts: Mapping[str, HostFacts],
) -> SessionAnswer:
    """The answer of results on hosts with `facts`; points are `summarise(results, study)`."""
    figures = load_kinds.best_figures(AnswerSource(study, tuple(points), tuple(results)))
    objections = merge_objections(results)
    own = load_kinds.extra_answer_text(study, points)
    names = screen_name_by_configuration(study)
    demonstration = demonstration_answer_prefix(study, facts)
    answer = study_answer(
        study,
        figures,
        count_runs_by_verdict_and_status(results),
        objections,
        points,
        own,
        names,
        demonstration_prefix=demonstration,
    )
    return SessionAnswer(
        answer, confidence_line(figures, objections), objections, tuple(figures), demonstration
    )


class AnswerSource(Record, dict=True):
    """What best figures are taken from: all that a `Brief` has, and a screen has too."""

    study: Study
    points: tuple[PointSummary, ...]
    results: tuple[RunResult, ...]

    @cached_property
    def gains_by_pair(self) -> GainsByPair:
        """See `Brief`."""
        return GainsByPair(self.study, self.points)


def study_answer(
    study: Study,
    best_figures: Sequence[BestFigure],
    run_counts: RunCounts,
    caveats: Sequence[Objection],
    points: Sequence[PointSummary] = (),
    load_kind_text: str = "",
    configuration_titles: Mapping[str, str] | None = None,
    *,
    demonstration_prefix: str = "",
) -> StudyAnswer:
    """The answer, of the kind that the study's question wants.

    `load_kind_text` is what its kind of load says of one configuration, if it has words of its own;
    `configuration_titles` are what configurations are called, if not by their titles;
    `demonstration_prefix` is how it begins where no drives were measured.
    """
    rows = workload_rows(best_figures)
    measured = [row for row in rows if row.best is not None]
    if not run_counts.total:
        return StudyAnswer("Nothing is measured yet.")
    if not measured:
        invalid = [item for item in caveats if item.verdict_level is VerdictLevel.INVALID]
        why = next((caveat for caveat in invalid if caveat.concerns_every_run), None)
        first = why or next(iter(invalid), None)
        remedy = check_remedy(first.code) if first else ""
        every = "the only run is" if run_counts.total == 1 else f"all {run_counts.total} runs are"
        lost = (
            every
            if run_counts.invalid == run_counts.total
            else "no workload has a figure that is not"
        )
        reason = f" {why.message}" if why else ""
        # What was lost is a result even where it makes the figures none.
        load_prefix = f"{load_kind_text} " if load_kind_text else ""
        return StudyAnswer(
            f"{load_prefix}No usable result: {lost} invalid.{reason}",
            f"What to do first: {remedy}" if remedy else "",
        )
    if study.answer is AnswerKind.MACHINES:
        from iolab.report.machines import (
            few_usable_counts_text,
            scaling_extents,
            scaling_extents_sentence,
        )

        if carried := list(scaling_extents(study, points)):
            limits = scaling_extents_sentence(study, carried)
            return StudyAnswer(_answer_with_prefix(demonstration_prefix, limits))
        why_not_known = few_usable_counts_text(points)
        caveat = f"How many machines the target carries is not known: {why_not_known}. "
    elif study.answer is AnswerKind.ORDER and len(study.configurations) == 1:
        caveat = "Only one configuration was measured: there is no order. "
    else:
        caveat = ""
    if classes := storage_classes_sentence(study, points):
        return StudyAnswer(_answer_with_prefix(demonstration_prefix, f"{caveat}{classes}"))
    if _has_several_configurations(best_figures):
        names = configuration_titles or study.configuration_titles
        choice = choice_answer(
            rows,
            names,
            performance_recommendation(study, tuple(best_point_findings(study, points))),
            is_advice=not demonstration_prefix,
        )
        sentence = _answer_with_prefix(demonstration_prefix, choice.sentence)
        details = " ".join(filter(None, (caveat.strip(), choice.details)))
        return StudyAnswer(sentence, details)
    are_indicative = all(
        row.best.verdict_level is VerdictLevel.INDICATIVE
        for row in measured
        if row.best is not None
    )
    own = StudyAnswer(load_kind_text, MEASURE_AGAIN if are_indicative else "")
    answer = own if load_kind_text else _best_figures_answer(rows, study)
    if caveat:
        answer = StudyAnswer(caveat.strip(), answer.text)
    sentence = _answer_with_prefix(demonstration_prefix, answer.sentence)
    titles = (*study.configuration_titles.values(), *study.workload_titles.values())
    is_verb_first = bool(load_kind_text) and not caveat and not load_kind_text.startswith(titles)
    if demonstration_prefix and is_verb_first:
        sentence = f"{demonstration_prefix}{uncapitalised(load_kind_text)}"
    return replace(answer, sentence=sentence)


def _answer_with_prefix(prefix: str, text: str) -> str:
    """The answer after how it begins; what is no name continues it in small letters."""
    is_name_first = not text.startswith((TARGET, "How many ", "Only one "))
    return f"{prefix}{text if not prefix or is_name_first else uncapitalised(text)}"


def _best_figures_answer(rows: Sequence[WorkloadRow], study: Study) -> StudyAnswer:
    """The best figure of each operation of the only configuration."""
    measured = [row for row in rows if row.best is not None]
    owner = measured[0].figures[0].configuration
    title = study.configuration_titles.get(owner, owner)
    # An imported configuration has no name but the session's.
    name = TARGET if owner == DEFAULT_CONFIGURATION or title == study.title else title
    only = len(rows) == 1 and rows[0].title in study.title
    lost = _not_measurable_figures_suffix([row.title for row in rows if row.best is None])
    # A rate that was requested is no limit of the target.
    verb = (
        "serves"
        if all(row.best is not None and row.best.is_paced for row in measured)
        else "reaches"
    )
    bests = [row.best for row in measured if row.best is not None]
    from_storage = [best for best in bests if not best.is_mostly_read_from_memory]
    bests = from_storage or bests
    are_indicative = all(best.verdict_level is VerdictLevel.INDICATIVE for best in bests)
    pairs = (
        []
        if only
        else list(
            _plain_read_and_write_pairs_by_quantity(bests, marks_indicative=not are_indicative)
        )
    )
    paired = {figure for pair in pairs for figure in pair}
    texts = [
        f"{metric_value_text(read.value).removesuffix(' IOPS')} read and "
        f"{metric_value_text(write.value).removesuffix(' IOPS')} {write.title[:1].lower()}"
        f"{write.title[1:]}"
        for read, write in pairs
    ]
    texts += list(
        _best_per_operation_texts(
            [best for best in bests if best not in paired],
            with_workload_title=not only,
            marks_indicative=not are_indicative,
        )
    )
    reached = f"{name} {verb} {'; '.join(texts) if pairs else list_text(texts)}."
    if not from_storage:
        reached = f"{reached[:-1]}{FROM_MEMORY}"
        lost = f"{MORE_DATA}{lost}"
    doubts = [
        f"{best.title} is {best.doubt_text}."
        for best in best_figures_by_unit_and_operation(bests)
        if best.doubt_text
    ]
    details = (lost.strip(), *doubts, MEASURE_AGAIN if are_indicative else "")
    return StudyAnswer(reached, " ".join(filter(None, details)))


def _not_measurable_figures_suffix(titles: Sequence[str]) -> str:
    """Which figures are not measurable; what all their titles begin with is told once."""
    if not titles:
        return ""
    begins = {title.partition(": ")[0] for title in titles}
    if len(titles) > 1 and len(begins) == 1 and all(": " in title for title in titles):
        names = list_text([title.partition(": ")[2] for title in titles], UNKNOWN_SHOWN)
        return f" {capitalised(NOT_MEASURABLE)}: {begins.pop()} ({names})."
    return f" {capitalised(NOT_MEASURABLE)}: {list_text(titles, UNKNOWN_SHOWN)}."


def confidence_line(
    best_figures: Sequence[BestFigure], caveats: Sequence[Objection] | None = None
) -> str:
    """How sure the best figures are, in one line: verdict and reasons, then their intervals.

    The reasons are the session's `caveats` about the figures, in their order and in words. Without
    `caveats` there are none: a brief tells them in sentences.
    """
    if not best_figures:
        return "Nothing is measured yet."
    sound = [figure for figure in best_figures if figure.is_quotable]
    groups = (
        (
            VerdictLevel.VALID.value,
            [figure for figure in sound if figure.verdict_level is VerdictLevel.VALID],
        ),
        (
            VerdictLevel.INDICATIVE.value,
            [figure for figure in sound if figure.verdict_level is VerdictLevel.INDICATIVE],
        ),
        (NOT_MEASURABLE, [figure for figure in best_figures if not figure.is_quotable]),
    )
    parts = [
        (len(own), f"{name}{'' if caveats is None else _check_codes_suffix(own, caveats)}")
        for name, own in groups
        if own
    ]
    every = counted_noun(len(best_figures), "figure")
    if len(parts) == 1:
        start = f"{every}, {'all ' * (len(best_figures) > 1)}{parts[0][1]}"
    else:
        start = f"{every}: {', '.join(f'{number} {text}' for number, text in parts)}"
    return f"{start}.{_interval_widths_suffix(best_figures)}"


def _check_codes_suffix(best_figures: Sequence[BestFigure], caveats: Sequence[Objection]) -> str:
    """What is behind figures of one level, in words: the caveats, else the most frequent checks."""
    keys = {
        figure.run_key for figure in best_figures if figure.verdict_level is not VerdictLevel.VALID
    }
    codes = [
        caveat.code
        for caveat in caveats
        if any(run.key in keys for run in caveat.runs_of_any_level)
    ]
    codes = codes or [
        code
        for code, _ in Counter(
            figure.objection_code_and_text[0] for figure in best_figures
        ).most_common()
        if code
    ]
    return f" ({list_text(map(check_phrase, codes), CHECK_CODES_SHOWN)})" if codes else ""


def _has_several_configurations(best_figures: Sequence[BestFigure]) -> bool:
    return len({figure.configuration for figure in best_figures}) > 1


def _plain_read_and_write_pairs_by_quantity(
    best_figures: Sequence[BestFigure], *, marks_indicative: bool
) -> Iterator[tuple[BestFigure, BestFigure]]:
    """Figures that are no more than `Read IOPS` and `Write IOPS`, with nothing to say of either."""
    bests = list(best_figures_by_unit_and_operation(best_figures))
    plain = {
        best.title.lower(): best
        for best in bests
        if not best.is_paced
        and not best.left_out_repeats_text
        and not (marks_indicative and best.verdict_level is VerdictLevel.INDICATIVE)
        and len([own for own in best_figures if own.value.unit == best.value.unit]) == 2
    }
    for noun in ("iops", "bandwidth", "latency"):
        if f"read {noun}" in plain and f"write {noun}" in plain:
            yield plain[f"read {noun}"], plain[f"write {noun}"]


def _best_per_operation_texts(
    best_figures: Sequence[BestFigure],
    *,
    with_workload_title: bool,
    marks_indicative: bool,
) -> Iterator[str]:
    """The highest figure of each unit and operation, of operations with their latency too.

    Figures of mixed operations stand where no other has their unit. Without `with_workload_title`
    the title of the study has the workload's; `marks_indicative` marks what is indicative.
    """
    for figure in best_figures_by_unit_and_operation(best_figures):
        texts = (
            [f"at {text} {name}" for name, text in figure.latency_names_and_texts[:1]]
            if figure.value.unit in _OPERATIONS
            else []
        )
        context = " ".join((*([figure.title] if with_workload_title else []), *texts))
        doubt = (
            "indicative"
            if marks_indicative and figure.verdict_level is VerdictLevel.INDICATIVE
            else ""
        )
        paced = "paced: the load asks for no more" if figure.is_paced else ""
        note = ", ".join(filter(None, (context, paced, figure.left_out_repeats_text, doubt)))
        value = metric_value_text(figure.value)
        yield f"{value} ({note})" if note else value


def _interval_widths_suffix(best_figures: Sequence[BestFigure]) -> str:
    """How far the intervals of the figures reach."""
    sound = [figure for figure in best_figures if figure.is_quotable]
    if not sound:
        return ""
    halves = [half for figure in sound if (half := figure.value.relative_half_width) is not None]
    lacking: dict[str, list[str]] = {}
    for figure in sound:
        if figure.value.relative_half_width is None:
            why = missing_interval_reason(figure.value)
            lacking.setdefault(why, []).append(figure.title)
    if not halves:
        are_few = set(lacking) == {TOO_FEW_REPEATS}
        hint = "measure at least three" if are_few else "measure more, or find what disturbs them"
        return f" {' or '.join(lacking).capitalize()} for an interval: {hint}."
    least, most = min(halves), max(halves)
    reach = f"±{percent_text(most)}"
    if percent_text(least) != percent_text(most):
        reach = f"±{percent_text(least)} to {reach}"
    few = "".join(
        f"; {len(titles)} of {len(sound)} have {why} for an interval{_titles_suffix_if_few(titles)}"
        for why, titles in lacking.items()
    )
    return f" 95 % intervals of the figures: {reach}{few}."


def _titles_suffix_if_few(titles: Iterable[str]) -> str:
    """Of which workloads that is, where they are few."""
    named = list(dict.fromkeys(titles))
    return f" ({list_text(named)})" if len(named) <= LACKING_SHOWN else ""
