"""The tables of a report: every result, and how it was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from iolab.analysis.differences import Area, Difference
from iolab.core.metric import Evidence, Level, Result, Verdict
from iolab.core.metric_spec import declared_among
from iolab.core.run import Plan
from iolab.core.study import IDLE_WATCH_S, Method, RunOrder, Study
from iolab.report.brief import Brief, Member, Sessions
from iolab.report.charts.series import DetailKey
from iolab.report.header import moment
from iolab.report.kinds import Kinds
from iolab.report.merged import asked_apart
from iolab.report.numbers import NOTHING, axis_names, count, listing, show, show_steadiness
from iolab.report.phrases import names_among_several, run_name
from iolab.report.table import Cell, Column, Table, columns, row, verdict_cell
from iolab.units import format_bytes, format_duration_s

SHOWN_METRICS: Final = (
    ("iops", "IOPS"),
    ("read_iops", "Read IOPS"),
    ("write_iops", "Write IOPS"),
    ("bw_bytes_per_s", "Bandwidth"),
    ("lat_ns_mean", "Latency mean"),
    ("lat_ns_p50", "p50"),
    ("lat_ns_p99", "p99"),
    ("lat_ns_p99_5", "p99.5"),
    ("lat_ns_p99_9", "p99.9"),
    ("lat_ns_p99_99", "p99.99"),
    ("lat_ns_max", "Max"),
)
"""The metrics of the results table and their headings."""

SERVICE_METRICS: Final = (
    ("service_lat_ns_mean", "Service mean"),
    ("service_lat_ns_p50", "Service p50"),
    ("service_lat_ns_p99", "Service p99"),
)
"""Those beside them where latency counts from when I/Os were due."""


ROWS_MOST: Final = 2000
"""Runs with a row of their own: each takes half a KiB, and nobody reads more. The last row says how
many more there are, and what lists them."""


def every_run(
    heading: str,
    study: Study,
    results: Sequence[Result],
    shown: Sequence[tuple[str, str]],
    anchors: Mapping[DetailKey, str],
    *,
    most: int = ROWS_MOST,
) -> Table:
    """Verdict, place and metrics of each run; `shown` are the metrics' keys and headings.

    `anchors` lead to what the report tells of a run. Of more than `most` runs those that are
    not valid come before others, and the last row tells of what is left out.
    """
    axes = axis_names(results)
    titles = names_among_several(study)
    steady = any(result.steadiness is not None for result in results)
    names = ("Workload", *(("Configuration",) if titles else ()))
    heads = (
        *columns((*names, "Verdict", *(("Steady",) if steady else ()))),
        *columns((), (*axes, "Repeat", *(name for _, name in shown), "Window")),
    )
    rows = tuple(
        (
            Cell(result.workload),
            *((Cell(titles.get(result.configuration, NOTHING)),) if titles else ()),
            verdict_cell(result.verdict.level, anchors.get((result.digest, result.repeat))),
            *((Cell(show_steadiness(result) or NOTHING),) if steady else ()),
            *(Cell(str(dict(result.axis).get(axis, NOTHING))) for axis in axes),
            Cell(str(result.repeat)),
            *(Cell(show(result.metrics.get(key), bare_rate=True)) for key, _ in shown),
            Cell(format_duration_s(result.window_s) if result.window_s else NOTHING),
        )
        for result in _listed(results, most)
    )
    hidden = len(results) - len(rows)
    if hidden:
        told = f"{count(hidden, 'more run')}: iolab export lists them all"
        rows = (*rows, (Cell(told), *[Cell("")] * (len(heads) - 1)))
    return Table(heading, heads, rows)


def _listed(results: Sequence[Result], most: int) -> list[Result]:
    """As many as get a row, in their order; what is not valid is never left out for what is."""
    if len(results) <= most:
        return list(results)
    ranked = sorted(results, key=lambda one: one.verdict.level is Level.VALID)[:most]
    kept = {(one.digest, one.repeat) for one in ranked}
    return [one for one in results if (one.digest, one.repeat) in kept]


def results_table(
    study: Study, results: Sequence[Result], anchors: Mapping[DetailKey, str]
) -> Table:
    """One row a run of I/O; `anchors` lead to what the report tells of it."""
    mixed = any(_value(one, "read_iops") and _value(one, "write_iops") for one in results)
    shown = [
        (key, heading)
        for key, heading in SHOWN_METRICS
        if mixed or key not in {"read_iops", "write_iops"}
    ]
    if any(key in result.metrics for result in results for key, _ in SERVICE_METRICS):
        shown += SERVICE_METRICS
    shown += declared_among(one.metrics for one in results)
    return every_run("Every run", study, results, shown, anchors)


def _value(result: Result, key: str) -> float | None:
    metric = result.metrics.get(key)
    return None if metric is None else metric.value


def hosts_table(result: Result) -> Table:
    """Each host's share of a run."""
    keys = [(key, heading) for key, heading in SHOWN_METRICS if "iops" not in key or key == "iops"]
    keys += declared_among(host.metrics for host in result.hosts)
    rows = tuple(
        (
            Cell(host.name),
            *(Cell(show(host.metrics.get(key), bare_rate=True)) for key, _ in keys),
            verdict_cell(result.verdict.level),
        )
        for host in result.hosts
    )
    heads = (*columns(("Host",), tuple(heading for _, heading in keys)), Column("Verdict"))
    return Table("Each host's share", heads, rows)


