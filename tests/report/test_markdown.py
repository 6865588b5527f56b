"""The report as Markdown, read by a reader of Markdown."""

from __future__ import annotations

from functools import cache

import pytest
from markdown_it import MarkdownIt

from iolab.report.formats.markdown import fenced_code_block, render_appendix, render_markdown
from iolab.report.table import escape_markdown as text
from tests.report import shared


@cache
def written() -> str:
    return render_markdown(shared.brief("pair"))


READER = MarkdownIt("commonmark", {"html": True}).enable("table")


@cache
def appendix() -> str:
    return render_appendix(shared.brief("pair"))


def test_every_part_and_sentence_is_there() -> None:
    page = shared.page("pair")
    html = READER.render(written())
    for heading in ("Caveats", "Hardware", "Method", "Bottom line"):
        assert f"<h2>{heading}</h2>" in html
    assert html.count("<table>") >= 3 + len(page.charts_by_workload)
    assert text(page.answer.answer.sentence) in written()
    backing = READER.render(appendix())
    for heading in ("Every run", "How to repeat it"):
        assert f"<h2>{heading}</h2>" in backing
    assert all(text(one.text) in written() for one in page.findings)


def test_every_row_has_as_many_cells_as_its_table() -> None:
    parts = f"{written()}\n{appendix()}".split("\n\n")
    blocks = [block.splitlines() for block in parts if block.startswith("| ")]
    assert len(blocks) > 5
    for lines in blocks:
        assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_foreign_text_is_never_markup() -> None:
    bad = shared.brief("hostile")
    html = READER.render(f"{render_markdown(bad)}\n{render_appendix(bad)}")
    assert "<script" not in html
    assert "<img" not in html
    assert "\u202e" not in html
    assert "\x1b" not in html


@pytest.mark.parametrize("foreign", ["- a", "+ a", "12. a", "1) a", "---", "=", "-", "1.", "-- a"])
def test_no_text_begins_a_list_a_rule_or_a_heading(foreign: str) -> None:
    for before in ("", "- ", "above\n"):
        html = READER.render(f"{before}{text(foreign)}\n")
        assert foreign in html
        assert html.count("<li>") == before.count("-")
        assert "<h" not in html


@pytest.mark.parametrize("plain", ["-5.3 %", "1.5 k", "12 runs", "a - b"])
def test_what_begins_nothing_stays(plain: str) -> None:
    assert text(plain) == plain


def test_a_fence_is_longer_than_any_in_what_it_holds() -> None:
    assert fenced_code_block("a\n````\nb", "toml") == ("`````toml", "a\n````\nb", "`````")
    assert fenced_code_block("plain") == ("```", "plain", "```")


def test_a_text_is_one_line() -> None:
    assert text("a\nb | c_d") == r"a b \| c\_d"


@pytest.mark.parametrize(
    ("foreign", "told"),
    [
        ("see https://evil.example", r"see https\://evil.example"),
        ("WWW.evil.example", r"WWW\.evil.example"),
        ("ratio 3:2, awww.x", "ratio 3:2, awww.x"),
    ],
)
def test_bare_addresses_become_no_links(foreign: str, told: str) -> None:
    assert text(foreign) == told
