"""The best of each workload on a terminal, a line each: what is left of a session on one screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iolab.core.metric import VerdictLevel
from iolab.report.best import BestFigure
from iolab.report.matrix import (
    CONFIGURATION_COLUMNS_MAX,
    WorkloadRow,
    indistinguishable_mark_text,
    workload_rows,
)
from iolab.report.numbers import DASH, MAYBE_CHANCE, NOT_MEASURABLE, metric_value_text
from iolab.report.table import Column
from iolab.report.terminal import GroupedTable, Row, TerminalCell, literal_text, styled_verdict
from iolab.text import capitalised, counted_noun, list_text, percent_text

NAMES_SHOWN: Final = 3
"""Figures named in a line; others are counted."""

_LATENCIES_MAX: Final = 2
"""Latencies of a figure that have a column; --details has all."""


def best_table_line_count(best_figures: Sequence[BestFigure]) -> int:
    """How many lines `best_figures_terminal_table` has."""
    return (
        len(workload_rows(best_figures))
        if _has_configuration_columns(best_figures)
        else len(best_figures)
    )


def figures_on_first_lines(
    best_figures: Sequence[BestFigure], line_count: int
) -> tuple[BestFigure, ...]:
    """The figures of so many lines."""
    rows = workload_rows(best_figures)
    if _has_configuration_columns(best_figures):
        return tuple(figure for row in rows[:line_count] for figure in row.figures)
    return tuple(figure for row in rows for figure in row.figures)[:line_count]


def hidden_lines_text(
    best_figures: Sequence[BestFigure], shown_figures: Sequence[BestFigure]
) -> str:
    """What lines of all figures those shown leave out: workloads by name; empty for none."""
    hidden = [figure for figure in best_figures if figure not in shown_figures]
    if not hidden:
        return ""
    if len(_configuration_ids(best_figures)) > CONFIGURATION_COLUMNS_MAX:
        return counted_noun(len(hidden), "more figure")
    titles = list(dict.fromkeys(figure.title for figure in hidden))
    names = list_text(titles, NAMES_SHOWN)
    return f"{counted_noun(len(titles), 'more workload')} ({names})"


def left_out_repeats_sentences(
    best_figures: Sequence[BestFigure], configuration_titles: Mapping[str, str]
) -> list[str]:
    """A line for each kind of figures of which not every repeat counts, with their names."""
    owners = configuration_titles if len(_configuration_ids(best_figures)) > 1 else {}
    named: dict[str, list[str]] = {}
    for figure in best_figures:
        if figure.is_quotable and figure.left_out_repeats_text:
            named.setdefault(figure.left_out_repeats_text, []).append(
                _configuration_and_workload_title(figure, owners)
            )
    return [
        f"{capitalised(text)}: {list_text(names, NAMES_SHOWN)}." for text, names in named.items()
    ]


def _configuration_and_workload_title(
    figure: BestFigure, configuration_titles: Mapping[str, str]
) -> str:
    """A figure's workload, of several configurations after the title of its own."""
    if not configuration_titles:
        return figure.title
    return f"{configuration_titles.get(figure.configuration, figure.configuration)}: {figure.title}"


def best_figures_terminal_table(
    best_figures: Sequence[BestFigure], configuration_titles: Mapping[str, str]
) -> GroupedTable:
    """A line for each workload, with a column for each of few configurations.

    `configuration_titles` are those of the configurations by their ids.
    """
    rows = workload_rows(best_figures)
    if _has_configuration_columns(best_figures):
        return _configuration_columns_table(
            rows, _configuration_ids(best_figures), configuration_titles
        )
    own = [figure for row in rows for figure in row.figures]
    return _table_with_line_per_figure(
        own, configuration_titles if len(_configuration_ids(best_figures)) > 1 else {}
    )


def _configuration_ids(best_figures: Sequence[BestFigure]) -> list[str]:
    return list(dict.fromkeys(figure.configuration for figure in best_figures))


def _has_configuration_columns(best_figures: Sequence[BestFigure]) -> bool:
    return 1 < len(_configuration_ids(best_figures)) <= CONFIGURATION_COLUMNS_MAX


def _configuration_columns_table(
    rows: Sequence[WorkloadRow],
    configuration_ids: Sequence[str],
    configuration_titles: Mapping[str, str],
) -> GroupedTable:
    heads = [Column("workload", can_wrap=True)]
    heads += [
        Column(literal_text(configuration_titles.get(name, name)).plain, is_number=True)
        for name in configuration_ids
    ]
    lines: list[Row] = []
    for row in rows:
        cells = [_configuration_cell(row, name) for name in configuration_ids]
        lines.append([literal_text(row.title), *cells, _lead_ratio_or_tie_text(row)])
    heads.append(Column("lead", is_number=True, is_optional=True))
    return GroupedTable(heads, [(None, lines)], is_summary=True)


def _lead_ratio_or_tie_text(workload_row: WorkloadRow) -> str:
    if workload_row.indistinguishable:
        marks = (
            indistinguishable_mark_text(workload_row, figure).strip()
            for figure in workload_row.indistinguishable
        )
        return next(filter(None, marks), MAYBE_CHANCE)
    return workload_row.lead_ratio_text if workload_row.figure_count > 1 else DASH


def _configuration_cell(workload_row: WorkloadRow, configuration_id: str) -> TerminalCell:
    figure = workload_row.figure_of_configuration(configuration_id)
    if figure is None or not figure.is_quotable:
        return literal_text(NOT_MEASURABLE if figure is not None else DASH, style="dim")
    mark = indistinguishable_mark_text(workload_row, figure)
    is_best = workload_row.has_supported_winner and figure is workload_row.best
    return literal_text(f"{mark}{metric_value_text(figure.value)}", style="bold" if is_best else "")


def _table_with_line_per_figure(
    best_figures: Sequence[BestFigure], configuration_titles: Mapping[str, str]
) -> GroupedTable:
    """A line a figure."""
    names = list(
        dict.fromkeys(name for figure in best_figures for name, _ in figure.latency_names_and_texts)
    )
    names = names[:_LATENCIES_MAX]
    heads = [
        Column("workload", can_wrap=True),
        Column("best", is_number=True),
        Column("95 %", is_number=True),
        Column("at", is_optional=True),
        *(Column(name, is_number=True, is_optional=True) for name in names),
        Column("verdict", is_hidden_if_constant=True),
    ]
    lines: list[Row] = []
    for figure in best_figures:
        half, latencies = figure.value.relative_half_width, dict(figure.latency_names_and_texts)
        value = metric_value_text(figure.value)
        cells: list[TerminalCell] = [
            literal_text(_configuration_and_workload_title(figure, configuration_titles)),
            literal_text(value, style="bold")
            if figure.is_quotable
            else literal_text(NOT_MEASURABLE, style="dim"),
            "" if half is None else f"±{percent_text(half)}",
            literal_text(figure.axis_text),
            *(literal_text(latencies.get(name, DASH)) for name in names),
            styled_verdict(figure.verdict_level or VerdictLevel.INVALID),
        ]
        lines.append(cells)
    return GroupedTable(heads, [(None, lines)], is_summary=True)
