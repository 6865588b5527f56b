"""Real output of fio, read and measured: totals and percentiles are fio's own, to the bin."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.metrics import fleet_metrics
from iolab.analysis.sums import LoadSums, sum_measured_window
from iolab.core.metric import VerdictLevel
from iolab.core.run import RunRecord
from iolab.core.workload import Direction
from iolab.hosts.intervals import IntervalCollector
from iolab.loads.fileio.engines.fio import FioEngine
from iolab.loads.fileio.workload import AccessPattern
from tests.analysis.records import JOB, facts_of, host_run, record_of
from tests.judging import judge
from tests.recorded import recorded

RUNS = (
    ("randread-3.33", AccessPattern.RANDREAD),
    ("write-3.33", AccessPattern.WRITE),
    ("randrw-3.16", AccessPattern.RANDRW),
    ("randrw-3.25", AccessPattern.RANDRW),
    ("randrw-3.33", AccessPattern.RANDRW),
    ("randrw-3.42", AccessPattern.RANDRW),
    ("randrw-3.42-135", AccessPattern.RANDRW),
    ("interrupted-3.16", AccessPattern.RANDREAD),
    ("interrupted-3.33", AccessPattern.RANDREAD),
    ("interrupted-3.42", AccessPattern.RANDREAD),
)


def last_document(text: str) -> dict[str, Any]:
    """fio's final report: the last JSON document, read without our reader."""
    start = text.rindex("\n{\n") + 1 if "\n{\n" in text else text.index("{")
    document, _ = json.JSONDecoder().raw_decode(text[start:])
    said: dict[str, Any] = document["jobs"][0]
    return said


def read_run(name: str, access: AccessPattern) -> tuple[RunRecord, dict[str, Any]]:
    """The record of a golden run, and what fio says of it at its end."""
    text = recorded(f"fio/{name}.txt").decode()
    said = last_document(text)
    options = said["job options"]
    job = replace(
        JOB,
        access=access,
        block_bytes=int(options["bs"]),
        iodepth=int(options["iodepth"]),
        numjobs=int(options["numjobs"]),
        file_bytes=int(options["filesize"]),
    )
    reader = FioEngine().create_measurement_reader(job)
    reader.feed(text.encode())
    reading = reader.finish()
    collector = IntervalCollector()
    collector.add(0, reading.intervals)
    host = host_run("c1", totals=reading.totals, stopped_early=name.startswith("interrupted"))
    record = record_of([host], collector.build_interval_table(), collector.pop_bin_table(), job=job)
    seconds = float(options["runtime"].removesuffix("ms")) / 1000
    return replace(record, runtime_s=seconds), said


@pytest.mark.parametrize(("name", "access"), RUNS)
def test_without_a_warm_up_every_number_is_fios(name: str, access: AccessPattern) -> None:
    record, said = read_run(name, access)
    load = sum_measured_window(record)
    metrics = fleet_metrics(load, access.directions)
    seconds = max(said["read"]["runtime"], said["write"]["runtime"]) / 1000
    assert load.seconds[0] == pytest.approx(seconds, abs=0.002)
    for way in (Direction.READ, Direction.WRITE):
        told = said[way.name.lower()]["lat_ns"]
        prefix = way.name.lower()
        ios = sum(told.get("bins", {}).values())
        assert ios == told.get("N", ios)  # fio 3.16 gives no N
        if ios == 0:
            assert metrics[f"{prefix}_iops"].value is None
            continue
        assert int(load.ios[0, way]) == ios
        assert metrics[f"{prefix}_iops"].value == pytest.approx(ios / seconds, rel=2e-3)
        assert metrics[f"{prefix}_lat_ns_mean"].value == pytest.approx(told["mean"], rel=1e-4)
        assert metrics[f"{prefix}_lat_ns_max"].value == told["max"]
        assert_percentiles(load, way, told)


def assert_percentiles(load: LoadSums, way: Direction, told: dict[str, Any]) -> None:
    """Each is fio's, except that ours never leave fio's own extremes."""
    histogram = load.histogram([0], [int(way)])
    assert len(told["percentile"]) > 10
    for percent, nanoseconds in told["percentile"].items():
        value = histogram.percentile_ns(float(percent))
        assert value == np.clip(nanoseconds, told["min"], told["max"])


@pytest.mark.parametrize(("name", "access"), RUNS)
def test_no_check_contradicts_a_real_run(name: str, access: AccessPattern) -> None:
    record, _ = read_run(name, access)
    result = judge(record, {"c1": facts_of()})
    found = {check.code: check for check in result.verdict.checks}
    for code in ("engine-errors", "totals-disagree", "missing-seconds", "littles-law"):
        assert found[code].level is VerdictLevel.VALID, found[code].message
    rho = found["littles-law"].evidence["rho"]
    assert isinstance(rho, float)
    assert rho == pytest.approx(1.0, abs=0.05)


def test_a_cut_warm_up_leaves_only_later_intervals() -> None:
    record, _ = read_run("randrw-3.33", AccessPattern.RANDRW)
    whole, cut = sum_measured_window(record), sum_measured_window(replace(record, warmup_s=1.0))
    assert 0 < cut.ios.sum() < whole.ios.sum()
    assert cut.bins.sum() == cut.ios.sum()
    assert (whole.bins - cut.bins).min() >= 0
    assert 0 < cut.seconds[0] <= whole.seconds[0] - 1.0 + 0.05
