"""A workload on a key-value store on the page: its cards, its charts, what was measured beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from iolab.analyse.gains import Gains
from iolab.analyse.key_value.summary import KEY_PERCENTILES, WHOLE_KEY, latency_key
from iolab.analyse.percentiles import ios_needed
from iolab.analyse.points import PointSummary
from iolab.model.key_value import KeyOperation
from iolab.model.metric import Result
from iolab.model.study import Study
from iolab.report.detail import RunKey
from iolab.report.figures.axis import (
    Line,
    Quantity,
    finding_of,
    latency_figure,
    rate_of,
    throughput_figure,
)
from iolab.report.figures.bars import bars_figure
from iolab.report.figures.choose import Look
from iolab.report.figures.frame import Figure
from iolab.report.figures.tradeoff import tradeoff_figure
from iolab.report.headline import Headline, PointFigures
from iolab.report.key_value.evidence import Hosts, device_table, store_table
from iolab.report.key_value.gains import (
    GAIN_NOTE,
    gain_sentence,
    gains_table,
    named_bar,
    skipped_note,
    within,
)
from iolab.report.key_value.groups import Group, group_headlines
from iolab.report.key_value.measures import (
    WORDS,
    drawn_tail,
    known_latencies,
    main_operation,
    plural,
    tail_name,
    timed,
    value_of,
)
from iolab.report.key_value.tables import apart_table, bounds_table, due_table
from iolab.report.page_parts import Card, ChartGroup, Entry
from iolab.report.table import Table
from iolab.report.wording import NOTHING, axis_label, count, show, show_interval

UNIT: Final = "ops/s"

_SERVICE_NOTE: Final = (
    "Service: from when an operation was sent. Since due: from when the rate wanted it sent, so "
    "that what had to wait counts."
)
_BOUNDS_NOTE: Final = (
    "db_bench counts latencies of the whole run, warm-up included, in bins of its own that are up "
    "to half as wide as they are high; nothing finer was recorded. A percentile elsewhere is read "
    "off a straight line through its bin, as db_bench prints it."
)
_DEVICE_NOTE: Final = (
    "Counted by the kernel over the whole run, warm-up included, for the target’s own device."
)
_STORE_NOTE: Final = (
    "Counted by RocksDB itself over the whole run, warm-up included; its percentiles are read off "
    "straight lines through wide bins. Writes of 80/20 and other mixed threads are among them."
)


def key_cards(
    groups: Sequence[Group], study: Study, looks: Mapping[str, Look], anchors: Mapping[RunKey, str]
) -> tuple[Card, ...]:
    """A card for each group: the most operations a second of each configuration."""
    cards = []
    for group in groups:
        named = len(study.configurations) > 1
        entries = tuple(
            _entry(headline, group, looks, anchors, named=named)
            for headline in group_headlines(group, study)
        )
        cards.append(Card(group.title, entries))
    return tuple(cards)


def _entry(
    headline: Headline,
    group: Group,
    looks: Mapping[str, Look],
    anchors: Mapping[RunKey, str],
    *,
    named: bool,
) -> Entry:
    look = looks[headline.configuration.id]
    name, best = look.title if named else "", headline.best
    if best is None:
        return Entry(name, look.token.css, "not measured", "", None, None, ())
    number = show(best.figure, bare_rate=True)
    anchor = anchors.get((best.shown.digest, best.shown.repeat))
    rows = tuple(_card_rows(best, headline, group))
    return Entry(name, look.token.css, number, UNIT, best.level, anchor, rows)


def _card_rows(best: PointFigures, headline: Headline, group: Group) -> Iterator[tuple[str, str]]:
    interval = show_interval(best.figure, bare_rate=True)
    if best.figure.n != 1 and interval:
        yield "95 % interval", interval
    own = tuple(pair for pair in best.shown.axis if pair[0] == group.axis)
    if own:
        of = f" (best of {headline.compared})" if headline.compared > 1 else ""
        yield f"at{of}", axis_label(own)
    if best.host_count > 1:
        yield f"mean per host ({best.host_count})", show(best.per_host)
    metrics = next(p.metrics for p in group.points if p.digest == best.shown.digest)
    main = main_operation([metrics])
    tail = drawn_tail(group.workload.job, [metrics], main)
    yield from known_latencies(metrics, main, ("mean", tail))
    for one in timed([metrics]):
        if one is not main and not one.is_intended:
            yield from known_latencies(metrics, one, ("mean",))


def key_charts(
    group: Group, study: Study, told: Hosts, looks: Mapping[str, Look], found: Sequence[Gains]
) -> ChartGroup | None:
    """The group's charts, and under them what each operation took and what devices did."""
    if not any(value_of(point.metrics, WHOLE_KEY) is not None for point in group.points):
        return None
    own = within(found, group)
    figures = tuple(_figures(group, looks, own)) if group.axis else ()
    tables = (*_gains(group, looks, own), *_tables(group, study, told, looks))
    return ChartGroup(group.title, figures, more=tables)


