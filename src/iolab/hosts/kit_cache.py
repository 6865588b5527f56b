"""Folders in the user's cache that are made once: whole or not at all, and the oldest go.

Several sessions may ask for the same kit at once, and any of them may be killed while it makes one.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from iolab.core.host import HostTransport
from iolab.errors import EngineError, HostError
from iolab.hosts.answers import FileAnswer, read_answer
from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError
from iolab.hosts.remote_process import run_and_get_output
from iolab.record import Record
from iolab.text import excerpt

Notify = Callable[[str], None]

TOKEN: Final = "iolab-kit"  # noqa: S105 - by which an agent is known to see this machine's files
"""A file in every kit, of random content; the last one written, so that a kit with it is whole."""

LOCK_LIMIT_S: Final = 1800.0
"""How long another session may make the same kit: over a slow network it takes many minutes."""

LOCK_RETRY_S: Final = 0.2

KITS_KEPT: Final = 5
"""Kits of a family that stay: as many versions of a server as one compares, some 100 MB each."""

DIGEST_SHOWN: Final = 16
"""Hexadecimal digits of what a kit is made of, with which its name ends."""

_NAME: Final = re.compile(rf".+-[0-9a-f]{{{DIGEST_SHOWN}}}")

_DISK_FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

_kit_locks: Final[dict[Path, int]] = {}
"""Descriptors that hold the kits of this process until it ends, however it ends."""

PIECE_BYTES: Final = 1 << 20
"""The most that one message of the wire carries."""

PUT_LIMIT_S: Final = 120.0
"""For a piece over a slow line that others use too."""

DIGEST_LIMIT_S: Final = 120.0
"""To read 80 MB back on a busy host."""

TOKEN_LIMIT_BYTES: Final = 1 << 10
_MODE: Final = 0o600


class KitRecipe(Record):
    """One kit and how it is made: `kit_family` is what `name` begins with, up to its first hyphen.

    `builder` gets an empty folder, and returns the one below it that shall be the kit.
    `progress_message` is told to the user before.
    """

    name: str
    progress_message: str
    builder: Callable[[Path], Awaitable[Path]]

    @property
    def kit_family(self) -> str:
        """What kits that replace each other have in common."""
        return self.name.partition("-")[0]


class KitCache(Record):
    """The folder with all kits."""

    folder: Path

    async def get_or_build_kit(self, recipe: KitRecipe, notify: Notify) -> Path:
        """The kit's folder, made if it is not there; it stays at least until this process ends.

        EngineError when it cannot be made.
        """
        folder = self.folder / recipe.name
        _require_folder_of_user(self.folder)
        if _try_lock_complete_kit(folder):
            return folder
        _create_folder(self.folder)
        try:
            async with _exclusive_file_lock(folder.with_name(f".{folder.name}.lock"), notify):
                if not _try_lock_complete_kit(folder):
                    notify(recipe.progress_message)
                    await _build_and_name_kit(recipe, folder)
                    await asyncio.to_thread(_remove_old_kits, folder, recipe.kit_family)
        except OSError as fault:
            raise _unwritable_error(self.folder, fault) from None
        return folder


def kit_cache_folder(environment: Mapping[str, str]) -> Path:
    """Where this user's kits lie: below `$XDG_CACHE_HOME` or `~/.cache`."""
    home = Path(environment.get("HOME", "~")).expanduser()
    return Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "iolab" / "kits"


async def _build_and_name_kit(recipe: KitRecipe, folder: Path) -> None:
    """Make a kit where nobody looks, then give it its name."""
    await asyncio.to_thread(_remove_abandoned_builds, folder)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        made = await recipe.builder(aside)
        (made / TOKEN).write_text(secrets.token_hex(32))
        made.rename(folder)
        _try_lock_complete_kit(folder)
    finally:
        await asyncio.to_thread(shutil.rmtree, aside, ignore_errors=True)


def _create_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as fault:
        raise EngineError(
            f"The folder {folder} cannot be made ({fault.strerror}).",
            "Set XDG_CACHE_HOME to a folder that can be written.",
        ) from None


def _require_folder_of_user(folder: Path) -> None:
    """EngineError for a cache that another user made or may write to: what is in it is executed."""
    try:
        found = folder.stat()
    except FileNotFoundError:
        return
    if found.st_uid != os.geteuid():
        why = f"belongs to user {found.st_uid}"
    elif found.st_mode & stat.S_IWOTH:
        why = "may be written to by everybody"
    else:
        return
    raise EngineError(
        f"The folder {folder}, from which programs are started, {why}.",
        "Set XDG_CACHE_HOME to a folder of your own.",
    )


