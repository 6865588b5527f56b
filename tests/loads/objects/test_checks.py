"""Runs on objects that failed, repeated, connected anew, or waited for a socket option."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import replace

from iolab.analysis.check import ACKNOWLEDGED, ON_DEVICES
from iolab.analysis.kinds import judge_run
from iolab.core.histogram import bin_index_of_ns
from iolab.core.metric import CheckResult, RunResult, VerdictLevel
from iolab.loads.objects.checks import check_objects_bytes_moved
from iolab.loads.objects.metrics import ObjectsView
from iolab.loads.objects.report import (
    endpoint_latencies_table,
    endpoints_table,
    object_size_latencies_table,
)
from iolab.loads.objects.workload import (
    ContentlessObjectOperation,
    EndpointCount,
    EndpointLatency,
    ObjectOperationCount,
    ObjectOrder,
    ReadBackCounts,
    SizeClassCount,
)
from iolab.registry import analysis_kinds, report_kinds
from tests.analysis.records import BLOCK, facts_of, series
from tests.facts import tells
from tests.loads.objects.records import GENERATOR, GETS, JOB, RUN, SECONDS, objects_run, storing

GET = RUN.counts[0]


def judged(**changes: Any) -> RunResult:
    """The result of such a run."""
    record = objects_run(**changes)
    facts = {host.host: facts_of(host.host, device=None, devices=()) for host in record.hosts}
    return judge_run(record, facts, analysis_kinds())


def level(code: str, **changes: Any) -> VerdictLevel | None:
    """What a check says of it."""
    return {check.code: check.level for check in judged(**changes).verdict.checks}[code]


def failed(count: int, **errors: int) -> tuple[ObjectOperationCount, ...]:
    """GETs of which so many failed."""
    attempts = GET.done + count
    return (replace(GET, failed=count, attempts=attempts, errors=tuple(errors.items())),)


PUTTING, COMPARING = replace(JOB, put=1), replace(JOB, verify_every=4)
READING_BACK = replace(PUTTING, read_back=True)
PUTS: Final = 1000
READ: Final = GETS * SECONDS * BLOCK
FAILED, OPENED = "object-requests-failed", "connections-opened"
COMPARED: Final = "contents-not-compared"
LOST: Final = "objects-lost"
FAR = EndpointCount("http://10.0.0.1:9000", 1, 0, GETS * SECONDS * BLOCK, 1)


def read_back(
    compared: int,
    *,
    missing: int = 0,
    differing: int = 0,
    unread: int = 0,
    failed: int = 0,
    acknowledged: int = 1000,
    fault: str = "",
) -> dict[str, Any]:
    """A run that put a thousand objects and read them back."""
    begun = acknowledged + failed
    puts = ObjectOperationCount("object_put", acknowledged, failed, begun)
    count = ReadBackCounts(begun, compared, missing, differing, unread, fault)
    return {
        "job": READING_BACK,
        "counts": (GET, puts),
        "put_objects": acknowledged,
        "read_back": count,
    }


@pytest.mark.parametrize(
    ("code", "changes", "expected"),
    [
        (FAILED, {}, VerdictLevel.VALID),
        (FAILED, {"counts": failed(300, SlowDown=300)}, VerdictLevel.VALID),
        (FAILED, {"counts": failed(3000, timeout=3000)}, VerdictLevel.INDICATIVE),
        (FAILED, {"counts": failed(30_000, SlowDown=30_000)}, VerdictLevel.INVALID),
        (FAILED, {"counts": failed(1, **{"wrong-content": 1})}, VerdictLevel.INVALID),
        (FAILED, {"counts": (replace(GET, attempts=2 * GET.done),)}, VerdictLevel.INDICATIVE),
        (OPENED, {}, VerdictLevel.VALID),
        (OPENED, {"opened": GET.done // 2}, VerdictLevel.INDICATIVE),
        (OPENED, {"opened": GET.done, "job": replace(JOB, keep_alive=False)}, None),
        ("delayed-acknowledgement", {}, VerdictLevel.VALID),
        ("delayed-acknowledgement", {"head_ns": 41_000_000}, VerdictLevel.INDICATIVE),
        ("delayed-acknowledgement", {"head_ns": 60_000_000}, VerdictLevel.VALID),
        ("delayed-acknowledgement", {"head_ns": 41_000_000, "busy": True}, VerdictLevel.VALID),
        ("hot-object", {}, VerdictLevel.VALID),
        ("hot-object", {"job": replace(JOB, object_count=5)}, VerdictLevel.INDICATIVE),
        (
            "hot-object",
            {"job": replace(JOB, order=ObjectOrder.ZIPF, zipf_theta=1.5)},
            VerdictLevel.INDICATIVE,
        ),
        (
            "hot-object",
            {"job": replace(JOB, order=ObjectOrder.ZIPF, zipf_theta=0.5)},
            VerdictLevel.VALID,
        ),
        ("data-set-in-server-memory", {}, None),
        ("server-clock", {}, VerdictLevel.VALID),
        ("server-clock", {"ahead_min_ms": -90_000.0}, VerdictLevel.INDICATIVE),
        ("server-clock", {"ahead_max_ms": 90_000.0}, VerdictLevel.INDICATIVE),
        ("server-clock", {"ahead_min_ms": None, "ahead_max_ms": None}, None),
        ("coordinated-omission", {}, None),
        ("coordinated-omission", {"job": replace(JOB, rate=22_000)}, VerdictLevel.VALID),
        (
            "coordinated-omission",
            {"job": replace(JOB, rate=90_000), "generator": replace(GENERATOR, unreached=True)},
            VerdictLevel.INVALID,
        ),
        ("bytes-moved", {}, None),
        ("puts-in-memory", {}, None),
        ("puts-in-memory", {"job": PUTTING, "puts": PUTS}, None),
        (COMPARED, {}, None),
        (COMPARED, {"job": COMPARING, "verified_bytes": READ // 4}, VerdictLevel.VALID),
        (
            COMPARED,
            {"job": COMPARING, "verified_bytes": READ // 9},
            VerdictLevel.INDICATIVE,
        ),
        (LOST, {}, None),
        (LOST, {"job": READING_BACK}, VerdictLevel.INDICATIVE),
        (LOST, read_back(1000), VerdictLevel.VALID),
        (LOST, read_back(999, missing=1), VerdictLevel.INVALID),
        (LOST, read_back(999, differing=1), VerdictLevel.INVALID),
        (LOST, read_back(999, unread=1), VerdictLevel.INDICATIVE),
        # Whether the missing one is of the PUT that failed nobody knows.
        (LOST, read_back(1000, missing=1, failed=1), VerdictLevel.INDICATIVE),
        (LOST, read_back(1001, failed=1), VerdictLevel.VALID),
        (LOST, read_back(1000, unread=1, failed=1), VerdictLevel.INDICATIVE),
        (LOST, read_back(0, unread=1000, fault="no connection"), VerdictLevel.INDICATIVE),
        (LOST, read_back(0, missing=9, failed=9, acknowledged=0), None),
        (LOST, read_back(999, missing=2, failed=1), VerdictLevel.INVALID),
        ("generator-bound", {}, None),
        ("generator-bound", {"generator_limit_iops": 100_000.0}, VerdictLevel.VALID),
        ("generator-bound", {"generator_limit_iops": 30_000.0}, VerdictLevel.INDICATIVE),
        ("generator-bound", {"generator_limit_fault": "it told nothing"}, VerdictLevel.INDICATIVE),
    ],
)
def test_a_run_is_judged_by_what_its_requests_did(
    code: str, changes: dict[str, Any], expected: VerdictLevel | None
) -> None:
    assert level(code, **changes) is expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [(1.05, VerdictLevel.VALID), (0.95, VerdictLevel.INDICATIVE), (0.5, VerdictLevel.INVALID)],
)
def test_contents_are_held_against_what_ports_carried(share: float, expected: VerdictLevel) -> None:
    record = objects_run(endpoints=(FAR,))
    rates = {"rx_bytes_per_s": share * GETS * BLOCK, "tx_bytes_per_s": 1e6}
    telemetry = tuple(
        series(metric, [rate] * SECONDS, scope="nic", name="eth0") for metric, rate in rates.items()
    )
    view = analysis_kinds().build_view(record, {"c1": facts_of("c1")}, telemetry)
    assert isinstance(view, ObjectsView)
    assert check_objects_bytes_moved(view).level is expected


@pytest.mark.parametrize(
    ("share", "expected", "acknowledged"),
    [
        (1.0, VerdictLevel.VALID, ON_DEVICES),
        (3.1, VerdictLevel.VALID, ON_DEVICES),
        (0.5, None, "in memory"),
    ],
)
def test_puts_are_held_against_what_disks_of_storage_nodes_wrote(
    share: float, expected: VerdictLevel | None, acknowledged: str
) -> None:
    written = round(share * PUTS * SECONDS * BLOCK)
    record = replace(objects_run(job=PUTTING, puts=PUTS), monitored_hosts=(storing(written),))
    result = judge_run(record, {"c1": facts_of("c1")}, analysis_kinds())
    (check,) = [one for one in result.verdict.checks if one.code == "puts-in-memory"]
    assert check.level is (expected or VerdictLevel.INDICATIVE)
    assert check.evidence[ACKNOWLEDGED] == acknowledged


def answer(code: str, **changes: Any) -> CheckResult:
    (check,) = [one for one in judged(**changes).verdict.checks if one.code == code]
    return check


def test_lost_objects_are_counted_of_those_that_were_acknowledged() -> None:
    lost = answer(LOST, **read_back(998, missing=3, failed=1))
    assert tells(lost.message, "lost 2 of 1,000 acknowledged", "0 have other contents")
    assert lost.evidence["lost_share"] == 0.002
    unread = answer(LOST, **read_back(0, unread=1000, fault="no route to it."))
    assert tells(unread.message, "1,000 of 1,000", "not be read back (no route to it).")


def test_a_generator_limit_says_encryption_where_it_has_it() -> None:
    changes = {"generator_limit_iops": 1e5, "tls_ns": 9}
    assert "encryption" not in answer("generator-bound", **changes).message
    assert (
        "encryption" in answer("generator-bound", **changes, generator_limit_has_tls=True).message
    )


def test_a_generator_limit_is_a_figure_beside_the_result() -> None:
    assert judged().metrics["generator_limit_ops_per_s"].value is None
    metrics = judged(generator_limit_iops=120_000.0).metrics
    assert metrics["generator_limit_ops_per_s"].value == 120_000.0


def test_endpoints_and_sizes_have_rows_of_all_hosts_together() -> None:
    def count(lat_ns: int, number: int) -> SizeClassCount:
        bins = ((int(bin_index_of_ns(lat_ns)), number),)
        return SizeClassCount("object_get", 4096, number, number * 4096, number * lat_ns, bins)

    other = EndpointCount("http://10.0.0.2:9000", 10, 2, 40_960, 10_000_000)
    runs = [
        replace(RUN, endpoints=(FAR, other), sizes=(count(1_000_000, 99),)),
        replace(RUN, endpoints=(other,), sizes=(count(9_000_000, 1),)),
    ]
    rows = [[cell.text for cell in row] for row in endpoints_table(runs).rows]
    assert [row[:3] for row in rows] == [[FAR.endpoint, "1", "1"], [other.endpoint, "2", "20"]]
    assert rows[1][-2:] == ["1 ms", "4"]
    (row,) = ([cell.text for cell in row] for row in object_size_latencies_table(runs).rows)
    assert row[:3] == ["object-get", "up to 4 KiB", "100"]
    assert row[4:] == ["1.08 ms", "1.00 ms", "1.00 ms"]


def test_latencies_by_endpoint_are_merged_over_hosts() -> None:
    def endpoint(url: str, lat_ns: int, number: int) -> EndpointCount:
        bins = ((int(bin_index_of_ns(lat_ns)), number),)
        latency = EndpointLatency("object_get", number, number * lat_ns, bins)
        return EndpointCount(url, number, 0, 0, number * lat_ns, (latency,))

    runs = [
        replace(RUN, endpoints=(endpoint("a", 1_000_000, 99), endpoint("b", 4_000_000, 10))),
        replace(RUN, endpoints=(endpoint("a", 9_000_000, 1), endpoint("b", 4_000_000, 10))),
    ]
    rows = [[cell.text for cell in row] for row in endpoint_latencies_table(runs).rows]
    assert rows[0] == ["a", "object-get", "100", "1.08 ms", "1.00 ms", "1.00 ms"]
    assert rows[1][:4] == ["b", "object-get", "20", "4 ms"]
    assert not endpoint_latencies_table([RUN]).rows


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
    kept = record.intervals.direction == ContentlessObjectOperation.OBJECT_HEAD
    table = record.intervals
    only = type(table)(*(getattr(table, name)[kept] for name in table.__struct_fields__))
    bins = record.bins
    rows = bins.direction == ContentlessObjectOperation.OBJECT_HEAD
    heads = type(bins)(*(getattr(bins, name)[rows] for name in bins.__struct_fields__))
    result = judge_run(
        replace(record, intervals=only, bins=heads),
        {"c1": facts_of("c1", device=None, devices=())},
        analysis_kinds(),
    )
    assert result.metrics["object_head_ops_per_s"].value == pytest.approx(2000)
    levels = {check.code: check.level for check in result.verdict.checks}
    assert levels["object-requests-failed"] is levels["engine-errors"] is VerdictLevel.VALID
    line = report_kinds().report_of_result(result).run_figures_text_if_not_iops(result)
    assert line is not None
    assert tells(line, "HEAD", "2 k", "400")
    whole = judged()
    assert report_kinds().report_of_result(whole).run_figures_text_if_not_iops(whole) is None
