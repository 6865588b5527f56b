"""A comparison for other programs: the document of `iolab compare --json`, CSV and Markdown.

The JSON is a contract: `schema/compare.json` describes it, docs/reference/compare.md explains it.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from iolab.analysis.comparison import (
    FALSE_ALARMS,
    ComparisonResult,
    MetricHistory,
    MetricSummary,
    SessionHistory,
)
from iolab.analysis.differences import ComparisonSide, Difference
from iolab.analysis.pairs import ComparedMetric, SkippedPoint
from iolab.analysis.points import AxisValues
from iolab.core.metric import Metric
from iolab.core.metric_spec import BetterDirection, phase_of_rate_metric
from iolab.record import Record
from iolab.report.numbers import (
    MAYBE_CHANCE,
    finite_number_or_none,
    interval_and_runs_text,
    json_object_of_record,
    metric_value_text,
    point_text,
)
from iolab.report.phrases import metric_phrase
from iolab.report.short_names import screen_name_by_configuration
from iolab.report.table import (
    Cell,
    ExportValue,
    Table,
    escape_markdown,
    rows_csv,
    table_markdown,
    text_and_number_columns,
    untitled_text_table,
)
from iolab.report.table import row_of_cells as cells_of
from iolab.stats.changes import MAGNITUDE_MIN, LevelChange
from iolab.stats.comparison import NOISE_THRESHOLD, SAME_WITHIN, ComparisonVerdict
from iolab.text import counted_noun, list_text, percent_text
from iolab.units import significant_digits_text

FORMAT: Final = 1
"""The number of the JSON document's format; it changes when a reader would have to."""

HEADINGS: Final = ("point", "metric", "baseline", "candidate", "ratio", "interval", "verdict")

VERDICT_MARKS: Final = {
    ComparisonVerdict.BETTER: "✓",
    ComparisonVerdict.WORSE: "✗",
    ComparisonVerdict.SAME: "=",
    ComparisonVerdict.INCONCLUSIVE: "?",
}

DIFFERENCE_WORKLOADS_SHOWN: Final = 6
"""Workloads named with what differs alike in all of them; others are counted."""

_FORBIDDEN_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to hold, not even escaped."""


def comparison_document(comparison: ComparisonResult) -> dict[str, Any]:
    """The document of `iolab compare --json`, made of JSON's own types only."""
    return {
        "format": FORMAT,
        "baseline": comparison_side_document(comparison.baseline),
        "candidate": comparison_side_document(comparison.candidate),
        "same_session": comparison.is_same_measurement,
        "thresholds": {"noise": NOISE_THRESHOLD, "same_within": SAME_WITHIN},
        "differences": [difference_document(difference) for difference in comparison.differences],
        "rows": [_comparison_row_document(row) for row in comparison.compared_metrics],
        "skipped": [_skipped_point_document(point) for point in comparison.skipped],
        "summaries": [_geometric_mean_document(summary) for summary in comparison.summaries],
        "verdicts": {
            verdict.value: comparison.row_count_by_verdict.get(verdict, 0)
            for verdict in ComparisonVerdict
        },
    }


def comparison_side_document(side: ComparisonSide) -> dict[str, Any]:
    """What a side is: its session, study and configuration."""
    return {
        "name": side.name,
        "session": side.session_id,
        "created_real_ns": side.created_real_ns,
        "study": side.study.id,
        "scale": side.study.scale,
        "configuration": side.configuration.id,
    }


def difference_document(difference: Difference) -> dict[str, Any]:
    """One thing that is not the same on both sides."""
    return {
        "area": difference.area.value,
        "what": difference.subject,
        "baseline": difference.baseline,
        "candidate": difference.candidate,
        "forbids": difference.forbids_comparison,
    }


def ratio_with_percent_text(ratio: float) -> str:
    """A ratio as the change in per cent beside it: `0.900 (-10.0 %)`."""
    return f"{significant_digits_text(ratio)} ({percent_text(ratio - 1, is_signed=True)})"


def interval_text(low: float | None, high: float | None) -> str:
    """The interval of a ratio; a dash where none is known."""
    if low is None or high is None:
        return "–"
    return f"[{significant_digits_text(low)}, {significant_digits_text(high)}]"


class ComparisonRowTexts(Record):
    """A row's cells for people."""

    point: str
    metric: str
    baseline: str
    candidate: str
    ratio: str
    interval: str
    verdict: str
    marked_verdict: str

    @property
    def cells(self) -> tuple[str, ...]:
        """As HEADINGS names them."""
        return (
            *(self.point, self.metric, self.baseline, self.candidate),
            *(self.ratio, self.interval, self.verdict),
        )