def _is_folder_of_user(folder: Path) -> bool:
    """Whether a kit is a folder of this user's, and no link to another folder."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _unwritable_error(folder: Path, fault: OSError) -> EngineError:
    if fault.errno in _DISK_FULL_ERRNOS:
        return EngineError(
            f"There is no room left in {folder} ({fault.strerror}).",
            "Make room there, or set XDG_CACHE_HOME to a folder with 500 MB free.",
        )
    return EngineError(
        f"A kit cannot be written in {folder} ({fault}).",
        "Set XDG_CACHE_HOME to a folder that can be written.",
    )


def _try_lock_complete_kit(folder: Path) -> bool:
    """Whether the kit is there and whole; from then on no other session removes it.

    Who removes it has the token's lock alone, and renames the folder before letting go.
    """
    token = folder / TOKEN
    if not _is_folder_of_user(folder):
        return False
    try:
        descriptor = os.open(token, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    if not _try_lock_shared(descriptor) or not _is_open_file_at(descriptor, token):
        os.close(descriptor)
        return False
    with suppress(OSError):
        os.utime(token)
    if (before := _kit_locks.get(folder)) is not None:
        os.close(before)
    _kit_locks[folder] = descriptor
    return True


def _try_lock_shared(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # On a file system without locks nobody gets the other kind either, and nothing is removed.
        return True
    return True


def _is_open_file_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _remove_old_kits(newest: Path, family: str) -> None:
    """Remove kits of a family that are neither among the last used nor in use."""
    kits = [
        (token.stat().st_mtime, token.parent)
        for token in newest.parent.glob(f"{family}-*/{TOKEN}")
        if token.parent != newest
        and _NAME.fullmatch(token.parent.name)
        and _is_folder_of_user(token.parent)
    ]
    for _, folder in sorted(kits, reverse=True)[KITS_KEPT - 1 :]:
        _remove_kit_if_unused(folder)


def _remove_kit_if_unused(folder: Path) -> None:
    """Remove a kit that no process has taken."""
    if folder in _kit_locks:
        return
    with suppress(OSError), (folder / TOKEN).open() as token:
        fcntl.flock(token.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The name says whose remains it is, should this be killed halfway.
        aside = tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent)
        folder.rename(Path(aside) / folder.name)
        shutil.rmtree(aside, ignore_errors=True)


@asynccontextmanager
async def _exclusive_file_lock(path: Path, notify: Notify) -> AsyncIterator[None]:
    """Alone with that file; the lock goes with the process, however it ends."""
    with path.open("w") as lock:
        waiting = False
        try:
            async with asyncio.timeout(LOCK_LIMIT_S):
                while not _try_lock(lock.fileno()):
                    if not waiting:
                        notify("another session builds the same kit")
                    waiting = True
                    await asyncio.sleep(LOCK_RETRY_S)
        except TimeoutError:
            raise EngineError(
                f"Another session has held {path} for {LOCK_LIMIT_S:g} s.",
                "End that session, and run again.",
            ) from None
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_abandoned_builds(folder: Path) -> None:
    """What builds of this kit left that were killed: nobody else has the lock."""
    for left in (*folder.parent.glob(f".{folder.name}.*"), folder):
        if left.is_symlink():
            left.unlink()  # And not what it leads to.
        elif left.is_dir() and _is_folder_of_user(left):
            shutil.rmtree(left, ignore_errors=True)


async def is_file_visible_on_host(host: Host, random_file: Path) -> bool:
    """Whether that host's agent finds the same file, of random content, at the same path.

    So it is for this machine, its network namespaces and a shared home. HostError when the host is
    lost.
    """
    if host.spec.transport is HostTransport.LOCAL:
        return True
    content = await asyncio.to_thread(random_file.read_bytes)
    try:
        answer = await host.request(
            "get", deadline_s=PUT_LIMIT_S, path=str(random_file), max_bytes=TOKEN_LIMIT_BYTES
        )
    except AgentRefusalError:
        return False
    stored = read_answer(host.name, FileAnswer, answer)
    return stored.sha256 == hashlib.sha256(content).hexdigest()


async def copy_jars_to_host(host: Host, jars: Sequence[Path], directory: str) -> tuple[str, ...]:
    """The paths of the jars in that folder of the host; those that are there already stay.

    HostError when the host fails or does not hold what was sent.
    """
    await run_and_get_output(host, ("mkdir", "-p", directory))
    wanted = {
        f"{directory}/{jar.name}": (jar, await asyncio.to_thread(_file_digest, jar)) for jar in jars
    }
    there = await _compute_remote_digest_by_path(host, list(wanted))
    for path, (jar, digest) in wanted.items():
        if there.get(path) != digest:
            await _send_file(host, jar, path)
    arrived = await _compute_remote_digest_by_path(host, list(wanted))
    wrong = [path for path, (_, digest) in wanted.items() if arrived.get(path) != digest]
    if wrong:
        raise HostError(
            f"{excerpt(wrong[0], 200)} arrived on host '{host.name}' with other bytes.",
            "See that the way to that host passes bytes unchanged, and that it has room.",
        )
    return tuple(wanted)


async def _send_file(host: Host, jar: Path, path: str) -> None:
    """The first piece makes the file anew, all others are put to its end."""
    for number, piece in enumerate(_file_chunks(jar)):
        if number == 0:
            await host.request("put", piece, deadline_s=PUT_LIMIT_S, path=path, mode=_MODE)
        else:
            await _append_chunk(host, piece, path)


async def _append_chunk(host: Host, piece: bytes, path: str) -> None:
    argv = ("dd", f"of={path}", "oflag=append", "conv=notrunc")
    try:
        await run_and_get_output(host, argv, stdin=piece, limit_s=PUT_LIMIT_S)
    except EngineError as fault:
        hint = "Make room on that host, or give another path."
        raise HostError(fault.message, hint) from None


async def _compute_remote_digest_by_path(host: Host, paths: Sequence[str]) -> dict[str, str]:
    """The SHA-256 of each of these files that is there."""
    # sha256sum ends with 1 where one is missing, and tells the others all the same.
    output = await run_and_get_output(
        host, ("sha256sum", *paths), limit_s=DIGEST_LIMIT_S, success_codes=frozenset({0, 1})
    )
    rows = (line.split("  ", 1) for line in output.decode("utf-8", "replace").splitlines())
    return {row[1]: row[0] for row in rows if len(row) == 2}


def _file_digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _file_chunks(path: Path) -> Iterator[bytes]:
    """At least one: an empty file is a file."""
    with path.open("rb") as content:
        yield content.read(PIECE_BYTES)
        while piece := content.read(PIECE_BYTES):
            yield piece
