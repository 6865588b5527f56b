"""Recorded I/O replayed by the real engine: in time, as it was, and refused where it is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.loads.fileio.io_trace import IoTrace, chunks_of_trace, read_trace
from tests.cli.command_line import iolab
from tests.e2e.native_engine import MIB, Outcome, ended, job, spec, started

pytestmark = pytest.mark.e2e

SIZE = 8 * MIB
STUDY = """
format = 1
id = "replayed"

[[workload]]
id = "replay"
engine = "native"
trace = "{trace}"
filesize = "8m"

[method]
warmup = 0
runtime = 2
settle = 0
idle_watch = 0
generator_limit = false
"""


def iolog(path: Path, rate: int, seconds: float, seed: int = 7) -> Path:
    """A trace of Poisson arrivals, a third of them writes, of two sizes."""
    draw = np.random.default_rng(seed)
    count = round(rate * seconds)
    times = np.cumsum(draw.exponential(1e6 / rate, count)).astype(int)
    sizes = draw.choice([4096, 16384], count, p=[0.75, 0.25])
    offsets = draw.integers(0, SIZE // 16384, count) * 16384
    writes = draw.random(count) < 1 / 3
    lines = ["fio version 3 iolog", "0 f add", "0 f open"]
    lines += [
        f"{time} f {'write' if write else 'read'} {offset} {size}"
        for time, write, offset, size in zip(times, writes, offsets, sizes, strict=True)
    ]
    path.write_text("\n".join([*lines, f"{times[-1]} f close"]) + "\n", encoding="utf-8")
    return path


def replayed(folder: Path, trace_path: Path, speed: float = 1.0, depth: int = 256) -> Outcome:
    trace = read_trace(str(trace_path))
    target = folder / "target"
    target.write_bytes(b"x" * SIZE)
    names = []
    for number, part in enumerate(chunks_of_trace(trace, SIZE, speed)):
        names.append(str(folder / f"trace.{number}"))
        Path(names[-1]).write_bytes(part)
    block = {"blocks": [{"bytes": 16384}], "depth": depth, "read_percent": 66}
    told = {"parts": names, "ios": len(trace.due_ns)}
    one = {**job(target, SIZE, "randrw"), **block, "trace": told}
    return ended(started(spec(one, runtime_s=30, direct=False), wait_s=0.2))


def test_every_recorded_io_is_done_and_counted(tmp_path: Path) -> None:
    path = iolog(tmp_path / "log", 5000, 1.0)
    trace = read_trace(str(path))
    outcome = replayed(tmp_path, path)
    for way, kind in (("read", 0), ("write", 1)):
        chosen = trace.kinds == kind
        assert outcome.count(way) == int(chosen.sum())
        assert outcome.end[way]["bytes"] == int(trace.sizes[chosen].sum())
    assert outcome.end["lateness"]["count"] == trace.io_count


@pytest.mark.parametrize("speed", [1.0, 4.0])
def test_a_replay_takes_as_long_as_was_recorded(speed: float, tmp_path: Path) -> None:
    path = iolog(tmp_path / "log", 2000, 1.0)
    end = replayed(tmp_path, path, speed).end
    wanted_ns = read_trace(str(path)).span_ns / speed
    # The last I/O cannot begin early, and its own time is all that may come on top.
    assert end["measured_ns"] >= wanted_ns * 0.999


def test_a_session_replays_a_trace_on_its_host(tmp_path: Path) -> None:
    path = iolog(tmp_path / "log", 1000, 2.5)
    study, session = tmp_path / "study.toml", tmp_path / "S"
    study.write_text(STUDY.format(trace=path), encoding="utf-8")
    target = tmp_path / "t"
    target.mkdir()
    done = iolab("run", str(study), "--path", str(target), "--out", str(session))
    assert done.returncode in (0, 1), done.stderr
    (result,) = json.loads(iolab("show", str(session), "--json").stdout)["results"]
    assert result["status"] == "done", result
    trace = read_trace(str(path))
    due = trace.due_ns < 2e9
    reads = int((due & (trace.kinds == 0)).sum()) / 2
    assert result["metrics"]["read_iops"]["value"] == pytest.approx(reads, rel=0.05)
    checks = {one["code"]: one for one in result["verdict"]["checks"]}
    assert checks["generator-late"]["evidence"]["open_loop"] is True
    assert checks["block-size"]["level"] == "valid"
    assert not list(target.rglob("trace.*"))


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda text: text[:-3], ("line", "no end")),
        (lambda text: text + "1 f read 0 4096\n", ("goes back in time", "line 2505")),
        (lambda text: text + "9999999 f read 0 100\n", ("100 bytes", "line 2505")),
        (lambda text: "fio version 3 iolog\n0 f read 0 4096\n", ("no times",)),
    ],
)
def test_a_damaged_trace_is_refused_with_its_line(
    change: object, parts: tuple[str, ...], tmp_path: Path
) -> None:
    path = iolog(tmp_path / "log", 1000, 2.5)
    assert callable(change)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    study = tmp_path / "study.toml"
    study.write_text(STUDY.format(trace=path), encoding="utf-8")
    done = iolab("check", str(study))
    assert done.returncode == 2
    assert all(part in done.stderr + done.stdout for part in parts), done.stderr


def test_a_trace_that_is_too_short_or_for_another_engine_is_refused(tmp_path: Path) -> None:
    path = iolog(tmp_path / "log", 1000, 1.0)
    study = tmp_path / "study.toml"
    text = STUDY.format(trace=path).replace('"native"', '"fio"') + "\n"
    study.write_text(text.replace('filesize = "8m"', 'filesize = "8m"\nrate_iops = 5'), "utf-8")
    done = iolab("check", str(study))
    said = done.stderr + done.stdout
    assert done.returncode == 2
    assert all(part in said for part in ("engine = 'native'", "rate_iops", "warm-up")), said


RECORDED = """
format = 1
id = "recorded"

