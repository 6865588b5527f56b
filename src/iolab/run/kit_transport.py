"""Brings the jars of a kit to a host whose agent does not see this machine's files."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from iolab.errors import HostError
from iolab.model.host import HostKind
from iolab.run.drive import drive
from iolab.run.engines.base import Command
from iolab.run.hosts.answers import FileAnswer, read_answer
from iolab.run.hosts.base import Host, Refusal
from iolab.run.hosts.text import printable
from iolab.run.key_value.processes import told

PIECE_BYTES: Final = 1 << 20
"""The most that one message of the wire carries."""

PUT_LIMIT_S: Final = 120.0
"""For a piece over a slow line that others use too."""

DIGEST_LIMIT_S: Final = 120.0
"""To read 80 MB back on a busy host."""

TOKEN_LIMIT_BYTES: Final = 1 << 10

OUTPUT_LIMIT_BYTES: Final = 1 << 16

_MODE: Final = 0o600


async def seen_by(host: Host, token: Path) -> bool:
    """Whether that host's agent finds the same file, of random content, at the same path.

    So it is for this machine, its network namespaces and a shared home. HostError when the host is
    lost.
    """
    if host.spec.kind is HostKind.LOCAL:
        return True
    content = await asyncio.to_thread(token.read_bytes)
    try:
        answer = await host.ask(
            "get", deadline_s=PUT_LIMIT_S, path=str(token), max_bytes=TOKEN_LIMIT_BYTES
        )
    except Refusal:
        return False
    found = read_answer(host.name, FileAnswer, answer)
    return found.sha256 == hashlib.sha256(content).hexdigest()


async def brought(host: Host, jars: Sequence[Path], directory: str) -> tuple[str, ...]:
    """The paths of the jars in that folder of the host; those that are there already stay.

    HostError when the host fails or does not hold what was sent.
    """
    await told(host, ("mkdir", "-p", directory))
    wanted = {
        f"{directory}/{jar.name}": (jar, await asyncio.to_thread(_digest, jar)) for jar in jars
    }
    there = await _digests(host, list(wanted))
    for path, (jar, digest) in wanted.items():
        if there.get(path) != digest:
            await _send(host, jar, path)
    arrived = await _digests(host, list(wanted))
    wrong = [path for path, (_, digest) in wanted.items() if arrived.get(path) != digest]
    if wrong:
        raise HostError(
            f"{printable(wrong[0], 200)} arrived on host '{host.name}' with other bytes.",
            "See that the way to that host passes bytes unchanged, and that it has room.",
        )
    return tuple(wanted)


async def _send(host: Host, jar: Path, path: str) -> None:
    """The first piece makes the file anew, all others are put to its end."""
    for number, piece in enumerate(_pieces(jar)):
        if number == 0:
            await host.ask("put", piece, deadline_s=PUT_LIMIT_S, path=path, mode=_MODE)
        else:
            await _append(host, piece, path)


async def _append(host: Host, piece: bytes, path: str) -> None:
    argv = ("dd", f"of={path}", "oflag=append", "conv=notrunc")
    command = Command(argv, "/", piece, "", PUT_LIMIT_S, OUTPUT_LIMIT_BYTES)
    ending = await drive(host, command, asyncio.Event(), lambda _: None)
    if ending.exited.code != 0:
        said = printable(ending.stderr_tail.strip().partition("\n")[0], 200).rstrip(".")
        raise HostError(
            f"{printable(path, 200)} cannot be written on host '{host.name}' ({said}).",
            "Make room on that host, or give another path.",
        )


async def _digests(host: Host, paths: Sequence[str]) -> dict[str, str]:
    """The SHA-256 of each of these files that is there."""
    # sha256sum ends with 1 where one is missing, and tells the others all the same.
    output = await told(
        host, ("sha256sum", *paths), limit_s=DIGEST_LIMIT_S, codes=frozenset({0, 1})
    )
    rows = (line.split("  ", 1) for line in output.decode("utf-8", "replace").splitlines())
    return {row[1]: row[0] for row in rows if len(row) == 2}


def _digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _pieces(path: Path) -> Iterator[bytes]:
    """At least one: an empty file is a file."""
    with path.open("rb") as content:
        yield content.read(PIECE_BYTES)
        while piece := content.read(PIECE_BYTES):
            yield piece
