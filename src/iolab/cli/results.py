"""A session's results for the terminal: indicators, points, and what the verdicts rest on.

No number stands without its verdict. A point that was repeated has one row for what is published of
it, with its interval, and below it a row for each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.text import Text

from iolab.analyse.iterations import is_metadata
from iolab.analyse.key_value.summary import WHOLE_KEY, is_key_value, latency_key
from iolab.analyse.points import FIGURES, PointSummary, summarise
from iolab.cli.key_values import keys_screen
from iolab.cli.nodes import node_details
from iolab.cli.operations import operations_screen
from iolab.cli.point_rows import PointRow, point_order, point_rows, runs_of
from iolab.cli.screen import (
    QUIET_STYLE,
    Grouped,
    Heading,
    one_line,
    pairs,
    plain,
    run_name,
    table,
    title,
    verdict,
)
from iolab.model.metric import Metric, Result
from iolab.model.run import RunStatus
from iolab.model.study import Study
from iolab.model.workload import Indicator, Workload
from iolab.report.fleet import operation_spreads_table, spread_rows
from iolab.report.headline import per_host
from iolab.report.key_value.measures import main_operation
from iolab.report.objections import Objection, objections
from iolab.report.operations import host_rate_keys, split
from iolab.report.wording import axis_label, show

if TYPE_CHECKING:
    from rich.console import RenderableType

SENTENCES_MAX: Final = 1
"""Sentences of one objection that differ only by their values; --details shows them all."""

FAILURES_MAX: Final = 10
"""Failed runs told one by one; a session that fails throughout says the same each time."""

_UNTOLD: Final = {
    RunStatus.INTERRUPTED: "The session was stopped while it ran.",
    RunStatus.FAILED: "No reason was recorded.",
}
"""What is said of a run that ended without a reason of its own."""

_FIGURE: Final = {
    Indicator.IOPS: "iops",
    Indicator.BANDWIDTH: "bw_bytes_per_s",
    Indicator.LATENCY: "iops",
}
"""What is totalled over the hosts; of a latency workload, how many I/Os had that latency."""


_HOST_METRICS: Final = ("iops", "bw_bytes_per_s", "lat_ns_mean", "lat_ns_p99")
"""What tells a host that lags behind the others."""


@dataclass(frozen=True, slots=True)
class Notes:
    """The objections in the order in which they are printed, and the number of each, from 1."""

    objections: tuple[Objection, ...]

    def of(self, result: Result) -> tuple[int, ...]:
        """The numbers of the objections to one result."""
        made = {(check.level, check.code) for check in result.verdict.objections}
        return tuple(
            number
            for number, objection in enumerate(self.objections, start=1)
            if (objection.level, objection.code) in made
        )


def results_screen(
    study: Study, results: Sequence[Result], points: Sequence[PointSummary] | None = None
) -> Iterator[RenderableType]:
    """The tables of all results, the failures, and the objections behind the verdicts.

    `points` are those of the results, where the whole session has more than these.
    """
    notes = Notes(objections(results))
    io, metadata, keys = split(results)
    known = summarise(results, study) if points is None else points
    told = [point for point in known if not _of_operations(point)]
    of_keys = [point for point in known if is_key_value(runs_of(point)[0])]
    single = [point for point in told if not point.key.axis]
    swept = [point for point in told if point.key.axis]
    if single:
        yield _indicators(study, single, notes)
    if single and swept:
        yield ""
    if swept:
        yield _points(study, swept, notes)
    if io and metadata:
        yield ""
    if metadata:
        yield from operations_screen(study, metadata, notes.of)
    if keys:
        yield from [""] if io or metadata else []
        ordered = sorted(of_keys, key=point_order)
        yield from keys_screen(study, ordered, lambda point: point_rows(point, notes.of))
    yield from _failures(results)
    yield from _objections(notes)


def details_screen(results: Sequence[Result]) -> Iterator[RenderableType]:
    """Every result in full: all metrics, each host, every check with its evidence."""
    for result in results:
        yield ""
        name = run_name(result.workload, result.axis, result.repeat)
        heading = title(f"{result.configuration}: {name}")
        heading.append(f"  {result.status.value}  ", style=QUIET_STYLE)
        heading.append_text(verdict(result.verdict.level))
        yield heading
        yield plain(f"points/{result.digest}/run-{result.repeat}", QUIET_STYLE)
        yield pairs(_known(result.metrics))
        if len(result.hosts) > 1:
            yield from _hosts(result)
        yield from node_details(result)
        yield _checks(result)


def _known(metrics: Mapping[str, Metric]) -> list[tuple[str, Text | str]]:
    """Every metric that has a value, with its interval where one is known."""
    return [
        (key, _with_interval(metric)) for key, metric in metrics.items() if metric.value is not None
    ]


def _of_operations(point: PointSummary) -> bool:
    """Whether a point is told by its operations, in a table of its own."""
    run = runs_of(point)[0]
    return is_metadata(run) or is_key_value(run)


def _hosts(result: Result) -> Iterator[RenderableType]:
    """Each host's share."""
    keys: Sequence[str] = _HOST_METRICS
    if is_metadata(result):
        keys = host_rate_keys(result)
    elif is_key_value(result):
        main = main_operation([result.metrics])
        keys = (WHOLE_KEY, *(latency_key(main, name) for name in ("mean", "p99")))
    rows: list[list[Text | str]] = [
        [plain(host.name), *(show(host.metrics.get(key)) for key in keys)] for host in result.hosts
    ]
    headings = [Heading(key, number=True) for key in keys]
    yield table([Heading("host", main=True), *headings], rows)
    if result.spread is not None:
        yield pairs([(name, plain(value)) for name, value in spread_rows(result.spread)])
    if result.operation_spreads:
        alike = operation_spreads_table(result.operation_spreads)
        yield table(
            [Heading(column.title.lower(), number=column.number) for column in alike.columns],
            [[plain(cell.text) for cell in cells] for cells in alike.rows],
        )