[[workload]]
id = "load"
engine = "native"
rw = "randrw"
rwmixread = 70
bs = "4k"
iodepth = 32
rate_iops = 400
arrivals = "poisson"
fio = { bssplit = "4k/75:16k/25", norandommap = true }
filesize = "8m"

[telemetry]
recorded_ios = 5000

[method]
warmup = 0
runtime = 3
settle = 0
idle_watch = 0
generator_limit = false
"""


CHANCE_DISTANCE = 0.08
"""Kolmogorov's limit of 0.1 % for two samples of 1,200: 1.95 * sqrt(2 / 1200)."""


def gap_distance(first: IoTrace, second: IoTrace) -> float:
    """The largest distance of the distributions of the times between two I/Os (Kolmogorov)."""
    gaps = [np.sort(np.diff(trace.due_ns)) for trace in (first, second)]
    places = np.concatenate(gaps)
    shares = [np.searchsorted(each, places, side="right") / len(each) for each in gaps]
    return float(np.abs(shares[0] - shares[1]).max())


def recorded_session(folder: Path, study_text: str) -> tuple[IoTrace, dict[str, Any]]:
    """The I/Os that a session recorded, and its result; their file is `folder.iolog`."""
    study, target, log = folder / "study.toml", folder / "t", folder.with_suffix(".iolog")
    target.mkdir(parents=True)
    study.write_text(study_text, encoding="utf-8")
    session = folder / "S"
    done = iolab("run", str(study), "--path", str(target), "--out", str(session))
    assert done.returncode in (0, 1), done.stderr
    written = iolab("export", str(session), "--format", "iolog", "--out", str(log))
    assert written.returncode == 0, written.stderr
    (result,) = json.loads(iolab("show", str(session), "--json").stdout)["results"]
    folder.joinpath("all").mkdir()
    every = iolab("export", str(session), "--format", "iolog", "--out", str(folder / "all"))
    assert every.returncode == 0, every.stderr
    (one,) = folder.joinpath("all").iterdir()
    assert one.read_bytes() == log.read_bytes()
    assert not list(target.rglob("*.iolog"))
    return read_trace(str(log)), result


@pytest.mark.long
def test_a_recorded_run_of_ours_is_replayed_as_it_was(tmp_path: Path) -> None:
    recorded, result = recorded_session(tmp_path / "first", RECORDED)
    again = STUDY.format(trace=tmp_path / "first.iolog") + "[telemetry]\nrecorded_ios = 5000\n"
    replayed_trace, replay = recorded_session(
        tmp_path / "second", again.replace("runtime = 2", "runtime = 2.5")
    )
    # Each I/O at its place and of its size, in the recorded order; the replay ends half a second
    # before the recording does.
    count = replayed_trace.io_count
    assert count >= 0.8 * recorded.io_count >= 800
    for name in ("offsets", "sizes", "kinds"):
        assert (getattr(replayed_trace, name) == getattr(recorded, name)[:count]).all()
    assert set(recorded.sizes) == {4096, 16384}
    # On a busy machine I/Os are late: each changes the gap before it and the one behind it, and one
    # that is punctual by 0.1 ms changes one gap of 25 at 400 a second.
    lateness = replayed_trace.due_ns - recorded.due_ns[:count]
    late = float(np.mean(lateness > np.percentile(lateness, 10) + 100_000))
    assert gap_distance(recorded, replayed_trace) < CHANCE_DISTANCE + 1 / 25 + 2 * late
    for way in ("read_iops", "write_iops"):
        rates = [one["metrics"][way]["value"] for one in (result, replay)]
        assert rates[1] == pytest.approx(rates[0], rel=0.15)


@pytest.mark.long
def test_a_recording_ends_with_its_last_io_and_without_one_there_is_none(tmp_path: Path) -> None:
    target, log = tmp_path / "target", tmp_path / "log"
    target.write_bytes(b"x" * SIZE)
    record = {"path": str(log), "ios": 100}
    end = ended(started(spec(job(target, SIZE), direct=False, record=record))).end
    assert end["recorded"] == {"ios": end["recorded"]["ios"], "fault": None}
    assert 50 <= end["recorded"]["ios"] <= 100 + 64  # the threads' parts
    assert read_trace(str(log)).io_count == end["recorded"]["ios"]
    record = {"path": str(tmp_path / "gone" / "log"), "ios": 100}
    end = ended(started(spec(job(target, SIZE), direct=False, record=record))).end
    assert "ENOENT" in end["recorded"]["fault"]
    refused = ended(started(spec(job(target, SIZE), record={"path": str(log), "ios": 0})))
    assert "record of 0 I/Os" in refused.faults
    study, session = tmp_path / "study.toml", tmp_path / "S"
    study.write_text(RECORDED.replace("recorded_ios = 5000", ""), encoding="utf-8")
    done = iolab("run", str(study), "--path", str(tmp_path), "--out", str(session))
    assert done.returncode in (0, 1), done.stderr
    none = iolab("export", str(session), "--format", "iolog")
    assert none.returncode == 2
    assert "recorded_ios" in none.stderr
