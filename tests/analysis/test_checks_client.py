"""The client's own processors."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.checks.client import (
    check_cpu_bound_client,
    check_cpu_stolen,
    check_thermal_throttling,
)
from iolab.core.metric import VerdictLevel
from tests.analysis.checks_on import INDICATIVE, VALID, ask, level
from tests.analysis.records import (
    GO_NS,
    SECOND,
    Burst,
    bursts_record,
    engine_totals,
    facts_of,
    healthy,
    series,
)


@pytest.mark.parametrize(("busy", "expected"), [(0.2, VALID), (0.89, VALID), (0.901, INDICATIVE)])
def test_a_client_without_a_free_core_may_be_the_limit(busy: float, expected: VerdictLevel) -> None:
    telemetry = (series("busy_share", [busy] * 30),)
    assert level(check_cpu_bound_client, healthy(), telemetry=telemetry) is expected


@pytest.mark.parametrize(("percent", "others"), [(1.0, True), (90.0, False)])
def test_cores_that_others_fill_are_not_called_the_load_of_the_client(
    percent: float, *, others: bool
) -> None:
    totals = replace(engine_totals(None, None), user_cpu_percent=percent, system_cpu_percent=0.0)
    telemetry = (series("busy_share", [0.95] * 30),)
    answer = ask(check_cpu_bound_client, healthy(totals=totals), telemetry=telemetry)
    assert answer.level is INDICATIVE
    assert ("other work" in answer.message) is others
    assert ("the client may be" in answer.message) is not others


@pytest.mark.parametrize(("system", "expected"), [(20.0, VALID), (84.9, VALID), (85, INDICATIVE)])
def test_a_job_that_never_waits_may_be_the_limit(system: float, expected: VerdictLevel) -> None:
    totals = replace(engine_totals(None, None), user_cpu_percent=10.0, system_cpu_percent=system)
    assert level(check_cpu_bound_client, healthy(totals=totals)) is expected


def test_only_the_measured_window_counts() -> None:
    record = replace(healthy(), warmup_s=10.0)
    warm = (series("busy_share", [1.0] * 9 + [0.1] * 21),)
    answer = ask(check_cpu_bound_client, record, telemetry=warm)
    assert answer.level is VALID
    assert answer.evidence["cores_busy_share"] == pytest.approx(0.1)


def test_a_slow_sample_weighs_as_much_as_it_shares_with_the_window() -> None:
    """Ten seconds between samples, and only the last two of the first step belong to the run."""
    idle_readings_before = series("busy_share", [0.2, 0.99, 0.99])
    ends = GO_NS + np.array([2, 12, 22], dtype=np.int64) * SECOND
    slow = replace(idle_readings_before, real_ns=ends, span_ns=np.full(3, 10 * SECOND))
    answer = ask(check_cpu_bound_client, healthy(), telemetry=(slow,))
    assert answer.level is INDICATIVE
    assert answer.evidence["cores_busy_share"] == pytest.approx((2 * 0.2 + 20 * 0.99) / 22)


def test_telemetry_of_a_host_is_read_on_its_own_clock() -> None:
    ahead_ns = 3_600_000_000_000
    record = bursts_record([Burst(offset_ns=ahead_ns)])
    busy = series("busy_share", [0.95] * 30)
    ahead = replace(busy, real_ns=busy.real_ns + ahead_ns)
    assert level(check_cpu_bound_client, record, telemetry=(ahead,)) is INDICATIVE
    assert ask(check_cpu_bound_client, record, telemetry=(busy,)).message.startswith(
        "Could not be checked"
    )


def test_a_client_that_was_not_watched_is_not_cleared() -> None:
    assert level(check_cpu_bound_client, healthy(), telemetry=()) is INDICATIVE
    assert level(check_cpu_bound_client, healthy(totals=None)) is INDICATIVE


def test_values_that_are_missing_are_left_out() -> None:
    telemetry = (series("busy_share", [float("nan"), 0.5, float("nan"), 0.7]),)
    answer = ask(check_cpu_bound_client, healthy(), telemetry=telemetry)
    assert answer.evidence["cores_busy_share"] == pytest.approx(0.6)


@pytest.mark.parametrize(("steal", "expected"), [(0.0, VALID), (0.019, VALID), (0.02, INDICATIVE)])
def test_time_that_the_hypervisor_took(steal: float, expected: VerdictLevel) -> None:
    telemetry = (series("steal_share", [steal] * 30),)
    assert level(check_cpu_stolen, healthy(), telemetry=telemetry) is expected


def test_unknown_steal_is_not_cleared() -> None:
    assert level(check_cpu_stolen, healthy(), telemetry=()) is INDICATIVE


def test_throttling_is_counted_in_the_window() -> None:
    quiet = series("throttle_events_per_s", [0.0] * 30, scope="thermal", name="")
    hot = series("throttle_events_per_s", [0.0] * 29 + [6.0], scope="thermal", name="")
    assert level(check_thermal_throttling, healthy(), telemetry=(quiet,)) is VALID
    answer = ask(check_thermal_throttling, healthy(), telemetry=(hot,))
    assert answer.level is INDICATIVE
    assert answer.evidence["throttle_events"] == pytest.approx(6.0)
    early = replace(healthy(), warmup_s=5.0)
    before = series("throttle_events_per_s", [6.0] + [0.0] * 29, scope="thermal", name="")
    assert level(check_thermal_throttling, early, telemetry=(before,)) is VALID


def test_a_kernel_without_the_counter_is_no_objection() -> None:
    answer = ask(check_thermal_throttling, healthy(), telemetry=())
    assert answer.level is None
    assert answer.evidence["throttle_events"] is None


def test_the_busiest_host_speaks() -> None:
    record = bursts_record([Burst()], [Burst()])
    telemetry = (series("busy_share", [0.2] * 30), series("busy_share", [0.6] * 30, host="c2"))
    assert ask(check_cpu_bound_client, record, telemetry=telemetry).evidence["host"] == "c2"


@pytest.mark.parametrize("hypervisor", ["KVM", None])
def test_a_machine_that_counts_no_throttling_is_called_virtual_where_it_is(
    hypervisor: str | None,
) -> None:
    facts = facts_of()
    facts = replace(facts, kernel=replace(facts.kernel, hypervisor=hypervisor))
    answer = ask(check_thermal_throttling, healthy(), {"c1": facts}, telemetry=())
    assert answer.level is None
    assert ("virtual machine" in answer.message) is (hypervisor is not None)
