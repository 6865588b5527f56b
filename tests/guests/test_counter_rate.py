"""The rate of a node's time stamp counter, from two answers of its agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from iolab.errors import HostError
from iolab.guests.machine import counter_khz
from iolab.hosts.message import Message
from tests.fakes.host import FakeHost
from tests.fakes.script import FakeScript
from tests.fakes.virtual_time import run_virtually


class Telling(FakeHost):
    """A node that answers with these."""

    def __init__(self, *answers: Mapping[str, int]) -> None:
        super().__init__("node-1", FakeScript())
        self._answers = iter(answers)

    async def ask(
        self, verb: str, payload: bytes = b"", *, deadline_s: float, **arguments: object
    ) -> Message:
        assert (verb, payload, arguments) == ("clock", b"", {})
        assert deadline_s > 0
        return Message(verb, {"real_ns": 1, **next(self._answers)})


def rate_of(*answers: dict[str, Any]) -> int:
    return run_virtually(counter_khz(Telling(*answers)))


def test_it_is_what_was_counted_by_what_has_passed_on_the_node() -> None:
    first = {"mono_ns": 7_000_000_000, "tsc": 10**15}
    later = {"mono_ns": 7_500_004_000, "tsc": 10**15 + 1_298_058_384}
    assert rate_of(first, later) == 2_596_096


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"mono_ns": 0}, {"mono_ns": 500_000_000}),
        ({"mono_ns": 0, "tsc": 5}, {"mono_ns": 500_000_000}),
        ({"mono_ns": 9, "tsc": 5}, {"mono_ns": 9, "tsc": 5}),
        ({"mono_ns": 0, "tsc": 10**10}, {"mono_ns": 500_000_000, "tsc": 0}),
        ({"mono_ns": 0, "tsc": 0}, {"mono_ns": 500_000_000, "tsc": 2**62}),
    ],
)
def test_a_node_that_does_not_tell_is_refused(first: dict[str, Any], later: dict[str, Any]) -> None:
    with pytest.raises(HostError, match="'node-1' does not tell"):
        rate_of(first, later)
