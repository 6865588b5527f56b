"""Load on objects over ssh: three hosts, two gateways of one real store, ports that count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.loads.objects.workload import objects_run_of_host
from iolab.store.reader import SessionReader
from tests.cli.command_line import iolab
from tests.fleet.bed import Bed
from tests.needs import require
from tests.versitygw import ACCESS_KEY, BUCKET, SECRET_KEY, serve

pytestmark = [pytest.mark.e2e, pytest.mark.long]

KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
OBJECTS, SIZE = 60, 65536
STUDY = """\
format = 1
id = "fleet"
[target]
endpoint = {endpoints}
endpoint_use = "one-per-host"
bucket = "{bucket}"
[method]
warmup = "0s"
runtime = "4s"
settle = "0s"
idle_watch = 0
[[workload]]
id = "mixed"
engine = "s3"
get = 3
put = 1
objects = {objects}
size = {size}
concurrency = 2
"""


def test_hosts_go_to_gateways_of_one_store_and_their_ports_carry_it(
    fleet: Bed, tmp_path: Path
) -> None:
    require("go")
    data = tmp_path / "data"
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with (
        serve(tmp_path / "first", "--keep-alive", host=fleet.gateway, data=data) as first,
        serve(tmp_path / "second", "--keep-alive", host=fleet.gateway, data=data) as second,
    ):
        endpoints = json.dumps([first.url, second.url])
        study = tmp_path / "study.toml"
        study.write_text(
            STUDY.format(endpoints=endpoints, bucket=BUCKET, objects=OBJECTS, size=SIZE)
        )
        session = tmp_path / "S"
        words = ("run", study, "--hosts", fleet.inventory, "--out", session)
        done = iolab(*words, env={**KEYS, "HOME": str(tmp_path)})
        assert done.returncode == 0, done.stderr
        assert first.objects() == {}
        laid_out = [each.requests("PutObject", "/data-") for each in (first, second)]
        gets = [each.requests("GetObject", "/data-") for each in (first, second)]
        puts = [each.requests("PutObject", "/run-") for each in (first, second)]
    # Two hosts go to the first gateway, one to the second; each has put its third of the objects.
    assert [len(each) for each in laid_out] == [2 * OBJECTS // 3, OBJECTS // 3]
    reader = SessionReader(session)
    (key,) = reader.committed_runs()
    runs = [objects_run_of_host(host) for host in reader.record(*key).hosts]
    for place, server in enumerate((first, second)):
        own = [run for run in runs if run and run.endpoints[0].endpoint == server.url]
        counts = [count for run in own for count in run.counts]
        of_kind = {
            kind: sum(count.done for count in counts if count.operation == kind)
            for kind in ("object_get", "object_put")
        }
        assert of_kind == {"object_get": len(gets[place]), "object_put": len(puts[place])}
        assert sum(run.put_bytes for run in own) == sum(one.put_bytes for one in puts[place])
    (result,) = json.loads(iolab("show", session, "--json").stdout)["results"]
    checks = {check["code"]: check for check in result["verdict"]["checks"]}
    assert checks["bytes-moved"]["level"] == "valid", checks["bytes-moved"]
    report = tmp_path / "r.html"
    done = iolab("report", session, "--html", report)
    assert done.returncode == 0, done.stderr
    assert all(server.url in report.read_text() for server in (first, second))
    secrets = (SECRET_KEY, ACCESS_KEY)
    for name in fleet.specs:
        log = fleet.log(name)
        assert not any(secret in log for secret in secrets)
