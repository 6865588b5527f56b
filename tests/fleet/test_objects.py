"""Load on objects over ssh: three hosts, two gateways of one real store, ports that count."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.loads.objects.workload import objects_details_of_host
from iolab.store.reader import SessionReader
from tests.cli.command_line import iolab
from tests.fleet.bed import Bed, bed
from tests.fleet.test_storage_node import inventory
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
    (key,) = reader.committed_folder_by_run()
    runs = [objects_details_of_host(host) for host in reader.record(*key).hosts]
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


@pytest.fixture(scope="module")
def served() -> Iterator[Bed]:
    """Three hosts on one file system, whose loop device the third one serves."""
    with bed(3, "served") as made:
        yield made


def test_puts_of_memory_and_of_disk_are_told_apart(served: Bed, tmp_path: Path) -> None:
    require("go")
    # The gateway's folder is on the file system that the hosts alone have mounted.
    node = served.listener("c03")
    target = str(served.specs["c03"].path)
    data = Path(f"/proc/{node}/root{target}/objects")
    found: list[dict[str, Any]] = []
    for option in ("async", "sync"):
        folder = tmp_path / option
        folder.mkdir()
        remount = ("mount", "-o", f"remount,{option}", target)
        subprocess.run(("nsenter", "-t", str(node), "-m", *remount), check=True)
        with serve(folder, "--keep-alive", host=served.gateway, data=data) as server:
            study = folder / "study.toml"
            text = STUDY.format(
                endpoints=json.dumps([server.url]), bucket=BUCKET, objects=OBJECTS, size=SIZE
            )
            study.write_text(text.replace("concurrency = 2", "concurrency = 1"))
            hosts = inventory(served, folder / "hosts.toml")
            words = ("run", study, "--hosts", hosts, "--out", folder / "S")
            done = iolab(*words, env={**KEYS, "HOME": str(tmp_path)})
            assert done.returncode == 0, done.stderr
        (result,) = json.loads(iolab("show", folder / "S", "--json").stdout)["results"]
        found.append({check["code"]: check for check in result["verdict"]["checks"]})
    in_memory, on_disk = found
    assert in_memory["puts-in-memory"]["level"] == "indicative", in_memory["puts-in-memory"]
    assert in_memory["data-set-in-server-memory"]["level"] == "indicative"
    assert on_disk["puts-in-memory"]["level"] == "valid", on_disk["puts-in-memory"]
