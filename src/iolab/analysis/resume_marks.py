"""A stored session as it is shown: what may not stand in one curve stands apart. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from iolab.analysis.disagreement import mark_disagreeing
from iolab.analysis.points import mark_moved
from iolab.analysis.resumed import Sittings, checked
from iolab.core.configuration import Configuration
from iolab.core.metric import Result
from iolab.core.study import Study


class Stored(Sittings, Protocol):
    """A session with its study, its results and its starts."""

    @property
    def study(self) -> Study:
        """The study with every default and override."""


def shown_of(session: Stored) -> tuple[Study, tuple[Result, ...]]:
    """The study and its results for people and programs to read.

    Results that were measured without hosts are those of a configuration of their own, and results
    of several sittings say so, and those that were measured while the sentinel moved; repeats that
    do not agree with each other do as well.
    """
    whole = session.study
    study, results = set_apart(whole, mark_moved(session.results(), whole))
    return study, mark_disagreeing(checked(results, session), study)


def set_apart(study: Study, results: Sequence[Result]) -> tuple[Study, tuple[Result, ...]]:
    """The study with a further configuration for each set of hosts that some result lacks.

    It is called like `fleet without c3`, stands after its own, and has the hosts that were left.
    What stands apart already stays as it is.
    """
    lacking = dict.fromkeys(
        (result.configuration, result.without) for result in results if _is_mixed(result)
    )
    if not lacking:
        return study, tuple(results)
    configurations: list[Configuration] = []
    for item in study.configurations:
        configurations.append(item)
        configurations += [_lesser(item, names) for owner, names in lacking if owner == item.id]
    renamed = tuple(
        replace(result, configuration=_name(result.configuration, result.without))
        if _is_mixed(result)
        else result
        for result in results
    )
    return replace(study, configurations=tuple(configurations)), renamed


def _is_mixed(result: Result) -> bool:
    """Whether a result lacks hosts and stands among those of the whole configuration."""
    return bool(result.without) and not result.configuration.endswith(_name("", result.without))


def _lesser(whole: Configuration, names: tuple[str, ...]) -> Configuration:
    return replace(
        whole,
        id=_name(whole.id, names),
        title=_name(whole.title, names),
        hosts=tuple(host for host in whole.hosts if host not in names),
    )


def _name(whole: str, names: tuple[str, ...]) -> str:
    return f"{whole} without {', '.join(names)}"