def _checks(result: Result) -> RenderableType:
    """Every check with what it says, and under it the evidence."""
    rows: list[list[Text | str]] = []
    for check in result.verdict.checks:
        evidence = ", ".join(f"{name}={_brief(value)}" for name, value in check.evidence.items())
        rows.append([verdict(check.level), plain(check.code), plain(check.says)])
        if evidence:
            rows.append(["", "", plain(evidence, QUIET_STYLE)])
    return table([Heading("level"), Heading("check"), Heading("says", main=True)], rows)


def _brief(value: float | str | None) -> str:
    """A piece of evidence; digits beyond the sixth are noise (the manifest has them all)."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _indicators(study: Study, points: Sequence[PointSummary], notes: Notes) -> RenderableType:
    """For each indicator the total, its interval, the mean per host, the latency, the verdict."""
    workloads = {workload.id: workload for workload in study.workloads}
    many = len(study.configurations) > 1
    repeated = any(len(runs_of(point)) > 1 for point in points)
    headings = [
        Heading("indicator", main=True),
        *([Heading("configuration", main=True)] if many else []),
        Heading("total", number=True),
        *([Heading("95 %\ninterval")] if repeated else []),
        Heading("mean\nper host", number=True),
        Heading("latency\nmean", number=True),
        Heading("latency\n99.5th", number=True),
        Heading("verdict"),
    ]
    rows: list[list[Text | str]] = []
    for point in points:
        workload = workloads[point.key.workload]
        for row in point_rows(point, notes.of):
            latency = workload.indicator is Indicator.LATENCY
            total = row.metrics.get(_FIGURE[workload.indicator])
            mean, tail = row.metrics.get("lat_ns_mean"), row.metrics.get("lat_ns_p99_5")
            rows.append(
                [
                    plain(f"{workload.title}{row.suffix}", row.style),
                    *([plain(point.key.configuration, row.style)] if many else []),
                    _figure(show(total), main=not latency and not row.style),
                    *([row.interval(FIGURES[workload.indicator])] if repeated else []),
                    show(None if total is None else per_host(total, runs_of(point)[0])),
                    _figure(show(mean), main=latency and not row.style),
                    _figure(show(tail), main=latency and not row.style),
                    row.verdict,
                ]
            )
    return table(headings, rows)


def _points(study: Study, points: Sequence[PointSummary], notes: Notes) -> RenderableType:
    """A row a point, and one for each of its runs, under a line for workload and configuration."""
    titles = {workload.id: workload.title for workload in study.workloads}
    keys = {
        workload.id: FIGURES[workload.indicator] for workload in study.workloads if _io(workload)
    }
    many = len(study.configurations) > 1
    repeated = any(len(runs_of(point)) > 1 for point in points)
    headings = [Heading("point", main=True), Heading("IOPS", number=True)]
    headings += [Heading("bandwidth", number=True, spare=True)]
    headings += [Heading("95 % interval")] if repeated else []
    headings += [Heading(name, number=True) for name in ("mean", "p99")]
    headings += [Heading("p99.9", number=True, spare=True)]
    grouped: dict[tuple[str, str], list[PointSummary]] = {}
    for point in points:
        grouped.setdefault((point.key.configuration, point.key.workload), []).append(point)
    groups = []
    for (configuration, workload), group in grouped.items():
        name = f"{configuration}: {titles[workload]}" if many else titles[workload]
        rows = [
            _point_row(point, row, keys[workload] if repeated else None)
            for point in sorted(group, key=point_order)
            for row in point_rows(point, notes.of)
        ]
        groups.append((title(name), rows))
    return Grouped([*headings, Heading("verdict", main=True)], groups)


def _io(workload: Workload) -> bool:
    return workload.indicator in FIGURES


def _point_row(point: PointSummary, row: PointRow, key: str | None) -> list[Text | str]:
    """The row's cells; `key` is the metric whose interval is shown, None for no such column."""
    metrics = row.metrics
    return [
        plain(f"  {axis_label(point.key.axis)}{row.suffix}", row.style),
        show(metrics.get("iops"), bare_rate=True),
        show(metrics.get("bw_bytes_per_s")),
        *([row.interval(key)] if key else []),
        show(metrics.get("lat_ns_mean")),
        show(metrics.get("lat_ns_p99")),
        show(metrics.get("lat_ns_p99_9")),
        row.verdict,
    ]


