"""The barrier: outcomes by host, and what ends everybody."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from iolab.errors import EngineError, HostError, StoreError
from iolab.hosts.barrier import combined_error, gather_hosts, run_with_background
from tests.fakes.virtual_time import run_virtually


@dataclass(frozen=True)
class Member:
    name: str


MEMBERS = tuple(Member(name) for name in "abc")


def test_each_host_is_in_exactly_one_of_the_two() -> None:
    async def work(member: Member) -> str:
        await asyncio.sleep(1)
        if member.name == "b":
            raise HostError("b broke.", "Mend it.")
        return member.name.upper()

    outcomes = run_virtually(gather_hosts(MEMBERS, work))
    assert outcomes.results == {"a": "A", "c": "C"}
    assert list(outcomes.errors) == ["b"]
    with pytest.raises(HostError, match="b broke"):
        outcomes.results_or_raise()


def test_a_failure_of_one_does_not_cut_the_others_short() -> None:
    async def work(member: Member) -> float:
        if member.name == "a":
            raise EngineError("a broke.", "Mend it.")
        await asyncio.sleep(100)
        return asyncio.get_running_loop().time()

    outcomes = run_virtually(gather_hosts(MEMBERS, work))
    assert outcomes.results == {"b": 100.0, "c": 100.0}


def test_anything_else_cancels_the_others_and_is_raised() -> None:
    cleaned: list[str] = []

    async def work(member: Member) -> None:
        try:
            await asyncio.sleep(1 if member.name == "a" else 1000)
            raise StoreError("full.", "Make room.")
        finally:
            cleaned.append(member.name)

    with pytest.raises(StoreError):
        run_virtually(gather_hosts(MEMBERS, work))
    assert sorted(cleaned) == ["a", "b", "c"]


def test_a_cancelled_barrier_waits_for_its_members_to_clean_up() -> None:
    cleaned: list[str] = []

    async def work(member: Member) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(5)
            cleaned.append(member.name)

    async def body() -> None:
        task = asyncio.create_task(gather_hosts(MEMBERS, work))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(cleaned) == ["a", "b", "c"]

    run_virtually(body())


def test_several_errors_become_one_that_names_them_all() -> None:
    error = combined_error(
        {
            "a": EngineError("One.", "Do."),
            "b": HostError("Two.", "Do."),
            "c": EngineError("3.", "Do."),
        }
    )
    assert isinstance(error, HostError)
    assert [fault.message for fault in error.faults] == ["One.", "Two.", "3."]
    assert isinstance(
        combined_error({"a": EngineError("One.", ""), "b": EngineError("Two.", "")}), EngineError
    )


def test_what_runs_beside_ends_with_the_main_thing() -> None:
    ended: list[str] = []

    async def beside() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append("beside")

    assert run_virtually(run_with_background(asyncio.sleep(1, "main"), beside())) == "main"
    assert ended == ["beside"]


def test_a_failure_beside_ends_the_main_thing() -> None:
    async def beside() -> None:
        await asyncio.sleep(1)
        raise HostError("It fell silent.", "Look.")

    with pytest.raises(HostError):
        run_virtually(run_with_background(asyncio.sleep(1000), beside()))
