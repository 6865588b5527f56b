"""Runs on objects that failed, repeated, connected anew, or waited for a socket option."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.analysis.kinds import judge_run
from iolab.core.metric import Level, Result
from iolab.loads.objects.checks import check_bytes_carried
from iolab.loads.objects.metrics import ObjectsView
from iolab.loads.objects.workload import EndpointCount, ObjectOrder, ObjectRequest, RequestCount
from iolab.registry import analysis_kinds
from tests.analysis.records import BLOCK, facts_of, series
from tests.loads.objects.records import GENERATOR, GETS, JOB, RUN, SECONDS, objects_run

GET = RUN.counts[0]


def judged(**changes: Any) -> Result:
    """The result of such a run."""
    record = objects_run(**changes)
    facts = {host.host: facts_of(host.host, device=None, devices=()) for host in record.hosts}
    return judge_run(record, facts, analysis_kinds())


def level(code: str, **changes: Any) -> Level | None:
    """What a check says of it."""
    return {check.code: check.level for check in judged(**changes).verdict.checks}[code]


def failed(count: int, **errors: int) -> tuple[RequestCount, ...]:
    """GETs of which so many failed."""
    attempts = GET.done + count
    return (replace(GET, failed=count, attempts=attempts, errors=tuple(errors.items())),)


FAILED, OPENED = "object-requests-failed", "connections-opened"
FAR = EndpointCount("http://10.0.0.1:9000", 1, 0, GETS * SECONDS * BLOCK, 1)


@pytest.mark.parametrize(
    ("code", "changes", "expected"),
    [
        (FAILED, {}, Level.VALID),
        (FAILED, {"counts": failed(300, SlowDown=300)}, Level.VALID),
        (FAILED, {"counts": failed(3000, timeout=3000)}, Level.INDICATIVE),
        (FAILED, {"counts": failed(30_000, SlowDown=30_000)}, Level.INVALID),
        (FAILED, {"counts": failed(1, **{"wrong-content": 1})}, Level.INVALID),
        (FAILED, {"counts": (replace(GET, attempts=2 * GET.done),)}, Level.INDICATIVE),
        (OPENED, {}, Level.VALID),
        (OPENED, {"opened": GET.done // 2}, Level.INDICATIVE),
        (OPENED, {"opened": GET.done, "job": replace(JOB, keep_alive=False)}, None),
        ("delayed-acknowledgement", {}, Level.VALID),
        ("delayed-acknowledgement", {"head_ns": 41_000_000}, Level.INDICATIVE),
        ("delayed-acknowledgement", {"head_ns": 60_000_000}, Level.VALID),
        ("hot-object", {}, Level.VALID),
        ("hot-object", {"job": replace(JOB, object_count=5)}, Level.INDICATIVE),
        (
            "hot-object",
            {"job": replace(JOB, order=ObjectOrder.ZIPF, zipf_theta=1.5)},
            Level.INDICATIVE,
        ),
        ("hot-object", {"job": replace(JOB, order=ObjectOrder.ZIPF, zipf_theta=0.5)}, Level.VALID),
        ("data-set-in-server-memory", {}, None),
        ("server-clock", {}, Level.VALID),
        ("server-clock", {"ahead_min_ms": -90_000.0}, Level.INDICATIVE),
        ("server-clock", {"ahead_max_ms": 90_000.0}, Level.INDICATIVE),
        ("server-clock", {"ahead_min_ms": None, "ahead_max_ms": None}, None),
        ("coordinated-omission", {}, None),
        ("coordinated-omission", {"job": replace(JOB, rate=22_000)}, Level.VALID),
        (
            "coordinated-omission",
            {"job": replace(JOB, rate=90_000), "generator": replace(GENERATOR, unreached=True)},
            Level.INVALID,
        ),
        ("bytes-moved", {}, None),
    ],
)
def test_a_run_is_judged_by_what_its_requests_did(
    code: str, changes: dict[str, Any], expected: Level | None
) -> None:
    assert level(code, **changes) is expected


@pytest.mark.parametrize(
    ("share", "expected"), [(1.05, Level.VALID), (0.95, Level.INDICATIVE), (0.5, Level.INVALID)]
)
def test_contents_are_held_against_what_ports_carried(share: float, expected: Level) -> None:
    record = objects_run(endpoints=(FAR,))
    rates = {"rx_bytes_per_s": share * GETS * BLOCK, "tx_bytes_per_s": 1e6}
    telemetry = tuple(
        series(metric, [rate] * SECONDS, scope="nic", name="eth0") for metric, rate in rates.items()
    )
    view = analysis_kinds().build_view(record, {"c1": facts_of("c1")}, telemetry)
    assert isinstance(view, ObjectsView)
    assert check_bytes_carried(view).level is expected


def test_operations_and_their_parts_have_rates_and_latencies() -> None:
    metrics = judged().metrics
    assert metrics["object_ops_per_s"].value == pytest.approx(GETS + 2000)
    assert metrics["object_get_ops_per_s"].value == pytest.approx(GETS)
    assert metrics["object_get_first_byte_lat_ns_p99"].value == pytest.approx(500_000, rel=0.01)
    assert metrics["object_head_lat_ns_p50"].value == pytest.approx(400_000, rel=0.01)
    assert metrics["operations_per_core_s"].value == pytest.approx(22_000 * SECONDS / 12)
    assert metrics["attempts_per_operation"].value == pytest.approx(1)
    assert metrics["bw_bytes_per_s"].value == pytest.approx(GETS * BLOCK)
    assert "object_put_ops_per_s" not in metrics


def test_load_without_contents_is_load() -> None:
    record = objects_run(job=replace(JOB, get=0))
    kept = record.intervals.direction == ObjectRequest.OBJECT_HEAD
    table = record.intervals
    only = type(table)(*(getattr(table, name)[kept] for name in table.__struct_fields__))
    bins = record.bins
    rows = bins.direction == ObjectRequest.OBJECT_HEAD
    heads = type(bins)(*(getattr(bins, name)[rows] for name in bins.__struct_fields__))
    result = judge_run(
        replace(record, intervals=only, bins=heads),
        {"c1": facts_of("c1", device=None, devices=())},
        analysis_kinds(),
    )
    assert result.metrics["object_head_ops_per_s"].value == pytest.approx(2000)
    assert "object-requests-failed" in {check.code for check in result.verdict.checks}
