"""`iolab choose`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.core.configuration import ProcurementCost
from tests.cli.command_line import STUDY, iolab, make_session
from tests.cli.in_process import call
from tests.facts import tells


def test_published_configurations_are_held_against_needs_best_first() -> None:
    told = call("choose", "ssd-cluster", "--usable-tb", "800", "-n", "rand-write-4k >= 2M",
                 "--json")  # fmt: skip
    fits = json.loads(told.stdout)["fits"]
    assert [one["configuration"] for one in fits] == ["high-capacity", "mainstream", "performance"]
    assert [one["nodes"] for one in fits] == [13, 16, 16]
    assert {one["answer"] for one in fits} == {"likely"}
    assert fits[2]["parts"][1]["axis"] == {"iodepth": 16}


def test_the_screen_names_the_assumption() -> None:
    told = call("choose", "ssd-cluster", "-n", "seq-read-1m >= 150GB/s", "--scaling", "0.5")
    assert "likely  performance (ssd-cluster)  4 nodes" in told.stdout
    assert "50 %" in told.stdout
    assert tells(told.stdout.splitlines()[1], "margin", "nodes", "by mean")


def test_where_no_nodes_are_known_nothing_is_assumed_of_more(tmp_path: Path) -> None:
    owners = tuple(replace(one, nodes=None) for one in STUDY.configurations)
    unsized = make_session(tmp_path / "S", study=replace(STUDY, configurations=owners))
    told = call("choose", unsized, "-n", "workload-1 >= 1").stdout
    assert "margin" in told.splitlines()[1].split()[-1]
    assert "80 %" not in told
    assert "no `nodes`" in told


def test_a_large_margin_is_no_power_of_ten() -> None:
    told = call("choose", "ssd-cluster", "-n", "rand-write-4k >= 1k").stdout
    assert "e+" not in told
    assert "1,10" in told


def test_sessions_are_chosen_from(session: Path) -> None:
    told = call("choose", session, "-n", "workload-1 >= 1", "-n", "workload-1 p99 <= 9s", "--json")
    (one,) = json.loads(told.stdout)["fits"]
    assert one["parts"][0]["answer"] == "one run"


def test_metrics_of_kinds_are_known_to_the_command(session: Path) -> None:
    """In a process of its own, in which nothing else has made them known."""
    done = iolab("choose", str(session), "-n", "workload-1 write-amplification <= 3")
    assert done.returncode == 0, done.stderr
    assert "workload-1 write-amplification <= 3" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "No need"),
        (("-n", "foo"), "'foo'"),
        (("-n", f"rand-read-4k >= {'9' * 400}"), "99"),
        (("--usable-tb", "-1"), "--usable-tb is -1"),
        (("--budget", "much"), "--budget is 'much'"),
        (("--usable-tb", "1", "--scaling", "0"), "--scaling is 0"),
        (("-n", "rand-wite-4k >= 1M"), "'rand-write-4k'"),
    ],
)
def test_bad_needs_are_told(arguments: tuple[str, ...], message: str) -> None:
    told = call("choose", "ssd-cluster", *arguments)
    assert told.returncode == 2
    assert message in told.stderr


def test_a_set_without_configurations_is_refused() -> None:
    told = call("choose", "rocksdb", "--usable-tb", "1")
    assert (told.returncode, "no configurations" in told.stderr) == (2, True)


def test_costs_in_two_currencies_are_told_and_decide_nothing(tmp_path: Path) -> None:
    for name, currency, cost in (("a", "JPY", 5.0), ("b", "EUR", 9.0)):
        price = ProcurementCost(currency, cost, 0.0, 0.0)
        owners = tuple(replace(one, cost=price) for one in STUDY.configurations)
        make_session(tmp_path / name, study=replace(STUDY, configurations=owners))
    needs = ("-n", "workload-1 >= 1")
    told = call("choose", tmp_path / "a", tmp_path / "b", *needs)
    assert "JPY and EUR" in told.stdout
    assert "Costs are in" not in call("choose", tmp_path / "a", *needs).stdout
    document = json.loads(call("choose", tmp_path / "a", tmp_path / "b", *needs, "--json").stdout)
    assert document["currencies"] == ["JPY", "EUR"]
