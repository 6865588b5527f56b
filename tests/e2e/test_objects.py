"""Load on objects of whole sessions with a real agent, held against what the server counted."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from iolab.loads.objects.workload import ObjectsHostDetails, objects_details_of_host
from iolab.store.reader import SessionReader
from tests.cli.command_line import command, environment, iolab
from tests.facts import tells
from tests.fakes.object_server import (
    ACCESS_KEY,
    BUCKET,
    SECRET_KEY,
    ObjectServer,
    Request,
    on_every,
)

pytestmark = [pytest.mark.e2e, pytest.mark.long]

KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
OBJECTS, SIZE, IN_FLIGHT = 200, 16384, 4
PREFIX = "iolab-"
SLOW_NS = 400_000_000
"""How long the server waits where it is slow."""

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
    folder: Path,
    *endpoints: str,
    load: str = LOAD,
    bucket: str = BUCKET,
    runtime: str = "2s",
    repeats: int = 1,
) -> Path:
    """A study of one point against those endpoints."""
    path = folder / "study.toml"
    path.write_text(
        f'format = 1\nid = "objects"\n[target]\nendpoint = {json.dumps(endpoints)}\n'
        f'bucket = "{bucket}"\nendpoint_use = "one-per-host"\n'
        f'[method]\nwarmup = "0.5s"\nruntime = "{runtime}"\nsettle = "0s"\nidle_watch = 0\n'
        f"repeats = {repeats}\n{load}"
    )
    return path


def run_session(folder: Path, study: Path) -> subprocess.CompletedProcess[str]:
    """The session in `folder / "S"`."""
    return iolab("run", study, "--out", folder / "S", env=KEYS)


def only_run(folder: Path) -> tuple[ObjectsHostDetails, ...]:
    """What each host told of the session's only run."""
    reader = SessionReader(folder / "S")
    (key,) = reader.committed_folder_by_run()
    runs = [objects_details_of_host(host) for host in reader.record(*key).hosts]
    assert None not in runs
    return tuple(run for run in runs if run is not None)


def checks(folder: Path) -> dict[str, dict[str, Any]]:
    """The checks of the session's only run, by code."""
    shown = json.loads(iolab("show", folder / "S", "--json").stdout)
    (result,) = shown["results"]
    return {check["code"]: check for check in result["verdict"]["checks"]}


def test_a_session_tells_what_the_server_counted_and_leaves_nothing(tmp_path: Path) -> None:
    with ObjectServer() as server:
        done = run_session(tmp_path, write_study(tmp_path, server.url))
        assert done.returncode == 0, done.stderr
        (run,) = only_run(tmp_path)
        counts = {count.operation: count.done for count in run.counts}
        assert all(count.failed == 0 for count in run.counts)
        assert counts["object_get"] > 0
        assert server.puts_below("/data-") == OBJECTS
        assert server.puts_below("/run-") == counts["object_put"] == run.put_objects
        assert len(server.methods("HEAD")) >= counts["object_head"]
        gets = [key for method, key, _ in server.requests if method == "GET" and "/data-" in key]
        assert len(gets) == counts["object_get"]
        assert run.put_bytes == counts["object_put"] * SIZE
        assert run.data_set_bytes == OBJECTS * SIZE
        assert run.verified_bytes > 0
        assert run.opened == 0
        assert server.objects == {}
    report = iolab("report", tmp_path / "S")
    assert report.returncode == 0, report.stderr
    assert checks(tmp_path)["object-requests-failed"]["level"] == "valid"


@pytest.mark.parametrize(
    ("effect", "name"),
    [
        ("503", "SlowDown"),
        ("short", "short-body"),
        ("wrong bytes", "contents"),
        ("cut", "closed"),
        ("200 InternalError", "wrong-length"),
        ("drip", "timeout"),
    ],
)
def test_what_a_server_does_wrong_is_told_by_its_class(
    effect: str, name: str, tmp_path: Path
) -> None:
    with ObjectServer() as server:
        server.rule = on_every(4, effect)
        load = LOAD + ('timeout = "1s"\n' if effect == "drip" else "")
        done = run_session(tmp_path, write_study(tmp_path, server.url, load=load))
        assert done.returncode == 0, done.stderr
        assert server.objects == {}
    found = checks(tmp_path)["object-requests-failed"]
    assert found["level"] == "invalid"
    assert name in found["message"]


