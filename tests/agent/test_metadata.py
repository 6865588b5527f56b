"""Metadata load over the real wire: what is there afterwards, what is counted, how it ends."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from iolab.core import histogram
from iolab.units import NS_PER_S
from tests.agent.conftest import ROOT
from tests.agent.speaker import Agent, Said, until

PHASES: Final = (
    ("tree-create", 4, 0),
    ("file-create", 80, 80),
    ("file-stat", 80, 80),
    ("file-read", 80, 80),
    ("file-remove", 80, 0),
    ("tree-remove", 4, 0),
)
FOUR: Final = {"first_rank": 0, "ranks": 4, "total_ranks": 4, "files_per_rank": 20}


def open_scratch(agent: Agent, target: Path, name: str = "one") -> str:
    opened = agent.ask("scratch_open", path=str(target), name=f"iolab-scratch-{name}", owner="me")
    return str(opened["dir"])


def hint(agent: Agent, phase: str, dir_: str, **more: Any) -> Said:
    return agent.rest(begin(agent, phase, dir_, **more))[-1]


def begin(agent: Agent, phase: str, dir_: str, **more: Any) -> int:
    arguments: dict[str, Any] = {**FOUR, **more}
    return agent.begin("metadata", phase=phase, dir=dir_, **arguments)


def files(folder: str | Path) -> list[Path]:
    """The ranks' files under a scratch folder."""
    return sorted(Path(folder).glob("metadata.*/rank.*/file.*"))


def counted(said: Said) -> int:
    return sum(count for _, count in said["bins"])


def test_the_bins_are_those_of_the_model() -> None:
    columns = (histogram.LOWER_NS, histogram.UPPER_NS, histogram.MIDDLE_NS)
    lines = "".join(f"{low} {high} {middle}\n" for low, high, middle in zip(*columns, strict=True))
    source = (ROOT / "agent" / "src" / "latency.rs").read_text(encoding="utf-8")
    told = re.search(r'TABLE_SHA256: &str =\s*"(\w+)"', source)
    assert told is not None
    assert told[1] == hashlib.sha256(lines.encode()).hexdigest()


def test_it_is_among_the_capabilities(agent: Agent) -> None:
    assert "metadata" in agent.hello["capabilities"]


def test_each_phase_does_what_it_says_and_counts_it(agent: Agent, tmp_path: Path) -> None:
    folder = open_scratch(agent, tmp_path)
    for phase, ops, left in PHASES:
        said = hint(agent, phase, folder, file_bytes=3901)
        assert (said.is_, said["phase"], said["ranks"]) == ("measured", phase, 4)
        assert (said["ops"], said["errors"], said["skipped"]) == (ops, {}, 0)
        assert counted(said) == ops
        assert len(files(folder)) == left
        assert {file.stat().st_size for file in files(folder)} <= {3901}
    assert not (Path(folder) / "metadata.0").exists()


def test_iterations_do_not_meet(agent: Agent, tmp_path: Path) -> None:
    folder = open_scratch(agent, tmp_path)
    for iteration in range(3):
        assert hint(agent, "tree-create", folder, iteration=iteration)["errors"] == {}
        assert hint(agent, "file-create", folder, iteration=iteration)["errors"] == {}
    assert len(files(folder)) == 3 * 80


def test_percentiles_lie_within_the_exact_extremes(agent: Agent, tmp_path: Path) -> None:
    folder = open_scratch(agent, tmp_path)
    hint(agent, "tree-create", folder)
    hint(agent, "file-create", folder, files_per_rank=500)
    said = hint(agent, "file-stat", folder, files_per_rank=500)
    bins, counts = zip(*said["bins"], strict=True)
    shape = histogram.Histogram(histogram.dense_counts(bins, counts))
    low, median, high = (shape.percentile_ns(p) for p in (0.001, 50, 100))
    assert low is not None
    assert median is not None
    assert high is not None
    assert said["latency_min_ns"] == pytest.approx(low, rel=1 / 128)
    assert said["latency_max_ns"] == pytest.approx(high, rel=1 / 128)
    assert low <= median <= high
    mean = said["latency_sum_ns"] / said["ops"]
    assert said["latency_min_ns"] <= mean <= said["latency_max_ns"]
    # Four ranks side by side: their latencies cannot be longer than their time together.
    assert said["latency_sum_ns"] <= 4 * (said["last_end_real_ns"] - said["first_start_real_ns"])


