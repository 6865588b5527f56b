"""A value and its unit stay on one line of a page."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, Group

from iolab.report.numbers import text_with_no_break_units
from iolab.report.table import Cell, Column, Table, table_html
from iolab.report.terminal import literal_text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Mainstream 1.42 k EUR and b 2 EUR", "Mainstream 1.42_k_EUR and b 2_EUR"),
        ("a 62.1 ms against 5.72 k IOPS", "a 62.1_ms against 5.72_k_IOPS"),
        ("537 MB/s at iodepth 4, 3 of 5, ±25 %", "537_MB/s at iodepth 4, 3 of 5, ±25_%"),
        ("4 KiB random read", "4_KiB random read"),
    ],
)
def test_no_line_ends_between_a_value_and_its_unit(text: str, kept: str) -> None:
    assert text_with_no_break_units(text).replace("\N{NO-BREAK SPACE}", "_") == kept


def test_cells_of_a_page_and_their_notes_keep_them_too() -> None:
    table = Table("T", (Column("What"),), ((Cell("at 4 KiB", note="0.54 % above it"),),))
    html = table_html(table)
    assert "at 4\N{NO-BREAK SPACE}KiB" in html
    assert "0.54\N{NO-BREAK SPACE}% above it" in html


@pytest.mark.parametrize("width", [22, 23, 24, 25, 40])
def test_lines_of_a_terminal_keep_them_and_their_blanks(width: int) -> None:
    drawn = io.StringIO()
    text = "Best in 4 KiB reads, ±12 %, 1.49 k IOPS and 62.1 ms."
    Console(file=drawn, width=width).print(Group(literal_text(text)))
    lines = drawn.getvalue().splitlines()
    assert " ".join(line.strip() for line in lines) == text
    for value in ("4 KiB", "±12 %", "1.49 k IOPS", "62.1 ms"):
        assert any(value in line for line in lines)
