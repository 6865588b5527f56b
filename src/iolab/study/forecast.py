"""The best verdict that a plan's runs can get, by what the study alone says: no host is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from iolab.core.host import HostFacts, HostRole
from iolab.core.metric import VerdictLevel, worst_verdict_level
from iolab.core.run import Plan, PlannedRun, Point
from iolab.core.study import Study
from iolab.record import Record
from iolab.study.targets import targets_of_study
from iolab.text import list_text
from iolab.units import format_duration_s

RUN_SHORT_S: Final = 18.0
"""Below this the measured time holds no more than a few turns of what storage does every few
seconds (write-back, garbage collection, rebalancing); the published studies measure 30 s. It is
what is left of 20 s when the window's edges each cut an interval of a second."""

RUN_USELESS_S: Final = 3.0
"""Below this a run is a handful of intervals, and its edges weigh as much as its middle."""

LATE_EDGE_S: Final = 0.05
"""What a run that was requested the least may lack of it: the interval over the end of the warm-up
ends up to so much late on a busy host, and the run's own end is not late."""

RATED_PHASE_S_MIN: Final = 5.0
"""Fewer seconds of a phase have neither a rate nor a p99 worth telling."""

HOSTS_SHOWN: Final = 4
"""Hosts that a limit names; more are counted."""

RUN_ENOUGH_S: Final = 20.0
"""The least that a run is asked for, of which `RUN_SHORT_S` are left."""

RUN_CUT_TEXT: Final = (
    f"valid needs {RUN_ENOUGH_S:.0f} s, of which edges may cut {RUN_ENOUGH_S - RUN_SHORT_S:.0f} s"
)
"""The rule for a run that was planned long enough, or whose plan is not known, and fell short."""


def best_verdict_level_for_run_length(requested_s: float, measured_s: float) -> VerdictLevel:
    """The best verdict of a run of that length; beforehand both are what the method asks for.

    An engine's last interval may end past the asked time: what it adds makes no run long enough.
    """
    if requested_s < RUN_USELESS_S or measured_s < RUN_USELESS_S - LATE_EDGE_S:
        return VerdictLevel.INVALID
    if requested_s < RUN_ENOUGH_S or measured_s < RUN_SHORT_S:
        return VerdictLevel.INDICATIVE
    return VerdictLevel.VALID


class VerdictCap(Record):
    """What keeps runs of some points from a better verdict than `verdict_level`, and what to do.

    `is_run_length` tells of runs that are too short, which `iolab run` does
    not rate at all where they could only be invalid.
    """

    verdict_level: VerdictLevel
    reason: str
    hint: str
    point_digests: frozenset[str]
    is_run_length: bool = False


class VerdictCapSource(Protocol):
    """Who knows beforehand what caps verdicts."""

    def verdict_caps(self, study: Study, runs: tuple[PlannedRun, ...]) -> Iterable[VerdictCap]:
        """Those of these runs."""


class VerdictForecast(Record):
    """How many of the `run_count` can be no better than each level, and why, the worst first."""

    run_count: int
    run_counts_by_level: dict[VerdictLevel, int]
    caps: tuple[VerdictCap, ...]

    @property
    def too_short_run_cap(self) -> VerdictCap | None:
        """Why its results are not rated: runs so short that they can only be invalid."""
        too_short = (
            cap
            for cap in self.caps
            if cap.is_run_length and cap.verdict_level is VerdictLevel.INVALID
        )
        return next(too_short, None)

    def text_lines(self) -> Iterator[str]:
        """For people: the best verdict, then each cap with what to do about it."""
        each = [
            f"{level} for {number}" for level, number in self.run_counts_by_level.items() if number
        ]
        (only, *more) = each or [str(VerdictLevel.VALID)]
        verdicts = (
            f"{only} of {self.run_count} runs"
            if more
            else next(iter(self.best_possible_verdict_levels), VerdictLevel.VALID).value
        )
        start, caps = f"best possible: {', '.join((verdicts, *more))}", list(self.caps)
        # A cap of all runs is told with the verdict that it leaves them.
        is_of_all = not more and bool(caps) and caps[0].verdict_level.value == verdicts
        if is_of_all and caps[0] is not self.too_short_run_cap:
            first = caps.pop(0)
            start = f"{start}: {first.reason}; {first.hint}"
        yield start
        for cap in caps:
            if cap is self.too_short_run_cap:
                yield f"smoke test, not rated: {cap.reason}; {cap.hint}"
            else:
                yield f"{cap.verdict_level.value}: {cap.reason}; {cap.hint}"

    @property
    def best_possible_verdict_levels(self) -> tuple[VerdictLevel, ...]:
        """The levels that any run can be at best."""
        return tuple(level for level, number in self.run_counts_by_level.items() if number)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "runs": {level.value: number for level, number in self.run_counts_by_level.items()},
            "limits": [
                {"level": cap.verdict_level.value, "why": cap.reason, "hint": cap.hint}
                for cap in self.caps
            ],
        }


