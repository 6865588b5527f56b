"""Keys to an object store are in no file that a session leaves, and in no process's arguments."""

from __future__ import annotations

import subprocess
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zstandard

from tests.cli.command_line import command, environment, iolab
from tests.fakes.object_server import ACCESS_KEY, BUCKET, SECRET_KEY, ObjectServer, on_every

pytestmark = [pytest.mark.e2e, pytest.mark.long]

TOKEN = "SESSION/token+to-be-kept"
KEYS = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_SESSION_TOKEN": TOKEN,
}
ENGINE = b"iolab-agent\0objects"

STUDY = """format = 1
id = "secrets"
[target]
endpoint = "{url}"
bucket = "{bucket}"
[method]
warmup = "0s"
runtime = "2s"
settle = "0s"
idle_watch = 0
[[workload]]
id = "w"
engine = "s3"
get = 1
put = 1
objects = 50
size = "4k"
"""


@contextmanager
def recorded_arguments() -> Iterator[set[bytes]]:
    """The arguments of all processes of this machine, as often as they can be read."""
    seen: set[bytes] = set()
    is_over = threading.Event()

    def record() -> None:
        while not is_over.wait(0.05):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.add(file.read_bytes())
                except OSError:
                    continue

    recorder = threading.Thread(target=record)
    recorder.start()
    try:
        yield seen
    finally:
        is_over.set()
        recorder.join()


def file_contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, unpacked."""
    contents: dict[str, bytes] = {}
    for path in folder.rglob("*"):
        raw = path.read_bytes() if path.is_file() else b""
        if raw.startswith(b"\x28\xb5\x2f\xfd"):
            reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
            raw = reader.read()
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                raw = b"".join(map(archive.read, archive.namelist()))
        contents[path.name] = raw
    return contents


def test_keys_are_in_no_file_output_or_argument(tmp_path: Path) -> None:
    study, session = tmp_path / "study.toml", tmp_path / "S"
    outputs: list[bytes] = []
    with ObjectServer() as server, recorded_arguments() as arguments:
        # Some answers are refusals that name the key.
        server.rule = on_every(5, "403 AccessDenied")
        study.write_text(STUDY.format(url=server.url, bucket=BUCKET))
        done = subprocess.run(
            command("run", study, "--out", session),
            env=environment(KEYS),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        outputs += [done.stdout, done.stderr]
        (tmp_path / "out").mkdir()
        for name in ("html", "md", "docx"):
            made = iolab("report", session, f"--{name}", tmp_path / "out" / f"r.{name}")
            assert made.returncode == 0, made.stderr
            outputs.append((made.stdout + made.stderr).encode())
        shown = iolab("show", session, "--details")
        outputs.append((shown.stdout + shown.stderr).encode())
        cleaned = iolab("clean", "--endpoint", server.url, "--bucket", BUCKET, "--yes", env=KEYS)
        outputs.append((cleaned.stdout + cleaned.stderr).encode())
    # What is looked through has the parts where keys would be.
    assert any(ENGINE in each for each in arguments)
    files = file_contents(tmp_path)
    assert any(server.url.encode() in raw for raw in files.values())
    assert "AccessDenied" in shown.stdout
    for secret in (SECRET_KEY.encode(), TOKEN.encode(), ACCESS_KEY.encode()):
        for spelling in (secret, secret.replace(b"/", b"\\/")):
            assert not [name for name, raw in files.items() if spelling in raw]
            assert not [each for each in arguments if spelling in each]
            assert not [each for each in outputs if spelling in each]
