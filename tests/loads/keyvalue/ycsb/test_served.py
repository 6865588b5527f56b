"""YCSB against a server that all clients share: loaded by all, watched, and dead in mid-run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from iolab.errors import EngineError
from iolab.loads.keyvalue.workload import key_value_details_of_host, server_settings_or_embedded
from iolab.loads.keyvalue.ycsb.clients import RecordRange, split_records
from tests.loads.keyvalue.ycsb.play import FakeServer, play, study_of
from tests.loads.keyvalue.ycsb.stand_in import behave, started

pytestmark = [pytest.mark.e2e, pytest.mark.long]

TOTAL = 19827


def properties(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words if "=" in word)


@pytest.mark.parametrize(("records", "clients"), [(10, 1), (10, 3), (2, 3), (1_000_003, 7)])
def test_records_are_shared_without_a_gap(records: int, clients: int) -> None:
    parts = split_records(records, clients)
    assert len(parts) == clients
    assert [part.first for part in parts] == [
        sum(one.count for one in parts[:place]) for place in range(clients)
    ]
    assert sum(part.count for part in parts) == records
    assert max(part.count for part in parts) - min(part.count for part in parts) <= 1
    assert split_records(3, 1) == (RecordRange(0, 3),)


def test_clients_load_it_together_once(program: Path, target: Path) -> None:
    study = study_of(program, server="given")
    server = FakeServer(server_settings_or_embedded(study))
    played = play(study, target, hosts=("c1", "c2", "c3"), runs=2, server=server)
    assert played.faults == [None, None]
    loads = [properties(words) for words in started(program, "load")]
    parts = sorted((int(one["insertstart"]), int(one["insertcount"])) for one in loads)
    assert parts == [(0, 333), (333, 333), (666, 334)]
    assert {one["iolab.hosts"] for one in loads} == {"127.0.0.1:9042"}
    assert server.events == ["ready for 3", "watched", "after"] * 2 + ["end"]
    assert started(program, "shape") == []
    for mine in played.runs[1]:
        assert sum(one.ios for one in mine.intervals) == TOTAL
        told = key_value_details_of_host(mine.to_host_run())
        assert told is not None
        assert told.copied_by == ""


def test_a_half_load_is_loaded_again(program: Path, target: Path) -> None:
    at_first: list[list[str]] = []

    def mend(number: int, *_: object) -> None:
        at_first.extend(started(program, "load"))
        does: Mapping[str, Any] = {"inserts": 1, "only": "c2"}
        behave(program, **({} if number else {"load": dict(does)}))

    study = study_of(program, server="given")
    server = FakeServer(server_settings_or_embedded(study))
    played = play(study, target, hosts=("c1", "c2"), runs=2, server=server, before=mend)
    first, second = played.faults
    assert isinstance(first, EngineError)
    assert "YCSB on host 'c2'" in first.message
    assert second is None
    assert len(started(program, "load")) == len(at_first) + 2


def test_a_server_that_dies_ends_the_run_with_its_reason_and_the_next_one_goes_well(
    program: Path, target: Path
) -> None:
    death = target.parent / "death"

    def kill_first(number: int, *_: object) -> None:
        if number == 0:
            death.touch()
            behave(program, measure={"sleep": 1000})
        else:
            behave(program)

    study = study_of(program, server="given")
    server = FakeServer(server_settings_or_embedded(study), dies_at=death)
    played = play(study, target, hosts=("c1", "c2"), runs=2, server=server, before=kill_first)
    first, second = played.faults
    assert isinstance(first, EngineError)
    assert "signal 9 (SIGKILL)" in first.message
    assert second is None
    assert server.events.count("after") == 2
    assert list(target.iterdir()) == []


def test_operations_that_failed_since_the_server_died_are_not_the_reason(
    program: Path, target: Path
) -> None:
    death = target.parent / "death"
    study = study_of(program, server="given")
    server = FakeServer(server_settings_or_embedded(study), dies_at=death)

    def arrange(*_: object) -> None:
        behave(program, measure={"exit": 1, "message": "NoHostAvailableException\n"})
        death.touch()

    played = play(study, target, server=server, before=arrange)
    assert "killed by signal 9" in played.fault.message
    # No client is to be left out for it.
    assert [mine.error for mine in played.runs[0]] == [None]


def test_a_server_that_cannot_be_started_fails_the_run(program: Path, target: Path) -> None:
    class Dead(FakeServer):
        async def prepare_run(self, *_: object) -> None:
            raise EngineError("The server is not there.", "Start it.")

    study = study_of(program, server="given")
    played = play(study, target, server=Dead(server_settings_or_embedded(study)))
    assert played.fault.message == "The server is not there."
    assert started(program, "measure") == []
