"""One side of a comparison: one configuration of one session, as far as a comparison needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, Protocol

from iolab.analysis.points import Axis, PointSummary, bin_error, summarise, value_of
from iolab.analysis.resume_marks import Stored, shown_of
from iolab.analysis.resumed import session_of
from iolab.analysis.service_time import SERVICE_MEAN
from iolab.core.configuration import Configuration
from iolab.core.host import HostFacts
from iolab.core.metric import Result
from iolab.core.metric_spec import rate_key, rated_operations, spec_of, timed_means, whole_rate_key
from iolab.core.run import Plan, Point
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.errors import Fault, UsageError
from iolab.stats.comparison import RATIO_ALLOWANCE, Comparison, compare, compare_paired
from iolab.stats.repeats import Prior
from iolab.store.documents import Manifest, Session
from iolab.study.wording import shown, suggestion

Place = tuple[str, Axis]
"""Where a point stands in every session of a study: its workload and its axis values."""


class Measured(Stored, Protocol):
    """A session as far as a side of it is read; `iolab.store.reader.SessionReader` is one."""

    @property
    def session(self) -> Session:
        """What the session is."""

    @property
    def plan(self) -> Plan:
        """The plan that it executes."""

    @property
    def facts(self) -> Mapping[str, HostFacts]:
        """The facts of each host by name."""

    def manifest(self, digest: str, repeat: int) -> Manifest:
        """A committed run's manifest."""


@dataclass(frozen=True)
class Side:
    """A configuration as a session measured it.

    `name` is how the user called it. `points` are those planned or measured, `engine_versions` and
    `analysis_versions` those of its first and its last run.
    """

    name: str
    session: str
    created_real_ns: int
    versions: Mapping[str, str]
    study: Study
    configuration: Configuration
    points: Mapping[Place, Point]
    facts: Mapping[str, HostFacts]
    results: tuple[Result, ...]
    engine_versions: tuple[str, ...] = ()
    analysis_versions: tuple[int, ...] = ()

    @cached_property
    def summaries(self) -> dict[Place, PointSummary]:
        """Each point that has a committed run."""
        found = summarise(self.results, self.study)
        return {(one.key.workload, one.key.axis): one for one in found}

    def is_same_as(self, other: Side) -> bool:
        """Whether both are the very same measurement, maybe a copy of it."""
        return (self.session, self.configuration.id) == (other.session, other.configuration.id)


def read_side(name: str, reader: Measured, configuration: str | None = None) -> Side:
    """One configuration of a session; UsageError where it is not clear which, or not there."""
    study, results = shown_of(reader)
    chosen = _chosen(name, study, configuration)
    # A configuration that lost hosts has the points of the whole one.
    lost = {one.without for one in results if one.configuration == chosen.id}
    whole = {chosen.id.removesuffix(f" without {', '.join(names)}") for names in lost if names}
    mine = tuple(one for one in results if one.configuration == chosen.id)
    manifests = [reader.manifest(one.digest, one.repeat) for one in (*mine[:1], *mine[-1:])]
    session = reader.session
    engines = (host.engine_version for manifest in manifests for host in manifest.hosts)
    return Side(
        name=name,
        session=session.id,
        created_real_ns=session.created_real_ns,
        versions={"iolab": session.iolab_version, "agent": session.agent_version or ""},
        study=study,
        configuration=chosen,
        points={
            **_measured(reader, mine),
            **{
                (point.workload, point.axis): point
                for point in reader.plan.points
                if point.configuration in {chosen.id, *whole}
            },
        },
        facts={
            host: facts
            for host, facts in reader.facts.items()
            if host in {*chosen.hosts, *chosen.storage, *_nodes(study, chosen)}
        },
        results=mine,
        engine_versions=tuple(sorted({version for version in engines if version})),
        analysis_versions=tuple(sorted({one.analysis.version for one in manifests})),
    )


def _nodes(study: Study, configuration: Configuration) -> set[str]:
    """The nodes that clients live on as guests."""
    return {host.node for host in study.hosts if host.name in configuration.hosts}


def _measured(reader: Measured, results: tuple[Result, ...]) -> dict[Place, Point]:
    """The points that no plan foresaw: those of a search follow from what was measured."""
    planned = {point.digest for point in reader.plan.points}
    return {
        (one.workload, one.axis): reader.manifest(one.digest, one.repeat).run.point
        for one in {one.digest: one for one in results if one.digest not in planned}.values()
    }


