"""The best of every workload and configuration, and one client beside its fleet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from iolab.analysis.quotients import (
    BestValue,
    FleetAndSingleClient,
    fleets_with_single_client,
    improvement_over,
    mean_rate_per_host,
)
from iolab.core.configuration import Configuration
from iolab.core.metric import Metric, worst_verdict_level
from iolab.core.metric_spec import BetterDirection, common_metric_label
from iolab.core.run import RunKey
from iolab.core.workload import HOSTS_AXIS
from iolab.record import Record
from iolab.report.best import BestPointHeadline, is_replicated_comparison
from iolab.report.charts.chart import ChartGroup, ReportSection
from iolab.report.charts.rows import Dot, DotRow, charts_by_unit, dot_chart, rows_by_key
from iolab.report.charts.run import metric_value_by_host
from iolab.report.charts.series import RunAnchors
from iolab.report.numbers import (
    DASH,
    axis_name_text,
    axis_values_text,
    factor_with_interval_text,
    metric_value_text,
    quotient_interval_text,
    value_text,
)
from iolab.report.table import (
    Cell,
    Table,
    row_of_cells,
    table_without_empty_columns,
    text_and_number_columns,
    verdict_cell,
)
from iolab.stats.comparison import inverted_comparison
from iolab.text import counted_noun, escape_invisible, percent_text

if TYPE_CHECKING:
    from iolab.analysis.pairs import GainsByPair
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import Chart, SeriesStyles

ANCHOR: Final = "maxima"

_SECTION_INTRODUCTION: Final = (
    "Each figure is the best of all points of its workload that are not invalid, with the place "
    "where it was reached; an invalid one stands only where there is no other."
)
_FACTORS_NOTE: Final = (
    " Factors compare bests, wherever each was reached: at one load by repeats in pairs, as "
    "everywhere; else their intervals reach as far as both intervals allow. The best of many "
    "points is a little better than it would be again."
)
_CLIENTS_NOTE: Final = (
    "A mean of hosts is the total over their number; the slowest and the fastest are those of the "
    "median run. One client alone is the best of all points with one host, or else a configuration "
    "that differs in its hosts alone."
)

PRINTED_VERDICT: Final = "printed"
"""What stands in place of a verdict where others published a figure."""

STATEMENTS_SHOWN: Final = 6
"""Statements in a chart's sentence; the others stand in its table."""

DIFFERING_LOADS_SHOWN: Final = 2
"""Workloads named whose best figures are at unlike loads; of more the table has all."""

FACTOR_HEADING: Final = "Times"
"""How the heading of factors over the first configuration begins."""


def maxima_section(brief: Brief) -> ReportSection | None:
    """The best figures of every workload; None where none has one."""
    figures_with_hosts = best_figures_with_hosts(brief)
    if not figures_with_hosts:
        return None
    anchors, styles = brief.run_anchors, brief.series_styles
    owners = brief.study.configurations
    table = maxima_table(owners, figures_with_hosts, anchors, brief.gains_by_pair)
    figures = charts_by_unit(
        figures_with_hosts,
        lambda figure: figure.best_value.value.unit,
        partial(_maxima_chart, brief),
    )
    groups = [ChartGroup("", figures, table, _maxima_note(table))]
    alone = single_host_best_values(brief)
    pairs = fleets_with_single_client(
        owners, [figure.best_value for figure in figures_with_hosts], alone
    )
    clients = fleet_and_client_table(owners, figures_with_hosts, pairs, anchors)
    if clients is not None:
        draw = partial(_client_and_fleet_chart, styles, clients)
        drawn = charts_by_unit(pairs, lambda pair: pair.fleet.value.unit, draw)
        groups.append(ChartGroup(clients.title, drawn, clients, _CLIENTS_NOTE))
    return ReportSection(ANCHOR, "Best figures", _SECTION_INTRODUCTION, tuple(groups))


def _maxima_note(table: Table) -> str:
    note = "An interval is of 95 %, over the runs at that place."
    return (
        note + _FACTORS_NOTE
        if any(column.title.startswith(FACTOR_HEADING) for column in table.columns)
        else note
    )