def checks_note(verdict: Verdict) -> str:
    """How many checks looked, and which of them do not object, in one line."""
    fine = f" No objection by {', '.join(verdict.satisfied)}." if verdict.satisfied else ""
    return f"{verdict.rests_on}{fine}"


def evidence_text(evidence: Evidence) -> str:
    """A check's evidence in one line: `name = value` with large numbers grouped."""
    return " · ".join(f"{name} = {_evidence_value(value)}" for name, value in evidence.items())


def _evidence_value(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def method_table(kinds: Kinds, study: Study, plan: Plan) -> Table:
    """How the study measures, one row a choice."""
    method = study.method
    order = (
        f"randomised within each repeat, seed {method.seed}"
        if method.order is RunOrder.RANDOMISED
        else "as written"
    )
    files = dict.fromkeys(
        f"{count(len(data_set.file_names()), 'file')} of "
        f"{format_bytes(data_set.bytes_per_host // len(data_set.file_names()))} on each host"
        for data_set in plan.data_sets
    )
    layout = ", ".join(files) or NOTHING
    has_files = any(kinds.making(one).lays_out_files for one in study.workloads)
    caches = "dropped before every run that reads" if method.drop_caches else "kept"
    rows = (
        row("Runs", f"{len(plan.runs)}: {len(plan.points)} points, repeats: {_repeats(study)}"),
        *_times(method),
        *(
            (row("Settle", f"{format_duration_s(method.settle_s)} of rest after each run"),)
            if method.settle_s
            else ()
        ),
        *_left_out(method),
        row("Order", order),
        row("Caches", caches),
        *((row("Files", layout),) if has_files else ()),
        row("Telemetry", f"every {study.telemetry.interval_ms / 1000:g} s"),
    )
    return Table("Method", columns(("What", "How")), rows)


def _repeats(study: Study) -> str:
    """The method's repeats, and the workloads that have their own number of them."""
    others = [
        f"{one.title}: {one.repeats}"
        for one in study.workloads
        if one.repeats and one.repeats != study.method.repeats
    ]
    return f"{study.method.repeats}{f' ({listing(others, TITLES_SHOWN)})' if others else ''}"


def _left_out(method: Method) -> Iterator[tuple[Cell, ...]]:
    """The looks before a run that are not made as usual."""
    if method.idle_watch_s != IDLE_WATCH_S:
        watch = f"{format_duration_s(method.idle_watch_s)} of the target's devices before each run"
        yield row("Idle watch", watch if method.idle_watch_s else "none")
    if not method.generator_limit:
        yield row("Generator limit", "not measured")


def _times(method: Method) -> tuple[tuple[Cell, ...], ...]:
    """How long a run is, and what of it does not count."""
    rule, kind = method.rule, method.kind.value
    if rule is None:
        return (
            row("Duration", f"{kind}: {format_duration_s(method.runtime_s)} measured"),
            row("Warm-up", f"{format_duration_s(method.warmup_s)} run before and left out"),
        )
    least_s, most_s = method.load_s
    length = f"{format_duration_s(least_s)} to {format_duration_s(most_s)}"
    return (
        row(
            "Duration", f"{kind}: {length}, until the mean is known to ±{100 * rule.precision:g} %"
        ),
        row("Warm-up", f"the transient that is found, at least {rule.cut_least_s} s, left out"),
    )


TITLES_SHOWN: Final = 8
"""Configurations named for a session; the others are counted."""

SAME: Final = "same"
"""What stands where a session does not differ from the first one."""


def session_tables(sessions: Sessions) -> tuple[Table, ...]:
    """What each session is, and in what they differ; none of a single session."""
    if not sessions.several:
        return ()
    return (_sessions_table(sessions.members), _differences_table(sessions))


def _sessions_table(members: Iterable[Member]) -> Table:
    texts = ("Session", "Measured (UTC)", "Study", "Scale", "Configurations", "Runs", "Status")
    rows = tuple(
        row(
            one.label,
            f"{moment(one.session.created_real_ns):%Y-%m-%d %H:%M}",
            one.study.id,
            one.study.scale,
            listing(list(one.titles), TITLES_SHOWN),
            _made(one),
            one.session.status.value,
            one.session.iolab_version,
            one.session.id,
        )
        for one in members
    )
    return Table("What each session is", columns((*texts, "iolab", "Id")), rows)


def _made(member: Member) -> str:
    made, planned = len(member.results), len(member.plan.runs)
    return str(made) if member.plan.runs_more else f"{made} of {planned}"


def _differences_table(sessions: Sessions) -> Table:
    """One row for each thing, one column for each session; what forbids comparing is marked."""
    rows: dict[tuple[Area, str], dict[str, list[Difference]]] = {}
    for apart in sessions.apart:
        for one in apart.differences:
            rows.setdefault((one.area, one.what), {}).setdefault(apart.label, []).append(one)
    labels = [one.label for one in sessions.members]
    heads = (Column("What"), *(Column(label) for label in labels))
    ordered = sorted(rows.items(), key=lambda item: not _forbids(item[1]))
    cells = tuple(
        row(
            f"! {what}" if _forbids(found) else what,
            _values(one.baseline for each in found.values() for one in each),
            *(_values(one.candidate for one in found.get(label, ())) for label in labels[1:]),
        )
        for (_, what), found in ordered
    )
    nothing = (row("Nothing", *([SAME] * len(labels))),)
    return Table("What differs between the sessions", heads, cells or nothing)


def _forbids(found: Mapping[str, Iterable[Difference]]) -> bool:
    return any(one.forbids for each in found.values() for one in each)


def _values(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts)) or SAME


