"""The user's own words, and charts and tables as files."""

from __future__ import annotations

import base64
import csv
import io
from pathlib import Path

import pytest
from msgspec.structs import replace
from pypdf import PdfReader

from iolab.errors import UsageError
from iolab.report.formats.markdown import render_markdown
from iolab.report.formats.render import chart_and_table_files, render_pdf
from iolab.report.user_text import (
    LOGO_BYTES_MAX,
    TEXT_BYTES_MAX,
    UserText,
    markdown_to_blocks,
    markdown_to_html,
    read_user_text,
)
from tests.report import shared

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
TEXT = """Author: Jo Doe
Logo: logo.png

We **bought** two of them.

## Conclusion

- Take the *first*.
"""


@pytest.fixture
def words(tmp_path: Path) -> UserText:
    (tmp_path / "logo.png").write_bytes(PIXEL)
    (tmp_path / "text.md").write_text(TEXT, encoding="utf-8")
    return read_user_text(tmp_path / "text.md")


def test_a_text_is_author_logo_introduction_and_conclusion(words: UserText) -> None:
    assert (words.author, words.logo_type, words.logo) == ("Jo Doe", "png", PIXEL)
    assert words.introduction == "We **bought** two of them."
    assert words.conclusion == "- Take the *first*."


def test_every_form_has_the_words(words: UserText) -> None:
    told = replace(shared.undrawn(shared.brief("pair")), user_text=words)
    page = shared.drawn(told)
    assert "<strong>bought</strong>" in page
    assert page.index("bought") < page.index('id="answer"') < page.index("Take the <em>first</em>")
    assert 'src="data:image/png;base64,' in page
    assert "Jo Doe" in page
    assert "We **bought** two" in render_markdown(told)
    made = PdfReader(io.BytesIO(render_pdf(told)))
    text = " ".join("".join(one.extract_text() for one in made.pages).split())
    assert "We bought two of them." in text
    assert "Take the first." in text
    assert any(one.images for one in made.pages)


def test_foreign_markup_stays_text() -> None:
    bad = (
        "<script>alert(1)</script> ![x](https://evil.example/x.png) [y](javascript:alert(2))\u202e"
    )
    page = markdown_to_html(bad)
    assert "<script" not in page
    assert "<img" not in page
    assert 'href="javascript' not in page
    assert "\u202e" not in page
    runs = [run["text"] for block in markdown_to_blocks(bad) for run in block["runs"]]
    assert "<script>" in "".join(runs)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.md", None, "cannot be read"),
        ("text.md", b"\xff\xfe", "no text in UTF-8"),
        ("text.md", b"a" * (TEXT_BYTES_MAX + 1), "longer than"),
        ("text.md", b"", "has no text"),
        ("text.md", b"Logo: gone.png\n\nx", "cannot be read"),
        ("text.md", b"Logo: text.md\n\nx", "neither PNG nor JPEG"),
    ],
)
def test_what_cannot_be_used_is_told(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_user_text(tmp_path / name)
    told = [caught.value.message, *(fault.message for fault in caught.value.faults)]
    assert any(message in one for one in told)


def test_all_faults_of_a_logo_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "logo").write_bytes(b"x" * (LOGO_BYTES_MAX + 1))
    (tmp_path / "text.md").write_text("Logo: logo\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_user_text(tmp_path / "text.md")
    assert len(caught.value.faults) == 2


def test_every_chart_and_table_is_a_file() -> None:
    files = dict(chart_and_table_files(shared.undrawn(shared.brief("pair"))))
    charts = [name for name in files if name.endswith(".svg")]
    assert len(charts) >= 5
    for name in charts:
        drawn = files[name]
        assert isinstance(drawn, str)
        assert drawn.startswith("<svg")
        picture = files[f"{name.removesuffix('.svg')}.png"]
        assert isinstance(picture, bytes)
        assert picture.startswith(b"\x89PNG")
    tables = [text for name, text in files.items() if name.endswith(".csv")]
    assert len(tables) > len(charts)
    for text in tables:
        assert isinstance(text, str)
        rows = list(csv.reader(io.StringIO(text)))
        assert len(rows) > 1
        assert len({len(row) for row in rows}) == 1


def test_names_of_files_hold_nothing_foreign() -> None:
    for name, _ in chart_and_table_files(shared.undrawn(shared.brief("hostile"))):
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-."), name
