"""A session's results for the terminal: indicators, points, and what the verdicts rest on.

No number stands without its verdict, and repeats stay apart: percentiles are never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.text import Text

from iolab.analyse.iterations import is_metadata
from iolab.cli.operations import HOST_OPERATIONS, operations_screen
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
from iolab.report.fleet import spread_rows
from iolab.report.objections import Objection, objections
from iolab.report.operations import split
from iolab.report.wording import axis_label, axis_number, show

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


def results_screen(study: Study, results: Sequence[Result]) -> Iterator[RenderableType]:
    """The tables of all results, the failures, and the objections behind the verdicts."""
    notes = Notes(objections(results))
    io, metadata = split(results)
    single = [result for result in io if not result.axis]
    swept = [result for result in io if result.axis]
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
        yield pairs(_known(result.metrics))
        if len(result.hosts) > 1:
            yield from _hosts(result)
        yield _checks(result)


def _known(metrics: Mapping[str, Metric]) -> list[tuple[str, Text | str]]:
    """Every metric that has a value, with its interval where one is known."""
    return [
        (key, _with_interval(metric)) for key, metric in metrics.items() if metric.value is not None
    ]


def _hosts(result: Result) -> Iterator[RenderableType]:
    """Each host's share."""
    keys = HOST_OPERATIONS if is_metadata(result) else _HOST_METRICS
    rows: list[list[Text | str]] = [
        [plain(host.name), *(show(host.metrics.get(key)) for key in keys)] for host in result.hosts
    ]
    headings = [Heading(key, number=True) for key in keys]
    yield table([Heading("host", main=True), *headings], rows)
    if result.spread is not None:
        yield pairs([(name, plain(value)) for name, value in spread_rows(result.spread)])


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


def _indicators(study: Study, results: Sequence[Result], notes: Notes) -> RenderableType:
    """For each indicator the total, the mean per host, the latency and the verdict."""
    workloads = {workload.id: workload for workload in study.workloads}
    many = len(study.configurations) > 1
    headings = [
        Heading("indicator", main=True),
        *([Heading("configuration", main=True)] if many else []),
        Heading("total", number=True),
        Heading("mean\nper host", number=True),
        Heading("latency\nmean", number=True),
        Heading("latency\n99.5th", number=True),
        Heading("verdict"),
    ]
    rows: list[list[Text | str]] = []
    for result in results:
        workload = workloads[result.workload]
        key = _FIGURE[workload.indicator]
        mean, tail = result.metrics.get("lat_ns_mean"), result.metrics.get("lat_ns_p99_5")
        latency = workload.indicator is Indicator.LATENCY
        rows.append(
            [
                plain(_name(workload, result)),
                *([plain(result.configuration)] if many else []),
                _figure(show(result.metrics.get(key)), main=not latency),
                show(mean_per_host(result, key)),
                _figure(show(mean), main=latency),
                _figure(show(tail), main=latency),
                verdict(result.verdict.level, notes.of(result)),
            ]
        )
    return table(headings, rows)


def _points(study: Study, results: Sequence[Result], notes: Notes) -> RenderableType:
    """A row a run under a line for its workload and configuration."""
    headings = [
        Heading("point", main=True),
        Heading("IOPS", number=True),
        Heading("bandwidth", number=True),
        Heading("mean", number=True),
        Heading("p99", number=True),
        Heading("p99.9", number=True),
        Heading("verdict"),
    ]
    titles = {workload.id: workload.title for workload in study.workloads}
    many = len(study.configurations) > 1
    grouped: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        grouped.setdefault((result.configuration, result.workload), []).append(result)
    groups = []
    for (configuration, workload), group in grouped.items():
        name = f"{configuration}: {titles[workload]}" if many else titles[workload]
        rows = [_point_row(result, notes) for result in sorted(group, key=_point_order)]
        groups.append((title(name), rows))
    return Grouped(headings, groups)


def _point_row(result: Result, notes: Notes) -> list[Text | str]:
    metrics = result.metrics
    repeat = f" #{result.repeat}" if result.repeat > 1 else ""
    return [
        plain(f"  {axis_label(result.axis)}{repeat}"),
        show(metrics.get("iops"), bare_rate=True),
        show(metrics.get("bw_bytes_per_s")),
        show(metrics.get("lat_ns_mean")),
        show(metrics.get("lat_ns_p99")),
        show(metrics.get("lat_ns_p99_9")),
        verdict(result.verdict.level, notes.of(result)),
    ]


def _point_order(result: Result) -> tuple[object, ...]:
    """Along the axes, numbers by size: a randomised plan still reads as a curve."""
    values = []
    for name, value in result.axis:
        number = axis_number(name, value)
        values.append((number is None, number or 0.0, str(value)))
    return (*values, result.repeat)


def mean_per_host(result: Result, key: str) -> Metric:
    """The mean over the hosts of their own figure."""
    found = [host.metrics[key] for host in result.hosts if key in host.metrics]
    values = [metric.value for metric in found if metric.value is not None]
    if not values:
        return Metric(None, "")
    return Metric(math.fsum(values) / len(values), found[0].unit)


def _name(workload: Workload, result: Result) -> str:
    return workload.title if result.repeat == 1 else f"{workload.title} #{result.repeat}"


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
