"""Counter tables turned into rates: what each device and processor did, second by second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iolab.model.sample import CounterTable, Floats, Ints


@dataclass(frozen=True, slots=True)
class Series:
    """One derived metric of one device on one host over time.

    `real_ns` is the end of each step (the host's own clock), `value` the rate over the step;
    metric names end with their unit (docs/reference/telemetry.md).
    """

    host: str
    scope: str
    name: str
    metric: str
    real_ns: Ints
    value: Floats


def derive(counters: CounterTable, host_names: Sequence[str]) -> tuple[Series, ...]:
    """Every series that the counters support, ordered by host, scope, name and metric."""
    raise NotImplementedError
