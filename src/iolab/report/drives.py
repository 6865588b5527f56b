"""What runs wrote on the drives below their targets, and what their flash made of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from iolab.core.metric import DrivePowerMeasurement, DriveWear, Metric, RunResult
from iolab.report.numbers import (
    DASH,
    factor_with_interval_text,
    json_object_of_record,
    metric_value_and_interval_document,
)
from iolab.report.phrases import id_by_configuration_if_several, run_with_configuration_text
from iolab.report.table import Cell, Column, Table, row_of_cells
from iolab.text import list_text
from iolab.units import format_bytes

_ENGINE: Final = Column("Engine", is_number=True, is_optional=True)

_COLUMNS: Final = (
    Column("Run", can_wrap=True),
    Column("Drive"),
    Column("Application", is_number=True, is_optional=True),
    _ENGINE,
    Column("Block layer", is_number=True),
    Column("Drive counted", is_number=True, is_optional=True),
    Column("Flash wrote", is_number=True, is_optional=True),
    Column("Write amplification", is_number=True),
    Column("Notes", can_wrap=True),
)

DRIVES_MAX: Final = 200
"""Rows of the table: more are a fleet, whose every drive stands in `iolab show --format json`."""


def drive_wear_table(
    results: Sequence[RunResult], *, does_omit_unknown_amplification: bool = False
) -> Table | None:
    """Each drive of each run whose pages were read; None where there is none.

    `does_omit_unknown_amplification` leaves out drives whose flash writes are not known.
    """
    drives = [(result, wear) for result in results for wear in result.drives]
    titles = id_by_configuration_if_several(results)
    rows = [
        _drive_wear_row(run_with_configuration_text(result, titles), wear)
        for result, wear in drives
        if wear.write_amplification is not None or not does_omit_unknown_amplification
    ]
    if not rows:
        return None
    has_engine = any(wear.engine_bytes is not None for _, wear in drives)
    kept = [number for number, column in enumerate(_COLUMNS) if has_engine or column is not _ENGINE]
    shown = (tuple(row[number] for number in kept) for row in rows[:DRIVES_MAX])
    return Table("Drives", tuple(_COLUMNS[number] for number in kept), tuple(shown))


def _drive_wear_row(run_name_text: str, wear: DriveWear) -> tuple[Cell, ...]:
    return row_of_cells(
        run_name_text,
        f"{wear.host} {wear.device}",
        *(
            DASH if amount is None else format_bytes(amount)
            for amount in (wear.application_bytes, wear.engine_bytes)
        ),
        format_bytes(wear.block_bytes),
        _bytes_or_dash_text(wear.host_bytes),
        _bytes_or_dash_text(wear.media_bytes),
        factor_with_interval_text(wear.write_amplification),
        list_text(list(_notes_on_drive_writes_and_heat(wear))),
    )


def _notes_on_drive_writes_and_heat(wear: DriveWear) -> Iterable[str]:
    if wear.reason:
        yield wear.reason
    if wear.is_emulated:
        yield "an emulated drive: its flash is a model"
    if wear.throttled_s:
        yield f"slowed down by heat for {wear.throttled_s} s"
    if wear.endurance_share:
        yield f"{100 * wear.endurance_share:.2g} % of the rated endurance used"
    if wear.energy_wh is not None:
        yield f"{factor_with_interval_text(wear.energy_wh)} Wh by the drive's own counter"
    if wear.power_measurement is not None:
        yield _drive_power_average_text(wear.power_measurement)


def _drive_power_average_text(measurement: DrivePowerMeasurement) -> str:
    """The drive's own average; the page does not say since when it measures."""
    text = f"{measurement.average_w:.3g} W on average by the drive's own measurement"
    error = "" if measurement.error_percent is None else f" to {measurement.error_percent} %"
    words = [f"{measurement.samples:,} samples{error}"]
    words += ["estimated"] if measurement.is_estimated else []
    words += [] if measurement.is_contiguous else ["with pauses"]
    return f"{text} ({', '.join(words)})"


def _bytes_or_dash_text(metric: Metric | None) -> str:
    return DASH if metric is None or metric.value is None else format_bytes(round(metric.value))


def drive_wear_document(wear: DriveWear) -> dict[str, object]:
    """The same for `iolab show --format json`; amounts with low and high, None where not known."""
    return {
        "host": wear.host,
        "device": wear.device,
        "model": wear.model,
        "is_emulated": wear.is_emulated,
        "application_bytes": wear.application_bytes,
        "engine_bytes": wear.engine_bytes,
        "block_bytes": wear.block_bytes,
        "host_bytes": metric_value_and_interval_document(wear.host_bytes),
        "media_bytes": metric_value_and_interval_document(wear.media_bytes),
        "media_counter": wear.media_counter and wear.media_counter.value,
        "write_amplification": metric_value_and_interval_document(wear.write_amplification),
        "reason": wear.reason,
        "endurance_share": wear.endurance_share,
        "throttled_s": wear.throttled_s,
        "energy_wh": metric_value_and_interval_document(wear.energy_wh),
        "power_measurement": wear.power_measurement
        and json_object_of_record(wear.power_measurement),
    }
