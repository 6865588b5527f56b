"""Load on objects of whole sessions with a real agent, held against what the server counted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import zstandard

from iolab.loads.objects.workload import ObjectsRun, objects_run_of_host
from iolab.store.reader import SessionReader
from tests.cli.command_line import command, environment, iolab
from tests.facts import tells
from tests.fakes.object_server import ACCESS_KEY, BUCKET, ObjectServer, Plant, serve_objects

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SECRET = "KEPT-TO-ONESELF"
KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
OBJECTS, SIZE, IN_FLIGHT = 200, 16384, 4
PREFIX = "iolab-"

LOAD = f"""
[[workload]]
id = "mixed"
engine = "s3"
get = 60
put = 30
head = 5
list = 5
objects = {OBJECTS}
prefixes = 4
size = {SIZE}
concurrency = {IN_FLIGHT}
verify = 2
"""


def write_study(
    folder: Path, *endpoints: str, load: str = LOAD, bucket: str = BUCKET, runtime: str = "2s"
) -> Path:
    """A study of one run against those endpoints."""
    path = folder / "study.toml"
    path.write_text(
        f'format = 1\nid = "objects"\n[target]\nendpoint = {json.dumps(endpoints)}\n'
        f'bucket = "{bucket}"\nendpoint_use = "one-per-host"\n'
        f'[method]\nwarmup = "0.5s"\nruntime = "{runtime}"\nsettle = "0s"\nidle_watch = 0\n{load}'
    )
    return path


def run_session(folder: Path, study: Path) -> subprocess.CompletedProcess[str]:
    """The session in `folder / "S"`."""
    return iolab("run", study, "--out", folder / "S", env=KEYS)


def only_run(folder: Path) -> tuple[ObjectsRun, ...]:
    """What each host told of the session's only run."""
    reader = SessionReader(folder / "S")
    (key,) = reader.committed_runs()
    runs = [objects_run_of_host(host) for host in reader.record(*key).hosts]
    assert None not in runs
    return tuple(run for run in runs if run is not None)


def checks(folder: Path) -> dict[str, dict[str, Any]]:
    """The checks of the session's only run, by code."""
    shown = json.loads(iolab("show", folder / "S", "--json").stdout)
    (result,) = shown["results"]
    return {check["code"]: check for check in result["verdict"]["checks"]}


def contents(folder: Path) -> bytes:
    """Every byte of a session's files, unpacked."""
    whole = b""
    for path in folder.rglob("*"):
        raw = path.read_bytes() if path.is_file() else b""
        if raw.startswith(b"\x28\xb5\x2f\xfd"):
            reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
            raw = reader.read()
        whole += raw
    return whole


def test_a_session_tells_what_the_server_counted_and_leaves_nothing(tmp_path: Path) -> None:
    with serve_objects() as server:
        done = run_session(tmp_path, write_study(tmp_path, server.url))
        assert done.returncode == 0, done.stderr
        (run,) = only_run(tmp_path)
        counts = {count.operation: count.done for count in run.counts}
        assert all(count.failed == 0 for count in run.counts)
        assert counts["object_get"] > 0
        assert server.requests["PUT"] == OBJECTS + counts["object_put"]
        assert server.requests["HEAD"] >= counts["object_head"]
        assert server.requests["GET"] >= counts["object_get"] + counts["object_list"]
        assert run.put_objects == counts["object_put"]
        assert run.put_bytes == counts["object_put"] * SIZE
        assert run.data_set_bytes == OBJECTS * SIZE
        assert run.verified_bytes > 0
        assert run.opened == 0
        assert server.objects == {}
    report = iolab("report", tmp_path / "S")
    assert report.returncode == 0, report.stderr
    written = contents(tmp_path / "S") + (done.stdout + done.stderr).encode()
    assert SECRET.encode() not in written
    assert ACCESS_KEY.encode() not in written
    assert checks(tmp_path)["object-requests-failed"]["level"] == "valid"


@pytest.mark.parametrize(
    ("plant", "name"),
    [
        (Plant.SLOW_DOWN, "SlowDown"),
        (Plant.SHORT_BODY, "short-body"),
        (Plant.WRONG_CONTENT, "contents"),
        (Plant.CUT, "closed"),
        (Plant.ERROR_AS_200, "wrong-length"),
    ],
)
def test_what_a_server_does_wrong_is_told_by_its_class(
    plant: Plant, name: str, tmp_path: Path
) -> None:
    with serve_objects(plant) as server:
        done = run_session(tmp_path, write_study(tmp_path, server.url))
        assert done.returncode == 0, done.stderr
        assert server.objects == {}
    found = checks(tmp_path)["object-requests-failed"]
    assert found["level"] == "invalid"
    assert name in found["message"]