def _maxima_chart(brief: Brief, best_figures: Sequence[BestFigureWithHosts]) -> Chart | None:
    """A row for each workload, of figures of one unit."""
    styles = brief.series_styles
    groups = rows_by_key(best_figures, lambda figure: figure.best_value.workload).values()
    better = best_figures[0].best_value.better
    differing = [
        own for own in groups if len({figure.best_value.axis_values for figure in own}) > 1
    ]
    best = "Lowest" if better is BetterDirection.LOWER else "Best"
    label = common_metric_label(figure.best_value.metric for figure in best_figures)
    return dot_chart(
        "Best figures",
        f"{best} {label or 'figures'}",
        [
            DotRow(
                own[0].best_value.title,
                tuple(_best_figure_dot(figure, styles) for figure in own),
            )
            for own in groups
        ],
        finding=_best_configurations_sentence(best_figures, styles),
        table=maxima_table(
            brief.study.configurations, best_figures, brief.run_anchors, brief.gains_by_pair
        ),
        better=better,
        note=_differing_loads_note(differing, styles),
    )


def _differing_loads_note(
    figures_by_workload: Sequence[Sequence[BestFigureWithHosts]], styles: SeriesStyles
) -> str:
    """At which loads configurations have the best figures of workloads where those differ."""
    if not figures_by_workload:
        return ""
    if len(figures_by_workload) > DIFFERING_LOADS_SHOWN:
        return f"Best loads differ in {len(figures_by_workload)} workloads: the table has them."
    texts = (
        f"{escape_invisible(own[0].best_value.title)}: "
        + ", ".join(f"{dot.name} {dot.note}" for dot in (_best_figure_dot(f, styles) for f in own))
        for own in figures_by_workload
    )
    return f"Best loads differ ({'; '.join(texts)})."


def _best_figure_dot(figure: BestFigureWithHosts, styles: SeriesStyles) -> Dot:
    style, best = styles[figure.best_value.configuration], figure.best_value
    at = axis_values_text(tuple((axis_name_text(name), value) for name, value in best.axis_values))
    place = f"at {at}" if best.axis_values else ""
    return Dot(style.label, style.color, best.value, best.verdict_level, place, style.title)


def _best_configurations_sentence(
    best_figures: Sequence[BestFigureWithHosts], styles: SeriesStyles
) -> str:
    """Of each workload the best configuration."""
    several = len(styles) > 1
    sentences = []
    for own in rows_by_key(
        (figure.best_value for figure in best_figures),
        lambda best: best.workload,
    ).values():
        pick = min if own[0].better is BetterDirection.LOWER else max
        sound = [figure for figure in own if figure.is_not_invalid] or own
        best = pick(sound, key=lambda figure: figure.value.value or 0.0)
        who = f" by {styles[best.configuration].title}" if several and len(own) > 1 else ""
        at = f" at {axis_values_text(best.axis_values)}" if best.axis_values else ""
        doubt = "" if best.is_not_invalid else ", invalid"
        sentences.append(f"{best.title}: {metric_value_text(best.value)}{who}{at}{doubt}")
    return f"{first_statements_sentence(sentences)} {_all_or_worst_verdict_sentence(best_figures)}"


def _all_or_worst_verdict_sentence(best_figures: Sequence[BestFigureWithHosts]) -> str:
    levels = {figure.best_value.verdict_level for figure in best_figures}
    judged = [level for level in levels if level is not None]
    if not judged:
        return ""
    worst = worst_verdict_level(judged).value
    return f"All are {worst}." if len(levels) == 1 else f"At worst {worst}."