def compared_operations_suffix(
    comparison: ComparisonResult, compared_metric: ComparedMetric
) -> str:
    """`, all I/Os` of a latency that is of reads and writes together; empty for others."""
    directions = comparison.baseline.study.workload(compared_metric.workload).job.data_directions
    is_of_all = compared_metric.metric.startswith("lat_ns_") and len(directions) > 1
    return ", all I/Os" if is_of_all else ""


def comparison_row_texts(
    compared_metric: ComparedMetric, operations_text: str = ""
) -> ComparisonRowTexts:
    """A row's cells for people; `operations_text` says of what operations its metric is."""
    comparison = compared_metric.comparison
    return ComparisonRowTexts(
        point=point_text(compared_metric.workload, compared_metric.axis_values),
        metric=f"{metric_phrase(compared_metric.metric)}{operations_text}",
        baseline=metric_value_text(compared_metric.baseline),
        candidate=metric_value_text(compared_metric.candidate),
        ratio=ratio_with_percent_text(comparison.ratio),
        interval=interval_text(comparison.low, comparison.high),
        verdict=comparison.verdict.value,
        marked_verdict=marked_verdict_text(comparison.verdict),
    )


def ratio_with_interval_text(ratio: float, low: float | None, high: float | None) -> str:
    """A ratio with its interval in little room: `0.935 (0.758–1.15)`."""
    text = significant_digits_text(ratio)
    if low is None or high is None:
        return text
    ends = (significant_digits_text(low), significant_digits_text(high))
    # An interval narrower than the digits shown tells nothing beside them.
    return text if {*ends} == {text} else f"{text} ({ends[0]}–{ends[1]})"


def marked_verdict_text(verdict: ComparisonVerdict, count_text: str = "") -> str:
    """A verdict after its mark: `▲ better`; with a count `▲ 3 better`."""
    return " ".join(filter(None, (VERDICT_MARKS[verdict], count_text, verdict.value)))


class GeometricMeanTexts(NamedTuple):
    """A geometric mean for people: of what it is, its ratio, and the interval of that."""

    subject: str
    ratio: str
    interval: str


def geometric_mean_texts(summary: MetricSummary) -> GeometricMeanTexts:
    """The geometric mean of a metric over all points."""
    overall, points = summary.geometric_mean, counted_noun(summary.point_count, "point")
    curves = overall.curve_count
    # Points of one workload count together as much as one of another.
    over = f"{points} of one workload" if curves == 1 else f"{curves} workloads"
    return GeometricMeanTexts(
        subject=f"geometric mean of {metric_phrase(summary.metric)} over {over}",
        ratio=ratio_with_percent_text(overall.ratio),
        interval=interval_text(overall.low, overall.high),
    )


def comparison_sentences(comparison: ComparisonResult) -> Iterator[str]:
    """A sentence a point on its first metric: `b is 1.30 (1.12–1.51) times as fast as a (reads)`.

    Of a point with phases there is one more on the rate of each later phase. The faster side is
    named first, of what is no speed the one with more; where the interval holds no difference,
    that is said instead.
    """
    names, titles = short_side_names(comparison), comparison.candidate.study.workload_titles
    points: set[tuple[str, AxisValues]] = set()
    for row in comparison.compared_metrics:
        phase = phase_of_rate_metric(row.metric)
        if phase is None and (row.workload, row.axis_values) in points:
            continue
        points.add((row.workload, row.axis_values))
        place = point_text(titles.get(row.workload, row.workload), row.axis_values)
        yield _comparison_sentence(row, *names, f"{place}, phase {phase}" if phase else place)


