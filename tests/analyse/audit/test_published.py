"""Audits of published sets: those that ship, and each rule with a figure that is made wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from iolab.analyse.audit.document import read_published
from iolab.analyse.audit.outcome import Agreement, Outcome
from iolab.analyse.audit.rules import RULES, audit

SETS = Path(__file__).parents[3] / "studies" / "published"


def text_of(name: str) -> str:
    return (SETS / f"{name}.toml").read_text(encoding="utf-8")


def audited(text: str) -> tuple[Outcome, ...]:
    return audit(read_published(text))


def levels(outcomes: tuple[Outcome, ...], rule: str) -> Counter[Agreement]:
    return Counter(one.agreement for one in outcomes if one.rule == rule)


@pytest.mark.parametrize("path", sorted(SETS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_published_set_has_relations_that_can_be_computed(path: Path) -> None:
    outcomes = audited(path.read_text(encoding="utf-8"))
    assert sum(1 for one in outcomes if one.agreement is Agreement.AGREES) >= 1


def test_what_is_known_to_hold_in_the_published_sets_is_confirmed() -> None:
    fleet = audited(text_of("vm-fleet"))
    assert levels(fleet, "littles-law") == {Agreement.AGREES: 4}
    assert levels(fleet, "replication") == {Agreement.AGREES: 1}
    assert levels(fleet, "raw-capacity") == {Agreement.AGREES: 1}
    cluster = audited(text_of("ssd-cluster"))
    assert levels(cluster, "per-terabyte") == {Agreement.AGREES: 9}
    assert levels(cluster, "raw-capacity") == {Agreement.AGREES: 3}


def test_what_cannot_be_right_in_them_is_found() -> None:
    wrong = {
        name: {one.rule for one in audited(text_of(name)) if one.agreement.rank == 2}
        for name in ("cassandra", "cluster-kpi", "rocksdb", "ssd-cluster", "vm-fleet")
    }
    assert wrong == {
        "cassandra": set(),
        "cluster-kpi": set(),
        "rocksdb": set(),
        "ssd-cluster": {"modules"},
        "vm-fleet": {"link-share", "restated"},
    }
    frames = [one for one in audited(text_of("vm-fleet")) if one.rule == "link-share"]
    assert [one.agreement for one in frames] == [Agreement.AGREES, Agreement.CONTRADICTS]
    assert "2.2 times" in frames[1].says


def test_what_is_doubtful_in_them_is_named() -> None:
    doubts = [one for one in audited(text_of("rocksdb")) if one.rule == "repeated"]
    assert [one.agreement for one in doubts] == [Agreement.DOUBTFUL]
    assert "608,886" in doubts[0].says
    fleet = audited(text_of("vm-fleet"))
    assert levels(fleet, "stands-out")[Agreement.DOUBTFUL] == 1


WRONG = [
    ("ssd-cluster", "raw_tb = 1475", "raw_tb = 1575", "raw-capacity"),
    ("ssd-cluster", "read_iops_per_tb = 11068", "read_iops_per_tb = 14068", "per-terabyte"),
    ("ssd-cluster", "tb_per_node = 245.76", "tb_per_node = 215.04", "per-terabyte"),
    ("ssd-cluster", "(768GB)", "(512GB)", "modules"),
    ("ssd-cluster", "seq-write-128k = 8 }", "seq-write-128k = 16 }", "depths"),
    ("cluster-kpi", "-n 18382", "-n 18000", "command"),
    ("cluster-kpi", "clients = 8", "clients = 9", "command"),
    ("cluster-kpi", "{ mean = 272, p99_5 = 459 }", "{ mean = 472, p99_5 = 459 }", "order"),
    ("cassandra", "gain_ops = 1.5", "gain_ops = 2.5", "gains"),
    ("cassandra", "{ measured = 27 }", "{ measured = 0.27 }", "closed-loop"),
    ("vm-fleet", "qd8_max = 5800", "qd8_max = 3800", "littles-law"),
    ("vm-fleet", "node_iops = 440000", "node_iops = 275000", "replication"),
    ("vm-fleet", "node_iops = 440000", "node_iops = 640000", "drives"),
    ("vm-fleet", "ssd_write_latency_us = 87", "ssd_write_latency_us = 187", "latency-share"),
    ("vm-fleet", "qd1 = [224, 338]", "qd1 = [338, 224]", "order"),
    ("vm-fleet", "port_tx_mb_s = 186", "port_tx_mb_s = 386", "link-share"),
    ("vm-fleet", "cluster_raw_tb = 123", "cluster_raw_tb = 132", "raw-capacity"),
]


@pytest.mark.parametrize(("name", "right", "wrong", "rule"), WRONG, ids=lambda part: str(part)[:24])
def test_one_figure_made_wrong_is_one_more_contradiction(
    name: str, right: str, wrong: str, rule: str
) -> None:
    text = text_of(name)
    assert text.count(right) == 1
    before = levels(audited(text), rule)[Agreement.CONTRADICTS]
    assert levels(audited(text.replace(right, wrong)), rule)[Agreement.CONTRADICTS] > before


def test_gains_of_one_mean_agree_and_others_are_doubtful() -> None:
    found = levels(audited(text_of("rocksdb")), "gain-pairs")
    assert found == {Agreement.AGREES: 1, Agreement.DOUBTFUL: 5}


def test_ports_that_send_what_copies_need_agree() -> None:
    text = text_of("vm-fleet").replace("port_tx_mb_s = 186", "port_tx_mb_s = 84")
    assert levels(audited(text), "network") == {Agreement.AGREES: 1}


def test_every_rule_has_its_own_code_and_a_page_names_it() -> None:
    page = (SETS.parents[1] / "docs" / "reference" / "audit.md").read_text(encoding="utf-8")
    codes = [rule.code for rule in RULES]
    assert len(set(codes)) == len(codes)
    assert [code for code in codes if f"`{code}`" not in page] == []


def test_a_set_of_nothing_has_nothing_to_audit() -> None:
    assert audited('id = "x"') == ()


def test_hostile_sets_are_no_more_than_text() -> None:
    text = """