def _client_and_fleet_chart(
    styles: SeriesStyles, table: Table, scaled_pairs: Sequence[FleetAndSingleClient]
) -> Chart | None:
    """One client alone beside the mean of a host in the fleet."""
    groups, sentences = [], []
    for pair in scaled_pairs:
        share = mean_rate_per_host(pair.fleet)
        if share is None or pair.scaling_efficiency is None:
            continue
        alone, fleet = styles[pair.single_client.configuration], styles[pair.fleet.configuration]
        note = f"each of {pair.fleet.host_count}"
        client = pair.single_client
        dots = (
            Dot("alone", alone.color, client.value, client.verdict_level, "alone", alone.title),
            Dot(note, fleet.color, share, pair.fleet.verdict_level, note, fleet.title),
        )
        groups.append(DotRow(pair.fleet.title, dots))
        kept = percent_text(pair.scaling_efficiency.value or 0.0)
        who = f"{note} hosts of {fleet.title}" if len(styles) > 1 else note
        sentences.append(f"{pair.fleet.title}: {who} does {kept} of what one does alone")
    return dot_chart(
        "One client and the fleet",
        "One client alone, and the mean of a host in the fleet",
        groups,
        finding=first_statements_sentence(sentences),
        table=table,
    )


class BestFigureWithHosts(Record):
    """A maximum.

    `slowest_host_value` and `fastest_host_value` are of the run that stands for it.

    They are None where one host made the load, or none is known; `run_key` is that run's key.
    """

    best_value: BestValue
    run_key: RunKey | None = None
    slowest_host_value: float | None = None
    fastest_host_value: float | None = None

    def verdict_cell(self, anchors: RunAnchors) -> Cell:
        """The cell of its verdict, which leads to the run."""
        if self.best_value.verdict_level is None:
            return Cell(PRINTED_VERDICT)
        return verdict_cell(
            self.best_value.verdict_level, anchors.get(self.run_key) if self.run_key else None
        )


def best_figures_with_hosts(brief: Brief) -> tuple[BestFigureWithHosts, ...]:
    """Of I/O each workload and each mix of guests; of load on keys each group of operations.

    Invalid points are taken only where there is no other, and their level says so.
    """
    return _best_figures_of_headlines(brief.kinds.best_point_headlines(brief.study, brief.points))


def single_host_best_values(brief: Brief) -> tuple[BestValue, ...]:
    """The best of each workload with one host, where a study varies how many make its load."""
    alone = [point for point in brief.points if dict(point.key.axis_values).get(HOSTS_AXIS) == 1]
    return tuple(
        figure.best_value
        for figure in _best_figures_of_headlines(
            brief.kinds.single_figure_headlines(brief.study, alone)
        )
    )


def _best_figures_of_headlines(
    headlines: Iterable[BestPointHeadline],
) -> tuple[BestFigureWithHosts, ...]:
    return tuple(
        figure
        for headline in headlines
        if (figure := _best_figure_of_headline(headline)) is not None
    )


def _best_figure_of_headline(headline: BestPointHeadline) -> BestFigureWithHosts | None:
    best = headline.best
    if best is None:
        return None
    key = headline.workload.headline_or_rate_metric
    run = best.median_run
    values = metric_value_by_host(run, key).values() if len(run.hosts) > 1 else ()
    return BestFigureWithHosts(
        best_value=BestValue(
            configuration=headline.configuration.id,
            workload=headline.workload.id,
            metric=key,
            value=best.headline_metric,
            axis_values=run.axis_values,
            verdict_level=best.verdict_level,
            run_keys=tuple(result.key for result in best.results),
            title=headline.workload.title,
            place_count=headline.compared_point_count,
            host_count=0 if run.nodes else best.host_count,
        ),
        run_key=run.key,
        slowest_host_value=min(values, default=None),
        fastest_host_value=max(values, default=None),
    )


def first_statements_sentence(statements: Sequence[str]) -> str:
    """Statements as one sentence of a chart, the first of many."""
    hidden = len(statements) - STATEMENTS_SHOWN
    more = (f"{counted_noun(hidden, 'more workload')} in the table",) if hidden > 0 else ()
    return f"{'; '.join((*statements[:STATEMENTS_SHOWN], *more))}."


