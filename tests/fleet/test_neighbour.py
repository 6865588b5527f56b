"""A neighbour on a host of its own, over ssh: who makes which load, and what is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fleet.bed import Bed
from tests.fleet.test_session import iolab

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SHORT = (
    *(f"phase.{name}.seconds=4s" for name in ("alone", "neighbour", "limited", "alone-again")),
    *("workload.neighbour.numjobs=2", "workload.neighbour.filesize=1m"),
    *("workload.victim.filesize=4m", "event.neighbour.hosts=c02,c03"),
    *("method.idle_watch=0", "method.generator_limit=false"),
)


def test_a_neighbour_runs_on_the_hosts_that_the_study_names(fleet: Bed, tmp_path: Path) -> None:
    session = tmp_path / "session"
    words = [word for value in SHORT for word in ("--set", value)]
    where = ("--hosts", fleet.inventory, "--out", session)
    done = iolab("run", "noisy-neighbour", "--scale", "small", *words, *where, home=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(iolab("show", session, "--json", home=tmp_path).stdout)
    (result,) = document["results"]
    assert [host["name"] for host in result["hosts"]] == ["c01"]
    scenario = result["scenario"]
    (neighbour,) = scenario["neighbours"]
    assert neighbour["hosts"] == ["c02", "c03"]
    free, held = neighbour["phases"]
    assert (free["id"], held["id"]) == ("neighbour", "limited")
    # Each of both hosts has its own limit of 50 a second; what they do without is far more.
    (limit,) = neighbour["limit_figures"]
    assert limit["limit"] == 2 * 50
    assert limit["rate"] <= 1.1 * limit["limit"] < free["iops"]["value"]
    assert {event["id"]: event["host"] for event in scenario["events"]} == {
        "neighbour": "c02 and c03",
        "limit": "c02 and c03",
    }
    levels = {check["code"]: check["level"] for check in result["verdict"]["checks"]}
    assert (levels["neighbour-absent"], levels["event-failed"]) == ("valid", "valid")
    for name in fleet.specs:
        fleet.wait_until_alone(name)
        assert list((fleet.fleet.folder(name) / "target").iterdir()) == []
