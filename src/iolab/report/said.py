"""The story of a session as the page shows it: sentences, each with links to the runs behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from iolab.analyse.findings.ranked import findings
from iolab.analyse.gains import gains
from iolab.analyse.limits.watched import Watched
from iolab.analyse.points import PointSummary
from iolab.model.metric import Result
from iolab.model.study import Study
from iolab.report.detail import RunKey
from iolab.report.objections import run_name
from iolab.report.story import Sentence, story, without_repeats
from iolab.report.wording import count

FIRST: Final = 8
"""Sentences that stand open: what fits a screen. The others are folded below them."""

LINKS_MOST: Final = 4
"""Runs that a sentence leads to; more are counted."""


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence; `links` are the anchors and names of its first runs, `more` counts the others."""

    text: str
    links: tuple[tuple[str, str], ...]
    more: str


def said(
    study: Study,
    points: Sequence[PointSummary],
    results: Sequence[Result],
    anchors: Mapping[RunKey, str],
    watched: Mapping[RunKey, Watched] = MappingProxyType({}),
) -> tuple[Said, ...]:
    """Every sentence that the results support, what decides first.

    `watched` is what some runs tell of the resources under their load.
    """
    titles = {one.id: f" of {one.title}" for one in study.configurations}
    if len(titles) == 1:
        titles = {}
    names = {
        (one.digest, one.repeat): f"{run_name(one)}{titles.get(one.configuration, '')}"
        for one in results
    }
    found = findings(study, points, gains(study, points), watched)
    return tuple(_linked(one, names, anchors) for one in without_repeats(story(study, found)))


def _linked(one: Sentence, names: Mapping[RunKey, str], anchors: Mapping[RunKey, str]) -> Said:
    keys = list(dict.fromkeys(key for key in one.runs if key in anchors))
    links = tuple((anchors[key], names[key]) for key in keys[:LINKS_MOST])
    hidden = len(keys) - len(links)
    return Said(one.text, links, f"and {count(hidden, 'more run')}" if hidden else "")
