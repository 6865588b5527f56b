"""Load on objects of a real server, held against its own access log and the files that it keeps."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from iolab.loads.objects.workload import ObjectsHostDetails, objects_details_of_host
from iolab.store.reader import SessionReader
from tests.cli.command_line import iolab
from tests.versitygw import ACCESS_KEY, BUCKET, SECRET_KEY, Versitygw, serve

pytestmark = [pytest.mark.e2e, pytest.mark.long]

KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
OBJECTS, SIZE = 60, 16384
PARTED, PART = 12 << 20, 5 << 20
SMALL = f"""
[[workload]]
id = "small"
engine = "s3"
get = 60
put = 30
head = 10
objects = {OBJECTS}
prefixes = 4
size = {SIZE}
concurrency = 8
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


def measure(folder: Path, server: Versitygw, load: str, **target: Any) -> list[ObjectsHostDetails]:
    """A session on the server; what its runs tell."""
    table = {"endpoint": server.url, "bucket": BUCKET, **target}
    keys = "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items())
    study = folder / "study.toml"
    study.write_text(
        f'format = 1\nid = "real"\n[target]\n{keys}'
        f'[method]\nwarmup = "0s"\nruntime = "3s"\nsettle = "0s"\nidle_watch = 0\n{load}'
    )
    done = iolab("run", study, "--out", folder / "S", env=KEYS)
    assert done.returncode == 0, done.stderr
    reader = SessionReader(folder / "S")
    runs = [
        objects_details_of_host(reader.record(*key).hosts[0])
        for key in reader.committed_folder_by_run()
    ]
    assert None not in runs
    return [run for run in runs if run is not None]


def checks(folder: Path) -> dict[str, dict[str, Any]]:
    """The checks of the session's only run, by code."""
    (result,) = json.loads(iolab("show", folder / "S", "--json").stdout)["results"]
    return {check["code"]: check for check in result["verdict"]["checks"]}


def etag(path: Path) -> str:
    """What the server answers as an object's tag."""
    return os.getxattr(path, "user.etag").decode().strip('"')


def test_counts_and_bytes_are_those_of_the_access_log(tmp_path: Path) -> None:
    with serve(tmp_path, "--keep-alive") as server:
        (large, small) = sorted(
            measure(tmp_path, server, SMALL + LARGE),
            key=lambda run: run.data_set_bytes,
            reverse=True,
        )
        assert server.objects() == {}
    counts = {count.operation: count for run in (small, large) for count in run.counts}
    assert not any(count.failed for count in counts.values())
    data, new = "/data-", "/run-"
    gets = counts["object_get"].done + counts["object_get_range"].done
    assert len(server.requests("GetObject", data)) == gets
    assert len(server.requests("HeadObject", data)) == counts["object_head"].done
    puts, laid_out = server.requests("PutObject", new), server.requests("PutObject", data)
    assert len(puts) == counts["object_put"].done == small.put_objects
    assert sum(one.put_bytes for one in puts) == small.put_bytes
    assert [one.put_bytes for one in laid_out] == [SIZE] * OBJECTS
    parts = server.requests("UploadPart", new)
    uploads = server.requests("CompleteMultipartUpload", new)
    assert len(uploads) == counts["object_multipart"].done == large.put_objects
    assert len(parts) == 3 * len(uploads)
    assert large.put_bytes == PARTED * len(uploads)
    assert small.verified_bytes == counts["object_get"].done * SIZE
    assert small.opened == large.opened == 0


def test_objects_and_their_tags_are_what_was_put(tmp_path: Path) -> None:
    with serve(tmp_path, "--keep-alive") as server:
        measure(tmp_path, server, LARGE + SMALL, keep_files=True)
        files = {key: path for key, path in server.objects().items() if "/data-" in key}
        assert (
            sorted(path.stat().st_size for path in files.values())
            == [SIZE] * OBJECTS + [PARTED] * 2
        )
        whole = {key: path.read_bytes() for key, path in files.items()}
        assert len(set(whole.values())) == len(whole)
        for key, content in whole.items():
            pieces = [content[at : at + PART] for at in range(0, len(content), PART)]
            digests = [hashlib.md5(piece, usedforsecurity=False).digest() for piece in pieces]
            if len(pieces) == 1:
                assert etag(files[key]) == digests[0].hex()
            else:
                joined = hashlib.md5(b"".join(digests), usedforsecurity=False).hexdigest()
                assert etag(files[key]) == f"{joined}-{len(pieces)}"
        options = ("--endpoint", server.url, "--bucket", BUCKET, "--yes")
        done = iolab("clean", *options, env=KEYS)
        assert done.returncode == 0, done.stderr
        assert server.objects() == {}


def test_requests_that_a_server_refuses_are_counted_one_by_one(tmp_path: Path) -> None:
    with serve(tmp_path, "--keep-alive", "--max-requests", "6") as server:
        (run,) = measure(tmp_path, server, SMALL.replace("concurrency = 8", "concurrency = 24"))
        assert server.objects() == {}
    errors = run.errors
    assert set(errors) == {"SlowDown"}
    assert run.failed_count == errors["SlowDown"] == run.attempt_count - run.done_count > 0
    counts = {count.operation: count.done for count in run.counts}
    answered = [one for one in server.requests("GetObject", "/data-") if one.status == 200]
    assert len(answered) == counts["object_get"]
    found = checks(tmp_path)["object-requests-failed"]
    assert found["evidence"]["throttled"] == run.failed_count


def test_a_server_that_closes_each_connection_is_named(tmp_path: Path) -> None:
    with serve(tmp_path) as server:
        (run,) = measure(tmp_path, server, SMALL)
        done = iolab("doctor", "--endpoint", server.url, "--bucket", BUCKET, "--json", env=KEYS)
        found = {one["what"]: one for one in json.loads(done.stdout)["findings"]}
        assert server.objects() == {}
    assert run.opened >= run.attempt_count - 8
    assert checks(tmp_path)["connections-opened"]["level"] == "indicative"
    assert found["connections"]["state"] == "note"
    assert found["rights"]["state"] == found["signatures"]["state"] == "ok"


def test_the_bundled_study_measures_every_workload(tmp_path: Path) -> None:
    with serve(tmp_path, "--keep-alive") as server:
        sets = {"target.endpoint": server.url, "target.bucket": BUCKET, "method.runtime": "3s"}
        sets |= {"method.warmup": "0s", "method.idle_watch": "0"}
        words = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
        session = tmp_path / "S"
        done = iolab("run", "s3-objects", "--scale", "small", *words, "--out", session, env=KEYS)
        assert done.returncode == 0, done.stderr
        assert server.objects() == {}
    results = json.loads(iolab("show", session, "--json").stdout)["results"]
    assert {result["workload"] for result in results} == {
        *("get-4k", "get-64k", "put-small", "get-range-8m", "put-multipart", "mixed-70-30", "list")
    }
    for result in results:
        assert result["metrics"]["object_ops_per_s"]["value"] > 0
        levels = {check["code"]: check["level"] for check in result["verdict"]["checks"]}
        assert levels["engine-errors"] == levels["object-requests-failed"] == "valid", result
    compared = iolab("compare", session, session)
    assert compared.returncode == 0, compared.stderr
    assert "LIST" in compared.stdout
    chosen = iolab("choose", session, "--need", "get-64k >= 1")
    assert chosen.returncode == 0, chosen.stderr
