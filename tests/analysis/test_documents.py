"""Every check and every metric has its place in the documentation, and nothing else has."""

from __future__ import annotations

import importlib
import itertools
import json
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

from iolab import guests, importers, loads
from iolab.analysis import checks, points, resume_checks, stored_results
from iolab.analysis.check import Check
from iolab.analysis.checks import run
from iolab.core.metric_spec import metric_spec
from iolab.registry import analysis_kinds
from tests.judging import CHECKS_OF_KINDS
from tests.judging import EVERY_CHECK as CHECKS

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGES = REFERENCE / "checks"


def test_every_check_made_is_registered_once() -> None:
    rooms = [checks, guests, importers, loads]
    modules = [
        importlib.import_module(module.name)
        for room in rooms
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
    ]
    made = {id(v): v for m in modules for v in vars(m).values() if isinstance(v, Check)}
    assert {check.code for check in made.values()} == {check.code for check in CHECKS}
    assert len({check.code for check in CHECKS}) == len(CHECKS)
    assert set(made) <= {id(one) for one in CHECKS_OF_KINDS}


def test_every_check_has_a_page_and_every_page_a_check() -> None:
    codes = {check.code for check in CHECKS} | {
        resume_checks.RESUME_CHECK_CODE,
        points.SENTINEL_CHECK_CODE,
        stored_results.REPEATS_CHECK_CODE,
    }
    assert {path.stem for path in PAGES.glob("*.md")} == codes


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.code))
def test_a_page_says_what_it_must(check: Check[Any]) -> None:
    text = (PAGES / f"{check.code}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {check.title}\n\nCode: `{check.code}`\n")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    assert parts[1::2] == ["Meaning", "Test", "What to do"]
    assert all(len(body.strip()) > 40 for body in parts[2::2])
    assert not re.search("[A-Z_]", check.code)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.code))
def test_a_page_gives_the_constants_that_exist(check: Check[Any]) -> None:
    text = (PAGES / f"{check.code}.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`([A-Z][A-Z_]{3,})`", text))
    known = (
        set(LAW)
        | set(vars(run))
        | {"O_DIRECT", "DEBUG_LEVEL", "LD_PRELOAD", "LD_AUDIT", "TCP_NODELAY"}
    )
    for made in CHECKS_OF_KINDS:
        if made.code == check.code:
            known |= set(vars(importlib.import_module(made.judge.__module__)))
    assert names - known == set()


LAW = {
    **vars(importlib.import_module("iolab.analysis.service_time")),
    **vars(importlib.import_module("iolab.guests.metrics")),
}


def alternatives(name: str) -> list[str]:
    """The names that one with braces stands for: `{read,write}_iops` is two."""
    parts = [part.split(",") for part in re.split(r"[{}]", name)]
    return ["".join(chosen) for chosen in itertools.product(*parts)]


def test_every_metric_is_documented_with_its_unit() -> None:
    text = (REFERENCE / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+`) \| (\S+) \|", text, flags=re.MULTILINE)
    documented = {
        key: unit
        for keys, unit in rows
        for name in re.findall(r"`([\w{},]+)`", keys)
        for key in alternatives(name)
    }
    keys = analysis_kinds().metric_keys
    assert documented == {key: metric_spec(key).unit for key in keys}


@pytest.mark.parametrize("name", ["compare", "history", "show"])
def test_a_schema_allows_the_unit_of_every_metric(name: str) -> None:
    text = (Path(__file__).parents[2] / "schema" / f"{name}.json").read_text(encoding="utf-8")
    (units,) = re.findall(r'"unit": (\{[^}]*"enum"[^}]*\})', text)
    keys = (*analysis_kinds().metric_keys, "phase.lost.longest_stall_s", "scenario.redundancy_s")
    assert {metric_spec(key).unit for key in keys} <= set(json.loads(units)["enum"])
