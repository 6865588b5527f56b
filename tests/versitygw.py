"""versitygw, a real object server on a folder, built once from its Go module into the user's cache.

`python -m tests.versitygw` builds it, so that no test has to wait for that.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolab.errors import EngineError
from iolab.hosts.kit_cache import DIGEST_SHOWN, KitCache, KitRecipe, kit_cache_folder

VERSION: Final = "1.8.0"
MODULE: Final = f"github.com/versity/versitygw/cmd/versitygw@v{VERSION}"
BUILD: Final = ("install", "-p", "2", "-trimpath", "-ldflags", "-s -w", MODULE)
BUILD_LIMIT_S: Final = 3600.0
START_LIMIT_S: Final = 30.0
STARTS: Final = 5

ACCESS_KEY: Final = "IOLABTESTKEY"
SECRET_KEY: Final = "iolab/test+secret"
BUCKET: Final = "bucket"


@dataclass(frozen=True)
class LoggedRequest:
    """A line of the server's access log; `put_bytes` is what it took of an object."""

    action: str
    key: str
    status: int
    put_bytes: int


@dataclass(frozen=True)
class Versitygw:
    """A server that runs: `folder` has a folder for each bucket, with a file for each object."""

    url: str
    folder: Path
    log: Path

    @property
    def bucket(self) -> Path:
        """The folder of the bucket."""
        return self.folder / BUCKET

    def objects(self) -> dict[str, Path]:
        """The files of its objects by key."""
        files = (path for path in self.bucket.rglob("*") if path.is_file())
        return {str(path.relative_to(self.bucket)): path for path in files}

    def requests(self, action: str, key_part: str = "") -> list[LoggedRequest]:
        """What it has answered of an action, on keys that have that in them."""
        lines = (line.split() for line in self.log.read_text().splitlines()[1:])
        every = (
            LoggedRequest(words[7].removeprefix("s3_"), words[8], int(words[10]), int(words[13]))
            for words in lines
        )
        return [one for one in every if one.action == action and key_part in one.key]


async def get_or_build_program() -> Path:
    """The program. EngineError where it cannot be built."""
    digest = hashlib.sha256(repr(BUILD).encode()).hexdigest()[:DIGEST_SHOWN]
    message = f"building versitygw {VERSION} with Go, once on this machine"
    plan = KitRecipe(f"versitygw-{VERSION}-{digest}", message, _build)
    folder = await KitCache(kit_cache_folder(os.environ)).get_or_build_kit(plan, print)
    return folder / "versitygw"


async def _build(folder: Path) -> Path:
    go = shutil.which("go")
    if go is None:
        raise EngineError("There is no Go here.", "Install it: apt-get install golang-go.")
    made = folder / "bin"
    process = await asyncio.create_subprocess_exec(
        go,
        *BUILD,
        env={**os.environ, "GOBIN": str(made), "CGO_ENABLED": "0", "GOFLAGS": ""},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), BUILD_LIMIT_S)
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        tail = " ".join(output.decode(errors="replace").splitlines()[-3:])
        raise EngineError(f"Go could not build versitygw: {tail}", "See Go's version and network.")
    return made


@contextmanager
def serve(
    folder: Path, *options: str, host: str = "127.0.0.1", data: Path | None = None
) -> Iterator[Versitygw]:
    """The server on the buckets of `data`, with its log in `folder`, while what is inside lasts.

    Without `data` it has an empty bucket of its own.
    """
    program = asyncio.run(get_or_build_program())
    data = data or folder / "data"
    (data / BUCKET).mkdir(parents=True, exist_ok=True)
    for _ in range(STARTS):
        server, process = _start(program, folder, data, options, host)
        with process:
            try:
                if _listens(server, process):
                    yield server
                    return
            finally:
                process.kill()
    raise AssertionError((folder / "server.txt").read_text())


def _start(
    program: Path, folder: Path, data: Path, options: tuple[str, ...], host: str
) -> tuple[Versitygw, subprocess.Popen[bytes]]:
    with socket.socket() as free:
        free.bind((host, 0))
        address = f"{host}:{free.getsockname()[1]}"
    log = folder / "access.log"
    command: list[str | Path] = [program, "--port", address, "--quiet", "--access-log", log]
    command += [*options, "posix", data]
    keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
    with (folder / "server.txt").open("ab") as output:
        process = subprocess.Popen(
            command, env={**os.environ, **keys}, stdout=output, stderr=subprocess.STDOUT
        )
    return Versitygw(f"http://{address}", data, log), process


def _listens(server: Versitygw, process: subprocess.Popen[bytes]) -> bool:
    """Whether it takes connections; it ends where another program has taken its port."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    deadline = time.monotonic() + START_LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with socket.create_connection((host, int(port)), timeout=1):
                return process.poll() is None
        except OSError:
            time.sleep(0.05)
    return False


def main() -> int:
    """Build it if it is not there yet; where it cannot be built, 1 if CI is set."""
    try:
        asyncio.run(get_or_build_program())
    except EngineError as fault:
        print(f"{fault}\nThe tests with a real object server are skipped.", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
