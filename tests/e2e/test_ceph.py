"""Load on objects of a Ceph cluster, which loses a disk meanwhile, held against its own log."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from iolab.loads.objects.workload import ObjectsRun, objects_run_of_host
from iolab.store.reader import SessionReader
from tests.cli.command_line import command, environment, iolab
from tests.fakes.ceph import ACCESS_KEY, SECRET_KEY, Ceph, LoggedRequest

pytestmark = [pytest.mark.e2e, pytest.mark.long]

KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
BUCKET = "bucket"
WAIT_S = 120.0
SIZE = 16384
PARTED, PART = 12 << 20, 5 << 20
SMALL = f"""
[[workload]]
id = "small"
engine = "s3"
get = 5
put = 3
head = 1
list = 1
objects = 60
prefixes = 4
size = {SIZE}
concurrency = 4
verify = 1
"""
LARGE = f"""
[[workload]]
id = "large"
engine = "s3"
put = 1
get_range = 4
range = "64k"
objects = 2
size = {PARTED}
part = {PART}
concurrency = 2
verify = 1
"""


@dataclass(frozen=True)
class Gateway:
    """The cluster, and where it serves objects."""

    cluster: Ceph
    url: str


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    cluster = Ceph(tmp_path_factory.mktemp("c") / "c")
    try:
        cluster.up()
        yield Gateway(cluster, cluster.serve())
    finally:
        cluster.down()


def write_study(folder: Path, url: str, load: str, runtime: str) -> Path:
    path = folder / "study.toml"
    path.write_text(
        f'format = 1\nid = "ceph"\n[target]\nendpoint = "{url}"\nbucket = "{BUCKET}"\n'
        'create_bucket = true\n[method]\nwarmup = "0s"\nsettle = "0s"\nidle_watch = 0\n'
        f'runtime = "{runtime}"\n{load}'
    )
    return path


def runs_of(session: Path) -> list[ObjectsRun]:
    reader = SessionReader(session)
    runs = [objects_run_of_host(reader.record(*key).hosts[0]) for key in reader.committed_runs()]
    return [run for run in runs if run is not None]


def session_requests(gateway: Gateway, session: Path) -> list[LoggedRequest]:
    """What the gateway has answered to a session, when its log has all of it."""
    name = json.loads((session / "session.json").read_text())["id"]

    def own() -> list[LoggedRequest]:
        return [one for one in gateway.cluster.requests() if f"iolab-{name}" in one.uri]

    found: list[LoggedRequest] = []

    def is_settled() -> bool:
        nonlocal found
        before, found = found, own()
        return bool(found) and len(before) == len(found)

    wait_for(is_settled, pause_s=1.0)
    return found


def wait_for(is_so: Callable[[], bool], pause_s: float = 0.1) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(pause_s)


def object_count(gateway: Gateway) -> int:
    """How many objects the cluster has in the bucket, by its own index."""
    answer = gateway.cluster.call_admin("bucket", "list", "--bucket", BUCKET)
    return len(json.loads(answer))


def test_counts_and_bytes_are_those_of_the_gateways_log(gateway: Gateway, tmp_path: Path) -> None:
    study = write_study(tmp_path, gateway.url, SMALL + LARGE, "3s")
    done = iolab("run", study, "--out", tmp_path / "S", env=KEYS)
    assert done.returncode == 0, done.stderr
    small, large = sorted(runs_of(tmp_path / "S"), key=lambda run: run.data_set_bytes)
    counts = {count.operation: count.done for run in (small, large) for count in run.counts}
    assert not any(run.failed for run in (small, large))
    requests = session_requests(gateway, tmp_path / "S")
    answered = Counter(one.method for one in requests if "/run-" in one.uri and one.status == 200)
    parts = [one for one in requests if one.method == "PUT" and "partNumber" in one.uri]
    puts = [
        one
        for one in requests
        if one.method == "PUT" and "/run-" in one.uri and "partNumber" not in one.uri
    ]
    gets = [one for one in requests if one.method == "GET" and "/data-" in one.uri]
    heads = [one for one in requests if one.method == "HEAD" and "/data-" in one.uri]
    whole = [one for one in gets if one.status == 200 and "?" not in one.uri]
    ranges = [one for one in gets if one.status == 206]
    assert len(puts) == counts["object_put"] == small.put_objects
    assert sum(one.taken_bytes for one in puts) == small.put_bytes
    assert answered["POST"] == 2 * counts["object_multipart"] == 2 * large.put_objects
    assert sum(one.taken_bytes for one in parts if "/run-" in one.uri) == large.put_bytes
    assert len(whole) == counts["object_get"]
    assert sum(one.given_bytes for one in whole) == small.verified_bytes
    assert len(ranges) == counts["object_get_range"]
    assert sum(one.given_bytes for one in ranges) == large.verified_bytes
    assert len(heads) == counts["object_head"]
    assert object_count(gateway) == 0


def test_a_disk_that_is_lost_in_the_run_costs_no_object(gateway: Gateway, tmp_path: Path) -> None:
    cluster = gateway.cluster
    study = write_study(tmp_path, gateway.url, SMALL + "read_back = true\n", "12s")
    with subprocess.Popen(
        command("run", study, "--out", tmp_path / "S"),
        env=environment(KEYS),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        earlier = len(cluster.requests())

        def is_putting() -> bool:
            return any(
                one.method == "PUT" and "/run-" in one.uri for one in cluster.requests()[earlier:]
            )

        wait_for(is_putting)
        cluster.lose(1)
        _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, errors
    assert cluster.state()["up"] == 2
    (run,) = runs_of(tmp_path / "S")
    assert not run.failed
    assert run.read_back is not None
    assert run.read_back.compared == run.read_back.objects == run.put_objects
    (result,) = json.loads(iolab("show", tmp_path / "S", "--json").stdout)["results"]
    levels = {check["code"]: check["level"] for check in result["verdict"]["checks"]}
    assert levels["objects-lost"] == "valid"
    assert object_count(gateway) == 0
    cluster.start(1)
    cluster.wait_until_redundant()