id = "\\u001b[2J"
[method]
nodes = "many"
replication = []
threads_per_vm = 0
vms_per_node_max = 3
vms_per_node_in_text = "3"
[[result]]
workload = 3
max_iops = true
ops_s = { measured = 0, competitor = 0 }
gain_ops = 1
threads = 8
p99_99_read_ms = "x"
mean_latency_us = { qd8 = [] }
vms = 1
"""
    assert all(one.agreement is Agreement.AGREES for one in audited(text))


def test_what_stands_among_tables_moves_no_subject() -> None:
    text = "result = [1, {id = 'a', mean = 9, p99_5 = 2}, [{mean = 9, p99_5 = 2}]]"
    assert [one.subject for one in audited(text) if one.rule == "order"] == ["a", "0"]


@pytest.mark.parametrize("raw_tb", ["0", "-1475", "-0.5"])
def test_nothing_is_derived_from_a_capacity_that_is_none(raw_tb: str) -> None:
    text = text_of("ssd-cluster").replace("raw_tb = 1475", f"raw_tb = {raw_tb}")
    bare = audited(text.replace("ssd_tb = 30.72\n", ""))
    rules = [(one.rule, one.subject) for one in bare]
    assert ("per-terabyte", "mainstream") in rules
    assert ("per-terabyte", "high-capacity") not in rules


def test_figures_per_terabyte_are_held_against_the_drives_where_these_are_told() -> None:
    text = text_of("ssd-cluster").replace("raw_tb = 1475", "raw_tb = 1575")
    assert levels(audited(text), "per-terabyte") == {Agreement.AGREES: 9}
    assert levels(audited(text), "raw-capacity")[Agreement.CONTRADICTS] == 1


def test_a_figure_twice_of_one_subject_is_none_of_two() -> None:
    one = "[[result]]\nid = 'a'\nread.x = 1234\nwrite.x = 1234\n"
    assert [found for found in audited(one) if found.rule == "repeated"] == []
    every = audited(one + one.replace("'a'", "'b'") + one.replace("'a'", "'c'"))
    (found,) = [found for found in every if found.rule == "repeated"]
    assert (found.subject, found.says) == (
        "a and b and c",
        "x is 1,234 for each: measured twice, or copied?",
    )


def test_a_place_in_a_list_is_no_name() -> None:
    text = "result = [{id = 'a', x = [1234, 5]}, {id = 'b', y = [1234, 6]}, {id = 'c', x = [1234]}]"
    (found,) = [found for found in audited(text) if found.rule == "repeated"]
    assert (found.subject, found.says.partition(" is")[0]) == ("a and c", "x")


def test_what_contradicts_by_little_is_not_said_to_be_once_as_much() -> None:
    text = "[[configuration]]\nnodes = 1\nssds_per_node = 1\nssd_tb = 1002\nraw_tb = 1021"
    (found,) = audited(text)
    assert found.agreement is Agreement.CONTRADICTS
    assert "is 1.02 times what" in found.says


def test_text_that_is_no_set_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Expected|Invalid"):
        read_published("id = ")
    deep = "a" + ".a" * 20 + " = 1"
    with pytest.raises(ValueError, match="deep"):
        audited(deep)
