"""A neighbour on one disk of a known speed: its cost, what a limit undoes, and what is left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.agent.speaker import children_of, until
from tests.e2e.left import ours_on
from tests.e2e.sessions import IOLAB, iolab, shown
from tests.facts import tells
from tests.fakes import mirror
from tests.fakes.mirror import SingleDisk
from tests.needs import require

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.e2e, pytest.mark.long]

IOPS = 100
"""So slow that one turn of the disk, 10 ms, is longer than what a busy machine adds to an I/O."""

VICTIM_IOPS, LIMIT_IOPS = 25, 30
"""The limit is a multiple of 10: the kernel counts whole I/Os in each tenth of a second."""

PHASES = ("alone", "neighbour", "limited", "alone-again")
SHORT = (
    *(f"phase.{name}.seconds=9s" for name in PHASES),
    f"workload.victim.fleet_rate_iops={VICTIM_IOPS}",
    f"event.limit.io_limit.read_iops={LIMIT_IOPS}",
    f"event.limit.title=Limiting it to {LIMIT_IOPS} IOPS",
    *("method.idle_watch=0", "method.generator_limit=false"),
)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SingleDisk]:
    require(*mirror.PROGRAMS, "mkfs.ext4", "root")
    with SingleDisk.running(tmp_path / "disk", IOPS) as made:
        yield made


def words_of_run(made: SingleDisk, out: Path, *sets: str) -> list[str | Path]:
    """The bundled study on the disk, shorter."""
    words = ["run", "noisy-neighbour", "--scale", "small"]
    words += [word for value in (*SHORT, *sets) for word in ("--set", value)]
    return [*words, "--hosts", made.inventory, "--out", out]


def levels_of(result: dict[str, Any]) -> dict[str, str]:
    return {check["code"]: check["level"] for check in result["verdict"]["checks"]}


def test_a_neighbour_costs_latency_at_the_same_rate_until_it_is_limited(
    disk: SingleDisk, tmp_path: Path
) -> None:
    """All of the disk's I/Os are 100 a second: what the victim leaves is the neighbour's."""
    out = tmp_path / "session"
    iolab(*words_of_run(disk, out))
    document = shown(out)
    schema = json.loads((ROOT / "schema" / "show.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(document)
    (result,) = document["results"]
    scenario = result["scenario"]
    alone, noisy, limited, again = scenario["phases"]
    assert [phase["id"] for phase in scenario["phases"]] == list(PHASES)
    assert [phase["baseline_share"]["value"] for phase in scenario["phases"]] == pytest.approx(
        [1, 1, 1, 1], abs=0.05
    )
    # One I/O waits for the turns of those before it, alone for none: a third of a turn and several.
    assert noisy["lat_ns_p50"]["value"] > 1e9 / IOPS / 2
    assert noisy["p50_ratio"]["value"] > 2
    for quiet in (limited, again):
        assert quiet["p50_ratio"]["value"] < noisy["p50_ratio"]["value"] / 2
    assert alone["p50_ratio"]["value"] is None
    (neighbour,) = scenario["neighbours"]
    free, held = neighbour["phases"]
    assert free["iops"]["value"] == pytest.approx(IOPS - VICTIM_IOPS, rel=0.2)
    assert held["iops"]["value"] < free["iops"]["value"] / 2
    (limit,) = neighbour["limit_figures"]
    assert limit["limit"] == LIMIT_IOPS
    assert limit["rate"] <= 1.1 * LIMIT_IOPS
    levels = levels_of(result)
    assert {levels[code] for code in ("neighbour-absent", "neighbour-unlimited")} == {"valid"}
    # What both loads read is what the disk did; below it a process hides the image.
    (moved,) = [c["evidence"] for c in result["verdict"]["checks"] if c["code"] == "bytes-moved"]
    assert moved["device_read_bytes"] == pytest.approx(moved["claimed_read_bytes"], rel=0.02)
    answer = " ".join(iolab("show", out).stdout.split())
    assert tells(answer, "a neighbour makes the p50", f"limiting it to {LIMIT_IOPS} IOPS")
    page = tmp_path / "report.html"
    iolab("report", out, "--html", page)
    assert "Neighbours and what they cost" in page.read_text(encoding="utf-8")
    assert [point["workload"] for point in document["points"]] == ["victim"]


@pytest.mark.parametrize("who", ["controller", "agent"])
def test_a_kill_leaves_no_neighbour(disk: SingleDisk, tmp_path: Path, who: str) -> None:
    words = words_of_run(disk, tmp_path / "session", "phase.neighbour.seconds=120s")
    argv = [IOLAB, *words]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as run:
        assert until(lambda: len(engines_of(run.pid)) == 2, 120)
        (keeper,) = children_of(run.pid)
        (agent,) = children_of(keeper)
        engines = engines_of(run.pid)
        os.kill(run.pid if who == "controller" else agent, signal.SIGKILL)
        assert until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in engines), 60)
        run.kill()
    assert ours_on(tmp_path) == []


def engines_of(controller: int) -> list[int]:
    """The native engines of a session, which are of its agent."""
    found, queue = [], children_of(controller)
    while queue:
        pid = queue.pop()
        with contextlib.suppress(OSError):  # it has ended
            queue += children_of(pid)
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            found += [pid] if b"engine" in words else []
    return found