def _comparison_sentence(
    compared_metric: ComparedMetric, baseline_name: str, candidate_name: str, place: str
) -> str:
    comparison = compared_metric.comparison
    is_gain = (
        comparison.ratio >= 1
        if compared_metric.better is BetterDirection.HIGHER
        else comparison.ratio <= 1
    )
    first, second = (candidate_name, baseline_name) if is_gain else (baseline_name, candidate_name)
    ratio, low, high = comparison.ratio, comparison.low, comparison.high
    if ratio < 1:
        low, high = (1 / end if end else None for end in (high, low))
        ratio = 1 / ratio
    text = ratio_with_interval_text(ratio, low, high)
    is_speed = compared_metric.baseline.unit.endswith("/s") or compared_metric.baseline.unit in (
        "ns",
        "s",
    )
    metric = metric_phrase(compared_metric.metric)
    if comparison.verdict in (ComparisonVerdict.BETTER, ComparisonVerdict.WORSE):
        if is_speed:
            return f"{first} is {text} times as fast as {second} ({place})"
        more, less = (
            (candidate_name, baseline_name)
            if comparison.ratio >= 1
            else (baseline_name, candidate_name)
        )
        return f"{more} has {text} times the {metric} of {less} ({place})"
    if comparison.verdict is ComparisonVerdict.SAME:
        likeness = "are equally fast" if is_speed else f"have the same {metric}"
        return f"{first} and {second} {likeness}: {text} ({place})"
    if comparison.is_significant_only_alone:
        return f"The lead of {first} over {second} {MAYBE_CHANCE}: {text} ({place})"
    why = f", {comparison.reason}" if low is None or high is None else ""
    return f"{first} and {second} cannot be told apart: {text}{why} ({place})"


def short_side_names(comparison: ComparisonResult) -> tuple[str, str]:
    """How the two sides are called: by configuration within a session, else by session."""
    baseline, candidate = comparison.baseline, comparison.candidate
    if baseline.session_id == candidate.session_id:
        names = screen_name_by_configuration(candidate.study)
        first, second = baseline.configuration.id, candidate.configuration.id
        # Sides that are engines, as of a calibration, are no configurations of the study.
        return names.get(first, first), names.get(second, second)
    return baseline.name, candidate.name


def comparison_csv(comparison: ComparisonResult) -> str:
    """RFC 4180, one row a point and metric; an unknown number is an empty field."""
    axes = list(
        dict.fromkeys(name for row in comparison.compared_metrics for name, _ in row.axis_values)
    )
    heads = (
        "workload",
        *(f"axis_{name}" for name in axes),
        *("metric", "unit", "baseline", "baseline_low", "baseline_high", "baseline_n"),
        *("candidate", "candidate_low", "candidate_high", "candidate_n"),
        *("ratio", "ratio_low", "ratio_high", "verdict", "level", "reason"),
    )
    return rows_csv(heads, (_csv_row(row, axes) for row in comparison.compared_metrics))


def _csv_row(compared_metric: ComparedMetric, axis_names: Sequence[str]) -> Iterator[ExportValue]:
    comparison = compared_metric.comparison
    yield compared_metric.workload
    yield from (dict(compared_metric.axis_values).get(name) for name in axis_names)
    yield from (compared_metric.metric, compared_metric.baseline.unit)
    yield from (
        *_metric_csv_values(compared_metric.baseline),
        *_metric_csv_values(compared_metric.candidate),
    )
    yield from (comparison.ratio, comparison.low, comparison.high)
    yield from (comparison.verdict.value, compared_metric.verdict_level.value, comparison.reason)


def differences_merged_over_workloads(differences: Iterable[Difference]) -> list[Difference]:
    """What differs in the same way in several workloads once, with their names."""
    named: dict[Difference, list[str]] = {}
    for difference in differences:
        names = named.setdefault(replace(difference, workload=""), [])
        if difference.workload:
            names.append(difference.workload)
    return [
        replace(difference, workload=list_text(names, DIFFERENCE_WORKLOADS_SHOWN))
        if names
        else difference
        for difference, names in named.items()
    ]


def differences_table(differences: Iterable[Difference]) -> Table:
    """What differs besides the results; what forbids the comparison is marked."""
    rows = (
        (
            Cell(
                f"! {difference.subject}" if difference.forbids_comparison else difference.subject,
                is_bold=difference.forbids_comparison,
            ),
            *cells_of(difference.baseline, difference.candidate),
        )
        for difference in differences_merged_over_workloads(differences)
    )
    heads = text_and_number_columns(("What", "Baseline", "Candidate"))
    return Table("What differs besides the results", heads, tuple(rows))


def comparison_markdown(comparison: ComparisonResult) -> str:
    """Tables that GitHub and its like show: the differences, then the rows, then the means."""
    parts = [f"# {_comparison_title(comparison)}"]
    if comparison.differences:
        parts.append(table_markdown(differences_table(comparison.differences)))
    heads = tuple(heading.capitalize() for heading in HEADINGS)
    if comparison.compared_metrics:
        parts.append(
            table_markdown(
                untitled_text_table(
                    heads,
                    (
                        comparison_row_texts(row, compared_operations_suffix(comparison, row)).cells
                        for row in comparison.compared_metrics
                    ),
                )
            )
        )
    if comparison.summaries:
        means = map(geometric_mean_texts, comparison.summaries)
        parts.append(table_markdown(untitled_text_table(("Together", "Ratio", "Interval"), means)))
    return "\n\n".join(parts) + "\n"


