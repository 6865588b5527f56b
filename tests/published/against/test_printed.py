"""Published figures by workload and metric: units, owners, places, and what is passed over."""

from __future__ import annotations

import pytest

from iolab.cli.studies import read_published_set
from iolab.published.audit.document import parse_published_set
from iolab.published.sets import (
    PublishedFigure,
    PublishedReference,
    comparable_figures,
    method_descriptions,
)


def figures(name: str) -> tuple[PublishedFigure, ...]:
    return comparable_figures(read_published_set(name))


def one(
    found: tuple[PublishedFigure, ...], owner: str, workload: str, metric: str
) -> PublishedFigure:
    (match,) = (
        f for f in found if (f.system.name, f.workload, f.metric) == (owner, workload, metric)
    )
    return match


@pytest.mark.parametrize(
    ("owner", "workload", "metric", "value"),
    [
        ("sample-output", "read-bandwidth", "bw_bytes_per_s", 434.52 * 2**30),
        ("sample-output", "read-latency", "lat_ns_mean", 143e3),
        ("aws-single-client", "write-latency", "lat_ns_p99_5", 432e3),
        ("supermicro-cluster", "write-iops", "iops", 1317000),
        ("supermicro-cluster", "metadata", "file_stat_ops_per_s_whole", 3257394),
        ("mdtest", "metadata", "tree_create_ops_per_s_whole", 3.342),
    ],
)
def test_figures_of_clusters(owner: str, workload: str, metric: str, value: float) -> None:
    found = one(figures("cluster-kpi"), owner, workload, metric)
    assert found.value.middle == pytest.approx(value)
    assert found.value.low < value < found.value.high


def test_clients_and_sizes_are_those_of_their_owner() -> None:
    owners = {f.system.name: f.system for f in figures("cluster-kpi")}
    assert owners["sample-output"].client_count == 16
    assert owners["aws-cluster"].client_count == 8
    assert owners["mdtest"].client_count == 8
    ssd = {f.system.name: f.system for f in figures("ssd-cluster")}
    assert (ssd["performance"].client_count, ssd["performance"].node_count) == (12, 6)
    usable = ssd["high-capacity"].usable_tb
    assert usable is not None
    assert (usable.low, usable.high) == (972.5, 973.5)
    assert ("nic", "2x ConnectX-6 200Gb/s") in ssd["performance"].description


def test_peaks_of_each_workload() -> None:
    found = one(figures("ssd-cluster"), "performance", "seq-read-1m", "bw_bytes_per_s")
    assert (found.value.low, found.value.high) == (226.5e9, 227.5e9)
    assert len(figures("ssd-cluster")) == 27


def test_products_and_places() -> None:
    found = figures("cassandra")
    other = one(found, "competitor", "A", "ops_per_s")
    assert other.printed_for_axis_values == (("threads", 128),)
    assert other.value.middle == pytest.approx(101593)
    tail = one(found, "measured", "A", "read_lat_ns_p99_99")
    assert tail.value.middle == pytest.approx(27e6)
    assert {f.printed_for_axis_values for f in figures("rocksdb")} == {
        (("block_size", "4k"),),
        (("block_size", "16k"),),
    }
    fleet = one(figures("vm-fleet"), "measured", "write-100", "iops")
    assert (fleet.system.node_count, fleet.system.client_count) == (4, None)


def test_only_one_owner() -> None:
    told = PublishedReference(read_published_set("cluster-kpi"), "aws-cluster")
    assert {f.system.name for f in told.figures} == {"aws-cluster"}
    assert len(told.figures) < len(PublishedReference(read_published_set("cluster-kpi")).figures)


def test_method_in_words() -> None:
    words = dict(method_descriptions(read_published_set("cluster-kpi")))
    assert words["common.runtime"] == "30"
    assert words["common.direct"] == "yes"


@pytest.mark.parametrize(
    "text",
    [
        "id = 'x'\n[[example]]\nread_iops = 0\n",
        "id = 'x'\n[[example]]\nread_iops = 'many'\n",
        "id = 'x'\n[[example]]\nread_latency_us = [1, 2]\n",
        "id = 'x'\n[[configuration]]\npeak_iops = 5\n",
        "id = 'x'\n[[configuration]]\npeak_iops = { a = [1, 2] }\n",
        "id = 'x'\n[[result]]\nmax_iops = 5\n",
        "id = 'x'\n[metadata]\nexample_ops_s = 3\n",
        "id = 'x'\nexample = 3\nresult = 'none'\n",
    ],
)
def test_what_is_no_figure_is_passed_over(text: str) -> None:
    assert comparable_figures(parse_published_set(text)) == ()


def test_keys_that_no_set_has_are_known_by_how_they_are_written() -> None:
    text = """
[[configuration]]
id = "lab"
best_mb_s = { w = 250 }
mean_latency_ms = { w = 1.5 }
peak_at_threads = { w = 32 }
read_mb_s_per_node = { w = 5 }
[[result]]
workload = "v"
iops = { ours = 9001, theirs = 4001 }
max_write_latency_us = 77
gain_iops = 2
"""
    found = {
        (f.system.name, f.workload, f.metric): f
        for f in comparable_figures(parse_published_set(text))
    }
    assert set(found) == {
        ("lab", "w", "bw_bytes_per_s"),
        ("lab", "w", "lat_ns_mean"),
        ("ours", "v", "iops"),
        ("theirs", "v", "iops"),
        ("measured", "v", "write_lat_ns_max"),
    }
    rate = found["lab", "w", "bw_bytes_per_s"]
    assert rate.value.middle == pytest.approx(250e6)
    assert rate.best_reached_at_axis_values == (("threads", 32),)
    assert found["lab", "w", "lat_ns_mean"].value.middle == pytest.approx(1.5e6)