def _gains(
    group: Group, looks: Mapping[str, Look], found: Sequence[Gains]
) -> Iterator[tuple[Table, str]]:
    table = gains_table(found, group, looks)
    if table is not None:
        yield table, f"{GAIN_NOTE}{skipped_note(found)}"


def lines_of(group: Group, looks: Mapping[str, Look]) -> list[Line]:
    """One line a configuration, in the order in which they were measured."""
    found: dict[str, list[PointSummary]] = {}
    for point in group.points:
        found.setdefault(point.key.configuration, []).append(point)
    return [
        Line(looks[name].title, looks[name].token, (), tuple(points))
        for name, points in found.items()
    ]


def _figures(group: Group, looks: Mapping[str, Look], found: Sequence[Gains]) -> Iterator[Figure]:
    lines, axis = lines_of(group, looks), group.axis
    metrics = [point.metrics for point in group.points]
    rate = rate_of(group.workload.indicator)
    if len(lines) > 1:
        named = named_bar(found, group, looks)
        figure = bars_figure(group.title, axis, lines, rate, UNIT, named)
        yield replace(figure, finding=figure.finding + gain_sentence(found, group, looks))
    else:
        yield throughput_figure(group.workload, axis, lines)
    main = main_operation(metrics)
    operations = [one for one in timed(metrics) if not one.is_intended]
    if main in operations:
        yield from _tradeoffs(group, lines, main)
    for one in operations:
        if one is not main:
            tail = drawn_tail(group.workload.job, metrics, one)
            pair = (_latency(one, "mean"), _latency(one, tail))
            yield latency_figure(group.title, axis, lines, *pair)
    due = main.intended
    if due is not None and due in timed(metrics):
        yield _due_figure(group, lines, main, due)


def _tradeoffs(group: Group, lines: Sequence[Line], main: KeyOperation) -> Iterator[Figure]:
    """Latency against performance: both latencies in one chart, or of several lines one each."""
    metrics = [point.metrics for point in group.points]
    tail = drawn_tail(group.workload.job, metrics, main)
    pair = (_latency(main, "mean"), _latency(main, tail, alone=len(lines) > 1))
    rate, note = rate_of(group.workload.indicator), _wanted(group, main, tail)
    for part in (pair,) if len(lines) == 1 else tuple((one,) for one in pair):
        yield tradeoff_figure(
            group.title,
            group.axis,
            lines,
            rate,
            UNIT,
            part,
            note=note if pair[1] in part else "",
        )


def _wanted(group: Group, main: KeyOperation, tail: str) -> str:
    """Why the percentile that the field publishes is not drawn; empty where it is."""
    wanted = tail_name(group.workload.job)
    if wanted == tail:
        return ""
    key, total = latency_key(main, wanted), len(group.points)
    known = sum(value_of(point.metrics, key) is not None for point in group.points)
    needed = ios_needed(dict(KEY_PERCENTILES)[wanted])
    return (
        f"{WORDS[wanted]} is known of {known} of {count(total, 'point')}: "
        f"it takes {needed:,} {plural(main).lower()}."
    )


def _due_figure(
    group: Group, lines: Sequence[Line], main: KeyOperation, due: KeyOperation
) -> Figure:
    """The published percentile of service, and that since an operation was due."""
    tail = drawn_tail(group.workload.job, [point.metrics for point in group.points], due)
    word = f"{main.word} {WORDS[tail]}"
    service = Quantity(latency_key(main, tail), f"{word} of service", "service")
    since = Quantity(latency_key(due, tail), "since due", "since due")
    figure = latency_figure(group.title, group.axis, lines, service, since)
    told = finding_of(group.axis, lines, since)
    return replace(figure, finding=f"Of service: {figure.finding} Since due: {told}")


def _latency(operation: KeyOperation, name: str, *, alone: bool = False) -> Quantity:
    word = WORDS[name]
    told = f"{operation.word} {word}" if name == "mean" or alone else word
    return Quantity(latency_key(operation, name), told, word)


def _tables(
    group: Group, study: Study, hosts: Hosts, looks: Mapping[str, Look]
) -> Iterator[tuple[Table, str]]:
    """What stands under a group's charts, with a note each."""
    several = len(study.configurations) > 1
    points = group.points

    def name(point: PointSummary) -> str:
        own = tuple(pair for pair in point.key.axis if pair not in group.others)
        title = looks[point.key.configuration].title if several else ""
        return ", ".join(part for part in (title, axis_label(own)) if part) or NOTHING

    yield apart_table(points, name), ""
    due = due_table(points, name)
    if due is not None:
        yield due, _SERVICE_NOTE
    bounds = bounds_table(points, name)
    if bounds is not None:
        yield bounds, _BOUNDS_NOTE
    named = [(name(point), _shown(point)) for point in points]
    device = device_table(named, hosts)
    if device is not None:
        yield device, _DEVICE_NOTE
    told = store_table(named, hosts.runs)
    if told is not None:
        yield told, _STORE_NOTE


def _shown(point: PointSummary) -> Result:
    """The run that stands for a point."""
    return (point.results or point.left_out)[0]
