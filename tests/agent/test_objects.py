"""The engine of objects, as the program that hosts run, against a store with faults on demand."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.core.bins import BIN_COUNT
from tests.fakes.object_server import (
    ACCESS_KEY,
    BUCKET,
    REGION,
    SECRET_KEY,
    ObjectServer,
    make_certificate,
    on_every,
)

LIMIT_S = 60
COUNT = 40
SIZES = [{"bytes": 3000, "share": 50.0}, {"bytes": 70_000, "share": 50.0}]
PREFIX = "iolab-test/ds/"


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with ObjectServer() as server:
        yield server


def spec(server: ObjectServer, task: str, **keys: Any) -> dict[str, Any]:
    target = {"endpoints": [server.url], "bucket": BUCKET, "region": REGION}
    return {
        "format": 1,
        "task": task,
        "target": {**target, **keys.pop("target", {})},
        "secret": {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY},
        "timeout_s": 10.0,
        "concurrency": 4,
        "threads": 1,
        **keys,
    }


def data_set(**keys: Any) -> dict[str, Any]:
    return {"prefix": PREFIX, "count": COUNT, "prefixes": 3, "sizes": SIZES, "seed": 5, **keys}


def run(program: Path, spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of one task. No line may have a part of a secret."""
    done = subprocess.run(
        [program, "objects"],
        input=json.dumps(spec).encode(),
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert SECRET_KEY.encode() not in done.stdout + done.stderr
    assert ACCESS_KEY.encode() not in done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stderr == b""
    assert done.returncode == (2 if "fault" in lines[-1] else 0)
    return lines


def lay_out(program: Path, server: ObjectServer, **keys: Any) -> dict[str, Any]:
    objects = keys.pop("objects", data_set())
    layout: dict[str, Any] = run(program, spec(server, "layout", objects=objects, **keys))[-1]
    return dict(layout["layout"])


def load(program: Path, server: ObjectServer, *operations: tuple[str, float], **keys: Any) -> Any:
    """The last line of a load, after its lines were checked against each other."""
    shares = [{"kind": kind, "share": share} for kind, share in operations]
    settings = {
        "objects": data_set(),
        "operations": shares,
        "runtime_s": 0.6,
        "interval_ms": 200,
        "seed": 3,
        "new_prefix": "iolab-test/new/",
        "range_bytes": 1024,
        **keys,
    }
    lines = run(program, spec(server, "load", **settings))
    assert lines[0]["native"] == 1
    assert "started_real_ns" in lines[1]
    *intervals, last = lines[2:]
    end = last["end"]
    assert [line["seq"] for line in intervals] == list(range(len(intervals)))
    for name, row in end.items():
        if not isinstance(row, dict) or "bins" not in row:
            continue
        if name != "lateness":
            assert sum(line[name]["ios"] for line in intervals) == row["ios"], name
            assert sum(line[name]["bytes"] for line in intervals) == row["bytes"], name
            assert row["ios"] == sum(count for _, count in row["bins"]), name
        assert all(0 <= place < BIN_COUNT for place, _ in row["bins"])
    return end


def test_a_layout_writes_what_is_missing_and_no_more(program: Path, server: ObjectServer) -> None:
    layout = lay_out(program, server)
    assert layout["written_objects"] == len(server.objects) == COUNT
    assert layout["written_bytes"] == sum(map(len, server.objects.values())) == layout["bytes"]
    assert {len(body) for body in server.objects.values()} == {3000, 70_000}
    plan = run(program, spec(server, "plan-bytes", objects=data_set()))[-1]["plan"]
    assert (plan["objects"], plan["bytes"]) == (COUNT, layout["bytes"])
    keys = sorted(server.objects)
    before = dict(server.objects)
    del server.objects[keys[3]]
    server.objects[keys[7]] = b"short"
    again = lay_out(program, server)
    assert (again["written_objects"], again["found_objects"]) == (2, COUNT - 2)
    assert server.objects == before
    assert lay_out(program, server, share={"first": 10, "count": 7})["objects"] == 7


@pytest.mark.parametrize("payload", ["unsigned", "streaming", "signed"])
def test_every_way_of_signing_writes_the_same_objects(
    program: Path, server: ObjectServer, payload: str
) -> None:
    lay_out(program, server, target={"payload": payload})
    assert server.methods("PUT") == [200] * COUNT
    end = load(program, server, ("get", 1), verify_every=1)
    assert end["errors"] == {}
    assert end["verify"]["checked"] == end["object_get"]["ios"] > 0


def test_objects_above_a_parts_size_go_in_parts(program: Path, server: ObjectServer) -> None:
    objects = data_set(part_bytes=16_384)
    lay_out(program, server, objects=objects, parts_in_flight=2)
    whole = data_set()
    with ObjectServer() as other:
        lay_out(program, other, objects=whole)
        assert server.objects == other.objects
    assert not server.uploads
    end = load(program, server, ("put", 1), objects=objects, parts_in_flight=3)
    multipart = end["object_multipart"]
    assert end["errors"] == {}
    assert end["object_part"]["ios"] == 5 * multipart["ios"] > 0
    assert end["object_part"]["bytes"] == multipart["bytes"] == 70_000 * multipart["ios"]
    assert end["objects"]["uploads"] == {"completed": multipart["ios"], "aborted": 0, "left": 0}
    # From its first part to the answer to its completion, so longer than any of these.
    mean_ns = multipart["lat_sum_ns"] / multipart["ios"]
    assert mean_ns > 2 * end["object_part"]["lat_sum_ns"] / end["object_part"]["ios"]


def test_a_mix_counts_what_the_server_counts(program: Path, server: ObjectServer) -> None:
    lay_out(program, server)
    server.requests.clear()
    kinds = [
        ("get", 30),
        ("get-range", 20),
        ("put", 20),
        ("head", 10),
        ("list", 10),
        ("delete", 10),
    ]
    end = load(program, server, *kinds, verify_every=1, list_page=5)
    assert end["errors"] == {}
    counts = {name: kind["operations"] for name, kind in end["objects"]["kinds"].items()}
    assert all(counts.values())
    gets = [key for method, key, _ in server.requests if method == "GET" and key]
    assert len(gets) == counts["object_get"] + counts["object_get_range"]
    lists = [key for method, key, _ in server.requests if method == "GET" and not key]
    assert len(lists) == counts["object_list"]
    assert end["objects"]["listed_keys"] == 5 * len(lists)
    assert len(server.methods("PUT")) == counts["object_put"]
    assert len(server.methods("DELETE")) == counts["object_delete"]
    assert end["read"]["ios"] == len(gets)
    assert end["write"]["ios"] == counts["object_put"]
    new = [key for key in server.objects if key.startswith("iolab-test/new/")]
    assert len(new) == counts["object_put"] - counts["object_delete"]
    for name in ("object_get_first_byte", "object_get_headers", "object_get_attempt"):
        assert end[name]["ios"] == counts["object_get"]
    sizes = dict(end["objects"]["kinds"]["object_get"]["sizes"])
    assert set(sizes) == {4096, 262_144}
    assert sum(row["ios"] for row in sizes.values()) == counts["object_get"]


def test_slow_down_is_counted_and_never_hidden(program: Path, server: ObjectServer) -> None:
    lay_out(program, server)
    server.rule = on_every(3, "503")
    end = load(program, server, ("get", 1), concurrency=1)
    kind = end["objects"]["kinds"]["object_get"]
    assert kind["attempts"] == kind["operations"] + kind["failed"]
    assert end["errors"] == {"object_get": {"SlowDown": kind["failed"]}}
    assert abs(kind["failed"] - kind["attempts"] / 3) <= 1
    assert "503 SlowDown: As the test wants it" in end["objects"]["examples"][0]
    retried = load(program, server, ("get", 1), concurrency=1, retries={"max": 4, "base_ms": 20})
    kind = retried["objects"]["kinds"]["object_get"]
    assert retried["errors"] == {}
    assert kind["attempt_errors"] == {"SlowDown": kind["attempts"] - kind["operations"]}
    assert retried["retries"] == kind["attempt_errors"]
    assert kind["attempts"] > 1.3 * kind["operations"]
    # The waits are in the operation and in no attempt.
    attempt, operation = retried["object_get_attempt"], retried["object_get"]
    assert operation["ios"] == attempt["ios"]
    assert operation["lat_sum_ns"] > 1.5 * attempt["lat_sum_ns"]


@pytest.mark.parametrize(
    ("effect", "name"),
    [
        ("cut", "closed"),
        ("short", "short-body"),
        ("wrong bytes", "wrong-content"),
        ("500", "InternalError"),
        ("404", "NoSuchKey"),
    ],
)
def test_each_fault_has_its_class(
    program: Path, server: ObjectServer, effect: str, name: str
) -> None:
    lay_out(program, server)
    server.rule = on_every(5, effect)
    end = load(program, server, ("get", 1), verify_every=1)
    failed = end["objects"]["kinds"]["object_get"]["failed"]
    assert failed > 0
    assert end["errors"] == {"object_get": {name: failed}}
    assert end["object_get"]["ios"] > failed
    assert end["objects"]["examples"]
    assert (end["verify"]["corrupt"] > 0) == (name == "wrong-content")


def test_an_object_of_another_length_is_told(program: Path, server: ObjectServer) -> None:
    lay_out(program, server)
    key = sorted(server.objects)[0]
    server.objects[key] = b"x" * 100
    end = load(program, server, ("get", 1))
    assert set(end["errors"]["object_get"]) == {"wrong-length"}
    assert any(key in example for example in end["objects"]["examples"])


def test_no_answer_in_time_is_a_timeout(program: Path, server: ObjectServer) -> None:
    lay_out(program, server)
    server.rule = on_every(4, "slow")
    end = load(program, server, ("get", 1), timeout_s=0.2)
    assert set(end["errors"]["object_get"]) == {"timeout"}
    assert end["objects"]["connections"]["opened"] > 0


def test_an_error_with_status_200_is_an_error(program: Path, server: ObjectServer) -> None:
    server.rule = lambda one: "late error" if one.method == "POST" and one.nth % 2 else None
    objects = data_set(part_bytes=1024)
    end = load(program, server, ("put", 1), objects=objects)
    assert set(end["errors"]["object_multipart"]) == {"InternalError"}
    assert end["objects"]["uploads"]["aborted"] > 0
    assert not server.uploads


def test_chunked_answers_are_read(program: Path, server: ObjectServer) -> None:
    lay_out(program, server)
    server.rule = lambda one: "chunked"
    end = load(program, server, ("get", 3), ("list", 1), verify_every=1)
    assert end["errors"] == {}
    assert end["object_get"]["ios"] > 0


def test_connections_are_kept_and_counted(program: Path, server: ObjectServer) -> None:
    lay_out(program, server)
    before = server.connections
    kept = load(program, server, ("get", 1))["objects"]["connections"]
    assert (kept["opened_before"], kept["opened"]) == (4, 0)
    assert server.connections == before + 4
    server.keeps_alive = False
    end = load(program, server, ("get", 1))
    assert end["objects"]["connections"]["opened"] >= end["object_get"]["ios"] - 4
    assert end["object_connect"]["ios"] == end["objects"]["connections"]["opened"]
    assert end["errors"] == {}


def test_response_time_counts_the_wait_for_a_connection(
    program: Path, server: ObjectServer
) -> None:
    lay_out(program, server)
    server.rule = lambda one: "slow" if one.key and one.method == "GET" and one.nth == 20 else None
    end = load(
        program, server, ("get", 1), concurrency=1, rate=100.0, arrivals="fixed", runtime_s=2.0
    )
    row = end["object_get"]
    # All that was due in 400 ms waited for the slow one: 40 operations, 200 ms each in the mean.
    assert row["lat_sum_ns"] - row["service"]["lat_sum_ns"] > 4e9
    assert row["ios"] + end["unsubmitted"]["count"] == pytest.approx(200, abs=2)
    assert end["lateness"]["count"] > 0


def test_the_servers_clock_is_read(program: Path, server: ObjectServer) -> None:
    lay_out(program, server)
    server.clock_offset_s = 120.0
    clock = load(program, server, ("get", 1))["objects"]["server_clock"]
    assert clock["answers"] > 0
    assert 118_000 < clock["ahead_min_ms"] <= clock["ahead_max_ms"] < 122_000


def test_each_object_once_ends_early(program: Path, server: ObjectServer) -> None:
    lay_out(program, server)
    server.requests.clear()
    end = load(program, server, ("get", 1), order="once", runtime_s=30.0)
    assert end["object_get"]["ios"] == COUNT
    assert sorted(key for method, key, _ in server.requests if method == "GET") == sorted(
        server.objects
    )
    assert end["objects"]["ended_early"]
    assert end["measured_ns"] < 20e9
    deleted = load(program, server, ("delete", 1), delete_keys="data-set", runtime_s=30.0)
    assert deleted["object_delete"]["ios"] == COUNT
    assert not server.objects


def test_several_servers_share_the_load(program: Path, server: ObjectServer) -> None:
    with ObjectServer() as other:
        other.objects = server.objects
        endpoints = {"endpoints": [server.url, other.url]}
        lay_out(program, server, target=endpoints)
        end = load(program, server, ("get", 1), target=endpoints)
    rows = end["objects"]["endpoints"]
    assert [row["endpoint"] for row in rows] == [server.url, other.url]
    assert all(row["operations"] > 0 for row in rows)
    assert sum(row["operations"] for row in rows) == end["object_get"]["ios"]


def test_lists_and_removal_keep_to_their_prefix(program: Path, server: ObjectServer) -> None:
    lay_out(program, server)
    server.objects["precious"] = b"stays"
    server.uploads["old"] = ("iolab-test/ds/0000/x", {})
    server.uploads["other"] = ("precious", {})
    listed = run(program, spec(server, "list", prefix="iolab-test/", keys=True))[-1]["list"]
    assert (listed["objects"], listed["uploads"], len(listed["keys"])) == (COUNT, 1, COUNT)
    prefixes = run(program, spec(server, "list-prefixes", prefix="iolab-"))[-1]
    assert prefixes == {"prefixes": ["iolab-test/"]}
    deleted = run(program, spec(server, "delete", prefix="iolab-test/"))[-1]["delete"]
    assert (deleted["objects"], deleted["uploads"], deleted["left"]) == (COUNT, 1, 0)
    assert set(server.objects) == {"precious"}
    assert set(server.uploads) == {"other"}
    refused = run(program, spec(server, "delete", prefix="precious/"))[-1]["fault"]
    assert "precious/" in refused[0]


def test_a_bucket_is_made_once(program: Path, server: ObjectServer) -> None:
    server.buckets.clear()
    made = [run(program, spec(server, "create-bucket"))[-1]["bucket"]["created"] for _ in range(2)]
    assert made == [True, False]


def test_a_check_tells_what_a_server_is(program: Path, server: ObjectServer) -> None:
    server.clock_offset_s = -300.0
    (found,) = run(program, spec(server, "check"))[-1]["check"]["endpoints"]
    assert (found["reached"], found["bucket"], found["rejects_wrong_secret"]) == (True, True, True)
    assert found["keep_alive"]
    assert len(found["request_ns"]) == 8
    assert -302_000 < found["ahead_ms"] < -298_000
    server.checks_signatures = False
    (careless,) = run(program, spec(server, "check"))[-1]["check"]["endpoints"]
    assert careless["rejects_wrong_secret"] is False
    server.buckets.clear()
    (empty,) = run(program, spec(server, "check"))[-1]["check"]["endpoints"]
    assert (empty["bucket"], empty["error_class"]) == (False, "NoSuchBucket")


def test_a_wrong_secret_and_nobody_there_are_told(program: Path, server: ObjectServer) -> None:
    wrong = spec(server, "list", prefix="iolab-test/")
    wrong["secret"]["secret_key"] = "another"
    assert "SignatureDoesNotMatch" in run(program, wrong)[-1]["fault"][0]
    nobody = spec(server, "list", prefix="x/", target={"endpoints": ["http://127.0.0.1:1"]})
    assert "connect-refused" in run(program, nobody)[-1]["fault"][0]


def test_a_load_that_is_ended_leaves_no_upload(program: Path, server: ObjectServer) -> None:
    server.rule = lambda one: "slow" if one.method == "PUT" else None
    objects = data_set(part_bytes=4096, sizes=[{"bytes": 1 << 20, "share": 1.0}])
    settings = spec(
        server,
        "load",
        objects=objects,
        operations=[{"kind": "put", "share": 1}],
        runtime_s=30.0,
        new_prefix="iolab-test/new/",
    )
    with subprocess.Popen(
        [program, "objects"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(settings).encode())
        process.stdin.close()
        while b'"seq":0' not in process.stdout.readline():
            pass
        process.terminate()
        end = json.loads(process.stdout.readlines()[-1])["end"]
    assert end["objects"]["uploads"]["aborted"] > 0
    assert not server.uploads


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate that is its own authority, and its key."""
    return make_certificate(tmp_path_factory.mktemp("certificate"))


def test_tls_carries_all_of_it(program: Path, certificate: tuple[Path, Path]) -> None:
    authority = {"ca_pem": certificate[0].read_text()}
    with ObjectServer(tls=certificate) as server:
        lay_out(program, server, target=authority)
        kinds = [("get", 3), ("put", 1)]
        end = load(program, server, *kinds, verify_every=1, target=authority)
        (found,) = run(program, spec(server, "check", target=authority))[-1]["check"]["endpoints"]
        stranger = run(program, spec(server, "list", prefix="x/"))[-1]["fault"]
        server.keeps_alive = False
        fresh = load(program, server, ("get", 1), target=authority)
    assert end["errors"] == fresh["errors"] == {}
    assert end["verify"]["checked"] == end["object_get"]["ios"] > 0
    assert end["objects"]["cpu_parts"]["tls_ns"] > 0
    assert found["tls"]["version"] == "TLSv1_3"
    assert "(tls)" in stranger[0]
    assert fresh["objects"]["connections"]["opened"] > 0


def test_a_bucket_may_be_part_of_the_hosts_name(
    program: Path, certificate: tuple[Path, Path]
) -> None:
    target = {"style": "virtual", "ca_pem": certificate[0].read_text()}
    with ObjectServer(tls=certificate, is_virtual_hosted=True, host="localhost") as server:
        lay_out(program, server, target=target)
        end = load(program, server, ("get", 1), verify_every=1, target=target)
        (found,) = run(program, spec(server, "check", target=target))[-1]["check"]["endpoints"]
        assert len(server.objects) == COUNT
    assert end["errors"] == {}
    assert found["bucket"] is True


def test_a_check_tries_the_rights_of_the_keys(program: Path, server: ObjectServer) -> None:
    checked = spec(server, "check", prefix="iolab-test/")
    (found,) = run(program, checked)[-1]["check"]["endpoints"]
    assert found["error_class"] is None
    assert server.methods("PUT") == [200]
    assert not server.objects
    server.rule = lambda one: "403 AccessDenied" if one.method == "PUT" else None
    (found,) = run(program, checked)[-1]["check"]["endpoints"]
    assert (found["error_class"], found["bucket"]) == ("AccessDenied", True)
    foreign = run(program, spec(server, "check", prefix="mine/"))[-1]["fault"]
    assert "mine/" in foreign[0]


def test_the_clock_of_a_server_that_refuses_is_read(program: Path, server: ObjectServer) -> None:
    server.clock_offset_s = 1200.0
    server.rule = lambda _: "403 RequestTimeTooSkewed"
    (found,) = run(program, spec(server, "check"))[-1]["check"]["endpoints"]
    assert found["error_class"] == "RequestTimeTooSkewed"
    assert 1_198_000 < found["ahead_ms"] < 1_202_000


def test_the_null_server_answers_everything(program: Path) -> None:
    with subprocess.Popen(
        [program, "objects-null-server", "4096"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        server = ObjectServer()
        target = {"endpoints": [f"http://127.0.0.1:{port}"]}
        objects = data_set(sizes=[{"bytes": 4096, "share": 1.0}])
        kinds = [("get", 50), ("get-range", 20), ("put", 20), ("head", 5), ("delete", 5)]
        end = load(program, server, *kinds, objects=objects, target=target)
        server.server.server_close()
    assert process.returncode == 0
    assert end["errors"] == {}
    assert end["object_get"]["ios"] > 100
