"""Audits of published sets: those that ship, and each rule with a figure that is made wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from iolab.cli.studies import read_published_set
from iolab.published.audit.audit import RULES, audit_published_set
from iolab.published.audit.document import parse_published_set
from iolab.published.audit.relations import Agreement, AuditOutcome
from tests.facts import tells

SETS = Path(__file__).parents[3] / "studies" / "published"


def text_of(name: str) -> str:
    return (SETS / f"{name}.toml").read_text(encoding="utf-8")


def audited(text: str) -> tuple[AuditOutcome, ...]:
    return audit_published_set(parse_published_set(text))


def levels(outcomes: tuple[AuditOutcome, ...], rule: str) -> Counter[Agreement]:
    return Counter(one.agreement for one in outcomes if one.rule == rule)


def test_a_copy_of_a_set_that_ships_means_the_same(tmp_path: Path) -> None:
    text = text_of("vm-fleet")
    bare = tmp_path / "vm.toml"
    bare.write_text(text.partition("[[meaning.relation]]")[0], encoding="utf-8")
    assert audit_published_set(read_published_set(str(bare))) == audited(text)
    own = tmp_path / "own.toml"
    for its_own in (
        bare.read_text(encoding="utf-8").replace('id = "vm-fleet"', 'id = "other"'),
        bare.read_text(encoding="utf-8") + "[meaning]\n",
    ):
        own.write_text(its_own, encoding="utf-8")
        found = audit_published_set(read_published_set(str(own)))
        assert not {"replication", "drives", "network"} & {one.rule for one in found}


@pytest.mark.parametrize("path", sorted(SETS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_published_set_has_relations_that_can_be_computed(path: Path) -> None:
    outcomes = audited(path.read_text(encoding="utf-8"))
    assert sum(1 for one in outcomes if one.agreement is Agreement.AGREES) >= 1


NAMES = ("cassandra", "cluster-kpi", "rocksdb", "ssd-cluster", "vm-fleet")
CONTRADICTIONS = [("ssd-cluster", "restated"), ("vm-fleet", "part-of"), ("vm-fleet", "restated")]
DOUBTS = Counter(
    {
        ("cluster-kpi", "spread"): 4,  # repeats that agree to one in 100,000
        ("rocksdb", "gain-pairs"): 5,
        ("rocksdb", "repeated"): 1,  # 608,886
        ("ssd-cluster", "mix"): 1,  # 4.2 million at 50/50
        ("vm-fleet", "network"): 1,  # 186 MB/s, of 112.6
        ("vm-fleet", "stands-out"): 1,  # 288.5 ms
    }
)


def found_of(level: Agreement) -> list[tuple[str, str]]:
    return [
        (name, one.rule)
        for name in NAMES
        for one in audited(text_of(name))
        if one.agreement is level
    ]


def test_what_cannot_be_right_and_what_is_doubtful_in_them_is_found() -> None:
    assert found_of(Agreement.CONTRADICTS) == CONTRADICTIONS
    assert Counter(found_of(Agreement.DOUBTFUL)) == DOUBTS


def test_what_is_known_to_hold_in_them_is_confirmed() -> None:
    agrees = Counter(found_of(Agreement.AGREES))
    assert agrees["vm-fleet", "littles-law"] == 12
    assert agrees["vm-fleet", "replication"] == agrees["vm-fleet", "drives"] == 1
    assert agrees["ssd-cluster", "per-terabyte"] == 9
    assert agrees["ssd-cluster", "mix"] == 8
    assert agrees["cluster-kpi", "shares"] == 6
    assert agrees["cluster-kpi", "spread"] == 8
    assert agrees["cassandra", "gains"] == 1


def test_a_port_carries_a_sixth_of_what_a_node_sends_to_others() -> None:
    (port,) = (one for one in audited(text_of("vm-fleet")) if one.rule == "network")
    assert tells(port.message, "port tx mb s 186", "107.5 to 117.8", "not shared evenly")


@pytest.mark.parametrize("name", NAMES)
def test_places_are_told_where_the_document_was_read(name: str) -> None:
    published = parse_published_set(text_of(name))
    elements = list(published.iterate_elements())
    if name == "cluster-kpi":
        assert all(one.location for one in elements)
    assert all(one.location for one in elements if one.table_key == "also")


WRONG = [
    ("ssd-cluster", "raw_tb = 1475", "raw_tb = 1575", "raw-capacity"),
    ("ssd-cluster", "read_iops_per_tb = 11068", "read_iops_per_tb = 14068", "per-terabyte"),
    ("cluster-kpi", "clients = 8\n", "clients = 9\n", "shares"),
    ("cluster-kpi", "max = 2352915.997", "max = 2352935.997", "spread"),
    ("cluster-kpi", "read_iops_per_host = 1032880", "read_iops_per_host = 1042880", "shares"),
    ("cassandra", "{ measured = 27 }", "{ measured = 0.27 }", "littles-law"),
    ("vm-fleet", "qd8_max = 5800", "qd8_max = 3800", "littles-law"),
    ("vm-fleet", "ssd_write_latency_us = 87", "ssd_write_latency_us = 187", "part-of"),
    ("vm-fleet", "node_iops = 440000", "node_iops = 740000", "replication"),
    ("vm-fleet", "node_iops = 440000", "node_iops = 740000", "drives"),
    ("vm-fleet", "volume_tb_per_node = 8", "volume_tb_per_node = 12", "raw-capacity"),
    ("cluster-kpi", "read_iops = 563667", "read_iops = 5636670", "littles-law"),
    ("cluster-kpi", "HOSTFILE -np 1088", "HOSTFILE -np 1089", "command"),
]


@pytest.mark.parametrize(("name", "right", "wrong", "rule"), WRONG, ids=lambda part: str(part)[:24])
def test_one_figure_made_wrong_is_one_more_contradiction(
    name: str, right: str, wrong: str, rule: str
) -> None:
    text = text_of(name)
    assert text.count(right) == 1
    before = levels(audited(text), rule)[Agreement.CONTRADICTS]
    assert levels(audited(text.replace(right, wrong)), rule)[Agreement.CONTRADICTS] > before


def test_a_page_names_every_rule() -> None:
    page = (SETS.parents[1] / "docs" / "reference" / "audit.md").read_text(encoding="utf-8")
    assert [code for code in RULES if f"`{code}`" not in page] == []


def test_values_of_wrong_types_are_not_audited() -> None:
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
    assert audited(text) == ()


@pytest.mark.parametrize("raw_tb", ["0", "-1475", "-0.5"])
def test_nothing_is_derived_from_a_capacity_that_is_none(raw_tb: str) -> None:
    text = text_of("ssd-cluster").replace("raw_tb = 1475", f"raw_tb = {raw_tb}")
    bare = audited(text.replace("ssd_tb = 30.72\n", ""))
    rules = [(one.rule, one.subject) for one in bare]
    assert ("per-terabyte", "mainstream") in rules
    assert ("per-terabyte", "high-capacity") not in rules


def test_a_figure_twice_of_one_subject_is_none_of_two() -> None:
    one = "[[result]]\nid = 'a'\nread.x = 1234\nwrite.x = 1234\n"
    assert [found for found in audited(one) if found.rule == "repeated"] == []
    every = audited(one + one.replace("'a'", "'b'") + one.replace("'a'", "'c'"))
    (found,) = [found for found in every if found.rule == "repeated"]
    assert found.subject == "a, b and c"
    assert tells(found.message, "x is 1,234")


def test_text_that_is_no_set_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Expected|Invalid"):
        parse_published_set("id = ")
    deep = "a" + ".a" * 20 + " = 1"
    with pytest.raises(ValueError, match="deep"):
        audited(deep)
