"""What each host of a fleet draws from: streams of its own, and the same in a run made again."""

from __future__ import annotations

from typing import Final

from iolab.model.run import Point
from iolab.model.study import Study
from iolab.plan.guests import makers_of

HOSTS_APART: Final = 1 << 24
"""Seeds of repeats follow each other and those of the next host begin so much further on: fewer
repeats than that are planned. fio multiplies seeds with the number of a job, of which it has fewer
than 2^13, so that jobs of two hosts do not meet either; a million hosts fit into 64 bits."""


def seed_on(study: Study, point: Point, host: str, number: int) -> int:
    """The seed of a host in the `number`-th run of a point, from 1.

    It depends on the host's place among those that make the point's load, and not on others that
    were left out. Hosts that drew the same would all do their I/O at the same moments, where
    arrivals are random, and write the same blocks, which a target may store once.
    """
    place = makers_of(study, point).index(host)
    return study.method.seed + number - 1 + place * HOSTS_APART


def seed_of_contents(study: Study, host: str) -> int:
    """The seed of what layouts and fills write on a host, by its place among the study's hosts.

    A target that stores the same blocks once would hold the files of a whole fleet in one's place.
    """
    place = [spec.name for spec in study.hosts].index(host)
    return study.method.seed + place * HOSTS_APART


def turn_of(study: Study, point: Point, host: str) -> float:
    """By which part, from 0 to below 1, of the time between two arrivals a host's come later.

    So do fixed arrivals of a fleet lie evenly between each other, as far as clocks agree.
    """
    hosts = makers_of(study, point)
    return hosts.index(host) / len(hosts)
