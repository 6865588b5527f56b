"""The command called in this process: the same entry point, streams and exit code, in less time.

Where the process itself is the subject (pipes, terminals, signals, rights), see `command_line`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO

from iolab.cli.app import run_command_line
from tests.cli.command_line import environment


def call(
    *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `iolab` off a terminal, here; all of the process that it sees is put back afterwards."""
    argv = ["iolab", *(str(word) for word in arguments)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with _place(cwd, environment(env)), _streams(out, err):
            code = _main(argv)
        return subprocess.CompletedProcess(argv, code, _written(out), _written(err))


def _main(argv: list[str]) -> int:
    before, sys.argv = sys.argv, argv
    try:
        return run_command_line(argv[1:])
    finally:
        sys.argv = before


@contextmanager
def _place(cwd: Path | None, env: Mapping[str, str]) -> Iterator[None]:
    directory, variables, mask = Path.cwd(), dict(os.environ), os.umask(0)
    os.umask(mask)
    try:
        os.chdir(cwd or directory)
        _set_environment(env)
        yield
    finally:
        os.umask(mask)
        _set_environment(variables)
        os.chdir(directory)


def _set_environment(env: Mapping[str, str]) -> None:
    for name in os.environ.keys() - env.keys():
        del os.environ[name]
    os.environ.update(env)


@contextmanager
def _streams(out: IO[bytes], err: IO[bytes]) -> Iterator[None]:
    """Standard output and error as descriptors and as Python's streams, as a pipe would be."""
    kept, streams = (os.dup(1), os.dup(2)), (sys.stdout, sys.stderr)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.close()
        sys.stdout, sys.stderr = streams
        for number, descriptor in enumerate(kept, 1):
            os.dup2(descriptor, number)
            os.close(descriptor)


def _written(file: IO[bytes]) -> str:
    """What came through, with the ends of its lines read as `subprocess` reads them."""
    file.seek(0)
    return TextIOWrapper(file, encoding="utf-8").read()
