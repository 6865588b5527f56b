"""A session on one screen: its answer, as much of its results as has room, and the next command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from rich.text import Text

from iolab.analysis.points import PointSummary
from iolab.cli.output import rendered_lines
from iolab.cli.results import (
    closing_lines,
    lines_of_load_findings,
    objection_lines,
    result_lines,
)
from iolab.core.metric import RunResult
from iolab.core.study import Study
from iolab.record import Record
from iolab.registry import report_kinds
from iolab.report.best_terminal import (
    best_figures_terminal_table,
    best_table_line_count,
    figures_on_first_lines,
    hidden_lines_text,
    left_out_repeats_sentences,
)
from iolab.report.drives import drive_wear_table
from iolab.report.power import meter_power_table
from iolab.report.session_answer import SessionAnswer
from iolab.report.short_names import screen_name_by_configuration
from iolab.report.terminal import (
    QUIET_STYLE,
    GroupedTable,
    literal_text,
    name_value_grid,
    report_table_for_terminal,
    section_title,
)
from iolab.text import counted_noun

if TYPE_CHECKING:
    from rich.console import RenderableType

USUAL_HEIGHT: Final = 24
"""Lines from which on an answer is repeated at the end, where there is no terminal to ask."""

CONTENTS_MIN: Final = 2
"""Parts of details from which on they have contents."""

CONTENTS_EXTRA_LINES: Final = 2
"""The heading of the contents, and the blank line behind them."""

LINES_MIN: Final = 3
"""Lines of figures that are shown however small the screen is."""


class SessionScreen(Record):
    """What a session's screen is made of; `points` are those of the `results`.

    With `has_repeats` each run has a line, with `has_details` nothing is left out.
    """

    study: Study
    results: Sequence[RunResult]
    points: Sequence[PointSummary]
    answer: SessionAnswer
    directory: str
    is_unfinished: bool
    has_repeats: bool
    has_details: bool

    @property
    def is_full_output(self) -> bool:
        """Whether the user wants more than a screen."""
        return self.has_repeats or self.has_details


class DetailSection(Record):
    """A part of the details under the title that the contents name it by."""

    title: str
    renderables: Sequence[RenderableType]


def session_summary_lines(
    screen: SessionScreen,
    heading: Iterable[RenderableType],
    details: Iterable[DetailSection],
    height: int | None,
) -> list[str]:
    """The lines of the screen, at most `height` where there is a terminal and no details."""
    if not screen.results:
        return rendered_lines(*heading)
    answer = literal_text(screen.answer.answer.text, "bold")
    top = rendered_lines(*heading, answer, "")
    closing = closing_lines(
        screen.answer,
        screen.study,
        screen.points,
        screen.results,
        screen.directory,
        is_unfinished=screen.is_unfinished,
    )
    end = rendered_lines("", *closing)
    room = None if height is None or screen.is_full_output else height - len(top) - len(end)
    if room is None:
        middle = rendered_lines(
            *_renderables_with_summarised_tables(_all_result_renderables(screen), screen)
        )
        middle = _contents_results_and_details_lines(middle, list(details), len(top))
    else:
        middle = _lines_of_all_or_best_results(screen, room)
    lines = [*top, *middle, *end]
    # The answer is read at the end of what has scrolled it away.
    scrolls = len(lines) > (height or USUAL_HEIGHT)
    return [*lines, *rendered_lines("", answer)] if scrolls else lines


def _contents_results_and_details_lines(
    results: list[str], details: Sequence[DetailSection], line_count_before: int
) -> list[str]:
    """The results and all details, after the line at which each part begins.

    Pagers go there by `120g`. Nothing is listed of details that have one part.
    """
    drawn = [rendered_lines(*detail.renderables) for detail in details]
    if len(details) < CONTENTS_MIN:
        return [*results, *(line for lines in drawn for line in lines)]
    titles = ["Results", *(detail.title for detail in details)]
    line = line_count_before + len(titles) + CONTENTS_EXTRA_LINES
    starts = list(accumulate((len(lines) for lines in (results, *drawn)), initial=line + 1))
    rows = [(f"line {at:,}", title) for at, title in zip(starts, titles, strict=False)]
    contents = rendered_lines(section_title("Contents"), name_value_grid(rows), "")
    return [*contents, *results, *(line for lines in drawn for line in lines)]


def _all_result_renderables(screen: SessionScreen) -> Iterator[RenderableType]:
    study, results = screen.study, screen.results
    yield from result_lines(study, results, screen.points, with_run_rows=screen.has_repeats)
    tables = [drive_wear_table(results, does_omit_unknown_amplification=not screen.has_details)]
    tables += [meter_power_table(results)] if screen.has_details else []
    for table in tables:
        if table:
            yield from ("", section_title(table.title), report_table_for_terminal(table))
    if not screen.has_details:  # they begin with the objections
        yield from objection_lines(screen.answer.objections)
    yield from report_kinds().booted_hosts.nodes_terminal_screen(study, screen.points)
    yield from lines_of_load_findings(study, results)


def _renderables_with_summarised_tables(
    renderables: Iterable[RenderableType], screen: SessionScreen
) -> Iterator[RenderableType]:
    """The same, tables with the columns that matter most where nobody wants all of them."""
    for part in renderables:
        if isinstance(part, GroupedTable) and not screen.is_full_output:
            yield replace(part, is_summary=True)
        else:
            yield part


def _lines_of_all_or_best_results(screen: SessionScreen, max_line_count: int) -> list[str]:
    """All results where there is room for them, else the best of each workload."""
    if len(screen.points) <= max_line_count:
        every = rendered_lines(
            *_renderables_with_summarised_tables(_all_result_renderables(screen), screen)
        )
        if len(every) <= max_line_count:
            return every
        tables = rendered_lines(
            *_renderables_with_summarised_tables(
                result_lines(screen.study, screen.results, screen.points), screen
            )
        )
        if len(tables) < max_line_count:
            return [*tables, *rendered_lines(_hidden_lines_and_points_text(0))]
    figures, titles = screen.answer.figures, screen_name_by_configuration(screen.study)
    line_count = best_table_line_count(figures)
    # A line that names a single hidden one takes the room of it.
    least = line_count if line_count == LINES_MIN + 1 else LINES_MIN
    while True:
        shown = figures_on_first_lines(figures, line_count)
        left_out = {point.digest for point in screen.points}
        left_out -= {figure.run_key[0] for figure in shown if figure.run_key is not None}
        lines = rendered_lines(
            best_figures_terminal_table(shown, titles),
            *(
                literal_text(note, QUIET_STYLE)
                for note in left_out_repeats_sentences(shown, titles)
            ),
            _hidden_lines_and_points_text(len(left_out), hidden_lines_text(figures, shown)),
        )
        if len(lines) <= max_line_count or line_count <= least:
            return lines
        line_count = max(min(line_count - 1, line_count - (len(lines) - max_line_count)), least)


def _hidden_lines_and_points_text(point_count: int, hidden_line_count_text: str = "") -> Text:
    """What --details has besides: `hidden_line_count_text` of best figures, and points."""
    points = counted_noun(point_count, "more point") if point_count else ""
    parts = ", ".join(filter(None, (hidden_line_count_text, points)))
    what = f"and {parts}" if parts else "every run and check"
    return literal_text(f"… {what} (--details)", QUIET_STYLE)