def test_repeated_requests_are_counted_and_never_hidden(tmp_path: Path) -> None:
    with serve_objects(Plant.SLOW_DOWN) as server:
        run_session(tmp_path, write_study(tmp_path, server.url, load=LOAD + "retries = 5\n"))
    (run,) = only_run(tmp_path)
    # What is under way at the end is not sent again.
    assert run.failed <= IN_FLIGHT
    assert run.attempts > run.done
    assert run.errors["SlowDown"] == run.attempts - run.done
    assert checks(tmp_path)["object-requests-failed"]["level"] == "indicative"


def test_a_server_that_closes_connections_and_whose_clock_is_off_is_named(tmp_path: Path) -> None:
    with serve_objects(clock_s=-600.0) as server:
        server.closes_connections = True
        run_session(tmp_path, write_study(tmp_path, server.url))
    found = checks(tmp_path)
    assert found["connections-opened"]["level"] == "indicative"
    assert found["server-clock"]["level"] == "indicative"


def test_a_bucket_that_is_missing_and_keys_that_are_wrong_are_named(tmp_path: Path) -> None:
    with serve_objects() as server:
        done = run_session(tmp_path, write_study(tmp_path, server.url, bucket="another"))
        assert "NoSuchBucket" in done.stdout + done.stderr
        wrong = {**KEYS, "AWS_ACCESS_KEY_ID": "AKIDUNKNOWN"}
        study = write_study(tmp_path, server.url)
        done = iolab("run", study, "--out", tmp_path / "T", env=wrong)
        assert "InvalidAccessKeyId" in done.stdout + done.stderr
    nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": str(tmp_path)}
    done = iolab("run", study, "--out", tmp_path / "U", env=nobody)
    assert done.returncode == 3
    assert tells(done.stderr, "AWS_ACCESS_KEY_ID")
    assert not (tmp_path / "U" / "points").exists()


def test_hosts_share_objects_and_each_has_an_endpoint(tmp_path: Path) -> None:
    hosts = "".join(f'[[host]]\nname = "c{number}"\nkind = "local"\n' for number in range(3))
    with serve_objects() as first, serve_objects() as second:
        # Both serve the same objects, as two gateways do.
        second.objects, second.uploads = first.objects, first.uploads
        study = write_study(tmp_path, first.url, second.url, load=LOAD + hosts)
        done = run_session(tmp_path, study)
        assert done.returncode == 0, done.stderr
        runs = only_run(tmp_path)
        assert [len(run.endpoints) for run in runs] == [1, 1, 1]
        assert {run.endpoints[0].endpoint for run in runs} == {first.url, second.url}
        puts = first.requests["PUT"] + second.requests["PUT"]
        assert puts == OBJECTS + sum(run.put_objects for run in runs)
        assert first.objects == {}


def test_what_a_killed_session_left_is_found_again_and_cleaned(tmp_path: Path) -> None:
    with serve_objects() as server:
        study = write_study(tmp_path, server.url, runtime="60s")
        process = subprocess.Popen(
            command("run", study, "--out", tmp_path / "S"),
            env=environment(KEYS),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(lambda: server.requests.get("PUT", 0) > OBJECTS)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        _wait_for(lambda: _is_idle(server))
        left = [key for key in server.objects if key.startswith(PREFIX)]
        assert len(left) >= OBJECTS
        server.objects["kept"] = b"of others"
        puts = server.requests["PUT"]
        shorter = ("--set", "method.runtime=1s")
        done = iolab("resume", tmp_path / "S", env=KEYS)
        if done.returncode:
            done = iolab("run", study, "--out", tmp_path / "T", *shorter, env=KEYS)
        assert done.returncode == 0, done.stderr
        assert server.requests["PUT"] >= puts
        options = ("--endpoint", server.url, "--bucket", BUCKET)
        done = iolab("clean", *options, "--yes", env=KEYS)
        assert done.returncode == 0, done.stderr
        assert server.objects == {"kept": b"of others"}
        again = iolab("clean", *options, "--yes", env=KEYS)
        assert "Nothing was left" in again.stdout + again.stderr


def _is_idle(server: ObjectServer) -> bool:
    before = dict(server.requests)
    time.sleep(0.5)
    return before == server.requests


def _wait_for(is_so: Any, limit_s: float = 120.0) -> None:
    deadline = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