def _comparison_title(comparison: ComparisonResult) -> str:
    baseline, candidate = comparison.baseline, comparison.candidate
    return escape_markdown(f"{candidate.name} against {baseline.name}")


def _metric_csv_values(metric: Metric) -> tuple[float | None, ...]:
    return (metric.value, metric.low, metric.high, metric.n)


def _comparison_row_document(compared_metric: ComparedMetric) -> dict[str, Any]:
    comparison = compared_metric.comparison
    return {
        "workload": compared_metric.workload,
        "axis": dict(compared_metric.axis_values),
        "metric": compared_metric.metric,
        "better": compared_metric.better.value,
        "baseline": json_object_of_record(compared_metric.baseline),
        "candidate": json_object_of_record(compared_metric.candidate),
        "ratio": comparison.ratio,
        "low": comparison.low,
        "high": comparison.high,
        "runs": list(comparison.run_counts),
        "paired": comparison.is_paired,
        "p": comparison.p_value,
        "verdict": comparison.verdict.value,
        "reason": comparison.reason,
        "level": compared_metric.verdict_level.value,
    }


def _skipped_point_document(skipped: SkippedPoint) -> dict[str, Any]:
    return {
        "workload": skipped.workload,
        "axis": dict(skipped.axis_values),
        "reason": skipped.reason,
    }


def _geometric_mean_document(summary: MetricSummary) -> dict[str, Any]:
    overall = summary.geometric_mean
    return {
        "metric": summary.metric,
        "better": summary.better.value,
        "rows": summary.point_count,
        "curves": overall.curve_count,
        "ratio": overall.ratio,
        "low": finite_number_or_none(overall.low),
        "high": finite_number_or_none(overall.high),
        "bootstrapped": overall.is_bootstrapped,
    }


def history_document(session_history: SessionHistory) -> dict[str, Any]:
    """The document of `iolab history --json`, made of JSON's own types only."""
    return {
        "format": FORMAT,
        "thresholds": {"magnitude": MAGNITUDE_MIN, "false_alarms": FALSE_ALARMS},
        "sessions": [
            {
                **comparison_side_document(side),
                "changed": [difference_document(difference) for difference in changed],
            }
            for side, changed in zip(
                session_history.sessions, session_history.differences_by_session, strict=True
            )
        ],
        "series": [
            _metric_history_document(history) for history in session_history.metric_histories
        ],
        "changes": session_history.change_count,
        "message": history_summary_sentence(session_history),
    }


def history_summary_sentence(session_history: SessionHistory) -> str:
    """In one sentence, whether anything changed."""
    sessions = counted_noun(len(session_history.sessions), "session")
    searched = [
        history
        for history in session_history.metric_histories
        if history.change_search.has_enough_runs
    ]
    if not searched:
        needed = min(
            (history.change_search.needed_runs for history in session_history.metric_histories),
            default=0,
        )
        return f"{sessions} are too few to tell a change; {needed} are needed."
    series = counted_noun(len(searched), "series", "series")
    few = len(session_history.metric_histories) - len(searched)
    rest = f" {few} more have too few sessions." if few else ""
    if not session_history.change_count:
        return f"Nothing changed over {sessions} in {series}.{rest}"
    return (
        f"{counted_noun(session_history.change_count, 'change')} over {sessions} in {series}.{rest}"
    )


def metric_changes_text(metric_history: MetricHistory) -> str:
    """What one series tells, in a few words."""
    search = metric_history.change_search
    if not search.has_enough_runs:
        return "too few"
    if not search.changes:
        return "nothing changed"
    return ", ".join(percent_text(change.ratio - 1, is_signed=True) for change in search.changes)


def _metric_history_document(metric_history: MetricHistory) -> dict[str, Any]:
    return {
        "workload": metric_history.workload,
        "axis": dict(metric_history.axis_values),
        "metric": metric_history.metric,
        "unit": metric_history.values[0].metric.unit,
        "values": [
            {
                "session": point.session_index,
                "value": point.metric.value,
                "low": point.metric.low,
                "high": point.metric.high,
                "n": point.metric.n,
                "level": point.verdict_level.value,
            }
            for point in metric_history.values
        ],
        "enough": metric_history.change_search.has_enough_runs,
        "needed": metric_history.change_search.needed_runs,
        "changes": [
            _change_document(metric_history, change)
            for change in metric_history.change_search.changes
        ],
    }


