"""`iolab compare`: whether a candidate is better or worse than a baseline, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from iolab.cli.options import AsJson, Workloads

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from iolab.analyse.comparison import Compared, Row
    from iolab.analyse.method.ratio import Verdict
    from iolab.analyse.side import Side


SKIPPED_MAX: Final = 10
"""Points not compared that are named; the document of --json has all."""


class FailOn(StrEnum):
    """Which verdict the exit code tells."""

    WORSE = "worse"


class Format(StrEnum):
    """What other programs read."""

    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"


_SIDE_HELP = "a session's directory, or DIR:CONFIGURATION where it has several configurations."


def compare(
    baseline: Annotated[
        str, typer.Argument(metavar="BASELINE", help=f"What to compare with: {_SIDE_HELP}")
    ],
    candidate: Annotated[
        str, typer.Argument(metavar="CANDIDATE", help=f"What is compared: {_SIDE_HELP}")
    ],
    *,
    workload: Workloads = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="KEY",
            help="This metric instead of the headline figure and p99; repeatable.",
        ),
    ] = None,
    allow_differences: Annotated[
        bool,
        typer.Option(
            "--allow-differences",
            help="Compare although load or method differ; they are still named.",
        ),
    ] = False,
    fail_on: Annotated[
        FailOn | None,
        typer.Option("--fail-on", help="Exit with 1 when any row is 'worse'.", show_default=False),
    ] = None,
    kind: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="Print it for other programs.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare a candidate with a baseline, point by point, with intervals."""
    from iolab.analyse.comparison import compare_sides
    from iolab.analyse.method.ratio import Verdict
    from iolab.cli.sides import check_names, open_side, refuse_unlike
    from iolab.errors import ExitCode

    sides = (open_side(baseline), open_side(candidate))
    check_names(sides, workload or (), metric or ())
    compared = compare_sides(*sides, tuple(workload or ()), tuple(metric or ()))
    if not allow_differences:
        refuse_unlike([one for one in compared.differences if one.forbids], candidate)
    _check_rows(compared)
    _print(compared, Format.JSON if as_json else kind)
    worse = compared.verdicts.get(Verdict.WORSE, 0)
    raise typer.Exit(ExitCode.VERDICT if fail_on and worse else ExitCode.OK)


def _print(compared: Compared, kind: Format | None) -> None:
    from iolab.cli.talk import raw_result, result_json, result_screen
    from iolab.report.comparison import (
        comparison_csv,
        comparison_document,
        comparison_markdown,
    )

    match kind:
        case Format.JSON:
            result_json(comparison_document(compared))
        case Format.CSV:
            raw_result(comparison_csv(compared))
        case Format.MARKDOWN:
            raw_result(comparison_markdown(compared))
        case _:
            result_screen(*comparison_screen(compared))


def _check_rows(compared: Compared) -> None:
    """UsageError when there is nothing to compare, with the reasons."""
    from iolab.cli.screen import one_line
    from iolab.errors import Fault, UsageError
    from iolab.report.comparison import point_text

    if compared.rows:
        return
    faults = tuple(
        Fault(one_line(f"{point_text(one.workload, one.axis)}: {one.reason}."), "")
        for one in compared.skipped
    )
    raise UsageError("The two sessions have no point in common.", "Compare others.", faults)


def comparison_screen(compared: Compared) -> Iterator[RenderableType]:
    """What is compared, what differs, the rows, and all of them together."""
    from rich.text import Text

    from iolab.analyse.comparison import SAME_SESSION
    from iolab.cli.screen import QUIET_STYLE, Heading, pairs, plain, table, title
    from iolab.report.comparison import summary_texts

    sides = (("baseline", compared.baseline), ("candidate", compared.candidate))
    yield pairs([(name, plain(_side(side))) for name, side in sides])
    yield ""
    if compared.same_session:
        yield plain(f"Note: {SAME_SESSION}.")
    elif not compared.differences:
        yield plain("Nothing else differs: studies, hosts and versions are the same.")
    else:
        yield title("What differs besides the results")
        rows: list[list[Text | str]] = [
            [
                plain(f"! {one.what}" if one.forbids else f"  {one.what}"),
                plain(one.baseline),
                plain(one.candidate),
            ]
            for one in compared.differences
        ]
        heads = [Heading("what", main=True), Heading("baseline"), Heading("candidate")]
        yield table(heads, rows)
        if any(one.forbids for one in compared.differences):
            yield plain("! forbids the comparison; it was made all the same, as asked.")
    yield ""
    yield from _rows(compared)
    for one in compared.summaries:
        what, ratio, interval = summary_texts(one)
        yield Text(f"{what}: {ratio} {interval}")
    yield from _skipped(compared)
    yield plain(_counts(compared), QUIET_STYLE)


