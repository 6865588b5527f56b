"""A version of the analysis stands for one list of checks, their limits, and one set of metrics."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Final

from iolab.analysis.kinds import ANALYSIS_VERSION, judge_run
from iolab.core.metric_spec import MetricSpec, metric_spec
from iolab.registry import LOADS, analysis_kinds

RECORDED: Final = (50, "ac38bb0177711fcb")
"""The version, and the digest of what it judges by."""

ROOMS: Final = ("iolab.analysis.", "iolab.stats.")
SHARED: Final = "iolab.core.run"
"""Has limits that sessions share with the checks."""

NOT_JUDGED: Final = ("ANALYSIS_VERSION", "_SHOWN")
"""The ends of names of numbers that move no result."""


def limits(name: str) -> list[tuple[str, Any]]:
    """The numbers to which a module gives a name, alone or several together."""
    module = import_module(name)
    tree = ast.parse(inspect.getsource(module))
    targets = [one.target for one in tree.body if isinstance(one, ast.AnnAssign)]
    named = {one.id for one in targets if isinstance(one, ast.Name)}
    return [
        (one, value)
        for one, value in vars(module).items()
        if one in named and is_number(value) and not one.endswith(NOT_JUDGED)
    ]


def is_number(value: object) -> bool:
    """Whether a constant is a number, or some of them."""
    if isinstance(value, tuple):
        return all(is_number(one) for one in value)
    return type(value) in (int, float)


def spec(key: str) -> tuple[str, ...]:
    """What of a metric changes a number or which of two is better; not what it is called."""
    found: MetricSpec = metric_spec(key)
    return found.unit, found.better, found.combine, found.operation, found.statistic


def modules_below(names: Iterable[str]) -> set[str]:
    """Those modules, and all of analysis and statistics that they import anything from."""
    found: set[str] = set()
    ahead = set(names)
    while ahead:
        name = ahead.pop()
        found.add(name)
        ahead |= {one for one in imported_by(name) if one.startswith(ROOMS)} - found
    return found


def imported_by(name: str) -> Iterator[str]:
    """The modules that a module imports, or imports anything from."""
    module = import_module(name)
    tree = ast.parse(inspect.getsource(module))
    yield from (one.module or "" for one in ast.walk(tree) if isinstance(one, ast.ImportFrom))
    yield from (one.__name__ for one in vars(module).values() if inspect.ismodule(one))


def judged_by() -> dict[str, Any]:
    """The checks of each kind of load, the limits of all modules that judge, and the metrics."""
    checks = {kind.name: analysis_kinds().checks_for_job(kind.job_types[0]) for kind in LOADS}
    judges = {one.judge.__module__ for each in checks.values() for one in each}
    rates = {key for kind in LOADS for key in kind.make_analysis().operation_metrics}
    declared = {one.key for kind in LOADS for one in kind.non_operation_metrics}
    return {
        "checks": {name: [one.code for one in each] for name, each in checks.items()},
        "limits": sorted(
            one
            for name in {SHARED, *modules_below({judge_run.__module__, *judges})}
            for one in limits(name)
        ),
        "metrics": {key: spec(key) for key in rates | declared},
    }


def test_what_results_are_judged_by_changes_with_the_version_alone() -> None:
    text = json.dumps(judged_by(), sort_keys=True)
    seen = (ANALYSIS_VERSION, hashlib.sha256(text.encode()).hexdigest()[:16])
    assert seen == RECORDED, "raise ANALYSIS_VERSION and record the digest"