def _change_document(metric_history: MetricHistory, change: LevelChange) -> dict[str, Any]:
    return {
        "session": metric_history.values[change.run_index].session_index,
        "ratio": change.ratio,
        "p": change.p_value,
    }


def comparison_junit_xml(comparison: ComparisonResult) -> str:
    """JUnit XML: each row a case of class `STUDY.POINT` named by its metric.

    A row that is worse fails; one that is inconclusive, or a point that cannot be compared, is
    skipped with the reason. It is no verdict that a candidate lacks a point.
    """
    verdicts = comparison.row_count_by_verdict
    failures = verdicts.get(ComparisonVerdict.WORSE, 0)
    skipped = verdicts.get(ComparisonVerdict.INCONCLUSIVE, 0) + len(comparison.skipped)
    counts = {
        "tests": str(len(comparison.compared_metrics) + len(comparison.skipped)),
        "failures": str(failures),
        "errors": "0",
        "skipped": str(skipped),
        "time": "0",
    }
    name = f"{comparison.candidate.name} against {comparison.baseline.name}"
    root = ET.Element("testsuites", {"name": "iolab compare", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": _replace_xml_forbidden(name), **counts})
    study = comparison.baseline.study.id
    for row in comparison.compared_metrics:
        case = _add_junit_case(
            suite, f"{study}.{point_text(row.workload, row.axis_values)}", row.metric
        )
        message = _junit_row_message(row)
        match row.comparison.verdict:
            case ComparisonVerdict.WORSE:
                fault = ET.SubElement(case, "failure", {"message": message, "type": "worse"})
                fault.text = _junit_case_details(row)
            case ComparisonVerdict.INCONCLUSIVE:
                why = row.comparison.reason
                ET.SubElement(
                    case, "skipped", {"message": _replace_xml_forbidden(f"{message}: {why}")}
                )
            case _:
                ET.SubElement(case, "system-out").text = f"{message}\n{_junit_case_details(row)}"
    for missing in comparison.skipped:
        point = point_text(missing.workload, missing.axis_values)
        metric, colon, why = missing.reason.partition(": ")
        named = (metric, why) if colon and " " not in metric else ("", missing.reason)
        case = _add_junit_case(suite, f"{study}.{point}", named[0] or "not compared")
        ET.SubElement(case, "skipped", {"message": _replace_xml_forbidden(named[1])})
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def comparison_bmf_document(comparison: ComparisonResult) -> dict[str, Any]:
    """Bencher's metric format: the candidate's values by point and metric, with their intervals.

    Bencher keeps the history of one branch, so that only what is new is given to it. A limit that
    is not known is left out, as its format allows.
    """
    by_point: dict[str, dict[str, dict[str, float]]] = {}
    for row in comparison.compared_metrics:
        if row.candidate.value is not None:
            point = point_text(row.workload, row.axis_values)
            by_point.setdefault(point, {})[row.metric] = _bmf_measure(row.candidate)
    return by_point


def _bmf_measure(metric: Metric) -> dict[str, float]:
    values = {"value": metric.value, "lower_value": metric.low, "upper_value": metric.high}
    return {name: value for name, value in values.items() if value is not None}


def _add_junit_case(suite: ET.Element, point: str, metric_key: str) -> ET.Element:
    names = {
        "classname": _replace_xml_forbidden(point),
        "name": _replace_xml_forbidden(metric_key),
        "time": "0",
    }
    return ET.SubElement(suite, "testcase", names)


def _junit_row_message(compared_metric: ComparedMetric) -> str:
    """What the row says: `worse: iops 0.900 (-10.0 %) [0.891, 0.911]`."""
    texts = comparison_row_texts(compared_metric)
    return _replace_xml_forbidden(f"{texts.verdict}: {texts.metric} {texts.ratio} {texts.interval}")


def _junit_case_details(compared_metric: ComparedMetric) -> str:
    sides = (("baseline", compared_metric.baseline), ("candidate", compared_metric.candidate))
    lines = [
        f"{name} {metric_value_text(metric)} {interval_and_runs_text(metric)}".rstrip()
        for name, metric in sides
    ]
    return _replace_xml_forbidden(
        "\n".join([*lines, f"trust {compared_metric.verdict_level.value}"])
    )


def _replace_xml_forbidden(text: str) -> str:
    return _FORBIDDEN_IN_XML.sub("\ufffd", text)