def maxima_table(
    configurations: Sequence[Configuration],
    best_figures: Sequence[BestFigureWithHosts],
    anchors: RunAnchors,
    gains: GainsByPair | None = None,
) -> Table:
    """The best of each workload and configuration, its place, and the factor over the first.

    `gains` compare repeats, where the figures have any.
    """
    titles = configuration_titles_by_id(configurations)
    several = len(titles) > 1
    base = configurations[0].id if configurations else ""
    bases = {
        figure.best_value.workload: figure.best_value
        for figure in best_figures
        if figure.best_value.configuration == base
    }
    numbers = ("Best", "Interval", "Of points")
    heads = text_and_number_columns(
        ("Workload", "Configuration", "At"),
        (*numbers, *((f"{FACTOR_HEADING} {titles[base]}",) if several else ())),
        ("Verdict",),
    )
    rows = []
    for figure in best_figures:
        best = figure.best_value
        texts = [
            best.title or best.workload,
            titles.get(best.configuration, best.configuration),
            axis_values_text(best.axis_values) or DASH,
            metric_value_text(best.value),
            quotient_interval_text(best.value),
            f"{best.place_count}" if best.verdict_level is not None else DASH,
        ]
        texts += (
            [
                factor_with_interval_text(
                    _gain_factor_over_base(best, bases.get(best.workload), gains)
                )
            ]
            if several
            else []
        )
        rows.append((*row_of_cells(*texts), figure.verdict_cell(anchors)))
    return table_without_empty_columns(Table("Best figures", heads, tuple(rows)))


def _gain_factor_over_base(
    best: BestValue, base: BestValue | None, gains: GainsByPair | None
) -> Metric | None:
    """A maximum's factor over another: at one place of the axes that of their repeats in pairs."""
    factor = improvement_over(best, base)
    if factor is None or base is None or gains is None or best.axis_values != base.axis_values:
        return factor
    names = base.configuration, best.configuration
    compared = gains.comparison(names, (best.workload, best.axis_values), best.metric)
    if not is_replicated_comparison(compared):
        return factor
    gain = inverted_comparison(compared) if best.better is BetterDirection.LOWER else compared
    return Metric(gain.ratio, factor.unit, gain.low, gain.high, factor.n)


def fleet_and_client_table(
    configurations: Sequence[Configuration],
    best_figures: Sequence[BestFigureWithHosts],
    scaled_pairs: Sequence[FleetAndSingleClient],
    anchors: RunAnchors,
) -> Table | None:
    """Rates of fleets: total, mean, slowest and fastest host, beside one client where there is one.

    `scaled_pairs` are the fleets that have one. None where no rate was made by several hosts.
    """
    beside = {(pair.fleet.configuration, pair.fleet.workload): pair for pair in scaled_pairs}
    titles = configuration_titles_by_id(configurations)
    rows = []
    for figure in best_figures:
        best = figure.best_value
        pair = beside.get((best.configuration, best.workload))
        if not best.is_rate or best.host_count == 1 or not (best.host_count or pair):
            continue
        unit = best.value.unit
        texts = [
            best.title or best.workload,
            titles.get(best.configuration, best.configuration),
            str(best.host_count or DASH),
            metric_value_text(best.value),
            metric_value_text(mean_rate_per_host(best)),
            *(
                DASH if rate is None else value_text(rate, unit)
                for rate in (figure.slowest_host_value, figure.fastest_host_value)
            ),
        ]
        if beside:
            texts += [
                metric_value_text(pair.single_client.value) if pair else DASH,
                factor_with_interval_text(pair.speedup if pair else None),
                factor_with_interval_text(pair.scaling_efficiency if pair else None),
            ]
        rows.append((*row_of_cells(*texts), figure.verdict_cell(anchors)))
    numbers = ("Hosts", "Total", "Mean per host", "Slowest host", "Fastest host")
    alone = ("One client alone", "Total over one", "Mean over one") if beside else ()
    heads = text_and_number_columns(("Workload", "Configuration"), (*numbers, *alone), ("Verdict",))
    name = "One client and the fleet" if beside else "The mean of each host"
    return table_without_empty_columns(Table(name, heads, tuple(rows))) if rows else None


def configuration_titles_by_id(configurations: Sequence[Configuration]) -> dict[str, str]:
    """Titles by id."""
    return {configuration.id: configuration.title for configuration in configurations}
