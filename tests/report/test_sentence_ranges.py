"""Sentences of several runs as one, with the range of each number."""

from __future__ import annotations

import pytest

from iolab.report.sentence_ranges import merge_sentences


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ((2, 3), "The processors of all clients were emulated."),
        ((2, 2), "The processors of all 2 clients were emulated."),
    ],
)
def test_all_of_different_numbers_are_all_of_no_range(counts: tuple[int, ...], text: str) -> None:
    sentences = (f"The processors of {n} of {n} clients were emulated." for n in counts)
    assert merge_sentences(sentences).text == text


def test_other_numbers_have_their_range() -> None:
    merged = merge_sentences(("They came 1346 ms apart.", "They came 8851 ms apart."))
    assert merged.text == "They came 1346 to 8851 ms apart."


def test_operations_that_differ_stand_together() -> None:
    merged = merge_sentences(f"Phase file-{name} took 4 ms." for name in ("stat", "remove"))
    assert merged.text == "Phase file-stat or file-remove took 4 ms."