def forecast_verdicts(
    study: Study,
    plan: Plan,
    kinds: VerdictCapSource,
    facts_by_target: Mapping[str, HostFacts] | None = None,
) -> VerdictForecast:
    """The best verdict that each run of the plan can get; facts are by `Target.key` where known."""
    caps = list(kinds.verdict_caps(study, plan.runs))
    caps += phase_length_verdict_caps(study, plan.runs)
    caps += hidden_storage_verdict_caps(study, plan.runs, facts_by_target or {})
    counts = dict.fromkeys(VerdictLevel, 0)
    for run in plan.runs:
        levels = [cap.verdict_level for cap in caps if run.point.digest in cap.point_digests]
        counts[worst_verdict_level(levels)] += 1
    return VerdictForecast(
        len(plan.runs), counts, tuple(sorted(caps, key=lambda cap: -cap.verdict_level.rank))
    )


def run_length_verdict_caps(study: Study, runs: Iterable[PlannedRun]) -> Iterator[VerdictCap]:
    """Of runs whose length the method sets: how far it is from enough."""
    own_runs = tuple(runs)
    method = study.method
    seconds = method.runtime_s if method.rule is None else float(method.rule.longest_s)
    if study.scenario is not None:
        return  # the first phase is what is judged
    level = best_verdict_level_for_run_length(seconds, seconds)
    if not own_runs or level is VerdictLevel.VALID:
        return
    # The one that `bench` has, too.
    option = "--runtime " if method.rule is None else "--set method.longest="
    useless = level is VerdictLevel.INVALID
    edges_s = RUN_ENOUGH_S - RUN_SHORT_S
    near = not useless and seconds < RUN_USELESS_S + edges_s
    cut = f", up to {edges_s:g} s of them cut at the edges: below {RUN_USELESS_S:g} s is invalid"
    more_s = (RUN_ENOUGH_S - seconds) * len(own_runs)
    yield VerdictCap(
        level,
        f"runs of {seconds:g} s < {RUN_USELESS_S if useless else RUN_ENOUGH_S:g} s"
        f"{cut if near else ''}",
        f"{option}{RUN_ENOUGH_S:g}s adds {format_duration_s(more_s)}",
        point_digests(run.point for run in own_runs),
        is_run_length=True,
    )


def phase_length_verdict_caps(study: Study, runs: Iterable[PlannedRun]) -> Iterator[VerdictCap]:
    """Phases that are too short: the first as a run is, others for a rate."""
    points = point_digests(run.point for run in runs)
    if study.scenario is None or not points:
        return
    first, *others = study.scenario.phases
    seconds = first.max_duration_s
    level = best_verdict_level_for_run_length(seconds, seconds)
    if level is not VerdictLevel.VALID:
        yield VerdictCap(
            level,
            f"phase {first.id}, the baseline, of {seconds:g} s < {RUN_ENOUGH_S:g} s",
            f"--set phase.{first.id}.seconds={RUN_ENOUGH_S:g}s",
            points,
        )
    for phase in others:
        if phase.max_duration_s < RATED_PHASE_S_MIN:
            key = "seconds" if phase.until is None else "longest"
            yield VerdictCap(
                VerdictLevel.INDICATIVE,
                f"phase {phase.id} of {phase.max_duration_s:g} s < {RATED_PHASE_S_MIN:g} s",
                f"--set phase.{phase.id}.{key}={RUN_ENOUGH_S:g}s",
                points,
            )


def hidden_storage_verdict_caps(
    study: Study, runs: Sequence[PlannedRun], facts_by_target: Mapping[str, HostFacts]
) -> Iterator[VerdictCap]:
    """Targets of which hosts do not see what they are on: it may be memory, and is not counted.

    Storage nodes of the study may count it in their place.
    """
    if any(host.role is HostRole.STORAGE for host in study.hosts):
        return
    hosts_by_layers: dict[str, list[str]] = {}
    points: dict[str, frozenset[str]] = {}
    for target in targets_of_study(study):
        host = facts_by_target.get(target.key)
        folder = None if host is None or target.serial is not None else host.target
        if folder is not None and folder.hidden:
            layers = folder.layers_or_fs_type_text
            hosts_by_layers.setdefault(layers, []).append(target.host)
            points[layers] = points.get(layers, frozenset()) | point_digests(
                run.point
                for run in runs
                if run.point.data_set and run.point.configuration in target.configurations
            )
    for layers, hosts in hosts_by_layers.items():
        if points[layers]:
            yield VerdictCap(
                VerdictLevel.INDICATIVE,
                f"what lies below {layers} on {list_text(hosts, HOSTS_SHOWN)} cannot be seen",
                "name a target on devices of the host, or its storage nodes as hosts",
                points[layers],
            )


def point_digests(points: Iterable[Point]) -> frozenset[str]:
    """The points of a limit."""
    return frozenset(point.digest for point in points)