def test_repeated_requests_are_counted_and_never_hidden(tmp_path: Path) -> None:
    with ObjectServer() as server:
        server.rule = on_every(4, "503")
        run_session(tmp_path, write_study(tmp_path, server.url, load=LOAD + "retries = 5\n"))
    (run,) = only_run(tmp_path)
    # What is under way at the end is not sent again.
    assert run.failed_count <= IN_FLIGHT
    assert run.attempt_count > run.done_count
    assert run.errors["SlowDown"] == run.attempt_count - run.done_count
    assert checks(tmp_path)["object-requests-failed"]["level"] == "indicative"


def test_a_server_that_closes_connections_and_whose_clock_is_off_is_named(tmp_path: Path) -> None:
    with ObjectServer(clock_offset_s=-600.0, keeps_alive=False) as server:
        run_session(tmp_path, write_study(tmp_path, server.url))
    found = checks(tmp_path)
    assert found["connections-opened"]["level"] == "indicative"
    assert found["server-clock"]["level"] == "indicative"


def test_objects_that_a_store_acknowledges_and_forgets_are_told(tmp_path: Path) -> None:
    load = LOAD + "read_back = true\n"
    with ObjectServer(forgets_every=10) as server:
        run_session(tmp_path, write_study(tmp_path, server.url, load=load))
        lost = next(server.run_puts) // 10
        assert server.objects == {}
    (run,) = only_run(tmp_path)
    count, found = run.read_back, checks(tmp_path)
    assert count is not None
    assert (count.missing, count.compared) == (lost, run.put_objects - lost)
    assert found["objects-lost"]["level"] == "invalid"
    assert found["objects-lost"]["evidence"]["lost"] == lost
    # Of its own answers during the run none was wrong.
    assert found["object-requests-failed"]["level"] == "valid"


def test_objects_that_a_store_keeps_are_read_back(tmp_path: Path) -> None:
    load = LOAD.replace(f"size = {SIZE}", 'sizes = ["1k:60", "16k:39", "12m:1"]\npart = "5m"')
    with ObjectServer() as server:
        run_session(tmp_path, write_study(tmp_path, server.url, load=load + "read_back = true\n"))
        assert server.objects == {}
    (run,) = only_run(tmp_path)
    assert run.read_back is not None
    assert run.read_back.compared == run.put_objects == run.read_back.objects > 0
    assert checks(tmp_path)["objects-lost"]["level"] == "valid"


@pytest.mark.alone
def test_answers_that_wait_for_an_acknowledgement_are_named(tmp_path: Path) -> None:
    load = LOAD.replace(f"concurrency = {IN_FLIGHT}", "concurrency = 1")
    with ObjectServer(sends_at_once=False) as server:
        run_session(tmp_path, write_study(tmp_path, server.url, load=load, runtime="4s"))
    assert checks(tmp_path)["delayed-acknowledgement"]["level"] == "indicative"


def test_one_hot_object_and_contents_that_are_never_whole_are_named(tmp_path: Path) -> None:
    load = LOAD.replace(f"objects = {OBJECTS}", "objects = 3").replace("get = 60", "get = 99")
    load = load.replace(f"concurrency = {IN_FLIGHT}", "concurrency = 1")
    gets = itertools.count()

    def cut_short(request: Request) -> str | None:
        """The GETs that are compared, each second one, end before their length."""
        is_get = request.method == "GET" and "/data-" in request.key
        return "short" if is_get and next(gets) % 2 else None

    with ObjectServer() as server:
        server.rule = cut_short
        run_session(tmp_path, write_study(tmp_path, server.url, load=load))
    found = checks(tmp_path)
    assert found["hot-object"]["level"] == "indicative"
    assert found["contents-not-compared"]["level"] == "indicative"


def test_keys_that_nobody_gave_are_asked_for(tmp_path: Path) -> None:
    nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": str(tmp_path)}
    study = write_study(tmp_path, "http://127.0.0.1:9")
    done = iolab("run", study, "--out", tmp_path / "U", env=nobody)
    assert done.returncode == 3
    assert tells(done.stderr, "AWS_ACCESS_KEY_ID")
    assert not (tmp_path / "U" / "points").exists()


