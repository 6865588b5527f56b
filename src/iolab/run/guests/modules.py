"""Which of a kernel's modules a guest needs to see its disks and its line, and in which order.

A package that is unpacked and not installed has no `modules.dep`; every module says itself what it
depends on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

WANTED: Final = ("virtio_mmio", "virtio_pci", "virtio_blk", "virtio_console")
"""Buses of both kinds of machine, disks, and the port that the agent speaks through."""

NEEDED: Final = frozenset({"virtio_blk", "virtio_console"})
"""Without these no guest is of use; a kernel may lack one of the buses."""

_ENDINGS: Final = re.compile(r"\.ko(?:\.(?:xz|zst|gz))?")
_DEPENDS: Final = re.compile(rb"(?:^|\0)depends=([\w,-]*)\0")


def module_name(path: str) -> str:
    """A module's name by its file: hyphens count as underscores, as they do for the kernel."""
    return _ENDINGS.sub("", PurePosixPath(path).name).replace("-", "_")


def is_module(path: str) -> bool:
    """Whether a file is a module, packed or not."""
    found = _ENDINGS.search(PurePosixPath(path).name)
    return found is not None and found.end() == len(PurePosixPath(path).name)


def depends_of(content: bytes) -> tuple[str, ...]:
    """The modules that one says it depends on, from its `.modinfo`; `content` is unpacked."""
    found = _DEPENDS.search(content)
    names = found[1].decode().split(",") if found else []
    return tuple(name.replace("-", "_") for name in names if name)


def in_order(
    paths: Sequence[str], built_in: Sequence[str], read: Callable[[str], bytes]
) -> Mapping[str, bytes]:
    """The unpacked modules by name, each behind those that it depends on.

    `paths` are all modules of the kernel, `built_in` the lines of its `modules.builtin`; `read`
    gives a module's unpacked content. ValueError when one that is needed is nowhere.
    """
    there = {module_name(path): path for path in paths}
    done = {module_name(path) for path in built_in if path.strip()}
    found: dict[str, bytes] = {}
    for name in WANTED:
        if name in there or name in done:
            _add(name, there, done, read, found)
    if missing := sorted(NEEDED - found.keys() - done):
        raise ValueError(f"it has no {' and no '.join(missing)}")
    return found


def _add(
    name: str,
    there: Mapping[str, str],
    done: set[str],
    read: Callable[[str], bytes],
    found: dict[str, bytes],
) -> None:
    if name in done:
        return
    done.add(name)
    if name not in there:
        raise ValueError(f"it has no {name}, which another module needs")
    content = read(there[name])
    for needed in depends_of(content):
        _add(needed, there, done, read, found)
    found[name] = content