def _figure(text: str, *, main: bool) -> Text:
    """A figure; the workload's own headline stands out."""
    return Text(text, style="bold" if main else "")


def _with_interval(metric: Metric) -> str:
    text = show(metric)
    if metric.low is not None and metric.high is not None:
        low, high = Metric(metric.low, metric.unit), Metric(metric.high, metric.unit)
        text += f" ({show(low)} to {show(high)}, n = {metric.n})"
    return text


def _failures(results: Sequence[Result]) -> Iterator[RenderableType]:
    bad = [result for result in results if result.status is not RunStatus.DONE]
    if not bad:
        return
    yield ""
    yield title("Runs that did not end well")
    for result in bad[:FAILURES_MAX]:
        why = one_line(result.failure or _UNTOLD[result.status])
        name = run_name(result.workload, result.axis, result.repeat)
        yield plain(f"  {name}: {result.status.value}. {why}")
    if len(bad) > FAILURES_MAX:
        yield plain(f"  and {len(bad) - FAILURES_MAX} more")


def _objections(notes: Notes) -> Iterator[RenderableType]:
    if not notes.objections:
        return
    yield ""
    yield title("What the verdicts rest on")
    for number, objection in enumerate(notes.objections, start=1):
        count = len(objection.runs)
        line = Text(f"{number:>3}  ")
        line.append_text(verdict(objection.level))
        line.append(f"  {objection.code}", style="bold")
        line.append(
            "  all runs" if objection.everywhere else f"  {count} of {objection.total} runs"
        )
        yield line
        for sentence in _sentences(objection):
            yield _indented(sentence)
        yield _indented(f"see docs/reference/checks/{objection.code}.md", QUIET_STYLE)


def _sentences(objection: Objection) -> Iterator[str]:
    """What the check says, each sentence once, at most a few."""
    said: Mapping[str, None] = dict.fromkeys(
        check.says
        for result in objection.runs
        for check in result.verdict.objections
        if (check.level, check.code) == (objection.level, objection.code)
    )
    yield from list(said)[:SENTENCES_MAX]
    if len(said) > SENTENCES_MAX:
        yield f"(and {len(said) - SENTENCES_MAX} with other values; --details shows them all)"


def _indented(text: str, style: str = "") -> RenderableType:
    from rich.padding import Padding

    return Padding(plain(text, style), (0, 0, 0, 5))