def test_no_rank_begins_before_the_start(agent: Agent, tmp_path: Path) -> None:
    folder = open_scratch(agent, tmp_path)
    start = time.time_ns() + NS_PER_S // 5
    said = hint(agent, "tree-create", folder, start_at_real_ns=start)
    assert start <= said["first_start_real_ns"]
    assert said["first_start_real_ns"] <= said["last_start_real_ns"] <= said["last_end_real_ns"]
    assert said["first_end_real_ns"] <= said["last_end_real_ns"] <= time.time_ns()


@pytest.fixture
def pair(program: Path) -> Iterator[tuple[Agent, Agent]]:
    with Agent(program) as one, Agent(program) as two:
        yield one, two


def test_a_shift_reads_and_removes_what_the_other_host_made(
    pair: tuple[Agent, Agent], tmp_path: Path
) -> None:
    folders = [open_scratch(agent, tmp_path, name) for agent, name in zip(pair, "ab", strict=True)]
    hosts: list[dict[str, Any]] = [
        {"dir_": folder, "first_rank": first, "ranks": 4, "total_ranks": 8}
        for folder, first in zip(folders, (0, 4), strict=True)
    ]
    for phase in ("tree-create", "file-create"):
        for agent, host in zip(pair, hosts, strict=True):
            assert hint(agent, phase, **host)["errors"] == {}
    theirs = {"dir": folders[1], "first_rank": 4, "ranks": 4}
    shifted: dict[str, Any] = {**hosts[0], "shift": 4, "others": [theirs]}
    assert hint(pair[0], "file-stat", **shifted)["ops"] == 80
    assert hint(pair[0], "file-read", **shifted)["ops"] == 80
    assert hint(pair[0], "file-remove", **shifted)["ops"] == 80
    assert (len(files(folders[0])), len(files(folders[1]))) == (80, 0)
    assert hint(pair[1], "file-stat", **hosts[1])["errors"] == {"ENOENT": 80}
    for agent in pair:
        assert agent.close() == 0
    assert list(tmp_path.iterdir()) == []


def test_failures_are_counted_by_their_errno(agent: Agent, tmp_path: Path) -> None:
    folder = open_scratch(agent, tmp_path)
    hint(agent, "tree-create", folder)
    assert hint(agent, "tree-create", folder)["errors"] == {"EEXIST": 4}
    said = hint(agent, "file-stat", folder)
    assert (said["ops"], said["errors"], said["bins"]) == (0, {"ENOENT": 80}, [])
    assert (said["latency_min_ns"], said["latency_max_ns"]) == (None, None)
    hint(agent, "file-create", folder)
    assert hint(agent, "file-create", folder, files_per_rank=25)["errors"] == {"EEXIST": 80}
    assert hint(agent, "tree-remove", folder)["errors"] == {"ENOTEMPTY": 4}
    files(folder)[0].unlink()
    said = hint(agent, "file-read", folder, file_bytes=10)
    assert (said["ops"], said["errors"]) == (0, {"ENOENT": 1, "short": 79})


