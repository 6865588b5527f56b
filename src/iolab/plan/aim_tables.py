"""The keys of a workload that say what its axes are measured for."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import Field

from iolab.model.objective import Aim, AxisMode, Limit, Objective
from iolab.plan import values
from iolab.plan.target_tables import Table
from iolab.plan.wording import shown

HEADLINE_MAX: Final = 65536
"""As deep as a queue may be."""

LATENCIES: Final = {
    "mean": "lat_ns_mean",
    "p50": "lat_ns_p50",
    "p99": "lat_ns_p99",
    "p99.5": "lat_ns_p99_5",
    "p99.9": "lat_ns_p99_9",
    "p99.99": "lat_ns_p99_99",
}
"""What a limit may be set to, and the metric that it is."""

_UNITS_NS: Final = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}

_LIMIT: Final = re.compile(
    r"\s*(?:(?P<way>read|write)\s+)?(?P<name>mean|p[0-9.]+)\s*<=\s*"
    r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>ns|us|µs|ms|s)\s*"
)


def limit_name(metric: str) -> str:
    """A limit's metric as studies write it: `read p99`."""
    way, start, key = metric.rpartition("lat_ns_")
    names = [name for name, told in LATENCIES.items() if told == f"{start}{key}"]
    return " ".join([*([way.removesuffix("_")] if way else []), *names]) or metric


def parse_limit(text: str) -> Limit | None:
    """`p99 <= 2ms` as a limit; None where it is none."""
    match = _LIMIT.fullmatch(text)
    if match is None or match["name"] not in LATENCIES or float(match["number"]) <= 0:
        return None
    way = f"{match['way']}_" if match["way"] else ""
    return Limit(
        f"{way}{LATENCIES[match['name']]}", float(match["number"]) * _UNITS_NS[match["unit"]]
    )


def _limit_text(value: object) -> str:
    if isinstance(value, str) and parse_limit(value) is not None:
        return value
    do = (
        "Write a latency and what it must not exceed, as 'p99 <= 2ms' or 'read p99.9 <= 500us'; "
        f"known are {', '.join(LATENCIES)}."
    )
    raise values.fault(f"is {shown(value)}", do)


LimitText = Annotated[str, values.Read(_limit_text, {"type": "string"})]


class AimTable(Table):
    """What a workload of I/O is after."""

    objective: Annotated[Objective, values.choice(Objective, "objectives")] = Objective.GRID
    axis: Annotated[AxisMode, values.choice(AxisMode, "kinds of axis")] = AxisMode.LISTED
    headline: Annotated[
        list[Annotated[int, values.whole(1, HEADLINE_MAX)]], values.Listed(lone=True)
    ] = Field(default=[])
    limit: LimitText | None = None


def aim_of(table: AimTable) -> Aim:
    """The aim that the keys say."""
    return Aim(
        objective=table.objective,
        axis=table.axis,
        headline=tuple(sorted(table.headline)),
        limit=None if table.limit is None else parse_limit(table.limit),
    )
