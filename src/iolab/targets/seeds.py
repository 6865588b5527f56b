"""The seeds of what hosts draw, each from its place in the fleet, and when its arrivals come."""

from __future__ import annotations

from typing import Final

from iolab.core.run import Point
from iolab.core.study import Study
from iolab.study.targets import makers_of

HOSTS_APART: Final = 0x9E3779B1
"""Seeds of repeats follow each other, and those of the next host begin so much further on: 2^32 in
the golden section, the nearest prime. fio multiplies a seed by the number of a job and keeps the
lowest 32 bits, from which a distance with factors of two in it would take hosts away. As it is odd,
the same job of two hosts never draws the same (of fewer than 2^19 hosts with 2^13 jobs). Nothing
keeps jobs of different numbers on two hosts apart: two of them meet as seldom as two numbers
of 32 bits do. The native engine keeps 44 bits of a seed, beside the number of a job."""


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
