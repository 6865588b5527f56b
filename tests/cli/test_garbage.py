"""The search for garbage while a session is followed."""

from __future__ import annotations

import gc

import pytest

from iolab.cli.garbage import NEW_OBJECTS, seldom_collected


def test_garbage_is_searched_for_seldom_and_then_as_before() -> None:
    before = gc.get_threshold()
    with seldom_collected():
        assert gc.get_threshold() == (NEW_OBJECTS, *before[1:])
        assert gc.isenabled()
    assert gc.get_threshold() == before


def test_a_session_that_fails_leaves_the_search_as_it_was() -> None:
    before = gc.get_threshold()
    with pytest.raises(ZeroDivisionError), seldom_collected():
        _ = 1 / 0
    assert gc.get_threshold() == before
