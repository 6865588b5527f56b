"""What a controller may be started in: limits, missing places, and others' files of our names."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from iolab.hosts.push import agent_binary
from tests.campaign.liar import LIES, plant
from tests.campaign.stage import Stage

CLONE_NEWNS: Final = 0x00020000
BAIT: Final = (
    "import os\nos.write(2, b'BAIT: a file of the current directory was run\\n')\nos._exit(99)\n"
)
OUR_MODULES: Final = ("iolab", "numpy", "typer", "asyncio", "json", "fio", "agent", "site")
OUR_PARTS: Final = ("cli", "core", "hosts", "store", "study", "errors", "units", "registry")


def _without(name: str, _: Stage) -> None:
    os.environ.pop(name, None)


def _no_tmp(_: Stage) -> None:
    """Neither of the names it may have, nor a /tmp that can be written to."""
    os.environ["TMPDIR"] = "/nonexistent"
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    for words in (["--make-rprivate", "/"], ["-t", "tmpfs", "-o", "ro", "none", "/tmp"]):
        subprocess.run(["mount", *words], check=True)


def _umask(_: Stage) -> None:
    os.umask(0o777)


def _limit(what: int, most: int, _: Stage) -> None:
    resource.setrlimit(what, (most, most))


def _bait(stage: Stage, names: tuple[str, ...]) -> Path:
    folder = stage.bed.base / f"bait-{stage.hosts[0]}-{names[0]}"
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.py").write_text(BAIT, encoding="utf-8")
    for program in ("fio", "iolab", "iolab-agent", "ssh", "python3"):
        (folder / program).write_text("#!/bin/sh\necho BAIT >&2; exit 99\n", encoding="utf-8")
        (folder / program).chmod(0o755)
    return folder


def _in_directory(stage: Stage) -> None:
    os.chdir(_bait(stage, OUR_MODULES))


def _on_python_path(stage: Stage) -> None:
    os.environ["PYTHONPATH"] = str(_bait(stage, OUR_PARTS))


def _lie(lie: str, stage: Stage) -> None:
    # Another moment of the session for another study.
    after = 1 + sum(stage.study.encode()) % 40
    file = stage.bed.base / f"agent-{stage.hosts[0]}"
    os.environ["IOLAB_AGENT"] = str(plant(file, agent_binary(), lie, after))


SURROUNDINGS: Final[dict[str, Callable[[Stage], None]]] = {
    "no HOME": partial(_without, "HOME"),
    "no PATH": partial(_without, "PATH"),
    "no /tmp": _no_tmp,
    "umask 777": _umask,
    "few open files": partial(_limit, resource.RLIMIT_NOFILE, 24),
    "small files": partial(_limit, resource.RLIMIT_FSIZE, 64 << 10),
    "little memory": partial(_limit, resource.RLIMIT_AS, 256 << 20),
    "our names in the directory": _in_directory,
    "our names on PYTHONPATH": _on_python_path,
    **{f"an agent that says {lie}": partial(_lie, lie) for lie in LIES},
}
