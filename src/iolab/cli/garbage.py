"""How often a process that follows a session looks for objects that hold each other."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

NEW_OBJECTS: Final = 50_000
"""Containers made and not freed between two searches, in place of Python's 700. Every report and
sample makes some dozens that are freed by themselves; a thousand hosts' newest samples live all the
while, and searching them anew took a quarter of the controller's time. What may lie about unfound
is some megabytes."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Search for garbage seldom until the block is left; what was set before is put back."""
    before = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
