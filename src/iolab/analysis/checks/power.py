"""Checks of power meters: whether they were read, followed the load, and saw machines idle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    not_applicable_answer,
    valid_answer,
    worst_answer,
)
from iolab.analysis.power import (
    IDLE_SAMPLES_MIN,
    MeterSeries,
    idle_power_drift_w,
    meter_series,
    missing_mean_power_reason,
)
from iolab.analysis.view import RunView
from iolab.core.power import PowerBoundary
from iolab.units import format_duration_s

LAG_SHARE: Final = 0.25
"""Of the measured window: a meter that lags more shows mostly something else than the load."""

_NO_METER: Final = not_applicable_answer("No power meter was read.")
_NO_IDLE: Final = not_applicable_answer(
    "No power was read before and after the load: `idle` of `[meters]` asks for it."
)


@check("meter-reading", "Readings of power meters")
def check_meter_reading(view: RunView) -> CheckAnswer:
    """Whether each meter was read throughout, moved with the load, and fits to the others."""
    return worst_answer((*_meter_reading_answers(view), _NO_METER))


def _meter_reading_answers(view: RunView) -> Iterator[CheckAnswer]:
    for fault in view.record.meter_faults:
        yield indicative_answer(
            f"The meter {fault.meter} of {fault.host} could not be read: {fault.reason}.",
            meter=fault.meter,
            host=fault.host,
            count=fault.count,
        )
    every_series = list(meter_series(view))
    for series in every_series:
        reason = missing_mean_power_reason(series, view.load.measured_part.common_window)
        evidence = _meter_identity_evidence(series) | {"readings": int(series.watts.size)}
        if series.has_constant_readings:
            yield indicative_answer(
                f"The meter {series.title} showed {series.watts[0]:g} W throughout, while the "
                "load began and ended: it stands still.",
                **evidence,
            )
        elif steps := series.smallest_and_largest_step_w:
            yield indicative_answer(
                f"The meter {series.title} counted in steps of {steps[0]:g} W at some time and of "
                f"{steps[1]:g} W at another: it changed its range.",
                **evidence,
            )
        elif reason:
            text = f"The meter {series.title} has no mean: {reason}."
            yield not_applicable_answer(text, **evidence)
        else:
            text = f"The meter {series.title} was read {series.watts.size} times."
            yield valid_answer(text, **evidence)
    yield from _input_power_below_processors_answers(every_series)


def _input_power_below_processors_answers(
    every_series: Iterable[MeterSeries],
) -> Iterator[CheckAnswer]:
    """A machine's input is more than its processors take."""
    means: dict[str, dict[PowerBoundary, list[float]]] = {}
    for series in every_series:
        if series.watts.size:
            host = means.setdefault(series.host, {})
            host.setdefault(series.boundary, []).append(float(series.watts.mean()))
    for name, found in means.items():
        packages = sum(found.get(PowerBoundary.PROCESSORS, ()))
        for node in found.get(PowerBoundary.NODE, ()):
            if node < packages:
                yield indicative_answer(
                    f"A meter shows {node:.3g} W for all of {name}, and its processors alone take "
                    f"{packages:.3g} W: it measures something else.",
                    host=name,
                    node_w=node,
                    processors_w=packages,
                )


@check("meter-lag", "Power meters follow the load")
def check_meter_lag(view: RunView) -> CheckAnswer:
    """Whether each meter shows the load soon enough for the measured window."""
    window = view.load.measured_part.common_window
    answers: list[CheckAnswer] = []
    for series in meter_series(view):
        lag_s = series.lag_s
        if lag_s is None or window is None:
            if series.idle_spans:
                text = f"The meter {series.title} does not show when the load began."
                answers.append(not_applicable_answer(text, **_meter_identity_evidence(series)))
            continue
        seconds = window.seconds
        evidence = _meter_identity_evidence(series) | {"lag_s": lag_s, "window_s": seconds}
        text = f"The meter {series.title} showed the load {format_duration_s(lag_s)} after it began"
        if lag_s > LAG_SHARE * seconds:
            answers.append(
                indicative_answer(f"{text}, in a window of {seconds:.0f} s.", **evidence)
            )
        else:
            answers.append(valid_answer(f"{text}; its window is as much later.", **evidence))
    return worst_answer((*answers, _NO_IDLE), "lag_s")


@check("idle-power", "Machines idle around the load")
def check_idle_power(view: RunView) -> CheckAnswer:
    """Whether a machine took as much before the load as after it."""
    answers: list[CheckAnswer] = []
    for series in meter_series(view):
        drift_w = idle_power_drift_w(series)
        if drift_w is None:
            if series.idle_spans:
                text = (
                    f"The meter {series.title} has fewer than {IDLE_SAMPLES_MIN} readings of idle "
                    "before or after the load."
                )
                answers.append(not_applicable_answer(text, **_meter_identity_evidence(series)))
            continue
        lag_s = series.lag_s or 0.0
        before, after = series.idle_readings_before(lag_s), series.idle_readings_after(lag_s)
        evidence = _meter_identity_evidence(series) | {
            "before_w": float(before.mean()),
            "after_w": float(after.mean()),
        }
        levels = f"{before.mean():.3g} W before the load and {after.mean():.3g} W after it"
        if drift_w:
            text = f"By the meter {series.title} idle was {levels}: something else ran, or heat."
            answers.append(indicative_answer(text, **evidence))
        else:
            answers.append(
                valid_answer(f"By the meter {series.title} idle was {levels}.", **evidence)
            )
    return worst_answer((*answers, _NO_IDLE))


def _meter_identity_evidence(series: MeterSeries) -> EvidenceValues:
    return {"host": series.host, "meter": series.meter, "boundary": series.boundary.value}
