"""What is required: capacity, rates, latencies, a budget."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from iolab.plan.aim_tables import LATENCIES, limit_name, parse_limit

PER_SECOND: Final = "1/s"
BYTES_PER_SECOND: Final = "bytes/s"

_POWERS: Final = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_RATE: Final = re.compile(
    r"\s*(?P<workload>\S+)\s*>=\s*(?P<number>[0-9]{1,15}(?:\.[0-9]{1,9})?(?:e[0-9]{1,2})?)\s*"
    r"(?P<scale>[kmgt]?)(?P<unit>i?b/s|\s*iops|\s*ops/s|)\s*",
    re.IGNORECASE,
)
_LATENCY: Final = re.compile(r"\s*(?P<workload>\S+)\s+(?P<limit>(?:read |write )?\S+\s*<=.*)")


@dataclass(frozen=True, slots=True)
class RateNeed:
    """At least so many I/Os, operations or bytes a second of a workload, in all."""

    workload: str
    unit: str
    least: float


@dataclass(frozen=True, slots=True)
class LatencyNeed:
    """At most so many ns of one latency of a workload, where its rate is delivered."""

    workload: str
    metric: str
    most_ns: float


@dataclass(frozen=True, slots=True)
class Budget:
    """At most so much money; configurations in another currency cannot be held against it."""

    amount: float
    currency: str = ""


@dataclass(frozen=True, slots=True)
class Needs:
    """Everything that is required; `usable_tb` in decimal terabytes, None for any."""

    usable_tb: float | None = None
    rates: tuple[RateNeed, ...] = ()
    latencies: tuple[LatencyNeed, ...] = ()
    budget: Budget | None = None

    def limits_of(self, workload: str) -> tuple[LatencyNeed, ...]:
        """The latencies that a workload must keep."""
        return tuple(one for one in self.latencies if one.workload == workload)


def parse_need(text: str) -> RateNeed | LatencyNeed:
    """`rand-read-4k >= 1M`, `seq-read >= 50GB/s`, `rand-read-4k p99 <= 2ms`. ValueError if none."""
    rate = _RATE.fullmatch(text)
    if rate is not None and float(rate["number"]) > 0:
        unit, scale = rate["unit"].strip().lower(), rate["scale"].lower()
        factor = _POWERS[scale]
        if unit == "ib/s":
            factor = 1024.0 ** list(_POWERS).index(scale)
        told = BYTES_PER_SECOND if unit.endswith("b/s") else PER_SECOND
        return RateNeed(rate["workload"], told, float(rate["number"]) * factor)
    latency = _LATENCY.fullmatch(text)
    limit = parse_limit(latency["limit"]) if latency is not None else None
    if latency is not None and limit is not None:
        return LatencyNeed(latency["workload"], limit.metric, limit.latency_ns)
    names = ", ".join(LATENCIES)
    raise ValueError(
        f"{text!r} is no need; write 'WORKLOAD >= 1M', 'WORKLOAD >= 50GB/s' or "
        f"'WORKLOAD p99 <= 2ms' (known are {names})"
    )


def named(need: LatencyNeed) -> str:
    """A latency as it is written."""
    return limit_name(need.metric)
