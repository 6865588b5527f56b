"""A session as metrics: the format's rules, the sums, and what the dashboard asks for."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from iolab.core.histogram import LOWER_NS, UPPER_NS, Histogram, dense_counts
from iolab.store.reader import SessionReader
from tests.cli.command_line import RESULTS, SHAPE, make_session
from tests.cli.compared import Target, make_target
from tests.cli.in_process import call
from tests.serve.asking import CLOSED, TOKEN, Site

DOCS = Path(__file__).parents[2] / "docs"
SAMPLE = re.compile(r'^([a-z_]+)\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\} (\S+)(?: (\d+\.\d{3}))?$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
SUFFIXES: dict[str, tuple[str, ...]] = {
    "counter": ("_total",),
    "info": ("_info",),
    "gauge": ("",),
    "histogram": ("_bucket", "_count", "_sum"),
}


@dataclass(frozen=True)
class Sample:
    name: str
    labels: dict[str, str]
    value: float
    at_s: float | None


def samples(text: str) -> list[Sample]:
    """Every sample, with the rules of the format that a reader depends on."""
    *lines, last, end = text.split("\n")
    assert (last, end) == ("# EOF", "")
    found, families, kind, family = [], set(), "", ""
    for line in lines:
        if line.startswith("# "):
            _, what, name, *rest = line.split(" ")
            if what == "TYPE":
                assert name not in families
                families.add(name)
                family, kind = name, rest[0]
            assert name == family
            if what == "UNIT":
                assert name.endswith(f"_{rest[0]}")
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        name, labels, value, at_s = match.groups()
        assert name in {f"{family}{suffix}" for suffix in SUFFIXES[kind]}, line
        pairs = LABEL.findall(labels)
        assert len({one for one, _ in pairs}) == len(pairs)
        found.append(Sample(name, dict(pairs), float(value), float(at_s) if at_s else None))
    return found


def series(found: list[Sample]) -> dict[tuple[str, str], list[Sample]]:
    grouped = defaultdict(list)
    for one in found:
        grouped[one.name, json.dumps(one.labels)].append(one)
    return grouped


def queries() -> Iterator[str]:
    """What the panels of the dashboard ask for."""
    board = json.loads((DOCS / "grafana" / "iolab.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_session(tmp_path_factory.mktemp("metrics") / "S")


@pytest.fixture(scope="module")
def scraped(folder: Path) -> list[Sample]:
    return samples(Site(folder.parent).get("/metrics").text)


@pytest.fixture(scope="module")
def exported(folder: Path) -> list[Sample]:
    return samples(call("export", folder, "--format", "openmetrics").stdout)


def test_a_scrape_has_the_sums_of_all_runs(scraped: list[Sample], folder: Path) -> None:
    reader = SessionReader(folder)
    tables = [reader.record(one.digest, one.repeat) for one in RESULTS]
    for name, column in (("iolab_operations_total", "ios"), ("iolab_bytes_total", "bytes")):
        told = sum(one.value for one in scraped if one.name == name)
        assert told == sum(int(getattr(one.intervals, column).sum()) for one in tables)
    counted = {one.labels["point"]: one for one in scraped if one.name.endswith("_seconds_count")}
    assert sum(one.value for one in counted.values()) == sum(
        int(t.bins.count.sum()) for t in tables
    )
    assert all(one.at_s is None for one in scraped)
    (planned,) = [one.value for one in scraped if one.name == "iolab_session_planned_runs"]
    done = [one for one in scraped if one.name == "iolab_session_runs_total"]
    assert planned == sum(one.value for one in done) == len(RESULTS)
    stands = {o.labels["status"]: o.value for o in scraped if o.name == "iolab_session_status"}
    assert [name for name, value in stands.items() if value] == ["done"]


def test_buckets_hold_exactly_what_is_below_their_ends(scraped: list[Sample], folder: Path) -> None:
    reader = SessionReader(folder)
    result = RESULTS[0]
    bins = reader.bins(result.digest, result.repeat)
    whole = Histogram(dense_counts(bins.bin, bins.count))
    point = ", ".join(f"{name} {value}" for name, value in result.axis_values)
    mine = [one for one in scraped if one.labels.get("point") == point and "le" in one.labels]
    assert [one.value for one in mine] == sorted(one.value for one in mine)
    assert mine[-1].labels["le"] == "+Inf"
    assert mine[-1].value == whole.total
    for one in mine[:-1]:
        end_ns = round(float(one.labels["le"]) * 1e9)
        assert one.value == whole.counts[end_ns >= UPPER_NS].sum()
        assert end_ns in LOWER_NS


def test_published_values_stand_in_base_units(scraped: list[Sample]) -> None:
    (p99,) = [
        one
        for one in scraped
        if one.name == "iolab_point_latency_seconds"
        and (one.labels["statistic"], one.labels["operation"]) == ("p99", "all")
        and one.labels["point"] == "iodepth 1, bs 4k"
        and one.labels["estimate"] == "value"
    ]
    known = RESULTS[0].metrics["lat_ns_p99"].value
    assert known is not None
    assert p99.value == pytest.approx(known / 1e9)


def test_an_export_grows_with_time_from_zero_to_the_sums(
    exported: list[Sample], scraped: list[Sample]
) -> None:
    ends = {key: group[-1].value for key, group in series(exported).items()}
    assert ends == {key: group[0].value for key, group in series(scraped).items()}
    for (name, _), group in series(exported).items():
        times = [one.at_s for one in group]
        assert None not in times
        assert all(a < b for a, b in pairwise(times) if a and b)
        if name in {"iolab_operations_total", "iolab_bytes_total"}:
            assert group[0].value == 0
            assert (np.diff([one.value for one in group]) >= 0).all()


def test_repeats_go_on_where_the_run_before_ended(tmp_path: Path) -> None:
    folder = make_target(tmp_path / "S", Target(repeats=3))
    found = samples(call("export", folder, "--format", "openmetrics").stdout)
    for (name, _), group in series(found).items():
        if name == "iolab_operations_total":
            values = [one.value for one in group]
            assert values == sorted(values)
            assert len(values) == 6
            assert values[1] == values[2]


def test_what_a_session_is_called_stays_one_label(tmp_path: Path) -> None:
    name = 'a"b\\c\nd'
    folder = make_target(tmp_path / "S", Target(name=name))
    found = samples(call("export", folder, "--format", "openmetrics").stdout)
    assert {one.labels["session"] for one in found} == {'a\\"b\\\\c\\nd'}


def test_a_scrape_needs_the_token_as_any_page_does(folder: Path) -> None:
    site = Site(folder.parent, terms=CLOSED)
    assert site.get("/metrics").status == 401
    answer = site.get("/metrics", {"authorization": f"Bearer {TOKEN}"})
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/openmetrics-text")


def test_a_later_scrape_reads_only_what_is_new_and_tells_it(tmp_path: Path) -> None:
    make_session(tmp_path / "one" / "S")
    site = Site(tmp_path)
    first, second = site.ask(["/metrics", "/metrics"])
    assert first.text == second.text
    make_session(tmp_path / "two" / "S")
    assert len(samples(site.get("/metrics").text)) == 2 * len(samples(first.text))


def test_all_that_the_dashboard_asks_for_exists_and_is_documented(scraped: list[Sample]) -> None:
    known = {one.name for one in scraped}
    asked = {name for query in queries() for name in re.findall(r"\biolab_[a-z_]+", query)}
    # Without objections or metrics of a kind's own there is no sample of them.
    assert asked - {"iolab_check_objections"} <= known
    page = (DOCS / "reference" / "openmetrics.md").read_text(encoding="utf-8")
    written = set(re.findall(r"`(iolab_[a-z_]+)`", page))
    bare = {re.sub(r"_(bucket|count|sum)$", "", name) for name in known}
    assert bare | {"iolab_check_objections", "iolab_point_metric"} == written
    labels = {name for query in queries() for name in re.findall(r"by \(([a-z, ]+)\)", query)}
    every = {label for one in scraped for label in one.labels} | {"check"}
    assert {label for group in labels for label in group.split(", ")} <= every


def test_rates_of_an_export_are_those_of_its_runs(exported: list[Sample]) -> None:
    for (name, text), group in series(exported).items():
        labels = json.loads(text)
        if name != "iolab_operations_total" or labels["operation"] != "read":
            continue
        point = labels["point"]
        (result,) = [
            one for one in RESULTS if ", ".join(f"{k} {v}" for k, v in one.axis_values) == point
        ]
        first, last = group[0], group[-1]
        assert first.at_s is not None
        assert last.at_s is not None
        rate = (last.value - first.value) / (last.at_s - first.at_s)
        known = result.metrics["iops"].value
        assert known is not None
        assert math.isclose(rate, known, rel_tol=1e-6)
        assert last.at_s - first.at_s == SHAPE.seconds
