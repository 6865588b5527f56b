"""Watts of a run by planted meters: means, idle, lag, joules, and what is not told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.checks.power import check_idle_power, check_meter_lag, check_meter_reading
from iolab.analysis.power import power_metrics_of_all_boundaries, power_use_of_each_meter
from iolab.core.metric import Metric, PowerUse
from iolab.core.power import PowerBoundary
from iolab.hosts.rates import CounterSeries
from tests.analysis.meters import idling, load_times_ns, meter_readings, metered
from tests.analysis.planted import FILES
from tests.analysis.records import facts_of, view_of
from tests.judging import judge

POWER_WORDS = ("power", "per_j", "j_per", "amplification")
RECORD = idling(FILES.record)


def use_of(series: CounterSeries) -> PowerUse:
    (use,) = power_use_of_each_meter(view_of(RECORD, telemetry=(series,)))
    return use


def metrics_of(*telemetry: CounterSeries, **rates: float) -> dict[str, Metric]:
    view = view_of(RECORD, telemetry=telemetry)
    metrics = {key: Metric(value, "") for key, value in rates.items()}
    return power_metrics_of_all_boundaries(power_use_of_each_meter(view), metrics)


def test_without_a_meter_nothing_is_claimed() -> None:
    result = judge(FILES.record, FILES.facts)
    assert (result.power, result.drives) == ((), ())
    assert not [key for key in result.metrics if any(word in key for word in POWER_WORDS)]
    levels = {check.code: check.level for check in result.verdict.checks}
    assert {levels[code] for code in ("meter-reading", "meter-lag", "idle-power")} == {None}


@pytest.mark.parametrize("lag_s", [0.0, 2.0, 5.0])
def test_the_mean_is_that_of_the_load_however_late_the_meter(lag_s: float) -> None:
    use = use_of(meter_readings(RECORD, lag_s=lag_s, every_s=0.25))
    assert use.boundary is PowerBoundary.NODE
    assert use.watts is not None
    assert use.watts.value == pytest.approx(150, abs=0.5)
    assert use.watts.low is not None
    assert use.watts.low <= 150 <= (use.watts.high or 0)
    assert use.idle_w is not None
    assert use.idle_w.value == pytest.approx(100, abs=0.5)
    assert use.lag_s == pytest.approx(lag_s, abs=0.3)
    assert (use.reason, use.idle_reason) == ("", "")
    assert use.period_s == 0.25


def test_joules_are_the_integral() -> None:
    series = meter_readings(RECORD, every_s=0.1)
    use = use_of(series)
    window = view_of(RECORD).load.measured_part.common_window
    assert window is not None
    inside = (series.real_ns >= window.start_ns) & (series.real_ns <= window.end_ns)
    by_hand = np.trapezoid(series.value[inside], series.real_ns[inside] / 1e9)
    assert use.energy_j == pytest.approx(by_hand, rel=0.02)


def test_operations_a_joule_and_joules_a_gb_of_a_fleet() -> None:
    found = metrics_of(*metered(RECORD, noise_w=0.0), iops=30_000, bw_bytes_per_s=2e9)
    values = {key: metric.value for key, metric in found.items()}
    assert values == pytest.approx(
        {
            "node_power_w": 300,
            "node_ops_per_j": 100,
            "node_j_per_gb": 150,
            "node_net_ops_per_j": 300,
            "node_net_j_per_gb": 50,
        }
    )


def test_a_quotient_has_an_interval_where_both_its_parts_have_one() -> None:
    view = view_of(RECORD, telemetry=metered(RECORD))
    uses = power_use_of_each_meter(view)
    known = power_metrics_of_all_boundaries(
        uses, {"iops": Metric(30_000, "IOPS", 27_000, 33_000, 10)}
    )
    found = known["node_ops_per_j"]
    assert found.low == pytest.approx(90, abs=0.5)
    assert found.high == pytest.approx(110, abs=0.5)
    bare = power_metrics_of_all_boundaries(uses, {"iops": Metric(30_000, "IOPS")})["node_ops_per_j"]
    assert (bare.value, bare.low, bare.high) == (found.value, None, None)


def test_a_fleet_of_which_one_has_no_meter_has_no_power() -> None:
    assert metrics_of(meter_readings(RECORD), iops=30_000) == {}


def test_several_meters_of_a_machine_are_not_added() -> None:
    kernel = metered(RECORD, name="node:hwmon3-1", load_w=140.0, noise_w=0.0)
    mine = metered(RECORD, name="node:psu", noise_w=0.0)
    assert metrics_of(*kernel, *mine)["node_power_w"].value == pytest.approx(300)
    packages = metered(RECORD, name="processors:package-0", idle_w=10, load_w=40, noise_w=0.0)
    found = metrics_of(*mine, *packages)
    assert found["node_power_w"].value == pytest.approx(300)
    assert found["processors_power_w"].value == pytest.approx(80)


def test_the_packages_of_a_machine_are_added() -> None:
    first, second = (
        metered(RECORD, name=f"processors:package-{number}", load_w=load_w, noise_w=0.0)
        for number, load_w in ((0, 140.0), (1, 160.0))
    )
    key = "processors_power_w"
    assert metrics_of(*first, *second)[key].value == pytest.approx(600)
    slow = metered(RECORD, name="processors:package-1", every_s=10.0)
    assert key not in metrics_of(*first, *slow)
    described = metered(RECORD, name="processors:shunt", load_w=310.0, noise_w=0.0)
    assert metrics_of(*first, *second, *described)[key].value == pytest.approx(620)


def test_meters_of_single_drives_are_added_and_a_meter_of_all_counts_alone() -> None:
    first, second = (
        metered(RECORD, name=f"drive:nvme{number}n1", load_w=load_w, noise_w=0.0)
        for number, load_w in ((0, 10.0), (1, 15.0))
    )
    key, drives = "drive_power_w", ("nvme0n1", "nvme1n1")
    facts = {host.host: facts_of(host.host, devices=drives) for host in RECORD.hosts}

    def uses_of(*telemetry: CounterSeries) -> tuple[PowerUse, ...]:
        return power_use_of_each_meter(view_of(RECORD, facts, telemetry=telemetry))

    assert power_metrics_of_all_boundaries(uses_of(*first, *second), {})[
        key
    ].value == pytest.approx(50)
    # A machine whose second drive has no mean, or no meter, has no sum.
    slow = metered(RECORD, name="drive:nvme1n1", every_s=10.0)
    assert power_metrics_of_all_boundaries(uses_of(*first, *slow), {}) == {}
    assert power_metrics_of_all_boundaries(uses_of(*first), {}) == {}
    shelf = metered(RECORD, name="drive:riser", load_w=30.0, noise_w=0.0)
    uses = uses_of(*first, *second, *shelf)
    assert power_metrics_of_all_boundaries(uses, {})[key].value == pytest.approx(60)
    assert {use.meter for use in uses if use.is_counted} == {"riser"}


def test_drives_that_are_not_below_the_target_do_not_count() -> None:
    facts = {host.host: facts_of(host.host) for host in RECORD.hosts}
    below = metered(RECORD, name="drive:nvme0n1", load_w=10.0, noise_w=0.0)
    other = metered(RECORD, name="drive:sdq", load_w=70.0, noise_w=0.0)
    uses = power_use_of_each_meter(view_of(RECORD, facts, telemetry=(*below, *other)))
    assert power_metrics_of_all_boundaries(uses, {})["drive_power_w"].value == pytest.approx(20)
    slow = metered(RECORD, name="drive:riser", every_s=10.0)
    assert (
        power_metrics_of_all_boundaries(
            power_use_of_each_meter(view_of(RECORD, facts, telemetry=slow)), {}
        )
        == {}
    )
    alone = power_use_of_each_meter(view_of(RECORD, facts, telemetry=other))
    assert power_metrics_of_all_boundaries(alone, {}) == {}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"every_s": 10.0}, "a run of"),
        ({"idle_w": 150.0, "load_w": 150.0, "noise_w": 0.0}, "showed 150 W throughout"),
    ],
)
def test_why_there_is_no_mean(changes: dict[str, Any], reason: str) -> None:
    use = use_of(meter_readings(RECORD, **changes))
    assert use.watts is None
    assert reason in use.reason


@pytest.mark.parametrize("lag_s", [0.0, 5.0])
def test_a_meter_that_is_silent_for_a_while_has_no_mean(lag_s: float) -> None:
    series = meter_readings(RECORD, lag_s=lag_s)
    middle = series.real_ns.size // 2
    kept = np.r_[0 : middle - 3, middle + 3 : series.real_ns.size]
    cut = replace(
        series,
        real_ns=series.real_ns[kept],
        value=series.value[kept],
        span_ns=series.span_ns[kept],
    )
    assert "silent for" in use_of(cut).reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"after_w": 120.0}, "idle was 100 W before the load and 120 W after it"),
        ({"load_w": 100.2, "noise_w": 3.0}, "no more than noise"),
        ({"load_w": 99.8, "noise_w": 3.0}, "W less than idle, which is no more than noise"),
        ({"load_w": 80.0, "noise_w": 0.5}, "the load took 20 W less than idle"),
    ],
)
def test_why_nothing_is_told_net_of_idle(changes: dict[str, Any], reason: str) -> None:
    use = use_of(meter_readings(RECORD, **changes))
    assert use.watts is not None
    assert reason in use.idle_reason


def test_a_check_that_does_not_apply_names_the_meter_and_why() -> None:
    slow = view_of(RECORD, telemetry=(meter_readings(RECORD, every_s=10.0),))
    assert check_meter_reading(slow).level is None
    assert "bmc of c1 has no mean: the meter showed" in check_meter_reading(slow).message
    assert "does not show when the load began" in check_meter_lag(slow).message
    assert "fewer than 3 readings of idle" in check_idle_power(slow).message
    without = view_of(FILES.record)
    assert check_meter_reading(without).message == "No power meter was read."
    for check in (check_meter_lag, check_idle_power):
        assert "`idle` of `[meters]` asks for it" in check(without).message


def test_a_load_without_idle_is_told_gross() -> None:
    series = meter_readings(RECORD)
    begin, _ = load_times_ns(RECORD)
    kept = series.real_ns > begin
    loaded = replace(
        series,
        real_ns=series.real_ns[kept],
        value=series.value[kept],
        span_ns=series.span_ns[kept],
    )
    use = use_of(loaded)
    assert use.watts is not None
    assert use.lag_s is None
    assert "idle was not measured" in use.idle_reason
