"""Every rule that published sets are held against, and the audit of one set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from iolab.analyse.audit import capacity, figures, rates
from iolab.analyse.audit.document import Published
from iolab.analyse.audit.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Rule:
    """One relation: its code, what it asks, and what it finds in a set."""

    code: str
    asks: str
    judge: Callable[[Published], Iterator[Outcome]]


RULES: Final[tuple[Rule, ...]] = (
    Rule("modules", "Do memory modules add up to their total?", capacity.modules),
    Rule("raw-capacity", "Do drives add up to the raw capacity?", capacity.raw_capacity),
    Rule("per-terabyte", "Do figures per TB follow from the peaks?", capacity.per_terabyte),
    Rule("command", "Does the command do what its description says?", capacity.ranks),
    Rule("depths", "Were bests reached at depths that were measured?", figures.depths),
    Rule("littles-law", "Is rate x latency what was in flight?", rates.littles_law),
    Rule("gains", "Do claimed gains follow from both figures?", rates.gains),
    Rule("link-share", "Are percentages of a port's capacity right?", rates.link_share),
    Rule("latency-share", "Is a layer's share of the latency right?", rates.latency_share),
    Rule("replication", "Did drives do what machines asked, times copies?", rates.replication),
    Rule("drives", "Do a node's drives add up to the node?", rates.drives_of_node),
    Rule("network", "Do ports send what copies of writes need?", rates.network),
    Rule("closed-loop", "Is the mean that a closed loop implies possible?", rates.closed_loop),
    Rule("gain-pairs", "Are gains in rate and in latency of one mean?", rates.gain_pairs),
    Rule("order", "Are means below percentiles, and ranges ascending?", figures.ordered),
    Rule("restated", "Is what is said twice the same?", figures.restated),
    Rule("repeated", "Is a precise figure given to two subjects?", figures.repeated),
    Rule("stands-out", "Is a latency far above those of all other mixes?", figures.stands_out),
)
"""In the order in which they are told."""


def audit(published: Published) -> tuple[Outcome, ...]:
    """Every relation of the set that can be computed, rule after rule."""
    return tuple(outcome for rule in RULES for outcome in rule.judge(published))
