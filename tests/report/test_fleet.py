"""A fleet in the report: strip and tables at any size, storage on the clients' time axis."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.storage_bytes import storage_byte_balance
from iolab.core.configuration import Redundancy
from iolab.core.host import HostRole
from iolab.core.metric import HostEvenness, HostResult, Metric, RunResult
from iolab.core.run import DeviceDelta, MonitoredHost, RunRecord
from iolab.hosts.rates import derive_counter_series
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.metadata.kind import KIND
from iolab.registry import report_kinds
from iolab.report.charts.chart import Line, Markers
from iolab.report.charts.palette import SERIES
from iolab.report.charts.run import DOTS_MAX, host_rates_chart
from iolab.report.charts.run_series import build_timeline
from iolab.report.charts.svg import draw_inline_svg
from iolab.report.runs import (
    HOSTS_SHOWN,
    SHOWN_METRICS,
    byte_balance_table,
    evenness_rows,
    evenness_table,
    host_metrics_table,
    slowest_and_fastest_hosts_table,
    table_without_middle_hosts,
)
from tests.report.charts.outcomes import result
from tests.report.studies import sweep
from tests.report.synthetic import GO_NS, Source, record_of

SECOND = 1_000_000_000
MIB = 1 << 20


def fleet(rates: list[float]) -> RunResult:
    hosts = tuple(
        HostResult(f"c{number:04}", {"iops": Metric(rate, "1/s")})
        for number, rate in enumerate(rates, 1)
    )
    return replace(result(8, sum(rates)), hosts=hosts)


@pytest.mark.parametrize("count", [2, 12, DOTS_MAX, DOTS_MAX + 1, 1000])
def test_the_strip_holds_every_host_and_stays_small(count: int) -> None:
    rates = [1000.0 + (7919 * i) % 1000 for i in range(count)]
    made = fleet(rates)
    figure = host_rates_chart(
        "read",
        made,
        "iops",
        SERIES[0],
        table_without_middle_hosts(host_metrics_table(made, SHOWN_METRICS), made, "iops"),
    )
    assert figure is not None
    kind = Markers if count <= DOTS_MAX else Line
    (drawn,) = [one for one in figure.plots[0].marks if isinstance(one, Markers | Line)]
    assert isinstance(drawn, kind)
    assert [x for x, _ in drawn.places] == list(range(1, count + 1))
    heights = [y or 0.0 for _, y in drawn.places]
    assert heights == sorted(heights)
    slow = int(np.argmin(rates)) + 1
    assert f"Slowest: c{slow:04}" in figure.finding
    assert len(draw_inline_svg(figure).svg) < 40_000


def test_a_strip_needs_two_hosts_with_a_rate() -> None:
    table = host_metrics_table(fleet([1.0]), SHOWN_METRICS)
    assert host_rates_chart("read", fleet([1.0]), "iops", SERIES[0], table) is None
    assert host_rates_chart("read", fleet([1.0, 2.0]), "lat_ns_max", SERIES[0], table) is None


def test_a_large_fleets_table_has_its_ends() -> None:
    made = fleet([float(rate) for rate in range(1000, 0, -1)])
    table = table_without_middle_hosts(host_metrics_table(made, SHOWN_METRICS), made, "iops")
    names = [row[0].text for row in table.rows]
    half = HOSTS_SHOWN // 2
    assert names[:half] == [f"c{number:04}" for number in range(1000, 1000 - half, -1)]
    assert names[half] == f"{1000 - HOSTS_SHOWN} hosts between"
    assert names[-1] == "c0001"
    assert {len(row) for row in table.rows} == {len(table.columns)}
    whole = fleet([1.0] * HOSTS_SHOWN)
    assert (
        len(
            table_without_middle_hosts(host_metrics_table(whole, SHOWN_METRICS), whole, "iops").rows
        )
        == HOSTS_SHOWN
    )


def test_a_large_fleet_of_metadata_load_shows_its_extremes_too() -> None:
    hosts = tuple(
        HostResult(f"c{number:04}", {"file_create_ops_per_s": Metric(float(number), "ops/s")})
        for number in range(1000)
    )
    made, (workload, *_) = replace(fleet([1.0]), hosts=hosts), sweep(seconds=2).study.workloads
    table = slowest_and_fastest_hosts_table(
        KIND.make_report(report_kinds().booted_hosts), made, workload
    )
    names = [cells[0].text for cells in table.rows]
    assert len(names) == HOSTS_SHOWN + 1
    assert (names[0], names[-1]) == ("c0000", "c0999")
    assert {len(cells) for cells in table.rows} == {len(table.columns)}


def test_the_spread_is_told_in_words() -> None:
    spread = HostEvenness(
        2_500_000, 7_000_000, 0.987, 29.9, 30.2, "c2", "c1", 0.9876, None, -120_000
    )
    told = dict(evenness_rows(spread))
    assert told["slowest"] == "c2"
    assert told["fastest over slowest"] == "–"
    assert told["Jain's index"] == "0.988"
    assert told["first I/Os apart"] == "2.5 ms"
    assert told["all ran together"] == "99 % of the time"
    assert told["largest clock drift"] == "-0.12 ms"
    assert len(evenness_table(spread).rows) == len(told)


@pytest.fixture(scope="module")
def source() -> Source:
    return sweep(seconds=12)


def beside(source: Source, role: HostRole, offset_ns: int) -> RunRecord:
    """A run with a host beside it whose disk reads 8 MiB and whose port sends 4 MiB a second."""
    record = record_of(source, source.plan.runs[0])
    collector, index = CounterCollector(), len(record.hosts)
    for at in range(18):
        moved, sent = at * 8 * MIB, at * 4 * MIB
        disk = ["sdb", at, moved, at, 0, 0, 0, 0, at, at, 0, 0, 0, None]
        other = ["sda", at, 99 * moved, at, 0, 0, 0, 0, at, at, 0, 0, 0, None]
        sample = {"seq": at, "real_ns": GO_NS + at * SECOND + offset_ns, "disks": [disk, other]}
        collector.add(index, sample | {"nics": [["eth0", 0, 0, 0, sent, 0, 0]]})
    node = MonitoredHost("s1", role, None, (DeviceDelta("sdb", 96 * MIB, 0, 1, 0),), offset_ns, 0)
    return replace(record, monitored_hosts=(node,), counters=collector.pop_table())


def values(record: RunRecord) -> dict[str, dict[str, tuple[float | None, ...]]]:
    series = derive_counter_series(record.counters, record.host_names)
    panels = build_timeline(record, series, None).panels
    return {panel.title: {trace.name: trace.values for trace in panel.lines} for panel in panels}


@pytest.mark.parametrize("offset_ns", [0, 3600 * SECOND])
def test_storage_stands_on_the_clients_time_axis(source: Source, offset_ns: int) -> None:
    found = values(beside(source, HostRole.STORAGE, offset_ns))
    assert "Bandwidth" in found
    disks = [value for value in found["Storage disks"]["read"][1:] if value is not None]
    # Only the named disk, to four digits.
    assert disks == pytest.approx([8 * MIB] * len(disks), rel=1e-3)
    assert len(disks) >= 10
    ports = [value for value in found["Storage ports"]["out"] if value is not None]
    assert ports == pytest.approx([4 * MIB] * len(ports), rel=1e-3)
    assert "Network" not in found


def test_a_hypervisor_is_no_storage_and_no_client(source: Source) -> None:
    found = values(beside(source, HostRole.HYPERVISOR, 0))
    assert not {"Storage disks", "Storage ports", "Network"} & set(found)


def test_the_account_is_a_table_with_every_node(source: Source) -> None:
    record = replace(beside(source, HostRole.STORAGE, 0), redundancy=Redundancy(3.0, 2.0))
    account = storage_byte_balance(record, {})
    assert account is not None
    assert account.expected_read_bytes == 2 * account.claimed_read_bytes
    rows = [[cell.text for cell in row] for row in byte_balance_table(account).rows]
    assert [row[0] for row in rows] == [
        "claimed by clients",
        "expected of disks",
        "moved by disks",
        "s1",
    ]
    assert rows[2][1] == rows[3][1] == "96 MiB"
    assert rows[3][3] == "68 MiB"