def _side(side: Side) -> str:
    from datetime import UTC, datetime

    made = datetime.fromtimestamp(side.created_real_ns / 1e9, tz=UTC)
    where = f"{side.name}  {side.study.id}, {side.configuration.id}, scale {side.study.scale}"
    return f"{where}, {made:%Y-%m-%d %H:%M} UTC"


def _rows(compared: Compared) -> Iterator[RenderableType]:
    """The rows, each point's under its name, and the reasons by their numbers."""
    from rich.text import Text

    from iolab.cli.screen import Grouped, Heading, plain, title, verdict
    from iolab.report.comparison import HEADINGS, row_texts
    from iolab.report.key_value.gains import metric_word

    reasons = _reasons(compared.rows)
    points: dict[str, list[list[Text | str]]] = {}
    for row in compared.rows:
        point, metric, *cells, said = row_texts(row)
        note = reasons.get(row.comparison.reason)
        told = Text(said, style=_style(row.comparison.verdict))
        told.append(f" {note}" if note else "", style="dim")
        runs = "/".join(map(str, row.comparison.runs))
        points.setdefault(point, []).append(
            [
                plain(f"  {metric_word(metric)}"),
                *map(plain, cells),
                plain(runs),
                told,
                verdict(row.level),
            ]
        )
    spare = ("interval",)
    heads = [Heading(HEADINGS[1], main=True)]
    heads += [Heading(name, number=True, spare=name in spare) for name in HEADINGS[2:-1]]
    heads += [Heading("runs", number=True, spare=True), Heading(HEADINGS[-1]), Heading("trust")]
    yield Grouped(heads, [(title(point), rows) for point, rows in points.items()])
    yield ""
    for reason, number in reasons.items():
        yield plain(f"{number}  {reason}")
    if reasons:
        yield ""


def _reasons(rows: Sequence[Row]) -> dict[str, int]:
    """Why rows are inconclusive, or the same for an odd reason: numbered, each once."""
    from iolab.analyse.comparison import SAME_SESSION
    from iolab.analyse.method.ratio import Verdict

    said = [
        row.comparison.reason
        for row in rows
        if row.comparison.verdict is Verdict.INCONCLUSIVE or row.comparison.reason == SAME_SESSION
    ]
    return {reason: number for number, reason in enumerate(dict.fromkeys(said), start=1)}


def _skipped(compared: Compared) -> Iterator[RenderableType]:
    from iolab.cli.screen import plain, title
    from iolab.report.comparison import point_text

    if not compared.skipped:
        return
    yield title("Not compared")
    for one in compared.skipped[:SKIPPED_MAX]:
        yield plain(f"  {point_text(one.workload, one.axis)}: {one.reason}")
    if len(compared.skipped) > SKIPPED_MAX:
        yield plain(f"  and {len(compared.skipped) - SKIPPED_MAX} more")


def _counts(compared: Compared) -> str:
    from iolab.analyse.method.ratio import Verdict
    from iolab.report.wording import count

    parts = [f"{compared.verdicts.get(one, 0)} {one.value}" for one in Verdict]
    total = count(len(compared.rows), "comparison")
    return f"{total}: {', '.join(parts)}; intervals of 95 %, verdicts corrected after Holm."


def _style(verdict: Verdict) -> str:
    from iolab.analyse.method.ratio import Verdict

    return {Verdict.BETTER: "green", Verdict.WORSE: "bold red", Verdict.SAME: ""}.get(
        verdict, "yellow"
    )
