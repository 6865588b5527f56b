"""Writing that survives a crash: flushed before it is named, and every fault told by its path."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from iolab.errors import StoreError
from iolab.store import layout

RESUME_CLAUSE: Final = "; a session goes on with `iolab resume`, its committed runs are whole"
"""Of what to do after an error of the disk; what is not resumed has another end."""

_AGAIN: Final = f"try again{RESUME_CLAUSE}."
_ACCESS: Final = "Make it accessible to this user, or choose another place."
_ADVICE: Final = {
    errno.ENOSPC: f"Free space on its file system and {_AGAIN}",
    errno.EDQUOT: f"Raise the quota or free space and {_AGAIN}",
    errno.EFBIG: f"Raise the limit on file sizes (`ulimit -f`) and {_AGAIN}",
    errno.EACCES: _ACCESS,
    errno.EPERM: _ACCESS,
    errno.EROFS: "Choose a place on a writable file system.",
    errno.ENOTDIR: "Choose a path whose parents are all directories.",
    errno.ENAMETOOLONG: "Choose a shorter path.",
    errno.ENOENT: "Check the path.",
}
_OTHERWISE: Final = f"Check the file system and the kernel's log, then {_AGAIN}"

_TRIES: Final = 20

_PAUSE_S: Final = 0.01
"""A reader holds the lock for microseconds while it asks whether a writer lives; outwait it."""

_PID_BYTES: Final = 32


@contextmanager
def disk_errors_as_store_errors(path: Path, verb: str) -> Iterator[None]:
    """Turn an OSError inside into a StoreError that names its path and what to do."""
    try:
        yield
    except OSError as error:
        raise store_error(error, path, verb) from error


def store_error(error: OSError, path: Path, verb: str) -> StoreError:
    """The StoreError for `error`, met while `verb` something ("write", "read") with `path`."""
    where = error.filename if isinstance(error.filename, str) else str(path)
    why = error.strerror or str(error)
    return StoreError(f"Cannot {verb} '{where}': {why}.", _ADVICE.get(error.errno or 0, _OTHERWISE))


def os_error_in_text(message: str) -> OSError | None:
    """The OSError that a library's error text tells of, None if it tells of none."""
    for number in _ADVICE:
        if os.strerror(number) in message:
            return OSError(number, os.strerror(number))
    return None


def write_new_file(path: Path, content: bytes) -> None:
    """Write a file that must not exist yet, and flush it to the device."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` in place of `path` at once: a reader sees the old or the new, never a mix."""
    with draft_then_replace(path) as draft:
        draft.write_bytes(content)


@contextmanager
def draft_then_replace(path: Path) -> Iterator[Path]:
    """A file to be written, which then takes the place of what `path` names, at once.

    A symbolic link stays, and what it leads to is replaced; a file keeps its mode. What is no file
    is written through, so that `/dev/stdout` and a FIFO with a reader take it. OSError where that
    cannot be done; a block device or a directory is refused, since nobody means one.
    """
    kind = _file_mode(path)
    if kind is not None and not stat.S_ISREG(kind):
        _require_overwritable(path, kind)
        with tempfile.TemporaryDirectory(prefix="iolab-") as folder:
            draft = Path(folder, "draft")
            yield draft
            with draft.open("rb") as source, path.open("wb", buffering=0) as file:
                shutil.copyfileobj(source, file)
        return
    final = path.resolve()
    draft = layout.temporary_path(final, os.getpid())
    draft.unlink(missing_ok=True)
    try:
        yield draft
        if kind is not None:
            draft.chmod(stat.S_IMODE(kind))
        sync_to_disk(draft)
        draft.replace(final)
        sync_to_disk(final.parent)
    finally:
        draft.unlink(missing_ok=True)


def _file_mode(path: Path) -> int | None:
    """The mode of what is there, None where nothing is."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _require_overwritable(path: Path, file_mode: int) -> None:
    if stat.S_ISDIR(file_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if stat.S_ISBLK(file_mode):
        raise PermissionError(errno.EPERM, "It is a block device, which holds data", str(path))


def rename_and_sync(draft: Path, final: Path) -> None:
    """Give a flushed directory its name, and flush the name."""
    draft.rename(final)
    sync_to_disk(final.parent)


def sync_to_disk(path: Path) -> None:
    """Flush a file's content or a directory's names to the device."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class SessionLock:
    """The right to write to a session, held until `release` or the end of the process.

    The kernel drops an advisory lock when its holder dies.
    """

    def __init__(self, directory: Path) -> None:
        path = directory / layout.LOCK
        self._descriptor: int | None = None
        with disk_errors_as_store_errors(path, "write"):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _acquire_lock(self._descriptor, directory)
            except BaseException:
                self.release()
                raise

    def release(self) -> None:
        """Let others write; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def is_locked(directory: Path) -> bool:
    """Whether a live process writes to the session; true as well if that cannot be found out."""
    try:
        descriptor = os.open(directory / layout.LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return False  # a copy of a session, without its lock
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def _acquire_lock(descriptor: int, directory: Path) -> None:
    """Make the lock ours and say so in it; StoreError if another process has it."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return
    holder = os.pread(descriptor, _PID_BYTES, 0).decode("ascii", "replace").strip()
    raise StoreError(
        f"Another iolab (process {holder or 'unknown'}) is writing to '{directory}'.",
        "Wait for it, stop it with Ctrl-C, or choose another directory.",
    )