def test_hosts_share_objects_and_each_has_an_endpoint(tmp_path: Path) -> None:
    hosts = "".join(f'[[host]]\nname = "c{number}"\nkind = "local"\n' for number in range(3))
    with ObjectServer() as first, ObjectServer() as second:
        # Both serve the same objects, as two gateways do.
        second.objects, second.uploads = first.objects, first.uploads
        study = write_study(tmp_path, first.url, second.url, load=LOAD + hosts)
        done = run_session(tmp_path, study)
        assert done.returncode == 0, done.stderr
        runs = only_run(tmp_path)
        assert [len(run.endpoints) for run in runs] == [1, 1, 1]
        assert {run.endpoints[0].endpoint for run in runs} == {first.url, second.url}
        servers = (first, second)
        assert sum(server.puts_below("/data-") for server in servers) == OBJECTS
        put = sum(server.puts_below("/run-") for server in servers)
        assert put == sum(run.put_objects for run in runs)
        assert first.objects == {}


def test_a_slow_endpoint_is_seen_by_its_own_latencies(tmp_path: Path) -> None:
    with ObjectServer() as first, ObjectServer() as second:
        second.objects, second.uploads = first.objects, first.uploads
        second.rule = lambda one: "slow" if one.method == "GET" and one.key else None
        study = write_study(tmp_path, first.url, second.url)
        study.write_text(study.read_text().replace("one-per-host", "all"))
        done = run_session(tmp_path, study)
        assert done.returncode == 0, done.stderr
    (run,) = only_run(tmp_path)
    gets = {
        each.endpoint: latency
        for each in run.endpoints
        for latency in each.latencies
        if latency.operation == "object_get"
    }
    assert gets.keys() == {first.url, second.url}
    fast, slow = (gets[server.url] for server in (first, second))
    assert sum(each.done for each in (fast, slow)) == run.counts[0].done
    assert slow.lat_sum_ns >= SLOW_NS * slow.done
    assert min(index for index, _ in slow.bins) > min(index for index, _ in fast.bins)
    report = iolab("report", tmp_path / "S", "--html", tmp_path / "r.html")
    assert report.returncode == 0, report.stderr
    assert "Latencies by endpoint" in (tmp_path / "r.html").read_text()


def kill_session(folder: Path, server: ObjectServer, *, in_repeat: int) -> None:
    """Start a session of two repeats, and kill its command while that one puts objects."""
    study = write_study(folder, server.url, repeats=2, runtime="4s")
    with subprocess.Popen(
        command("run", study, "--out", folder / "S"),
        env=environment(KEYS),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            _wait_for(lambda: server.puts_below(f"-{in_repeat}-1/host-") > 0)
        finally:
            os.kill(process.pid, signal.SIGKILL)
    _wait_for(lambda: _is_idle(server))
    assert sum(key.startswith(PREFIX) for key in server.objects) > OBJECTS
    server.objects["kept"] = b"of others"


def test_a_killed_session_goes_on_where_it_was_and_leaves_nothing(tmp_path: Path) -> None:
    with ObjectServer() as server:
        kill_session(tmp_path, server, in_repeat=2)
        assert len(SessionReader(tmp_path / "S").committed_folder_by_run()) == 1
        done = iolab("resume", tmp_path / "S", env=KEYS)
        assert done.returncode == 0, done.stderr
        # The objects that the runs read were there still, and were not put again.
        assert server.puts_below("/data-") == OBJECTS
        assert tells(done.stdout + done.stderr, f"{OBJECTS} objects were there")
        assert len(SessionReader(tmp_path / "S").committed_folder_by_run()) == 2
        assert server.objects == {"kept": b"of others"}
        assert not server.uploads


def test_what_a_killed_session_left_is_cleaned_and_nothing_else(tmp_path: Path) -> None:
    with ObjectServer() as server:
        kill_session(tmp_path, server, in_repeat=1)
        options = ("--endpoint", server.url, "--bucket", BUCKET)
        done = iolab("clean", *options, "--yes", env=KEYS)
        assert done.returncode == 0, done.stderr
        assert server.objects == {"kept": b"of others"}
        again = iolab("clean", *options, "--yes", env=KEYS)
        assert "Nothing was left" in again.stdout + again.stderr


def _is_idle(server: ObjectServer) -> bool:
    before = len(server.requests)
    time.sleep(0.5)
    return before == len(server.requests)


def _wait_for(is_so: Any, limit_s: float = 120.0) -> None:
    deadline = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