def asked(brief: Brief) -> Study:
    """The study whose workloads are told: where sessions ask otherwise by one id, each as asked."""
    members = brief.sessions.members
    if not members:
        return brief.study
    workloads = asked_apart([one.label for one in members], [one.study for one in members])
    return replace(brief.study, workloads=workloads)


def methods_table(brief: Brief) -> Table:
    """How was measured: of several sessions a column for each, one where all did it alike."""
    members = brief.sessions.members
    if not members:
        return method_table(brief.kinds, brief.study, brief.plan)
    told = [_method(brief.kinds, one) for one in members]
    names = list(dict.fromkeys(name for one in told for name in one))
    rows = [[one.get(name, NOTHING) for one in told] for name in names]
    alike = all(len(set(texts)) == 1 for texts in rows)
    heads = ["How, in each session"] if alike else [one.label for one in members]
    cells = tuple(row(name, *texts[: len(heads)]) for name, texts in zip(names, rows, strict=True))
    return Table("Method", (Column("What"), *(Column(head) for head in heads)), cells)


def _method(kinds: Kinds, member: Member) -> dict[str, str]:
    cells = method_table(kinds, member.study, member.plan).rows
    return {what.text: how.text for what, how in cells}


def places_table(brief: Brief) -> Table | None:
    """Where every run is stored, for forms that have no part for each run; None of one session."""
    if not brief.sessions.several:
        return None
    rows = tuple(_place_row(brief, result) for result in brief.results)
    heads = columns(("Run", "Configuration", "Session", "Stored in"))
    return Table("Where every run is stored", heads, rows)


def _place_row(brief: Brief, result: Result) -> tuple[Cell, ...]:
    trace = brief.sessions.trace((result.digest, result.repeat))
    return row(run_name(result), result.configuration, trace.label, trace.place)


def trace_of(brief: Brief, result: Result) -> str:
    """Where a run is stored, in words: its session, its folder in that."""
    trace = brief.sessions.trace((result.digest, result.repeat))
    ids: Iterator[str] = (
        f"{one.label} ({one.session.id})"
        for one in brief.sessions.members
        if one.label == trace.label
    )
    return f"Session {next(ids, brief.session.id)}, {trace.place}"
