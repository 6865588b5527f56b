"""`iolab audit` and `iolab reference`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.cli.studies import published_set_ids
from tests.cli.command_line import make_session
from tests.cli.in_process import call

SETS = Path(__file__).parents[2] / "studies" / "published"


def test_all_published_sets_are_audited_by_default() -> None:
    told = json.loads(call("audit", "--json").stdout)
    assert [one["name"] for one in told["sets"]] == list(published_set_ids())
    assert all(one["outcomes"] for one in told["sets"])


def test_the_screen_tells_what_is_wrong_and_counts_what_agrees() -> None:
    told = call("audit", "vm-fleet").stdout
    assert "contradicts  part-of" in told
    assert "agrees  " not in told
    assert "42 of 46 relations agree." in told
    assert "agrees       littles-law" in call("audit", "vm-fleet", "--details").stdout


@pytest.mark.parametrize(
    ("name", "level", "code"),
    [
        ("cassandra", "doubtful", 0),
        ("rocksdb", "contradicts", 0),
        ("rocksdb", "doubtful", 1),
        ("vm-fleet", "contradicts", 1),
    ],
)
def test_the_exit_code_tells_the_worst_outcome_when_asked(name: str, level: str, code: int) -> None:
    assert call("audit", name, "--fail-on", level).returncode == code
    assert call("audit", name).returncode == 0


def test_a_file_of_the_same_form_is_audited(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text((SETS / "ssd-cluster.toml").read_text().replace("raw_tb = 1475", "raw_tb = 9"))
    told = call("audit", own)
    assert "raw-capacity" in told.stdout
    assert told.returncode == 0


def test_a_session_is_audited_and_so_is_its_damage(tmp_path: Path) -> None:
    session = make_session(tmp_path / "s")
    (told,) = json.loads(call("audit", session, "--json").stdout)["sets"]
    assert told["damage"] == []
    assert {one["rule"] for one in told["outcomes"]} >= {"sum-of-hosts", "order", "verdict"}
    next(session.glob("points/*/run-*/intervals.parquet")).write_bytes(b"x")
    damaged = call("audit", session, "--fail-on", "contradicts")
    assert "damage" in damaged.stdout
    assert damaged.returncode == 5


@pytest.mark.parametrize(
    ("content", "message"), [("id = ", "no set of results"), (b"\xff", "UTF-8")]
)
def test_what_is_no_set_is_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_bytes(content.encode() if isinstance(content, str) else content)
    told = call("audit", bad)
    assert (told.returncode, message in told.stderr) == (2, True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a = " + "[" * 900 + "]" * 900, "12 deep"),
        (f"[a{'.b' * 100}]\nx = 1", "12 deep"),
        ("[a]\nb = 1e400", "'a.b'"),
        ("a = [nan]", "'a.0'"),
        ("a = -inf", "'a'"),
        (f"a = {10**30 + 1}", "'a'"),
        ("a = 1e-31", "'a'"),
        (f"a = '{'x' * 4097}'", "4096"),
        (f"{'k' * 129} = 1", "128"),
    ],
)
def test_what_no_set_can_hold_is_refused(tmp_path: Path, content: str, message: str) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text(content)
    told = call("audit", bad)
    assert (told.returncode, message in told.stderr) == (2, True)


@pytest.mark.parametrize("asked", [("reference",), ("choose", "--usable-tb", "1")])
def test_no_command_takes_what_no_set_can_hold(tmp_path: Path, asked: tuple[str, ...]) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("a = [nan]")
    assert call(asked[0], bad, *asked[1:]).returncode == 2


@pytest.mark.parametrize("command", ["audit", "reference", "choose"])
def test_what_is_of_another_kind_is_passed_over(tmp_path: Path, command: str) -> None:
    odd = tmp_path / "odd.toml"
    odd.write_text(
        "id = 2026-01-01\nworkload = [{id = [1]}]\nprinted_derivation = [{configuration = [1]}]\n"
        "configuration = [{id = [1], nodes = true, usable_tb = 0, peak_iops = {w = [1, 2], z = 0}}]"
    )
    needs = ["--usable-tb", "1"] if command == "choose" else []
    told = call(command, odd, *needs, "--json")
    assert told.returncode == 0
    assert json.loads(told.stdout)["format"] == 1


@pytest.mark.parametrize("command", ["audit", "reference"])
def test_a_name_that_is_misspelt_gets_the_nearest(command: str) -> None:
    told = call(command, "vm-flet")
    assert told.returncode == 2
    assert "'vm-fleet'" in told.stderr


def test_text_of_a_set_moves_no_terminal(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('id = "\\u001b[2J"\nsource = "\\u001b[31m"\n')
    told = call("audit", own).stdout
    assert "\x1b" not in told
    assert "\\x1b" in told


def test_the_references_are_listed_and_shown() -> None:
    listed = call("reference").stdout
    assert all(name in listed for name in published_set_ids())
    shown = call("reference", "ssd-cluster").stdout
    assert "5,200,000" in shown
    assert "14,323" in shown
    whole = json.loads(call("reference", "ssd-cluster", "--json").stdout)
    assert whole["content"]["configuration"][0]["peak_iops"]["rand-read-4k"] == 5.2e6
    raw = call("reference", "ssd-cluster", "--toml").stdout
    assert raw == (SETS / "ssd-cluster.toml").read_text(encoding="utf-8")


def test_a_file_to_print_needs_a_name() -> None:
    assert call("reference", "--toml").returncode == 2


def test_all_sets_that_cannot_be_read_are_told_at_once(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("id = [", encoding="utf-8")
    done = call("audit", "casandra", "vm-fleet", broken.name, cwd=tmp_path)
    assert done.returncode == 2
    assert "2 of 3 sets" in done.stderr
    assert "'cassandra'" in done.stderr
    assert "broken.toml" in done.stderr
    assert done.stdout == ""


def test_a_set_is_shown_with_what_our_own_functions_make_of_it() -> None:
    shown = call("reference", "ssd-cluster").stdout
    assert "Computed" in shown
    told = json.loads(call("reference", "ssd-cluster", "--json").stdout)["computed"]
    assert all(one["agrees"] for one in told["printed"])
    per_tb = {
        one["configuration"]: round(one["value"])
        for one in told["quotients"]
        if (one["workload"], one["per"]) == ("rand-read-4k", "TB raw")
    }
    assert per_tb == {"high-capacity": 3526, "mainstream": 11068, "performance": 14323}
    kpi = json.loads(call("reference", "cluster-kpi", "--json").stdout)["computed"]
    assert len(kpi["clients"]) == 8
