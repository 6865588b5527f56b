"""What a run's own seconds say of it: rule D on the record, live decision or not.

With a rule the record is played to it as the run was, and the result is of the seconds between the
cut and the decision. A run of fixed length is judged for information: its numbers are those of the
time that was asked for, and this says whether that time was steady. Log-structured stores, which
stall about once a minute, are judged by settings of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from iolab.analyse.method.rule_d import Decision, Status, decide, judge
from iolab.analyse.seconds import FleetSeconds, fleet_seconds
from iolab.analyse.window import Window
from iolab.model.key_value import KeyValueJob
from iolab.model.rule import BLOCKS_MIN, LSM, RAW_BLOCK, RuleSettings, SeriesStatus, Steadiness
from iolab.model.run import RunRecord
from iolab.model.workload import AnyJob
from iolab.model.ycsb import YcsbJob

EXCESS_TOLERABLE: Final = 0.02
"""How far a result of fixed length may lie from its own steady part: the precision of a run."""

_REMAINING: Final = 3
"""Of a run of fixed length a third must remain after the cut, as rule D leaves it at the least; no
more than it wants of a long one."""


@dataclass(frozen=True, slots=True)
class Steady:
    """What rule D says of a run, and what a check needs beside it.

    `window` is what the rule counts, on the controller's clock. `halves` is the relative difference
    of its two halves, `episodes` how often it stalled. `excess` is how far the mean over the time
    that the result is of lies from the mean of the steady part, as a share of this.
    """

    steadiness: Steadiness
    window: Window
    halves: float
    episodes: int
    excess: float


def steady_of(record: RunRecord) -> Steady | None:
    """What the run's seconds are worth; None where they are too few to say."""
    series = fleet_seconds(record)
    if series is None:
        return None
    settings = record.rule or _fixed(len(series.counts), preset_of(record.run.point.job))
    if settings is None or len(series.counts) < BLOCKS_MIN * settings.block_s:
        return None
    seen = _decided(series, settings) if record.rule else judge(series.counts, settings)
    window = Window(series.at_ns(seen.cut_s), series.at_ns(seen.seconds))
    excess = 0.0 if record.rule else _excess(record, series, seen)
    return Steady(_told(seen, settings), window, seen.halves, seen.episodes, excess)


def measured_window(record: RunRecord) -> Window | None:
    """What a run that its rule ended is measured over; None where warm-up and runtime say it."""
    steady = steady_of(record) if record.rule else None
    return steady.window if steady else None


def _decided(series: FleetSeconds, settings: RuleSettings) -> Decision:
    """The live decision again; of a run that ended before there was one, what it is worth."""
    seen = decide(series.counts, settings)
    if seen.status is Status.RUNNING:
        return judge(series.counts[: settings.longest_s], settings)
    return seen


def preset_of(job: AnyJob) -> RuleSettings:
    """The settings by which a run of that job is judged where it has none of its own."""
    return LSM if isinstance(job, KeyValueJob | YcsbJob) else RAW_BLOCK


def _fixed(seconds: int, preset: RuleSettings) -> RuleSettings | None:
    """The settings for a run of that length; None for one too short to be judged."""
    retained_s = min(preset.retained_s, seconds // _REMAINING)
    retained_s = max(retained_s, 2 * preset.batches_min)
    if seconds < preset.cut_least_s + retained_s:
        return None
    return replace(preset, shortest_s=seconds, longest_s=seconds, retained_s=retained_s)


def _excess(record: RunRecord, series: FleetSeconds, seen: Decision) -> float:
    counted = series.counts[round(record.warmup_s) :]
    if seen.mean <= 0 or len(counted) == 0:
        return 0.0
    return float(counted.mean()) / seen.mean - 1


def _told(seen: Decision, settings: RuleSettings) -> Steadiness:
    return Steadiness(
        status=SeriesStatus(seen.status.value),
        cut_s=seen.cut_s,
        seconds=seen.seconds,
        mean=seen.mean,
        half_width=seen.relative,
        df=seen.df,
        period_s=seen.period_s,
        cycles=seen.cycles,
        tau_s=seen.tau_s,
        reasons=tuple(_reasons(seen, settings)),
    )


def _reasons(seen: Decision, settings: RuleSettings) -> Iterator[str]:
    """Sentences on why the status is not ok."""
    match seen.status:
        case Status.TRANSIENT if not seen.steady:
            fitted = f"; it fades with a time constant of {seen.tau_s:.0f} s" if seen.tau_s else ""
            yield f"Its start still showed after {seen.seconds} s{fitted}."
        case Status.TRANSIENT:
            yield (
                f"The second half's rate differs by {100 * seen.halves:+.1f} % from the first's, "
                f"±{100 * settings.equivalence * settings.precision:.1f} % may."
            )
        case Status.CYCLE:
            yield (
                f"It swings with a period of {seen.period_s} s, of which {seen.cycles} whole ones "
                f"were seen; {settings.cycles_min} must."
            )
        case Status.IMPRECISE:
            stalls = f" It stalled {seen.episodes} times." if seen.episodes else ""
            yield (
                f"Its mean is known to ±{100 * seen.relative:.1f} %, "
                f"±{100 * settings.precision:.1f} % was asked.{stalls}"
            )
        case _:
            return
