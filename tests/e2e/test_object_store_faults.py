"""Sessions on a store that cannot serve: each reason is a sentence, before anything is written."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.core.object_store import WORK_PATH
from tests.cli.command_line import command, environment, iolab
from tests.fakes.object_server import (
    ACCESS_KEY,
    BUCKET,
    SECRET_KEY,
    ObjectServer,
    Request,
    make_certificate,
)

pytestmark = [pytest.mark.e2e, pytest.mark.long]

KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
TOKEN = "SESSION/token+to-be-kept"


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with ObjectServer() as server:
        yield server


def write_study(folder: Path, endpoint: str, *, runtime: str = "1s", **target: Any) -> Path:
    """A study of one short run."""
    table = {"endpoint": endpoint, "bucket": BUCKET, **target}
    keys = "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items())
    path = folder / "study.toml"
    path.write_text(
        f'format = 1\nid = "faults"\n[target]\n{keys}'
        f'[method]\nwarmup = "0s"\nruntime = "{runtime}"\nsettle = "0s"\nidle_watch = 0\n'
        '[[workload]]\nid = "w"\nengine = "s3"\nget = 1\nput = 1\nobjects = 20\nsize = "4k"\n'
        "concurrency = 2\n"
    )
    return path


def refusal(folder: Path, endpoint: str, keys: dict[str, str] | None = None, **target: Any) -> str:
    """What a session is refused with; it has measured nothing."""
    study = write_study(folder, endpoint, **target)
    done = iolab("run", study, "--out", folder / "S", env=KEYS | (keys or {}))
    assert done.returncode == 3, done.stderr
    text = done.stdout + done.stderr
    assert not any((folder / "S" / "points").rglob("*.json*"))
    assert "Traceback" not in text
    for secret in (SECRET_KEY, TOKEN):
        assert secret not in text
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("code", "problem", "remedy"),
    [
        ("ExpiredToken", "session token has expired", "Log in again"),
        ("InvalidAccessKeyId", "does not know the access key", "AWS_ACCESS_KEY_ID"),
        ("AccessDenied", f"denies access to bucket '{BUCKET}'", "read, write and delete"),
        ("RequestTimeTooSkewed", "20 min ahead", "NTP"),
    ],
)
def test_a_refusal_is_told_with_what_to_do(
    code: str, problem: str, remedy: str, server: ObjectServer, tmp_path: Path
) -> None:
    server.clock_offset_s = 1200.0
    server.rule = lambda _: f"403 {code}"
    text = refusal(tmp_path, server.url, {"AWS_SESSION_TOKEN": TOKEN})
    assert problem in text
    assert remedy in text
    assert not server.objects


def test_a_missing_bucket_and_a_wrong_secret_are_told(server: ObjectServer, tmp_path: Path) -> None:
    text = refusal(tmp_path, server.url, bucket="another")
    assert f"{server.url} has no bucket 'another'" in text
    assert "create_bucket = true" in text
    text = refusal(tmp_path, server.url, {"AWS_SECRET_ACCESS_KEY": "another"})
    assert "refuses the signature" in text
    assert "AWS_SECRET_ACCESS_KEY" in text


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        text = refusal(tmp_path, url)
    assert f"{url} refuses connections" in text
    assert "Start the server" in text
    text = refusal(tmp_path, "http://no-such-host.invalid:9000")
    assert "has a name that is not found" in text
    assert "Correct the name of the endpoint" in text


def test_tls_faults_are_told_and_an_authority_mends_them(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    with ObjectServer(tls=certificate) as server:
        text = refusal(tmp_path, server.url)
        assert "cannot be trusted over TLS" in text
        assert "target.ca_file" in text
        plain = refusal(tmp_path, server.url.replace("https", "http"))
        assert "https://" in plain
        options = ("--endpoint", server.url, "--bucket", BUCKET, "--ca-file", certificate[0])
        study = write_study(tmp_path, server.url, ca_file=str(certificate[0]), keep_files=True)
        done = iolab("run", study, "--out", tmp_path / "T", env=KEYS)
        assert done.returncode == 0, done.stderr
        assert server.objects
        left = [folder.name for folder in Path(WORK_PATH).glob("iolab-scratch-local-faults-*")]
        assert json.loads((tmp_path / "T" / "session.json").read_text())["id"] not in str(left)
        done = iolab("clean", *options, "--yes", env=KEYS)
        assert done.returncode == 0, done.stderr
        assert not server.objects


def test_a_bucket_in_the_hosts_name_serves_over_tls(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    with ObjectServer(tls=certificate, is_virtual_hosted=True, host="localhost") as server:
        study = write_study(tmp_path, server.url, ca_file=str(certificate[0]), addressing="virtual")
        done = iolab("run", study, "--out", tmp_path / "S", env=KEYS)
        assert done.returncode == 0, done.stderr
        assert 200 in server.methods("GET")
        assert not server.objects


def test_two_sessions_on_one_host_do_not_refuse_each_other(
    server: ObjectServer, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    study = write_study(first, server.url, runtime="200s")
    with subprocess.Popen(
        command("run", study, "--out", first / "S"),
        env=environment(KEYS),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        _wait_for_puts(server, 21)
        done = iolab("run", write_study(second, server.url), "--out", second / "S", env=KEYS)
        assert done.returncode == 0, done.stderr
        assert process.poll() is None
        process.terminate()
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert not server.objects


def _wait_for_puts(server: ObjectServer, count: int) -> None:
    deadline = time.monotonic() + 120
    while len(server.methods("PUT")) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_stays_wrong_during_a_session_is_told_too(
    server: ObjectServer, tmp_path: Path
) -> None:
    def expires(request: Request) -> str | None:
        is_of_load = request.method == "PUT" and "/data-" in request.key
        return "403 ExpiredToken" if is_of_load else None

    server.rule = expires
    done = iolab("run", write_study(tmp_path, server.url), "--out", tmp_path / "S", env=KEYS)
    assert done.returncode != 0
    shown = iolab("show", tmp_path / "S", "--details")
    assert "ExpiredToken" in shown.stdout
    assert "Log in again" in shown.stdout


def test_keys_without_a_right_refuse_the_session(server: ObjectServer, tmp_path: Path) -> None:
    server.rule = lambda one: "403 AccessDenied" if one.method == "DELETE" else None
    text = refusal(tmp_path, server.url)
    assert "denies access" in text
    assert "read, write and delete" in text
    options = ("--endpoint", server.url, "--bucket", BUCKET)
    done = iolab("doctor", *options, env=KEYS)
    assert done.returncode == 3
    assert "denies access" in " ".join((done.stdout + done.stderr).split())
    server.rule = lambda _: None
    server.clock_offset_s = -200.0
    server.checks_signatures = False
    done = iolab("doctor", *options, "--json", env=KEYS)
    assert done.returncode == 0, done.stderr
    found = {one["what"]: one["state"] for one in json.loads(done.stdout)["findings"]}
    assert found == {
        "endpoint": "ok",
        "rights": "ok",
        "clock": "note",
        "connections": "ok",
        "signatures": "note",
    }
