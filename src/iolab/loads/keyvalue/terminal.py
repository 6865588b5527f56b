"""Runs on key-value stores for the terminal: operations a second, latencies, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.text import Text

from iolab.analysis.points import PointSummary
from iolab.core.metric import Metric
from iolab.core.study import Study
from iolab.loads.keyvalue.charts import Largest, interval_text, key_gains, largest_gains, share_text
from iolab.loads.keyvalue.metrics import WHOLE_KEY
from iolab.loads.keyvalue.tables import (
    PERCENTILES,
    PointGroup,
    groups_in,
    highest_known,
    main_operation,
    tail_name,
    timed,
    value_of,
)
from iolab.loads.keyvalue.workload import KeyOperation
from iolab.report.numbers import axis_label, show
from iolab.report.terminal import QUIET_STYLE, Grouped, Heading, plain, title, verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.report.terminal import PointRow

_WRITER_RATE: Final = KeyOperation.WRITE.rate_key
"""Writes of db_bench have a rate of their own; of a mix it follows from the whole."""

_TAILS: Final = ("p99", "p99_9", "p99_99")
"""Percentiles that are told where any point has them."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """A column of numbers by its metric."""

    key: str
    heading: Heading


def keys_screen(
    study: Study,
    points: Sequence[PointSummary],
    rows_of: Callable[[PointSummary], Iterator[PointRow]],
) -> Iterator[RenderableType]:
    """A row a point, and one for each of its runs, under a line for what makes them alike.

    `rows_of` gives a point's rows.
    """
    found = groups_in(study, points)
    if not found:
        return
    repeated = any(len(p.runs) > 1 for group in found for p in group.points)
    shown = _columns(found)
    headings = [Heading("point", main=True), Heading("ops/s", number=True)]
    headings += [Heading("95 %", number=True)] if repeated else []
    headings += [one.heading for one in shown]
    several = len(study.configurations) > 1
    groups = []
    for group in found:
        for configuration in dict.fromkeys(point.key.configuration for point in group.points):
            name = f"{configuration}: {group.title}" if several else group.title
            rows = [
                _row(group, point, row, shown, repeated=repeated)
                for point in group.points
                if point.key.configuration == configuration
                for row in rows_of(point)
            ]
            groups.append((title(name), rows))
    yield Grouped([*headings, Heading("verdict", main=True)], groups)
    if any(one.key.startswith("intended_") for one in shown):
        yield plain("due: since the rate wanted the operation sent, not since it was", QUIET_STYLE)
    yield from _gains(study, found)


def _gains(study: Study, groups: Sequence[PointGroup]) -> Iterator[RenderableType]:
    """The largest gain of each group and metric over the first configuration."""
    found = key_gains(study, groups)
    if not found:
        return
    titles = {configuration.id: configuration.title for configuration in study.configurations}
    headings = [Heading("largest gain", main=True), Heading("", number=True)]
    headings += [Heading("95 % interval"), Heading("at"), Heading("says")]
    made: dict[str, list[list[Text | str]]] = {}
    for one in largest_gains(groups, found):
        name = f"{titles[one.candidate]}: {one.group.title}" if len(found) > 1 else one.group.title
        made.setdefault(name, []).append(_gain_row(one))
    yield ""
    baseline = titles[found[0].baseline]
    one_of_two = f"{titles[found[0].candidate]} against {baseline}"
    yield title(one_of_two if len(found) == 1 else f"Against {baseline}")
    gain_groups = [(plain(name), rows) for name, rows in made.items()]
    yield Grouped([*headings, Heading("verdict", main=True)], gain_groups)
    yield plain(
        "each interval holds for all cells of its group; less latency is a gain", QUIET_STYLE
    )


def _gain_row(largest: Largest) -> list[Text | str]:
    if largest.best is None:
        return [plain(f"  {largest.words}"), "none", *[""] * 4]
    gain = largest.best.gain
    return [
        plain(f"  {largest.words}"),
        Text(share_text(gain.share), style="bold"),
        interval_text(largest.best.low, largest.best.high),
        plain(largest.at),
        gain.comparison.verdict.value,
        verdict(gain.level),
    ]


def _columns(groups: Sequence[PointGroup]) -> list[_Shown]:
    """Mean and published percentile of the main operation; more where there is room."""
    metrics: list[Mapping[str, Metric]] = [p.metrics for group in groups for p in group.points]
    published = {tail_name(group.workload.job) for group in groups}
    main = main_operation(metrics)
    found = [_Shown(main.latency_key("mean"), Heading(f"{main.word} mean", number=True))]
    named = {name for name in _TAILS if _is_known(metrics, main.latency_key(name))}
    named |= published if named else {*published, highest_known(metrics, main)}
    found += [
        _Shown(main.latency_key(name), Heading(word, number=True, spare=name not in published))
        for name, word in PERCENTILES
        if name in named
    ]
    if _is_known(metrics, _WRITER_RATE):
        found.append(_Shown(_WRITER_RATE, Heading("writes/s", number=True, spare=True)))
    for one in timed(metrics):
        is_due = one is main.intended
        word = "due" if is_due else one.word
        names = ("mean", "p99") if is_due else ("p99",)
        if one is main or (one.is_intended and not is_due):
            continue
        found += [
            _Shown(one.latency_key(name), Heading(f"{word} {name}", number=True, spare=not is_due))
            for name in names
            if _is_known(metrics, one.latency_key(name))
        ]
    return found


def _is_known(metrics: Sequence[Mapping[str, Metric]], key: str) -> bool:
    return any(value_of(metric, key) is not None for metric in metrics)


def _row(
    group: PointGroup,
    point: PointSummary,
    row: PointRow,
    shown: Sequence[_Shown],
    *,
    repeated: bool,
) -> list[Text | str]:
    own = tuple(pair for pair in point.key.axis if pair not in group.others)
    name = axis_label(own) or "all"
    return [
        plain(f"   {row.suffix}" if row.of_run else f"  {name}{row.suffix}", row.style),
        Text(show(row.metrics.get(WHOLE_KEY), bare_rate=True), style="" if row.of_run else "bold"),
        *([row.spread(WHOLE_KEY)] if repeated else []),
        *(show(row.metrics.get(one.key), bare_rate=True) for one in shown),
        row.verdict,
    ]
