"""`iolab history`: whether the level of anything changed over many sessions of one study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from iolab.cli.options import AsJson, Workloads

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from iolab.analysis.comparison_sides import Side
    from iolab.analysis.history import Series, Tracked

CAUSES_MAX: Final = 6
"""Other changes named beside a change of level; the document of --json has all."""


def history(
    directories: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...",
            help="Sessions, or directories of sessions; DIR:CONFIGURATION where a session has "
            "several configurations.",
        ),
    ],
    *,
    workload: Workloads = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="KEY",
            help="This metric instead of the headline figure; repeatable.",
        ),
    ] = None,
    allow_differences: Annotated[
        bool,
        typer.Option(
            "--allow-differences",
            help="Take sessions whose load or method differ into one history all the same.",
        ),
    ] = False,
    details: Annotated[
        bool, typer.Option("--details", help="Every session's value of every series.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say where the level of a point changed over many sessions, or that nothing did."""
    from iolab.analysis.history import forbidding, track
    from iolab.cli.compare import check_names, refuse_unlike
    from iolab.cli.output import result_json, result_screen
    from iolab.errors import UsageError
    from iolab.report.comparison import history_document

    sides = _sides(directories)
    check_names(sides, workload or (), metric or ())
    if not allow_differences:
        for place, found in forbidding(sides).items():
            refuse_unlike(found, sides[place].name)
    tracked = track(sides, tuple(workload or ()), tuple(metric or ()))
    if not tracked.series:
        raise UsageError(
            "No session has a value that could be tracked.", "Give other sessions or metrics."
        )
    if as_json:
        result_json(history_document(tracked))
    else:
        result_screen(*history_screen(tracked, details=details))


def _sides(names: Sequence[str]) -> list[Side]:
    """Every session that the names stand for, oldest first; UsageError for one given twice."""
    from iolab.cli.compare import split_name
    from iolab.errors import Fault, UsageError
    from iolab.study.wording import shown

    sides = [
        side
        for directory, configuration in map(split_name, names)
        for session in _sessions(directory)
        if (side := _side(session, configuration)) is not None
    ]
    sides.sort(key=lambda side: (side.created_real_ns, side.session))
    faults = tuple(
        Fault(f"{shown(other.name)} is the same session as {shown(one.name)}.", "Give one of them.")
        for number, other in enumerate(sides)
        for one in sides[:number]
        if other.is_same_as(one)
    )
    if faults:
        raise UsageError("A session is given twice.", "Its values would count twice.", faults)
    return sides


def _side(session: Path, configuration: str | None) -> Side | None:
    """The side of a session; None, told, where nothing of it can be read."""
    from iolab.analysis.comparison_sides import read_side
    from iolab.cli.open_session import left_out, open_session
    from iolab.errors import StoreError
    from iolab.store.verify import damage_of

    try:
        return read_side(str(session), open_session(session), configuration)
    except StoreError as error:
        left_out(session, damage_of(session, "the session", error))
        return None


def _sessions(directory: Path) -> list[Path]:
    """The directory itself if it is a session, else those in it; UsageError for neither."""
    from iolab.errors import UsageError
    from iolab.store.reader import is_session
    from iolab.study.wording import shown

    if is_session(directory):
        return [directory]
    inside = sorted(directory.iterdir()) if directory.is_dir() else []
    found = [path for path in inside if is_session(path)]
    if not found:
        raise UsageError(
            f"There is no session at {shown(str(directory))} nor in it.",
            "Give directories that `iolab run --out` wrote, or one that holds them.",
        )
    return found


def history_screen(tracked: Tracked, *, details: bool) -> Iterator[RenderableType]:
    """The sessions, the series and what each tells, and what else changed when one did."""
    from iolab.loads.keyvalue.charts import metric_word
    from iolab.report.comparison import day, point_text, said, summary_text
    from iolab.report.numbers import show
    from iolab.report.terminal import Grouped, Heading, pairs, plain, title

    first, last = tracked.sessions[0], tracked.sessions[-1]
    span = f"{len(tracked.sessions)}, from {day(first.created_real_ns)} to "
    yield pairs(
        [
            ("study", plain(f"{first.study.id}, scale {first.study.scale}")),
            ("configuration", plain(first.configuration.id)),
            ("sessions", plain(f"{span}{day(last.created_real_ns)} UTC")),
        ]
    )
    yield ""
    points: dict[str, list[list[Text | str]]] = {}
    for one in tracked.series:
        points.setdefault(point_text(one.workload, one.axis), []).append(
            [
                plain(f"  {metric_word(one.metric)}"),
                str(len(one.values)),
                show(one.values[0].metric),
                show(one.values[-1].metric),
                plain(said(one), "bold yellow" if one.found.changes else ""),
            ]
        )
    heads = [Heading("metric", main=True)]
    heads += [Heading(name, number=True) for name in ("sessions", "first", "last")]
    groups = [(title(point), rows) for point, rows in points.items()]
    yield Grouped([*heads, Heading("changes", main=True)], groups)
    yield ""
    for one in tracked.series:
        yield from _changes(tracked, one)
    if details:
        for one in tracked.series:
            yield title(f"{point_text(one.workload, one.axis)}: {one.metric}")
            yield _values(tracked, one)
            yield ""
    yield title(summary_text(tracked))


def _changes(tracked: Tracked, series: Series) -> Iterator[RenderableType]:
    """Each change of a series with what the session has otherwise than the one before."""
    from iolab.report.comparison import day, point_text, ratio_text
    from iolab.report.terminal import QUIET_STYLE, plain, title

    for change in series.found.changes:
        place = series.values[change.index].session
        side = tracked.sessions[place]
        yield title(f"{point_text(series.workload, series.axis)}: {series.metric}")
        yield plain(
            f"  {ratio_text(change.ratio)} from {side.name} on, "
            f"{day(side.created_real_ns)} UTC (p = {change.p:.2g})"
        )
        told = [str(one) for one in tracked.changed[place]]
        for text in told[:CAUSES_MAX]:
            yield plain(f"  with it changed {text}", QUIET_STYLE)
        if not told:
            yield plain("  nothing that is recorded of hosts and versions changed", QUIET_STYLE)
        yield ""


def _values(tracked: Tracked, series: Series) -> RenderableType:
    from iolab.report.comparison import day
    from iolab.report.numbers import show, show_interval
    from iolab.report.terminal import Heading, plain, table, verdict

    before = {one.index for one in series.found.changes}
    rows: list[list[Text | str]] = [
        [
            plain(day(tracked.sessions[seen.session].created_real_ns)),
            plain(tracked.sessions[seen.session].name),
            show(seen.metric),
            show_interval(seen.metric, bare_rate=True),
            verdict(seen.level),
            "changed" if number in before else "",
        ]
        for number, seen in enumerate(series.values)
    ]
    heads = [Heading("UTC"), Heading("session", main=True), Heading("value", number=True)]
    return table([*heads, Heading("interval"), Heading("trust"), Heading("")], rows)
