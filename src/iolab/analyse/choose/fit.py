"""A requirement against an offer: what it takes of nodes, with what margin, and how sure that is.

Of each rate the best is taken of all places where the workload's latencies are kept. A rate grows
with nodes by a stated assumption: fewer nodes than were seen do their proportional part, each one
beyond adds `scaling` of what one did. Latencies are taken to stay as they are where a place's share
of the nodes stays. Nothing here is a measurement of the size that is advised.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from iolab.analyse.choose.need import Budget, LatencyNeed, Needs, RateNeed, named
from iolab.analyse.choose.offer import Offer, Seen
from iolab.model.metric import Level, Metric
from iolab.units import format_count, format_ns, format_rate_bytes

NODES_MOST: Final = 100_000
"""Nodes that are advised; a need that takes more is not met."""


class Answer(StrEnum):
    """Whether a requirement is met, worst last."""

    YES = "yes"
    """Also at the low end of the interval, by a valid result, or by plain counting."""
    LIKELY = "likely"
    """By the value; but the result is no more than indicative, or has no interval of chance."""
    UNKNOWN = "unknown"
    """A figure that it takes is not there."""
    NO = "no"

    @property
    def rank(self) -> int:
        """0 for yes; the worst of several decides."""
        return list(Answer).index(self)


@dataclass(frozen=True, slots=True)
class Part:
    """One requirement of an offer.

    `as_is` is the answer with the nodes that the offer was seen with, `margin` what it then has
    over what is needed, None where unknown. `nodes` is the least number for which `answer` holds,
    None where nodes are unknown or no number would do. `axis` is the place at which it is met.
    """

    name: str
    says: str
    as_is: Answer
    answer: Answer
    margin: float | None = None
    nodes: int | None = None
    axis: tuple[tuple[str, int | str], ...] = ()


@dataclass(frozen=True, slots=True)
class Fit:
    """An offer against all requirements: as it was seen, and with `nodes` of its nodes at `cost`.

    `nodes` is None where they are not known or no number would do, `cost` where it is not known.
    """

    offer: Offer
    parts: tuple[Part, ...]
    nodes: int | None
    cost: float | None

    @property
    def as_is(self) -> Answer:
        """The worst of all parts with the nodes that it was seen with."""
        return _worst(part.as_is for part in self.parts)

    @property
    def answer(self) -> Answer:
        """The worst of all parts with as many nodes as they take."""
        return _worst(part.answer for part in self.parts)


def fit(needs: Needs, offer: Offer, scaling: float) -> Fit:
    """Hold an offer against what is needed; `scaling` above 0 and up to 1."""
    parts: list[Part] = []
    if needs.usable_tb is not None:
        parts.append(_capacity(needs.usable_tb, offer))
    parts += [_rate(need, needs.limits_of(need.workload), offer, scaling) for need in needs.rates]
    rated = {need.workload for need in needs.rates}
    parts += [_latency(one, offer) for one in needs.latencies if one.workload not in rated]
    nodes = _nodes(parts, offer)
    cost = _cost(offer, nodes)
    if needs.budget is not None:
        parts.append(_money(needs.budget, offer, cost, nodes))
    return Fit(offer, tuple(parts), nodes, cost)


def best_first(fits: Iterable[Fit]) -> tuple[Fit, ...]:
    """By their answer, then by cost, then by nodes.

    Where costs are in several currencies none is held against another: nodes alone decide.
    """
    found = tuple(fits)
    alike = len(currencies_of(found)) < 2
    return tuple(
        sorted(
            found,
            key=lambda one: (
                one.answer.rank,
                one.cost if alike and one.cost is not None else math.inf,
                math.inf if one.nodes is None else one.nodes,
            ),
        )
    )


def currencies_of(fits: Iterable[Fit]) -> tuple[str, ...]:
    """The currencies of the costs that are known, each once."""
    return tuple(dict.fromkeys(one.offer.currency for one in fits if one.cost is not None))


def _capacity(needed_tb: float, offer: Offer) -> Part:
    name = f"usable >= {needed_tb:g} TB"
    if offer.usable_tb is None:
        return _unknown(name, "its usable capacity is not known")
    margin = offer.usable_tb / needed_tb
    as_is = Answer.YES if margin >= 1 else Answer.NO
    nodes = _nodes_for(needed_tb, offer.usable_tb, offer.nodes, 1.0)
    says = f"{offer.usable_tb:g} TB usable"
    return Part(name, says, as_is, Answer.YES if nodes else as_is, margin, nodes)


def _rate(need: RateNeed, limits: Sequence[LatencyNeed], offer: Offer, scaling: float) -> Part:
    """A rate where its latencies are kept; of several places the one that gives most for sure."""
    name = f"{need.workload} >= {_rate_text(need.least, need.unit)}"
    if limits:
        name += "".join(f", {named(one)} <= {format_ns(one.most_ns)}" for one in limits)
    here = [one for one in offer.seen if one.workload == need.workload and need.unit in one.rates]
    if not here:
        return _unknown(name, "it has no such figure of this workload")
    kept = [one for one in here if all(_keeps(one, limit) is Answer.YES for limit in limits)]
    if not kept:
        if any(_keeps(one, limit) is Answer.UNKNOWN for one in here for limit in limits):
            return _unknown(name, "its latencies are not known")
        return Part(name, "no place keeps the latency", Answer.NO, Answer.NO)
    best = max(kept, key=lambda one: _sure(one.rates[need.unit]))
    metric = best.rates[need.unit]
    had = metric.value or 0.0
    sure = _sure(metric)
    certain = _worst(_certainty(best, one) for one in (metric, *_limited(best, limits)))
    as_is = certain if sure >= need.least else Answer.LIKELY if had >= need.least else Answer.NO
    nodes = _nodes_for(need.least, sure, offer.nodes, scaling)
    says = f"{_rate_text(had, need.unit)}, at least {_rate_text(sure, need.unit)}"
    answer = certain if nodes else as_is
    return Part(name, says, as_is, answer, had / need.least, nodes, best.axis)


def _latency(need: LatencyNeed, offer: Offer) -> Part:
    """A latency alone: kept at any place of the workload."""
    name = f"{need.workload} {named(need)} <= {format_ns(need.most_ns)}"
    here = [one for one in offer.seen if one.workload == need.workload]
    known = [one for one in here if _keeps(one, need) is not Answer.UNKNOWN]
    if not known:
        return _unknown(name, "it has no such latency of this workload")
    best = min(known, key=lambda one: _most(one.latencies[need.metric]))
    most = _most(best.latencies[need.metric])
    keeps = most <= need.most_ns
    answer = _certainty(best, best.latencies[need.metric]) if keeps else Answer.NO
    says = f"at most {format_ns(most)}" if most < math.inf else "more than can be told"
    margin = need.most_ns / most if 0 < most < math.inf else None
    return Part(name, says, answer, answer, margin, axis=best.axis)


def _money(budget: Budget, offer: Offer, cost: float | None, nodes: int | None) -> Part:
    name = f"cost <= {budget.amount:,.0f} {budget.currency}".strip()
    if cost is None or offer.cost is None:
        return _unknown(name, "its cost is not known")
    if budget.currency and budget.currency != offer.currency:
        return _unknown(name, f"its cost is in {offer.currency}")
    as_is = Answer.YES if offer.cost <= budget.amount else Answer.NO
    answer = Answer.YES if cost <= budget.amount else Answer.NO
    says = f"{cost:,.0f} {offer.currency} with {'its' if nodes is None else 'as many'} nodes"
    says += "" if nodes is None else " as it takes"
    margin = budget.amount / offer.cost if offer.cost > 0 else None
    return Part(name, says, as_is, answer, margin)


def _unknown(name: str, says: str) -> Part:
    return Part(name, says, Answer.UNKNOWN, Answer.UNKNOWN)


def _keeps(seen: Seen, limit: LatencyNeed) -> Answer:
    """Whether a place keeps a latency, at the high end of its interval."""
    metric = seen.latencies.get(limit.metric)
    if metric is None or (metric.value is None and metric.low is None):
        return Answer.UNKNOWN
    return Answer.YES if _most(metric) <= limit.most_ns else Answer.NO


def _limited(seen: Seen, limits: Sequence[LatencyNeed]) -> Iterator[Metric]:
    """The latencies of a place that are limited."""
    return (seen.latencies[one.metric] for one in limits)


def _sure(metric: Metric) -> float:
    """What a rate has at the low end of its interval; its value where it has none."""
    return metric.low if metric.low is not None else metric.value or 0.0


def _most(metric: Metric) -> float:
    """The high end of a latency; one that is only known to be more than a bound has none."""
    if metric.value is None:
        return math.inf
    return metric.high if metric.high is not None else metric.value


def _certainty(seen: Seen, metric: Metric) -> Answer:
    """Sure is a valid result with an interval of chance; rounding alone tells of none."""
    chance = metric.low is not None and metric.n is not None
    return Answer.YES if seen.level is Level.VALID and chance else Answer.LIKELY


def _nodes_for(needed: float, had: float, nodes: int | None, scaling: float) -> int | None:
    """The least number of nodes whose rate is enough by the assumption; None where unknown."""
    if not nodes or had <= 0:
        return None
    each = had / nodes
    if needed > had + each * scaling * NODES_MOST:
        return None
    more = math.ceil((needed - had) / (each * scaling) - 1e-9) if needed > had else 0
    found = nodes + more if more else max(1, math.ceil(needed / each - 1e-9))
    return found if found <= NODES_MOST else None


def _nodes(parts: Sequence[Part], offer: Offer) -> int | None:
    """Enough for every part; None where the offer's are not known or one can never be met."""
    if not offer.nodes or any(part.answer is Answer.NO for part in parts):
        return None
    return max((part.nodes for part in parts if part.nodes), default=offer.nodes)


def _cost(offer: Offer, nodes: int | None) -> float | None:
    """In proportion to the nodes; as it is where these are not known."""
    if offer.cost is None:
        return None
    return offer.cost * nodes / offer.nodes if nodes and offer.nodes else offer.cost


def _rate_text(value: float, unit: str) -> str:
    return format_rate_bytes(value) if unit == "bytes/s" else f"{format_count(value)}/s"


def _worst(answers: Iterable[Answer]) -> Answer:
    return max(answers, key=lambda one: one.rank, default=Answer.YES)
