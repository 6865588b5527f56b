"""Load on objects of a Ceph cluster, which loses a disk meanwhile, held against its own log."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iolab.loads.objects.workload import ObjectsHostDetails, objects_details_of_host
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


def runs_of(session: Path) -> list[ObjectsHostDetails]:
    reader = SessionReader(session)
    runs = [
        objects_details_of_host(reader.record(*key).hosts[0])
        for key in reader.committed_folder_by_run()
    ]
    return [run for run in runs if run is not None]


def session_requests(gateway: Gateway, session: Path) -> list[LoggedRequest]:
    """What the gateway has answered to a session so far, by its log."""
    name = json.loads((session / "session.json").read_text())["id"]
    return [one for one in gateway.cluster.requests() if f"iolab-{name}" in one.uri]


def run_puts(requests: list[LoggedRequest]) -> list[LoggedRequest]:
    """The PUTs of whole objects of runs."""
    return [
        one
        for one in requests
        if one.method == "PUT" and "/run-" in one.uri and "partNumber" not in one.uri
    ]


def logged_counts(requests: list[LoggedRequest]) -> dict[str, int]:
    """Operations and bytes of contents, as the log has them."""
    puts, gets = run_puts(requests), [one for one in requests if one.method == "GET"]
    gets = [one for one in gets if "/data-" in one.uri and "?" not in one.uri]
    whole = [one for one in gets if one.status == 200]
    ranges = [one for one in gets if one.status == 206]
    posts = [one for one in requests if one.method == "POST" and "/run-" in one.uri]
    parts = [one for one in requests if "/run-" in one.uri and "partNumber" in one.uri]
    return {
        "object_put": len(puts),
        # Each has one request that begins it, and one that ends it.
        "object_multipart": sum(one.status == 200 for one in posts) // 2,
        "object_get": len(whole),
        "object_get_range": len(ranges),
        "object_head": sum(one.method == "HEAD" and "/data-" in one.uri for one in requests),
        "put_bytes": sum(one.request_bytes for one in (*puts, *parts)),
        "read_bytes": sum(one.response_bytes for one in (*whole, *ranges)),
    }


def expect_counts_of_the_log(
    gateway: Gateway, session: Path, runs: list[ObjectsHostDetails]
) -> None:
    """The runs' counts and bytes are those of the log, which has all of them a moment later."""
    expected = dict.fromkeys(logged_counts([]), 0)
    for run in runs:
        for count in run.counts:
            if count.operation in expected:
                expected[count.operation] += count.done
        expected["put_bytes"] += run.put_bytes
        expected["read_bytes"] += run.verified_bytes

    def has_all() -> bool:
        found = logged_counts(session_requests(gateway, session))
        return all(found[name] >= number for name, number in expected.items())

    wait_for(has_all)
    assert logged_counts(session_requests(gateway, session)) == expected


def wait_for(condition: Callable[[], bool], pause_s: float = 0.1) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
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
    runs = runs_of(tmp_path / "S")
    assert len(runs) == 2
    assert not any(run.failed_count for run in runs)
    assert all(run.put_objects for run in runs)
    expect_counts_of_the_log(gateway, tmp_path / "S", runs)
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
        try:
            earlier = len(cluster.requests())

            def is_putting() -> bool:
                assert process.poll() is None
                return bool(run_puts(cluster.requests()[earlier:]))

            wait_for(is_putting)
            cluster.lose(1)
            lost = datetime.now(UTC)
            _, errors = process.communicate(timeout=WAIT_S)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    wait_for(lambda: cluster.state().up == 2)
    (run,) = runs_of(tmp_path / "S")
    assert not run.failed_count
    expect_counts_of_the_log(gateway, tmp_path / "S", [run])
    puts = run_puts(session_requests(gateway, tmp_path / "S"))
    assert any(one.status == 200 and one.begun > lost for one in puts)
    assert run.read_back is not None
    assert run.read_back.compared == run.read_back.objects == run.put_objects
    (result,) = json.loads(iolab("show", tmp_path / "S", "--json").stdout)["results"]
    levels = {check["code"]: check["level"] for check in result["verdict"]["checks"]}
    assert levels["objects-lost"] == "valid"
    assert object_count(gateway) == 0
    cluster.start(1)
    cluster.wait_until_redundant()
