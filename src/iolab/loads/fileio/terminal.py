"""A calibration as terminals show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolab.analysis.check import percent
from iolab.loads.fileio.calibration import CalibrationRow, rows_of
from iolab.loads.fileio.calibration_report import (
    ENGINES,
    HEADINGS,
    NONE,
    Meaning,
    host_shares,
    meanings,
    rate_text,
    ratio_text,
    shares_of,
    versions_text,
)
from iolab.report.numbers import count, show_value
from iolab.report.terminal import QUIET_STYLE, Heading, plain, table, title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from iolab.loads.fileio.calibration_model import Calibration
    from iolab.loads.fileio.calibration_report import GeneratorShare

_STYLES: Final = {"good": "green", "open": "yellow", "warning": "bold red"}


def calibration_screen(found: Calibration) -> tuple[RenderableType, ...]:
    """All hosts together, each of several hosts, and what it means."""
    rows = rows_of(found.trials)
    pairs = len(found.trials) // 2
    many = len(found.hosts) > 1
    shares = shares_of(found)
    found_meanings = meanings(rows, shares, pairs=pairs, hosts=len(found.hosts))
    return (
        *((title(f"{len(found.hosts)} hosts together"),) if many else ()),
        _figures(found, rows, shares),
        *(("", title("Each host"), _hosts(found)) if many else ()),
        "",
        title("What this means"),
        _meanings(found_meanings),
        "",
        plain(
            f"{count(pairs, 'pair')}, order swapped from one to the next: {versions_text(found)}.",
            QUIET_STYLE,
        ),
    )


def _figures(
    found: Calibration, rows: Sequence[CalibrationRow], shares: Sequence[GeneratorShare]
) -> RenderableType:
    headings = [Heading(""), *(Heading(name, number=True) for name in ENGINES)]
    headings += [Heading("native / fio", number=True), Heading("", main=True)]
    lines: list[list[Text | str]] = [
        [
            HEADINGS[row.key],
            show_value(row.fio, row.unit),
            show_value(row.native, row.unit),
            ratio_text(row),
            row.comparison.verdict.value,
        ]
        for row in rows
    ]
    ceilings = [found.ceilings[name] for name in ENGINES]
    lines.append(["ceiling, on /dev/null", *map(rate_text, ceilings), "", ""])
    nearest = {one.engine: percent(one.share) for one in shares}
    lines.append(["share of the ceiling", *(nearest.get(name, NONE) for name in ENGINES), "", ""])
    return table(headings, lines)


def _hosts(found: Calibration) -> RenderableType:
    """A row a host: rates, how both compare, what each costs, and how near its end each is."""
    headings = [
        Heading("host", main=True),
        *(Heading(f"IOPS, {name}", number=True) for name in ENGINES),
        Heading("native / fio", number=True),
        *(Heading(f"CPU, {name}", number=True) for name in ENGINES),
        *(Heading(f"ceiling, {name}", number=True) for name in ENGINES),
        *(Heading(f"share, {name}", number=True) for name in ENGINES),
    ]
    lines: list[list[Text | str]] = []
    for host in found.hosts:
        rows = {row.key: row for row in rows_of(host.trials)}
        iops, cpu = rows["iops"], rows["cpu_ns_per_io"]
        shares = {share.engine: percent(share.share) for share in host_shares(host)}
        lines.append(
            [
                plain(host.host),
                *(show_value(value, iops.unit) for value in (iops.fio, iops.native)),
                ratio_text(iops),
                *(show_value(value, cpu.unit) for value in (cpu.fio, cpu.native)),
                *(rate_text(host.ceilings[name]) for name in ENGINES),
                *(shares.get(name, NONE) for name in ENGINES),
            ]
        )
    return table(headings, lines)


def _meanings(found_meanings: Sequence[Meaning]) -> RenderableType:
    lines = [
        [plain(meaning.about, _STYLES[meaning.tone.value]), plain(meaning.says)]
        for meaning in found_meanings
    ]
    return table([Heading(""), Heading("", main=True)], lines)
