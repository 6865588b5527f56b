"""Sentences on what stays on hosts, collected for the end of whatever closes hosts.

`iolab.hosts.leftovers` makes them; a command prints them (`iolab.cli.output`), and the Python
interface warns of them (`iolab.api`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

SENTENCES_MAX: Final = 100
"""Sentences that one command tells; of a fleet that was left in a mess the first are enough."""

_collected: ContextVar[list[str] | None] = ContextVar("leftovers", default=None)


@contextmanager
def collect_leftover_texts() -> Iterator[list[str]]:
    """A list that gets a sentence for each thing that stays on a host closed within the block."""
    sentences: list[str] = []
    token = _collected.set(sentences)
    try:
        yield sentences
    finally:
        _collected.reset(token)


def add_to_collected_leftover_texts(texts: Iterable[str]) -> None:
    """Have them told at the end, each once."""
    collected = _collected.get()
    if collected is not None:
        fresh = [sentence for sentence in texts if sentence not in collected]
        collected += fresh[: SENTENCES_MAX - len(collected)]