def test_a_full_file_system_is_counted_and_not_hidden(program: Path, tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=16m,nr_inodes=50 none {tmp_path} && exec $0"
    with Agent(program, "unshare", "--map-root-user", "--mount", "sh", "-c", mount) as agent:
        folder = open_scratch(agent, tmp_path)
        hint(agent, "tree-create", folder)
        said = hint(agent, "file-create", folder)
        assert set(said["errors"]) == {"ENOSPC"}
        assert 0 < said["ops"] < 50
        assert said["ops"] + said["errors"]["ENOSPC"] == 80


def test_intervals_are_differences_that_add_up(agent: Agent, tmp_path: Path) -> None:
    folder = open_scratch(agent, tmp_path)
    hint(agent, "tree-create", folder)
    limits = {"wall_limit_s": 0.5, "interval_ms": 100}
    run = begin(agent, "file-create", folder, files_per_rank=100_000, **limits)
    *intervals, final = agent.rest(run)
    assert {said.is_ for said in intervals} == {"interval"}
    assert [said["seq"] for said in intervals] == list(range(len(intervals)))
    assert sum(said["ops"] for said in intervals) == final["ops"] == len(files(folder))
    assert final["ops"] + final["skipped"] == 400_000
    assert all(counted(said) == said["ops"] for said in [*intervals, final])
    pairs = [pair for said in intervals for pair in said["bins"]]
    together = histogram.dense_counts(*zip(*pairs, strict=True))
    whole = histogram.dense_counts(*zip(*final["bins"], strict=True))
    assert (together == whole).all()
    ends = [said["to_real_ns"] for said in intervals]
    assert [said["from_real_ns"] for said in intervals[1:]] == ends[:-1]
    assert (final["timed_out"], final["cancelled"]) == (final["skipped"] > 0, False)


def test_a_signal_stops_it_and_what_was_done_is_told(agent: Agent, tmp_path: Path) -> None:
    folder = open_scratch(agent, tmp_path)
    hint(agent, "tree-create", folder)
    run = begin(agent, "file-create", folder, files_per_rank=1_000_000)
    assert until(lambda: bool(files(folder)))
    assert hint(agent, "file-stat", folder)["code"] == "busy"
    assert agent.ask("scratch_close", dir=folder, keep=False)["code"] == "busy"
    assert agent.ask("signal", run=run, signal="INT").is_ == "done"
    final = agent.rest(run)[-1]
    assert (final["cancelled"], final["timed_out"]) == (True, False)
    assert final["ops"] == len(files(folder))
    assert final["ops"] + final["skipped"] == 4_000_000
    assert agent.ask("scratch_close", dir=folder, keep=False).is_ == "done"
    assert list(tmp_path.iterdir()) == []


def test_one_that_waits_for_its_start_is_called_off(agent: Agent, tmp_path: Path) -> None:
    folder = open_scratch(agent, tmp_path)
    start = time.time_ns() + 600 * NS_PER_S
    run = begin(agent, "tree-create", folder, start_at_real_ns=start)
    assert agent.ask("signal", run=run, signal="TERM").is_ == "done"
    final = agent.rest(run)[-1]
    assert (final["ops"], final["skipped"], final["cancelled"]) == (0, 4, True)
    assert final["first_start_real_ns"] is None


def test_at_the_end_of_the_input_everything_goes(agent: Agent, tmp_path: Path) -> None:
    folder = open_scratch(agent, tmp_path)
    hint(agent, "tree-create", folder, ranks=32, total_ranks=32)
    begin(agent, "file-create", folder, ranks=32, total_ranks=32, files_per_rank=1_000_000)
    assert until(lambda: len(files(folder)) > 1000)
    assert agent.close() == 0
    assert list(tmp_path.iterdir()) == []


def test_the_end_of_the_input_finds_one_that_still_waits(agent: Agent, tmp_path: Path) -> None:
    folder = open_scratch(agent, tmp_path)
    start = time.time_ns() + 600 * NS_PER_S
    begin(agent, "tree-create", folder, start_at_real_ns=start)
    assert agent.close() == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"ranks": 0}, "ranks of 0"),
        ({"ranks": 5000, "total_ranks": 5000}, "5000"),
        ({"ranks": 5}, "rank 4"),
        ({"shift": 1, "ranks": 2}, "rank 2"),
        ({"shift": 9}, "shift of 9"),
        ({"shift": 1, "phase": "tree-remove"}, "shift"),
        ({"phase": "format"}, "format"),
        ({"files_per_rank": 10**7}, "10000000"),
        ({"file_bytes": 1 << 21}, "2097152"),
        ({"file_bytes": -1}, "-1"),
        ({"interval_ms": 1}, "1 ms"),
        ({"wall_limit_s": 0}, "wall limit"),
        ({"start_at_real_ns": 1 << 62}, "too far"),
        ({"others": [{"dir": "/etc", "first_rank": 4, "ranks": 4}]}, "/etc"),
        ({"dir": "relative"}, "relative"),
        ({"fsync": True}, "fsync"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    agent: Agent, tmp_path: Path, more: dict[str, Any], message: str
) -> None:
    asked = {**FOUR, "phase": "file-stat", "dir": open_scratch(agent, tmp_path), **more}
    refusal = agent.ask("metadata", **asked)
    assert (refusal.is_, refusal["code"]) == ("error", "bad-request")
    assert message in refusal["message"]


def test_only_a_scratch_folder_held_here_is_worked_in(
    pair: tuple[Agent, Agent], tmp_path: Path
) -> None:
    theirs = open_scratch(pair[1], tmp_path)
    for folder in (str(tmp_path), theirs, theirs + "/..", "/"):
        refusal = hint(pair[0], "tree-create", folder)
        assert (refusal.is_, refusal["code"]) == ("error", "bad-request")
    assert [path.name for path in Path(theirs).iterdir()] == [".iolab-lock"]


def test_links_are_not_followed(agent: Agent, tmp_path: Path) -> None:
    folder = open_scratch(agent, tmp_path)
    precious = tmp_path / "precious" / "rank.0"
    precious.mkdir(parents=True)
    (precious / "file.0000000").write_bytes(b"stays")
    (Path(folder) / "metadata.0").symlink_to(tmp_path / "precious")
    assert hint(agent, "file-remove", folder)["code"] in {"ELOOP", "ENOTDIR"}
    assert (precious / "file.0000000").read_bytes() == b"stays"
