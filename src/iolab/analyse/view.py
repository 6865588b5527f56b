"""What a check may look at: the record, the hosts' facts, the measured load and the telemetry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from iolab.analyse.key_value.load import KeyValueLoad
from iolab.analyse.load import Load
from iolab.analyse.metadata.phases import MetadataLoad
from iolab.analyse.service import Service
from iolab.analyse.steady import Steady
from iolab.analyse.window import Window, controller_ns
from iolab.model.host import HostFacts, TargetFacts
from iolab.model.key_value import KeyValueJob
from iolab.model.metadata import MetadataJob
from iolab.model.run import HostRun, RunRecord
from iolab.model.sample import Direction, Floats, Ints
from iolab.model.workload import Access, Job
from iolab.model.ycsb import YcsbJob

if TYPE_CHECKING:
    from iolab.run.telemetry.rates import Series

_Place = tuple[str, str, str]
"""Host, scope and metric of a series."""


@dataclass(frozen=True, slots=True)
class RunView:
    """One run as the checks see it; `telemetry` is derived from the record's counters.

    `metadata` is what its phases did where the job is one of metadata load, `key_value` what was
    done to a key-value store where it is one of that, else None; `load` is empty then, but for its
    cut and its seconds. `steady` is what the run's seconds say of it, None where they are too few.
    `service` are the service times of an open loop, None where `load` has all there is.
    """

    record: RunRecord
    facts: Mapping[str, HostFacts]
    load: Load
    telemetry: tuple[Series, ...]
    metadata: MetadataLoad | None = None
    steady: Steady | None = None
    key_value: KeyValueLoad | None = None
    service: Service | None = None
    _places: Mapping[_Place, tuple[Series, ...]] = field(init=False, repr=False, compare=False)
    _ahead: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Looked up for each host by several checks: a search would cost hosts x hosts.
        places: dict[_Place, list[Series]] = {}
        for series in self.telemetry:
            places.setdefault((series.host, series.scope, series.metric), []).append(series)
        found = {place: tuple(several) for place, several in places.items()}
        object.__setattr__(self, "_places", found)
        # A host's clock may be ahead of the controller's.
        ahead = {host.host: host.clock_offset_ns for host in self.record.hosts}
        ahead |= {host.host: host.clock_offset_ns for host in self.record.bystanders}
        object.__setattr__(self, "_ahead", ahead)

    @property
    def metadata_job(self) -> MetadataJob:
        """What each host was asked to do; TypeError for I/O on files."""
        job = self.record.run.point.job
        if not isinstance(job, MetadataJob):
            raise TypeError(f"{job.engine} makes no metadata load")
        return job

    @property
    def key_value_job(self) -> KeyValueJob | YcsbJob:
        """What each host was asked to do; TypeError where it is no load on a key-value store."""
        job = self.record.run.point.job
        if not isinstance(job, KeyValueJob | YcsbJob):
            raise TypeError(f"{job.engine} makes no load on a key-value store")
        return job

    @property
    def key_value_load(self) -> KeyValueLoad:
        """What was done to a key-value store; TypeError where that is not what was measured."""
        if self.key_value is None:
            raise TypeError("nothing was measured on a key-value store")
        return self.key_value

    @property
    def job(self) -> Job:
        """What each host was asked to do."""
        return self.record.run.point.io

    @property
    def access(self) -> Access:
        """Whether the job reads, writes or both."""
        return self.job.access

    @property
    def hosts(self) -> tuple[HostRun, ...]:
        """The hosts of the run, in the order of the load's first axis."""
        return self.record.hosts

    @property
    def has_load(self) -> bool:
        """Whether any I/O was measured in the window, or any operation on metadata or keys."""
        if self.key_value is not None:
            return bool(self.key_value.whole.sum() > 0)
        if self.metadata is not None:
            done = any(phase.done for phase in self.metadata.phases)
            return done or bool(self.record.reported)
        return bool(self.load.ios.sum() > 0)

    def target(self, host: HostRun) -> TargetFacts | None:
        """The host's target, None where its facts are not known."""
        facts = self.facts_of(host)
        return None if facts is None else facts.target

    def facts_of(self, host: HostRun) -> HostFacts | None:
        """The host's facts with the target that this run used: a host may have several."""
        return self.facts.get(host.target_key or host.host)

    def on(self, host: HostRun) -> str:
        """` on NAME` where a run has several hosts, else nothing: for a sentence."""
        return f" on {host.host}" if len(self.hosts) > 1 else ""

    def claimed_bytes(self, host: int, direction: Direction) -> int:
        """What the engine says it moved in the whole run, warm-up included."""
        table = self.record.intervals
        return int(table.bytes[(table.host == host) & (table.direction == direction)].sum())

    def measured(self, host: int) -> Window | None:
        """The part of the run that counts for this host, on the controller's clock.

        Of metadata load all phases with what is between them; where the engine tells no times, the
        whole run.
        """
        if self.metadata is not None:
            record = self.record
            return self.metadata.span() or Window(record.started_real_ns, record.ended_real_ns)
        if self.load.cut.common is not None:
            return self.load.cut.common
        whole = self.load.cut.hosts[host]
        if whole is None:
            return None
        start = min(whole.start_ns + round(self.record.warmup_s * 1e9), whole.end_ns)
        return Window(start, whole.end_ns)

    def mean_of(
        self,
        host: int,
        scope: str,
        name: str | None,
        metric: str,
        window: Window | None = None,
    ) -> float | None:
        """The mean over the measured window of one host's telemetry, None where it is not known.

        `window` is looked at in place of the measured one. `name` None takes every device of the
        scope. Each step weighs as much as it shares with the window: a sample of ten seconds that
        began before it tells mostly of what came before.
        """
        window = window or self.measured(host)
        return self.mean_on(self.hosts[host].host, scope, name, metric, window)

    def mean_on(
        self, host: str, scope: str, name: str | None, metric: str, window: Window | None
    ) -> float | None:
        """The same of any host by its name, watched ones too; None without a window."""
        values: list[Floats] = []
        weights: list[Floats] = []
        for series in self.series_of(host, scope, metric):
            if window is None or (name is not None and series.name != name):
                continue
            shared = self.shared_ns(series, window)
            told = (shared > 0) & np.isfinite(series.value)
            values.append(series.value[told])
            weights.append(shared[told].astype(np.float64))
        if not any(part.size for part in values):
            return None
        return float(np.average(np.concatenate(values), weights=np.concatenate(weights)))

    def series_of(self, host: str, scope: str, metric: str) -> tuple[Series, ...]:
        """A host's series of one metric, of every device, core, port or guest that has it."""
        return self._places.get((host, scope, metric), ())

    def shared_ns(self, series: Series, window: Window) -> Ints:
        """How much of each step of a series lies in the window, 0 for those beside it."""
        ends = controller_ns(series.real_ns, self._ahead.get(series.host, 0))
        starts = ends - series.span_ns
        shared = np.minimum(ends, window.end_ns) - np.maximum(starts, window.start_ns)
        return np.asarray(np.maximum(shared, 0), dtype=np.int64)
