"""What power meters showed of runs: watts, idle, joules, and why some tell nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from iolab.core.metric import PowerUse, RunResult
from iolab.core.power import REPORTED_BOUNDARIES
from iolab.report.numbers import (
    DASH,
    interval_and_runs_text,
    metric_value_and_interval_document,
    metric_value_text,
)
from iolab.report.phrases import id_by_configuration_if_several, run_with_configuration_text
from iolab.report.table import Cell, Column, Table, row_of_cells
from iolab.text import capitalised
from iolab.units import format_duration_s, significant_digits_text

_COLUMNS: Final = (
    Column("Run", can_wrap=True),
    Column("Meter"),
    Column("Measures"),
    Column("Power", is_number=True),
    Column("95 %", is_number=True, is_optional=True),
    Column("Idle", is_number=True, is_optional=True),
    Column("Energy", is_number=True, is_optional=True),
    Column("Read every", is_number=True, is_optional=True),
    Column("Notes", can_wrap=True),
)

METERS_MAX: Final = 200
"""Rows of the table: more are a fleet, whose every meter stands in `iolab show --format json`."""


def meter_power_table(
    results: Sequence[RunResult], *, does_omit_meters_without_mean: bool = False
) -> Table | None:
    """Each meter of each run, or each with a mean if so asked; None where there is none."""
    titles = id_by_configuration_if_several(results)
    rows = [
        _meter_power_row(run_with_configuration_text(result, titles), use)
        for result in results
        for use in result.power
        if use.watts is not None or not does_omit_meters_without_mean
    ]
    return Table("Power", _COLUMNS, tuple(rows[:METERS_MAX])) if rows else None


def _meter_power_row(run_name_text: str, power_use: PowerUse) -> tuple[Cell, ...]:
    return row_of_cells(
        run_name_text,
        f"{power_use.host} {power_use.meter}",
        power_use.boundary.value,
        metric_value_text(power_use.watts),
        interval_and_runs_text(power_use.watts) or DASH,
        metric_value_text(power_use.idle_w),
        DASH if power_use.energy_j is None else f"{significant_digits_text(power_use.energy_j)} J",
        DASH if power_use.period_s is None else format_duration_s(power_use.period_s),
        capitalised("; ".join(_meter_power_notes(power_use))),
    )


def _meter_power_notes(power_use: PowerUse) -> Iterator[str]:
    if (
        power_use.watts is not None
        and power_use.boundary in REPORTED_BOUNDARIES
        and not power_use.is_counted
    ):
        yield f"not counted in {power_use.boundary.value} power"
    if power_use.reason or power_use.idle_reason:
        yield power_use.reason or power_use.idle_reason
    if power_use.lag_s is not None:
        # When it stood halfway is known to a period.
        is_within_period = power_use.period_s is not None and power_use.lag_s <= power_use.period_s
        late_s = power_use.period_s if is_within_period else power_use.lag_s
        limit = "at most " if is_within_period else ""
        yield f"shows the load {limit}{format_duration_s(late_s or 0.0)} late"
    if power_use.step_w:
        yield f"counts in steps of {significant_digits_text(power_use.step_w)} W"


def meter_power_document(power_use: PowerUse) -> dict[str, object]:
    """The same for `iolab show --format json`; None where it is not known."""
    return {
        "host": power_use.host,
        "meter": power_use.meter,
        "boundary": power_use.boundary.value,
        "is_counted": power_use.is_counted,
        "watts": metric_value_and_interval_document(power_use.watts),
        "idle_w": metric_value_and_interval_document(power_use.idle_w),
        "energy_j": power_use.energy_j,
        "period_s": power_use.period_s,
        "step_w": power_use.step_w,
        "lag_s": power_use.lag_s,
        "reason": power_use.reason,
        "idle_reason": power_use.idle_reason,
    }
