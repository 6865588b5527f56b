"""A stored session as it is shown: what may not stand in one curve stands apart. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from iolab.analysis.points import (
    REPLICATED,
    finite_metric_value,
    is_publishable,
    results_by_point,
    results_with_sentinel_checks,
)
from iolab.analysis.resume_checks import SessionWithStarts, results_with_resume_checks
from iolab.core.configuration import Configuration
from iolab.core.metric import CheckResult, RunResult, VerdictLevel
from iolab.core.study import Study
from iolab.text import percent_text

REPEATS_CHECK_CODE: Final = "repeats-disagree"
"""The check's code; docs/reference/checks/repeats-disagree.md says what it means."""

RANGE_GOOD: Final = 0.20
"""(max - min) / mean of the repeats, as SNIA's PTS allows it to the rounds of one steady state.
Runs that scatter by 3.7 %, the most between instances of public clouds (arXiv 2504.11826), stay
within it 999 times in 1000: three of them are less than 5.06 standard deviations apart then."""

RATIO_BAD: Final = 2.0
"""The largest over the least from which on the mean is a value that no run came near. Of runs that
scatter by 10 %, below which three in four configurations stay (Cao and others, FAST'17), five
reach 1.7 once in 1000."""


class StoredSession(SessionWithStarts, Protocol):
    """A session with its study, its results and its starts."""

    @property
    def study(self) -> Study:
        """The study with every default and override."""


def study_and_results_with_session_checks(
    session: StoredSession,
) -> tuple[Study, tuple[RunResult, ...]]:
    """The study and its results for people and programs to read.

    Results that were measured without hosts are those of a configuration of their own, and results
    of several segments say so, and those that were measured while the sentinel moved; repeats that
    do not agree with each other do as well.
    """
    planned = session.study
    study, results = separate_configurations_with_excluded_hosts(
        planned, results_with_sentinel_checks(session.results(), planned)
    )
    return study, results_with_repeat_checks(results_with_resume_checks(results, session), study)


def separate_configurations_with_excluded_hosts(
    study: Study, results: Sequence[RunResult]
) -> tuple[Study, tuple[RunResult, ...]]:
    """The study with a further configuration for each set of hosts that some result lacks.

    It is called like `fleet without c3`, stands after its own, and has the hosts that were left.
    What stands apart already stays as it is.
    """
    lacking = dict.fromkeys(
        (result.configuration, result.excluded_hosts)
        for result in results
        if _needs_configuration_without_hosts(result)
    )
    if not lacking:
        return study, tuple(results)
    configurations: list[Configuration] = []
    for item in study.configurations:
        configurations.append(item)
        configurations += [
            _renamed_configuration_without_hosts(item, names)
            for owner, names in lacking
            if owner == item.id
        ]
    renamed = tuple(
        replace(
            result, configuration=_name_without_hosts(result.configuration, result.excluded_hosts)
        )
        if _needs_configuration_without_hosts(result)
        else result
        for result in results
    )
    return replace(study, configurations=tuple(configurations)), renamed


def _needs_configuration_without_hosts(result: RunResult) -> bool:
    """Whether a result lacks hosts and stands among those of the whole configuration."""
    return bool(result.excluded_hosts) and not result.configuration.endswith(
        _name_without_hosts("", result.excluded_hosts)
    )


def _renamed_configuration_without_hosts(
    configuration: Configuration, names: tuple[str, ...]
) -> Configuration:
    return replace(
        configuration,
        id=_name_without_hosts(configuration.id, names),
        title=_name_without_hosts(configuration.title, names),
        hosts=tuple(host for host in configuration.hosts if host not in names),
    )


def _name_without_hosts(name: str, names: tuple[str, ...]) -> str:
    return f"{name} without {', '.join(names)}"


def results_with_repeat_checks(results: Sequence[RunResult], study: Study) -> tuple[RunResult, ...]:
    """The results; those whose repeats do not agree in their headline figure say so.

    Metadata load has no single figure: there each operation is compared by itself.
    """
    figures = {item.id: item.headline_metric for item in study.workloads if item.headline_metric}
    checks: dict[tuple[str, int, int], CheckResult] = {}
    for key, runs in results_by_point(results).items():
        if key.workload not in figures:
            continue
        figure = figures[key.workload]
        values = [finite_metric_value(run, figure) for run in runs if is_publishable(run)]
        check = repeats_disagree_check([value for value in values if value], figure)
        if check is not None:
            checks |= dict.fromkeys(
                (_attempt_key(run) for run in runs if is_publishable(run)), check
            )
    return tuple(result.with_session_check(checks.get(_attempt_key(result))) for result in results)


def _attempt_key(result: RunResult) -> tuple[str, int, int]:
    return result.digest, result.repeat, result.attempt


def repeats_disagree_check(values: Sequence[float], metric_key: str) -> CheckResult | None:
    """The objection to repeats that stand behind one value, all above 0; None where there is none.

    `metric_key` is the key of the metric that `values` are of.
    """
    if len(values) < REPLICATED:
        return None
    least, most, mean = min(values), max(values), sum(values) / len(values)
    spread, ratio = (most - least) / mean, most / least
    evidence: dict[str, int | float | str | bool | None] = {
        "runs": len(values),
        "metric": metric_key,
        "least": least,
        "most": most,
        "range_share": spread,
    }
    if ratio >= RATIO_BAD:
        message = f"{len(values)} repeats: the highest is {ratio:.3g} times the lowest."
        return CheckResult(REPEATS_CHECK_CODE, VerdictLevel.INVALID, message, evidence)
    if spread > RANGE_GOOD:
        message = (
            f"{len(values)} repeats differ by {percent_text(spread)} of their mean; "
            f"{percent_text(RANGE_GOOD)} are allowed."
        )
        return CheckResult(REPEATS_CHECK_CODE, VerdictLevel.INDICATIVE, message, evidence)
    return None
