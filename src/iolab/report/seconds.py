"""Every interval of a session as one table: what each host completed, second by second."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iolab.core.metric import Result
from iolab.core.samples import IntervalTable
from iolab.report.kinds import Kinds
from iolab.report.numbers import axis_names
from iolab.report.table import Value

NS_PER_S = 1_000_000_000


def second_columns(
    kinds: Kinds,
    results: Sequence[Result],
    intervals: Callable[[str, int], IntervalTable],
    hosts: Callable[[str, int], Sequence[str]],
) -> dict[str, list[Value]]:
    """One list a column, one entry a (run, host, interval, operation).

    `intervals` and `hosts` are those of a committed run by digest and repeat. `second` is the end
    of the interval since the first one of any host of the run began, in seconds of hosts' clocks.
    """
    axes = axis_names(results)
    found: dict[str, list[Value]] = {
        name: []
        for name in (
            *("configuration", "workload"),
            *(f"axis_{name}" for name in axes),
            *("repeat", "digest", "host", "second", "span_s", "operation", "ios", "bytes"),
            *("iops", "bw_bytes_per_s", "lat_ns_mean"),
        )
    }
    for result in results:
        table = intervals(result.digest, result.repeat)
        if not len(table):
            continue
        names = hosts(result.digest, result.repeat)
        start_ns = int((table.end_real_ns - table.span_ns).min())
        word = kinds.of(result).operation_word
        for row in range(len(table)):
            span_s = int(table.span_ns[row]) / NS_PER_S
            ios, moved = int(table.ios[row]), int(table.bytes[row])
            values: list[Value] = [
                result.configuration,
                result.workload,
                *(dict(result.axis).get(name) for name in axes),
                result.repeat,
                result.digest,
                names[int(table.host[row])],
                round((int(table.end_real_ns[row]) - start_ns) / NS_PER_S, 3),
                span_s,
                word(int(table.direction[row])),
                ios,
                moved,
                ios / span_s if span_s else None,
                moved / span_s if span_s else None,
                float(table.lat_sum_ns[row]) / ios if ios else None,
            ]
            for column, value in zip(found.values(), values, strict=True):
                column.append(value)
    return found
