"""The pages of a server: comparisons, sessions that run, the list of sessions, refusals.

Of a comparison an interval is drawn on one scale for all rows of the page, the logarithm of the
ratio, with the ratio of 1 in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from typing import Final

import numpy as np
from jinja2 import Environment
from markupsafe import Markup

from iolab.analysis.comparison import SAME_SESSION, ComparisonResult
from iolab.analysis.differences import ComparisonSide
from iolab.analysis.pairs import ComparedMetric
from iolab.core.events import SessionStatus
from iolab.core.metric import RunResult
from iolab.core.metric_spec import CombineRule, is_known_metric, metric_spec
from iolab.core.run import Plan, RunStatus
from iolab.core.samples import Floats, IntervalTable
from iolab.errors import StoreError
from iolab.record import Record
from iolab.report.best import RunCounts, count_runs_by_verdict_and_status
from iolab.report.brief import LoadReport, LoadReportKinds
from iolab.report.charts.chart import Chart, Line, Plot
from iolab.report.charts.palette import series_color_token
from iolab.report.charts.scale import linear_scale, seconds_axis
from iolab.report.charts.svg import draw_inline_svg
from iolab.report.comparison import (
    GeometricMeanTexts,
    comparison_row_texts,
    differences_table,
    geometric_mean_texts,
)
from iolab.report.formats.html import content_security_policy as report_policy
from iolab.report.formats.html import csp_hash_without_quotes, style_sheet, template_environment
from iolab.report.formats.html import page_script as report_script
from iolab.report.numbers import metric_value_text, point_text, utc_minute_text, value_text
from iolab.report.phrases import (
    Objection,
    merge_objections,
    metric_column_name,
    result_run_name_text,
    run_name_text,
)
from iolab.report.table import Cell, Column, Table, row_of_cells, text_and_number_columns
from iolab.serve.server import RequestRefusal
from iolab.serve.sessions import LoadedSession, SessionFolder, SessionListing
from iolab.stats.comparison import Comparison, ComparisonVerdict
from iolab.text import capitalised, counted_noun
from iolab.units import format_duration_s

SPAN_MIN: Final = math.log(1.1)
"""A scale of at least ±10 %, so that noise does not look like news."""

SPAN_MAX: Final = math.log(10)
"""A scale of at most a factor of ten either way; what is beyond ends at the edge."""

WIDTH: Final = 100.0
"""The width of a drawing in its own units."""

SKIPPED_MAX: Final = 40
"""Points not compared that are named; the document of `iolab compare --json` has all."""

_SHAPES: Final = {
    ComparisonVerdict.BETTER: "▲",
    ComparisonVerdict.WORSE: "▼",
    ComparisonVerdict.SAME: "=",
    ComparisonVerdict.INCONCLUSIVE: "?",
}

NEWEST_MAX: Final = 12
"""Runs that are shown: what fits a screen; the report has them all."""

OBJECTIONS_MAX: Final = 6
"""Objections that are shown, the worst first."""

_NANOSECONDS: Final = 1e9
CHART_HEIGHT: Final = 90

POINTS_MAX: Final = 420
"""A point for each unit of the drawing; of more seconds the mean of some is drawn."""

REFRESH_S: Final = 3
"""How often a page that changes asks for itself again."""

_PAGE_TOP: Final = b'<body>\n<div class="page">\n'
"""Where a report begins, below which the way back is put."""

HTML: Final = "text/html; charset=utf-8"
"""The kind of content of every page."""

_HERE: Final = Path(__file__).parent


class ComparisonPage(Record):
    """Everything on the page; without `are_rows_shown` what forbids the comparison alone."""

    title: str
    sides: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    differences: Table
    note: str
    is_forbidden: bool
    are_rows_shown: bool
    rows: Table
    scale_text: str
    verdict_count_badges: tuple[Markup, ...]
    geometric_mean_rows: tuple[GeometricMeanTexts, ...]
    skipped: tuple[str, ...]
    more_skipped: int
    damage_texts: tuple[str, ...] = ()


def comparison_page(
    comparison: ComparisonResult, *, allow_differences: bool, damage_texts: tuple[str, ...] = ()
) -> ComparisonPage:
    """The page of a comparison; what forbids it withholds the rows unless they are asked for.

    `damage_texts` is what either session leaves out.
    """
    forbidden = any(difference.forbids_comparison for difference in comparison.differences)
    span = _ratio_scale_half_width_ln(comparison.compared_metrics)
    skipped = [
        f"{point_text(point.workload, point.axis_values)}: {point.reason}"
        for point in comparison.skipped
    ]
    return ComparisonPage(
        title=f"{_side_title(comparison.candidate)} against {_side_title(comparison.baseline)}",
        sides=(
            ("Baseline", _side_fact_rows(comparison.baseline)),
            ("Candidate", _side_fact_rows(comparison.candidate)),
        ),
        differences=differences_table(comparison.differences),
        note=_no_differences_text(comparison),
        is_forbidden=forbidden,
        are_rows_shown=allow_differences or not forbidden,
        rows=_metric_rows_table(comparison.compared_metrics, span),
        scale_text=f"from {math.exp(-span):.3g} to {math.exp(span):.3g}",
        verdict_count_badges=tuple(
            Markup(_verdict_badge_html(verdict, f"{number} "))  # noqa: S704 - ours, a verdict and a number
            for verdict in ComparisonVerdict
            if (number := comparison.row_count_by_verdict.get(verdict, 0))
        ),
        geometric_mean_rows=tuple(
            geometric_mean_texts(summary) for summary in comparison.summaries
        ),
        skipped=tuple(skipped[:SKIPPED_MAX]),
        more_skipped=max(0, len(skipped) - SKIPPED_MAX),
        damage_texts=damage_texts,
    )


def _no_differences_text(comparison: ComparisonResult) -> str:
    if comparison.is_same_measurement:
        return f"{capitalised(SAME_SESSION)}."
    if not comparison.differences:
        return "Nothing else differs: studies, hosts and versions are the same."
    return ""


def _side_title(side: ComparisonSide) -> str:
    """A side by its place, and its configuration where the session has several."""
    several = len(side.study.configurations) > 1
    return f"{side.name} ({side.configuration.title})" if several else side.name


def _side_fact_rows(side: ComparisonSide) -> tuple[tuple[str, str], ...]:
    return (
        ("Session", side.session_id),
        ("Place", side.name),
        ("Study", f"{side.study.title} ({side.study.id}, scale {side.study.scale})"),
        ("Configuration", side.configuration.title),
        (
            "Measured",
            f"{utc_minute_text(side.created_real_ns)} UTC, "
            f"{counted_noun(len(side.results), 'run')}",
        ),
    )


def _ratio_scale_half_width_ln(compared_metrics: Sequence[ComparedMetric]) -> float:
    """How far the scale reaches either way: the farthest end of any interval."""
    ends = [
        abs(math.log(end))
        for row in compared_metrics
        for end in (row.comparison.low, row.comparison.ratio, row.comparison.high)
        if end is not None and math.isfinite(end) and end > 0
    ]
    return min(max([SPAN_MIN, *ends]), SPAN_MAX)


def _metric_rows_table(
    compared_metrics: Sequence[ComparedMetric], scale_half_width_ln: float
) -> Table:
    """The metrics of each point under its name."""
    heads = (
        *text_and_number_columns(("Metric", "Verdict"), ("Ratio", "Interval")),
        *text_and_number_columns(("Interval drawn",), ("Baseline", "Candidate", "Runs")),
        Column("Trust"),
    )
    points: dict[str, list[tuple[Cell, ...]]] = {}
    for compared in compared_metrics:
        point = point_text(compared.workload, compared.axis_values)
        points.setdefault(point, []).append(_comparison_cells(compared, scale_half_width_ln))
    starts = accumulate(map(len, points.values()), initial=0)
    cells = tuple(chain.from_iterable(points.values()))
    return Table("Point by point", heads, cells, tuple(zip(starts, points, strict=False)))


def _comparison_cells(
    compared_metric: ComparedMetric, scale_half_width_ln: float
) -> tuple[Cell, ...]:
    comparison = compared_metric.comparison
    _, _, baseline, candidate, ratio, interval, verdict = comparison_row_texts(
        compared_metric
    ).cells
    needs_reason = (
        comparison.verdict is ComparisonVerdict.INCONCLUSIVE or comparison.reason == SAME_SESSION
    )
    badge = _verdict_badge_html(comparison.verdict)
    return row_of_cells(
        metric_column_name(compared_metric.metric),
        Cell(verdict, note=comparison.reason if needs_reason else "", html=badge),
        *(ratio, interval),
        Cell("", html=_forest_row_svg(comparison, scale_half_width_ln)),
        *(baseline, candidate, " / ".join(map(str, comparison.run_counts))),
        compared_metric.verdict_level,
    )


def _verdict_badge_html(verdict: ComparisonVerdict, prefix: str = "") -> str:
    shape = f'<i aria-hidden="true">{_SHAPES[verdict]}</i>'
    return f'<span class="badge says-{verdict.value}">{shape}{prefix}{verdict.value}</span>'


def _forest_row_svg(comparison: Comparison, scale_half_width_ln: float) -> str:
    """The ratio and its interval on the scale of the page, around the line of 1."""
    at, middle = _x_position_of_ratio(comparison.ratio, scale_half_width_ln), f"{WIDTH / 2:g}"
    reach = ""
    if comparison.low is not None and comparison.high is not None:
        low, high = (
            _x_position_of_ratio(comparison.low, scale_half_width_ln),
            _x_position_of_ratio(comparison.high, scale_half_width_ln),
        )
        reach = f'<line x1="{low}" x2="{high}" y1="7" y2="7" class="reach"/>'
    return (
        f'<svg class="forest says-{comparison.verdict.value}" viewBox="0 0 {WIDTH:g} 14" '
        'aria-hidden="true" preserveAspectRatio="none">'
        f'<line x1="{middle}" x2="{middle}" y1="0" y2="14" class="one"/>{reach}'
        f'<line x1="{at}" x2="{at}" y1="2.5" y2="11.5" class="at"/></svg>'
    )


def _x_position_of_ratio(ratio: float, scale_half_width_ln: float) -> float:
    """Where a ratio lies on the drawing."""
    if not ratio > 0:
        return 0.0
    at = math.log(ratio) if math.isfinite(ratio) else math.inf
    return round(WIDTH / 2 * (1 + max(-1.0, min(1.0, at / scale_half_width_ln))), 2)


class PlanProgress(Record):
    """How far a session is: runs made of those planned, and what it does now.

    `may_add_runs` says that results may ask for more; `current_step` is empty where nothing is
    under way.
    """

    done_count: int
    planned_count: int
    may_add_runs: bool
    current_step: str
    fact_rows: tuple[tuple[str, str], ...]


class LivePage(Record):
    """Everything on the page."""

    title: str
    status: SessionStatus
    reason: str
    progress: PlanProgress
    run_counts: RunCounts
    newest_runs: Table
    chart: Markup
    chart_run_name: str
    objections: tuple[Objection, ...]
    damage_texts: tuple[str, ...]


def live_page(load_kinds: LoadReportKinds, loaded_session: LoadedSession, now_ns: int) -> LivePage:
    """The page of a session as it stands at `now_ns` (UTC)."""
    session, results = loaded_session.session, loaded_session.results
    last = max(results, key=lambda result: (result.segment, result.order), default=None)
    return LivePage(
        title=session.title,
        status=session.status,
        reason=session.reason or "",
        progress=_plan_progress(loaded_session, now_ns),
        run_counts=count_runs_by_verdict_and_status(results),
        newest_runs=newest_runs_table(results),
        chart=Markup(_newest_run_chart(load_kinds, loaded_session, last)) if last else Markup(""),  # noqa: S704 - escaped there
        chart_run_name=f"{last.configuration}: {_run_name_with_bad_status(last)}" if last else "",
        objections=merge_objections(results)[:OBJECTIONS_MAX],
        damage_texts=tuple(map(str, loaded_session.reader.damage_of_documents_and_manifests())),
    )


def _newest_run_chart(
    load_kinds: LoadReportKinds, session: LoadedSession, result: RunResult
) -> str:
    """The newest run second by second; nothing where its intervals cannot be read."""
    try:
        table = session.reader.intervals(result.digest, result.repeat)
    except StoreError:
        return ""
    rate, by_second = (
        operation_rate_metric_key(result),
        operation_rates_by_interval(load_kinds.report_of_result(result), table),
    )
    unit = metric_spec(rate).unit if rate else "ops/s"
    figure = rate_chart(f"{result.configuration}: {result_run_name_text(result)}", by_second, unit)
    return draw_inline_svg(figure).svg if figure else ""


def operation_rates_by_interval(load_report: LoadReport, table: IntervalTable) -> Floats:
    """Operations a second of all hosts together, in each of their intervals from the first."""
    counted = sorted(load_report.non_overlapping_operations(np.unique(table.direction).tolist()))
    kept = np.isin(table.direction, counted) & (table.span_ns > 0)
    per_s = table.ios[kept] * 1e9 / table.span_ns[kept]
    return np.asarray(np.bincount(table.seq[kept], weights=per_s), dtype=np.float64)


def rate_chart(subject: str, rate_by_second: Floats, unit: str) -> Chart | None:
    """The rates, in `unit`, of each second of a run; None of less than two."""
    if rate_by_second.size < 2:
        return None
    step = -(-rate_by_second.size // POINTS_MAX)
    starts = np.arange(0, rate_by_second.size, step)
    means = np.add.reduceat(rate_by_second, starts) / np.diff(
        np.append(starts, rate_by_second.size)
    )
    scale = linear_scale(unit, means.tolist(), tick_count=2)
    places = [
        (float(at), scale.to_scale_unit(mean)) for at, mean in zip(starts, means, strict=True)
    ]
    line = Line(color=series_color_token(0), places=places)
    return Chart(
        subject=subject,
        title="Rate, second by second",
        finding=f"At most {value_text(float(means.max()), unit)} in {rate_by_second.size} s.",
        note="",
        plots=(
            Plot(CHART_HEIGHT, [line], seconds_axis(rate_by_second.size - 1, "seconds"), scale),
        ),
        table=Table("", (), ()),
    )


def newest_runs_table(results: Sequence[RunResult]) -> Table:
    """The runs that were measured last, the newest first."""
    newest = sorted(results, key=lambda result: (result.segment, result.order))[-NEWEST_MAX:]
    several = len({result.configuration for result in results}) > 1
    heads = text_and_number_columns(
        ("Run", *(("Configuration",) if several else ()), "Verdict"),
        ("Rate", "Bandwidth", "Latency mean", "p99"),
    )
    rows = tuple(
        row_of_cells(
            _run_name_with_bad_status(result),
            *((result.configuration,) if several else ()),
            result.verdict.level,
            *_run_metric_cells(result),
        )
        for result in reversed(newest)
    )
    return Table("The newest runs", heads, rows)


def _run_name_with_bad_status(result: RunResult) -> str:
    ended = "" if result.status is RunStatus.DONE else f" ({result.status.value})"
    return f"{result_run_name_text(result)}{ended}"


def _run_metric_cells(result: RunResult) -> tuple[Cell, ...]:
    """Rate, bandwidth, mean latency and p99, as far as the run has them."""
    keys = (operation_rate_metric_key(result) or "", "bw_bytes_per_s", "lat_ns_mean", "lat_ns_p99")
    return tuple(Cell(metric_value_text(result.metrics.get(key))) for key in keys)


def operation_rate_metric_key(result: RunResult) -> str | None:
    """The first known rate of a run that counts operations: of all, or else of one kind."""
    specs = (
        metric_spec(key)
        for key, metric in result.metrics.items()
        if metric.value is not None and is_known_metric(key)
    )
    rates = (spec for spec in specs if spec.combine is CombineRule.RATE and spec.unit != "bytes/s")
    return next((spec.key for spec in rates), None)


def _plan_progress(session: LoadedSession, now_ns: int) -> PlanProgress:
    plan, results = session.reader.plan, session.results
    running = session.session.status is SessionStatus.RUNNING
    done = {result.key for result in results if result.status is RunStatus.DONE}
    return PlanProgress(
        done_count=len(plan.runs) - plan.missing_run_count(done),
        planned_count=len(plan.runs),
        may_add_runs=bool(plan.extra_run_count),
        current_step=_current_run_text(plan, done) if running else "",
        fact_rows=_progress_time_rows(session, now_ns, is_running=running),
    )


def _current_run_text(plan: Plan, done_runs: set[tuple[str, int]]) -> str:
    """The first run of the plan that is not made: the one that is prepared or measured."""
    coming = [run for run in plan.runs if (run.point.digest, run.repeat) not in done_runs]
    if not coming:
        return "what results ask for"
    run = min(coming, key=lambda run: run.order)
    return run_name_text(run.point.workload, run.point.axis_values, run.repeat)


def _progress_time_rows(
    session: LoadedSession, now_ns: int, *, is_running: bool
) -> tuple[tuple[str, str], ...]:
    """Since when it runs, how long the plan takes at most, and when a run was last kept."""
    begun = session.reader.segment_starts_ns()
    facts = []
    if begun and is_running:
        facts.append(("running for", _duration_text(now_ns - begun[-1])))
    if is_running:
        facts.append(("planned for at most", format_duration_s(session.reader.plan.demand.seconds)))
    if session.results and is_running:
        facts.append(
            ("last run kept", f"{_duration_text(now_ns - session.stamp.newest_run_ns)} ago")
        )
    return tuple(facts)


def _duration_text(nanoseconds: int) -> str:
    return format_duration_s(max(0, round(nanoseconds / _NANOSECONDS)))


class WebPage(Record):
    """A page and the headers of its content."""

    body: bytes
    headers: Mapping[str, str]


class ConfigurationChoice(Record):
    """A side of a comparison of which a configuration is to be chosen."""

    side_name: str
    session_id: str
    session_title: str
    configurations: tuple[tuple[str, str], ...]
    chosen_configuration: str


def session_list_html(
    listing: SessionListing, search_text: str, root_label: str, version: str
) -> WebPage:
    """The sessions of a directory that have every one of the words, in any case; all without."""
    return _render_page(
        "list.html.j2",
        does_refresh=not listing.is_complete,
        listing=listing,
        lines=listing.lines_with_words(search_text),
        search_text=search_text,
        root_label=root_label,
        v=version,
    )


def live_session_html(page: LivePage, session_folder: SessionFolder) -> WebPage:
    """A session as it runs; it asks for itself again as long as it does."""
    running = page.status is SessionStatus.RUNNING
    return _render_page("live.html.j2", does_refresh=running, page=page, place=session_folder)


def report_in_progress_html(session_folder: SessionFolder) -> WebPage:
    """In place of a report that is being made."""
    return _render_page("making.html.j2", does_refresh=True, place=session_folder)


def comparison_html(page: ComparisonPage, allow_differences_url: str) -> WebPage:
    """A comparison, with the address of it with what forbids it allowed."""
    return _render_page("compare.html.j2", page=page, allow_differences_url=allow_differences_url)


def configuration_choice_html(choices: tuple[ConfigurationChoice, ...]) -> WebPage:
    """Which configurations are to be compared."""
    return _render_page("choose.html.j2", choices=choices)


def refusal_html(refusal: RequestRefusal) -> WebPage:
    """Why there is no page."""
    return _render_page("refusal.html.j2", refusal=refusal)


def with_report_navigation(report: bytes, session_folder: SessionFolder) -> bytes:
    """A report with the way back to the list above it."""
    return report.replace(_PAGE_TOP, _PAGE_TOP + _report_navigation_html(session_folder), 1)


def without_report_navigation(page: bytes, session_folder: SessionFolder) -> bytes:
    """The report as it was, of a page that `with_report_navigation` made."""
    return page.replace(_PAGE_TOP + _report_navigation_html(session_folder), _PAGE_TOP, 1)


def _report_navigation_html(session_folder: SessionFolder) -> bytes:
    return (
        _template_environment().get_template("above.html.j2").render(place=session_folder).encode()
    )


@cache
def report_csp() -> str:
    """The policy of a report: its one style sheet, its one script, and no frame around it."""
    return f"{report_policy(style_sheet(), report_script())}; frame-ancestors 'none'"


@cache
def _page_style() -> str:
    return style_sheet() + (_HERE / "serve.css").read_text(encoding="utf-8")


@cache
def _refresh_script() -> str:
    text = (_HERE / "refresh.js").read_text(encoding="utf-8")
    return text.replace("SECONDS", str(REFRESH_S))


def _render_page(template: str, *, does_refresh: bool = False, **content: object) -> WebPage:
    """A page under the policy that lets its own style, and its own script if it has one, in."""
    text = (
        _template_environment()
        .get_template(template)
        .render(
            style=Markup(_page_style()),  # noqa: S704 - ours, and its digest stands in the policy
            script=Markup(_refresh_script()) if does_refresh else "",  # noqa: S704 - the same
            refresh_s=REFRESH_S,
            **content,
        )
    )
    rules = [
        "default-src 'none'",
        f"style-src '{csp_hash_without_quotes(_page_style())}'",
        "img-src data:",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
    if does_refresh:
        rules += [
            f"script-src '{csp_hash_without_quotes(_refresh_script())}'",
            "connect-src 'self'",
        ]
    return WebPage(
        text.encode(), {"content-type": HTML, "content-security-policy": "; ".join(rules)}
    )


@cache
def _template_environment() -> Environment:
    environment = template_environment(_HERE / "templates")
    environment.globals["count"] = counted_noun
    environment.filters["time"] = utc_minute_text
    return environment