def _chosen(name: str, study: Study, wanted: str | None) -> Configuration:
    known = {one.id: one for one in study.configurations}
    if wanted is None and len(known) == 1:
        return study.configurations[0]
    if wanted is None:
        example = f"{name}:{study.configurations[0].id}"
        raise UsageError(
            f"The session {shown(name)} has {len(known)} configurations.",
            f"Name one of them, as in {shown(example)}.",
        )
    if wanted not in known:
        raise UsageError(
            f"The session {shown(name)} cannot be compared as asked.",
            "Name a configuration of its study.",
            (
                Fault(
                    f"There is no configuration {shown(wanted)}.",
                    suggestion(wanted, known, "configurations"),
                ),
            ),
        )
    return known[wanted]


TAIL: Final = "lat_ns_p99"
"""Compared beside the headline figure: a gain in throughput is often paid for in the tail."""

Pair = tuple[PointSummary, PointSummary]
"""The baseline's and the candidate's."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A point, or a metric of it, that could not be compared, and why."""

    workload: str
    axis: Axis
    reason: str


def default_metrics(workload: Workload, pair: Pair) -> list[str]:
    """What is compared where nobody names it, of what both sides know.

    The headline figure, which stands even where it is not known, and beside it the p99 latency; of
    a load without latencies of the whole, mean and p99 of the first operation that has any. Where
    there is no one figure the rate of each operation.
    """
    figure = workload.metric
    if figure is None:
        return [
            key for key in rates_of(pair[0].metrics, partial(_known, pair)) if _known(pair, key)
        ]
    if TAIL in pair[0].metrics:
        beside = [TAIL]
    else:
        timed = [key for key in timed_means(pair[0].metrics) if _known(pair, key)]
        beside = [*timed[:1], *(key.removesuffix("mean") + "p99" for key in timed[:1])]
    # A tail that too few I/Os support is no news: it is compared where it is known.
    return list(dict.fromkeys((figure, *(key for key in beside if _known(pair, key)))))


def rates_of(keys: Iterable[str], is_known: Callable[[str], bool]) -> list[str]:
    """The rate of each operation: over the common window where that is known, else the phase."""
    return [
        rate_key(operation) if is_known(rate_key(operation)) else whole_rate_key(operation)
        for operation in rated_operations(keys)
    ]


def _known(pair: Pair, metric: str) -> bool:
    found = [side.metrics.get(metric) for side in pair]
    return all(one is not None and one.value is not None for one in found)


def objection(pair: Pair, metric: str) -> str:
    """Why the metric cannot be compared at this point; empty when it can."""
    if metric.startswith(_LATENCIES) and len({_is_response(side) for side in pair}) > 1:
        return "one side counts from when I/Os were due, the other from their submission"
    for name, side in zip(("baseline", "candidate"), pair, strict=True):
        values = [value_of(run, metric) for run in side.results]
        if None in values:
            return f"not every run of the {name} has a value"
        if any(value is not None and value <= 0 for value in values):
            return f"a run of the {name} has the value 0, which has no ratio"
    return ""


_LATENCIES: Final = ("lat_ns_", "read_lat_ns_", "write_lat_ns_", "trim_lat_ns_")


def _is_response(side: PointSummary) -> bool:
    """Whether its latencies are response times: then service times stand beside them."""
    return any(SERVICE_MEAN in run.metrics for run in side.results)


def compare_pair(pair: Pair, metric: str, prior: Prior, *, one_session: bool) -> Comparison:
    """The candidate against the baseline by run means; `objection` must have none.

    Runs of one session are paired by repeat, since a repeat is a block in which both were measured.
    """
    better = spec_of(metric).better
    allowance = RATIO_ALLOWANCE + pair_bin_error(pair, metric)
    mine, theirs = (
        {run.repeat: value for run in side.results if (value := value_of(run, metric)) is not None}
        for side in pair
    )
    runs = (*pair[0].results, *pair[1].results)
    both = sorted(mine.keys() & theirs.keys())
    if one_session and len(both) > 1 and len({session_of(run) for run in runs}) == 1:
        return compare_paired(
            _of(mine, both), _of(theirs, both), better, prior, allowance=allowance
        )
    values = (list(mine.values()), list(theirs.values()))
    return compare(*values, better, prior, allowance=allowance)


def pair_bin_error(pair: Pair, metric: str) -> float:
    """How far a ratio may be off for bins, a log ratio: both values are known to theirs only."""
    return sum(bin_error(metric, side.results) for side in pair)


def _of(values: dict[int, float], repeats: Sequence[int]) -> list[float]:
    return [values[repeat] for repeat in repeats]
