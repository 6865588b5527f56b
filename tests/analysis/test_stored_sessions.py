"""Stored sessions of all five studies: judged anew, numbers and verdicts are what they were.

Each was measured at reduced scale and holds the results of the version that measured it. Where a
change means to give others, tests/golden/sessions/README.md says how to make them anew.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any, Final

import pytest

from iolab.core.metric import Metric, RunResult
from iolab.store.reader import SessionReader
from tests.cli.in_process import call
from tests.judging import judge

GOLDEN = Path(__file__).parents[1] / "golden" / "sessions"
STUDIES = ("cluster-kpi", "ssd-cluster", "rocksdb", "cassandra", "vm-fleet")
CLOSE = 1e-9
KEYS_ADDED_LATER: Final = frozenset({"engine_write_amplification", "failure_hint"})
"""Keys that came after these sessions, which have nothing to be held against."""

RENAMED: Final = {
    "below-memory": "files-fit-in-memory",
    "bystander-lost": "monitored-node-lost",
    "cycle": "periodic-rate",
    "holes": "unwritten-extents",
    "imported": "imported-evidence",
    "imprecise": "wide-interval",
    "ranks-apart": "rank-skew",
    "start-state": "store-start-state",
    "store-shape": "store-shape-changed",
    "transient": "startup-transient",
    "wide-bins": "wide-percentile-bins",
    "wrong-blocks": "verify-mismatch",
}
"""Checks that these sessions have by an older code."""

ANSWERED: Final = ("latency-contradicted",)
"""Checks that were n/a in some of these sessions, and have an answer since."""

FOUND_LATER: Final = {"rocksdb": "littles-law"}
"""Checks that came later and find something: rates of these seconds beside latencies of the run."""


@pytest.fixture(scope="module", params=STUDIES)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    with tarfile.open(GOLDEN / f"{request.param}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder / str(request.param)


def test_every_run_is_judged_as_it_was(session: Path) -> None:
    reader = SessionReader(session)
    facts = reader.facts
    kept = reader.results()
    assert kept
    assert not reader.damage_of_documents_and_manifests()
    for was in kept:
        again = judge(reader.record(was.digest, was.repeat), facts)
        now, before = levels(again), levels(was)
        before |= {code: "valid" for code in ANSWERED if before.get(code) == "n/a"}
        assert {code: now.get(code) for code in before} == before
        # A check that came later looks at these sessions too, and finds little in them.
        found = {code: now[code] for code in now.keys() - before.keys()}
        assert found.pop(FOUND_LATER.get(session.name, ""), "") in ("", "valid", "indicative")
        assert set(found.values()) <= {"valid", "n/a"}
        assert again.window_s == pytest.approx(was.window_s, rel=CLOSE)
        same(known(again.metrics), numbers(was.metrics))
        for host, host_was in zip(again.hosts, was.hosts, strict=True):
            same(known(host.metrics), numbers(host_was.metrics))


def test_what_programs_are_told_has_the_same_numbers(session: Path) -> None:
    told = json.loads(call("show", session, "--json").stdout)
    text = (session / "show.json").read_text(encoding="utf-8")
    was = json.loads(text.replace('"sitting"', '"segment"'))
    same(figures(told), figures(was))


def levels(result: RunResult) -> dict[str, Any]:
    checks = {
        RENAMED.get(check.code, check.code): check.level_text for check in result.verdict.checks
    }
    return {"": result.verdict.level, **checks}


def numbers(metrics: Any) -> dict[str, Any]:
    found: dict[str, Metric] = dict(metrics)
    return {key: [one.value, one.low, one.high, one.n, one.unit] for key, one in found.items()}


def known(metrics: Any) -> dict[str, Any]:
    """The numbers without those of keys that came later."""
    return {key: value for key, value in numbers(metrics).items() if key not in KEYS_ADDED_LATER}


def figures(value: Any, place: str = "") -> dict[str, Any]:
    """Every number, level and code of a document by its place; sentences may be reworded."""
    if isinstance(value, dict):
        return {k: v for key in value for k, v in figures(value[key], f"{place}/{key}").items()}
    if isinstance(value, list):
        parts = (figures(one, f"{place}/{index}") for index, one in enumerate(value))
        return {k: v for part in parts for k, v in part.items()}
    is_word = isinstance(value, str) and place.rsplit("/", 1)[-1] not in ("level", "code", "unit")
    is_added_later = bool(KEYS_ADDED_LATER.intersection(place.split("/")))
    return {} if is_word or is_added_later else {place: value}


def same(now: dict[str, Any], was: dict[str, Any]) -> None:
    assert now.keys() == was.keys()
    differ = {key: (now[key], was[key]) for key in was if not close(now[key], was[key])}
    assert not differ


def close(now: Any, was: Any) -> bool:
    if isinstance(was, list):
        return len(now) == len(was) and all(map(close, now, was))
    if isinstance(was, float) and isinstance(now, (int, float)):
        return bool(now == pytest.approx(was, rel=CLOSE, nan_ok=True))
    return bool(now == was)
