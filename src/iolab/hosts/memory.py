"""Memory that was freed in pieces, given back to the system."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Pieces that were freed go back to the system, where its C library can be asked for that.

    The reports of a thousand hosts leave half of a process's memory free in pieces, of which the
    large tables that are made next can use none.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
