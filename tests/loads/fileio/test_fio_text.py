"""Documents are found whatever stands around them."""

from __future__ import annotations

import pytest

from iolab.core.limits import DOCUMENT_BYTES_MAX, TEXT_LINE_BYTES_MAX, TEXT_LINES_MAX
from iolab.loads.fileio.engines.fio_output import JsonDocumentSplitter

ONE = b'{\n  "a" : 1\n}\n'
TWO = b'{\n  "b" : {\n  }\n}\n'


def cut(raw: bytes, piece: int | None = None) -> tuple[list[bytes], JsonDocumentSplitter]:
    cutter = JsonDocumentSplitter()
    found: list[bytes] = []
    step = piece or max(len(raw), 1)
    for start in range(0, len(raw), step):
        found += cutter.feed(raw[start : start + step])
    return found + cutter.finish(), cutter


def test_a_document_is_given_with_its_last_line() -> None:
    cutter = JsonDocumentSplitter()
    assert cutter.feed(ONE[:-1]) == []
    assert cutter.feed(b"\n") == [ONE]


def test_text_inside_a_document_is_taken_out() -> None:
    found, cutter = cut(b'{\nwarning: full\n  "a" : 1\n}\n')
    assert found == [ONE]
    assert cutter.message_lines == ["warning: full"]


def test_a_document_that_never_ends_is_counted() -> None:
    found, cutter = cut(ONE + TWO[:8])
    assert (found, cutter.broken_count) == ([ONE], 1)


def test_a_document_that_another_one_interrupts_is_counted() -> None:
    found, cutter = cut(TWO[:8] + b"\n" + ONE)
    assert (found, cutter.broken_count) == ([ONE], 1)


def test_text_is_kept_within_limits() -> None:
    noise = b"x" * (TEXT_LINE_BYTES_MAX * 2) + b"\n"
    _, cutter = cut(noise * (TEXT_LINES_MAX * 2) + b"\xff\xfe\x00\n}\n")
    assert cutter.message_lines == ["x" * TEXT_LINE_BYTES_MAX] * TEXT_LINES_MAX


def test_output_without_an_end_does_not_fill_memory() -> None:
    cutter = JsonDocumentSplitter()
    for _ in range(3):
        assert cutter.feed(b"{\n " + b" " * DOCUMENT_BYTES_MAX) == []
        assert len(cutter._buffer) == 0
    assert cutter.broken_count == 3
    assert cutter.feed(ONE) == [ONE]


@pytest.mark.parametrize(
    "noise", [b"", b"\n", b"}\n", b"}", b"\t\n", b"{\n", b"fio: \n}\nwords\n", b"  x\n"]
)
@pytest.mark.parametrize("piece", [1, 5, None])
def test_a_document_is_found_after_any_noise(noise: bytes, piece: int | None) -> None:
    """Whole documents take a shorter way: what stands before them must not lead it astray."""
    found, _ = cut(noise + (b"" if noise.endswith(b"\n") or not noise else b"\n") + ONE, piece)
    assert ONE in found
    found, _ = cut(ONE + noise, piece)
    assert found[0] == ONE
