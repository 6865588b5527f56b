"""The slowest I/Os of a run, each with what its host did meanwhile, by its telemetry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iolab.core.generator import SlowIo
from iolab.core.host import HostFacts
from iolab.core.limits import SLOW_IOS_MAX
from iolab.core.run import HostRun, RunRecord
from iolab.hosts.rates import ALL_CORES, CounterSeries, derive_counter_series
from iolab.record import Record
from iolab.text import percent_text
from iolab.units import NS_PER_S, format_bytes, format_rate_bytes

WRITEBACK_BYTES_MIN: Final = 16 << 20
"""Dirty pages on their way to a device from which on they are named: a disk writes so much in a
tenth of a second."""

OTHER_BYTES_PER_S_MIN: Final = 8 << 20
"""The same of I/O that is not the load's: a tenth of a slow disk's rate."""

BUSY_SHARE_MIN: Final = 0.95
STEAL_SHARE_MIN: Final = 0.02
PRESSURE_SHARE_MIN: Final = 0.2
"""From which share of a second on cores, stolen time and waiting for memory are named."""

_WANTED: Final[Mapping[str, str | None]] = {
    "disk": None,
    "cpu": ALL_CORES,
    "memory": None,
    "pressure": None,
    "thermal": None,
}


class SlowIoContext(Record):
    """A slow I/O of a host, and what the host did in the seconds in which it was under way.

    `at_s` counts from the start of the load there. `unusual_event_texts` is empty where
    telemetry shows nothing out of the ordinary.
    """

    host: str
    at_s: float
    io: SlowIo
    unusual_event_texts: tuple[str, ...]


def has_slow_ios(hosts: Sequence[HostRun]) -> bool:
    """Whether any host told its slowest I/Os."""
    return any(_engine_slow_ios(host) for host in hosts)


def slow_ios_of_run(
    record: RunRecord, facts_by_target: Mapping[str, HostFacts], max_count: int = SLOW_IOS_MAX
) -> tuple[SlowIoContext, ...]:
    """The slowest I/Os of all hosts, the slowest first; empty where none were requested."""
    hosts = [host for host in record.hosts if _engine_slow_ios(host)]
    if not hosts:
        return ()
    series = derive_counter_series(record.counters, record.host_names, _WANTED)
    found: list[SlowIoContext] = []
    for host in hosts:
        telemetry = SlowIoTelemetry(host, facts_by_target.get(host.facts_key), series, record)
        found += (
            SlowIoContext(
                host.host, io.at_ns / NS_PER_S, io, tuple(telemetry.unusual_event_texts_during(io))
            )
            for io in _engine_slow_ios(host)
        )
    return tuple(sorted(found, key=lambda slow: -slow.io.latency_ns)[:max_count])


def _engine_slow_ios(host: HostRun) -> tuple[SlowIo, ...]:
    generator = host.totals.generator if host.totals else None
    return generator.slow_ios if generator else ()


class SlowIoTelemetry:
    """What one host's telemetry shows of a time of its run."""

    def __init__(
        self,
        host: HostRun,
        facts: HostFacts | None,
        series: tuple[CounterSeries, ...],
        record: RunRecord,
    ) -> None:
        target = facts.target if facts else None
        self._start_ns = host.start_real_ns or 0
        self._devices = frozenset(target.devices[:1] if target else ())
        self._series = [counter for counter in series if counter.host == host.host]
        self._load = record.intervals
        self._index = record.host_names.index(host.host)

    def unusual_event_texts_during(self, io: SlowIo) -> Iterator[str]:
        """What was out of the ordinary while the I/O was under way."""
        begin_ns = self._start_ns + io.at_ns
        span = (begin_ns, begin_ns + io.latency_ns)
        writeback = self._metric_maximum("memory", "writeback_bytes", span)
        if writeback >= WRITEBACK_BYTES_MIN:
            yield f"writeback of {format_bytes(round(writeback))}"
        yield from self._background_io_texts(span)
        busy = self._metric_maximum("cpu", "busy_share", span)
        if busy >= BUSY_SHARE_MIN:
            yield f"cores {percent_text(busy)} busy"
        stolen = self._metric_maximum("cpu", "steal_share", span)
        if stolen >= STEAL_SHARE_MIN:
            yield f"{percent_text(stolen)} of processor time stolen"
        memory = self._metric_maximum("pressure", "memory_some_share", span)
        if memory >= PRESSURE_SHARE_MIN:
            yield f"tasks waited {percent_text(memory)} of the time for memory"
        if self._metric_maximum("thermal", "throttle_events_per_s", span) > 0:
            yield "cores throttled by heat"

    def _background_io_texts(self, span: tuple[int, int]) -> Iterator[str]:
        """I/O on the target's device beyond the load's, and on others."""
        for way, number in (("read", 0), ("write", 1)):
            for counter in self._series:
                if counter.scope != "disk" or counter.metric != f"{way}_bytes_per_s":
                    continue
                rate = _series_maximum(counter, span)
                if counter.name in self._devices:
                    rate -= self._peak_load_bytes_per_s(number, span)
                if rate >= OTHER_BYTES_PER_S_MIN and counter.name in self._devices:
                    yield f"other {way}s on {counter.name}: {format_rate_bytes(rate)}"

    def _peak_load_bytes_per_s(self, direction: int, span: tuple[int, int]) -> float:
        """Bytes a second of the load itself, the most of any interval then."""
        table = self._load
        chosen = (
            (table.host == self._index)
            & (table.direction == direction)
            & (table.end_real_ns >= span[0])
            & (table.end_real_ns - table.span_ns <= span[1])
        )
        if not chosen.any():
            return 0.0
        return float((table.bytes[chosen] / (table.span_ns[chosen] / NS_PER_S)).max())

    def _metric_maximum(self, scope: str, metric_key: str, span: tuple[int, int]) -> float:
        chosen = (
            counter
            for counter in self._series
            if counter.scope == scope and counter.metric == metric_key
        )
        return max((_series_maximum(counter, span) for counter in chosen), default=0.0)


def _series_maximum(series: CounterSeries, span: tuple[int, int]) -> float:
    """The largest value of the steps that overlap a time, by the host's clock; 0 without one."""
    length = series.span_ns
    # A value that stands at a moment is taken for the second before it, too.
    begin = series.real_ns - length.clip(min=NS_PER_S)
    chosen = (series.real_ns >= span[0]) & (begin <= span[1])
    return float(series.value[chosen].max()) if chosen.any() else 0.0
