"""A calibration as terminals show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolab.loads.fileio.calibration import CalibrationRow, calibration_rows
from iolab.loads.fileio.calibration_report import (
    ENGINES,
    HEADINGS,
    NONE,
    Conclusion,
    calibration_conclusions,
    ceiling_shares_of_host,
    nearest_ceiling_shares,
    rate_text,
    ratio_text,
    versions_text,
)
from iolab.report.numbers import value_text
from iolab.report.table import Column, Table, row_of_cells, text_and_number_columns
from iolab.report.terminal import (
    QUIET_STYLE,
    literal_text,
    report_table_for_terminal,
    section_title,
    terminal_table,
)
from iolab.text import counted_noun, percent_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from iolab.loads.fileio.calibration_model import Calibration
    from iolab.loads.fileio.calibration_report import GeneratorCeilingShare

_STYLES: Final = {"good": "green", "open": "yellow", "warning": "bold red"}


def calibration_lines(calibration: Calibration) -> tuple[RenderableType, ...]:
    """All hosts together, each of several hosts, and what it means."""
    rows = calibration_rows(calibration.trials)
    pairs = len(calibration.trials) // 2
    many = len(calibration.hosts) > 1
    shares = nearest_ceiling_shares(calibration)
    sentences = calibration_conclusions(rows, shares, pairs=pairs, hosts=len(calibration.hosts))
    return (
        *((section_title(f"{len(calibration.hosts)} hosts together"),) if many else ()),
        _comparison_table(calibration, rows, shares),
        *(("", section_title("Each host"), _host_table(calibration)) if many else ()),
        "",
        section_title("What this means"),
        _conclusion_table(sentences),
        "",
        literal_text(
            f"{counted_noun(pairs, 'pair')}, order swapped from one to the next: "
            f"{versions_text(calibration)}.",
            QUIET_STYLE,
        ),
    )


def _comparison_table(
    calibration: Calibration,
    rows: Sequence[CalibrationRow],
    shares: Sequence[GeneratorCeilingShare],
) -> RenderableType:
    nearest = {share.engine: percent_text(share.share) for share in shares}
    lines = [
        row_of_cells(
            HEADINGS[figure.key],
            value_text(figure.fio, figure.unit),
            value_text(figure.native, figure.unit),
            ratio_text(figure),
            figure.comparison.verdict.value,
        )
        for figure in rows
    ]
    ceilings = (rate_text(calibration.ceilings[name]) for name in ENGINES)
    lines.append(row_of_cells("ceiling, on /dev/null", *ceilings, "", ""))
    lines.append(
        row_of_cells("share of the ceiling", *(nearest.get(n, NONE) for n in ENGINES), "", "")
    )
    heads = text_and_number_columns(("",), (*ENGINES, "native / fio"), ("",))
    return report_table_for_terminal(Table("", heads, tuple(lines)))


def _host_table(calibration: Calibration) -> RenderableType:
    """A row a host: rates, how both compare, what each costs, and how near its end each is."""
    iops, *others = (
        [f"{heading}, {name}" for name in ENGINES]
        for heading in ("IOPS", "CPU", "ceiling", "share")
    )
    numbers = (*iops, "native / fio", *(name for names in others for name in names))
    lines = []
    for host in calibration.hosts:
        figures = {figure.key: figure for figure in calibration_rows(host.trials)}
        rates, cpu = figures["iops"], figures["cpu_ns_per_io"]
        shares = {share.engine: percent_text(share.share) for share in ceiling_shares_of_host(host)}
        lines.append(
            row_of_cells(
                host.host,
                *(value_text(value, rates.unit) for value in (rates.fio, rates.native)),
                ratio_text(rates),
                *(value_text(value, cpu.unit) for value in (cpu.fio, cpu.native)),
                *(rate_text(host.ceilings[name]) for name in ENGINES),
                *(shares.get(name, NONE) for name in ENGINES),
            )
        )
    return report_table_for_terminal(
        Table("", text_and_number_columns(("host",), numbers), tuple(lines))
    )


def _conclusion_table(sentences: Sequence[Conclusion]) -> RenderableType:
    lines = [
        [literal_text(meaning.about, _STYLES[meaning.tone.value]), literal_text(meaning.message)]
        for meaning in sentences
    ]
    return terminal_table([Column(""), Column("", can_wrap=True)], lines)
