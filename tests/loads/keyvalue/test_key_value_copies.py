"""Whole copies of databases: who makes them, and what they add to a plan's cost."""

from __future__ import annotations

import pytest

from iolab.loads.keyvalue.cost import (
    Reflinks,
    compacted_store_bytes,
    notes_on_full_database_copies,
    plan_with_copy_costs,
)
from iolab.loads.keyvalue.workload import KeyJob
from tests.loads.keyvalue.key_value_studies import db_bench, ycsb
from tests.plans import make_plan
from tests.study.studies import SMALL, load

RATE = 1e6
HERE = "default"
WHOLE: Reflinks = {(HERE, "local"): False}


def added(text: str, *sets: str, reflinks: Reflinks = WHOLE) -> tuple[int, int]:
    """Bytes that hosts copy one run after the other, and in all; a note tells of such plans."""
    study = load(text, *sets)
    plan = make_plan(study)
    more = plan_with_copy_costs(study, plan, reflinks, RATE).demand
    seconds = more.seconds - plan.demand.seconds
    assert sum(part for _, part in more.time_items) == pytest.approx(more.seconds)
    assert bool(list(notes_on_full_database_copies(study, plan.runs, reflinks, RATE))) == (
        seconds > 0
    )
    return round(seconds * RATE), more.write_bytes_estimate - plan.demand.write_bytes_estimate


def size_of(text: str) -> int:
    job = load(text).workloads[0].job
    assert isinstance(job, KeyJob)
    return compacted_store_bytes(job)


def test_every_run_of_a_client_copies_its_database() -> None:
    text = db_bench(threads="[1, 2, 4]")
    size = size_of(text)
    assert added(text) == (3 * size, 3 * size)
    study = load(text)
    (message,) = notes_on_full_database_copies(study, make_plan(study).runs, WHOLE, RATE)
    assert "database whole on 'local'" in message


def test_a_reflink_an_xfs_of_our_own_and_io_cost_nothing() -> None:
    text = db_bench()
    assert added(text, reflinks={(HERE, "local"): True}) == (0, 0)
    assert added(text, reflinks={}) == (0, 0)
    assert added(text, "target.filesystem=xfs", "target.image=1g") == (0, 0)
    assert added(SMALL) == (0, 0)


def test_clients_copy_at_the_same_time_and_a_node_for_all_of_them() -> None:
    text = ycsb(more='[[host]]\nname = "a"\n[[host]]\nname = "b"\n')
    size = size_of(text)
    both: Reflinks = {(HERE, "a"): False, (HERE, "b"): False}
    assert added(text, reflinks=both) == (size, 2 * size)
    managed = ("server.kind=managed", "server.listen=192.0.2.7")
    assert added(text, *managed, reflinks=both) == (size, size)
    assert added(text, *managed, reflinks={(HERE, "b"): False}) == (0, 0)
    assert added(text, *managed, "server.host=b", reflinks={(HERE, "b"): False}) == (size, size)
    assert added(text, "server.kind=given", "server.addresses=c", reflinks=both) == (0, 0)
