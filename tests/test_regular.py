"""What is no file is not opened, and what would take minutes to parse is refused at once."""

from __future__ import annotations

import os
import socket
import tomllib
from pathlib import Path

import pytest

from iolab.core.regular_file import read_regular_file
from iolab.core.toml import PARTS_MAX, DeepKeyError, parse_toml
from tests.cli.in_process import call


def test_a_file_is_read_whole_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    assert read_regular_file(path, 10) == b"x" * 10
    with pytest.raises(OSError, match="more than 9 bytes"):
        read_regular_file(path, 9)
    with pytest.raises(FileNotFoundError):
        read_regular_file(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        read_regular_file(tmp_path)


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="a FIFO"):
        read_regular_file(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with pytest.raises(OSError, match="a character device"):
        read_regular_file(tmp_path / "zero")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match="No such device"):
            read_regular_file(tmp_path / "socket")


@pytest.mark.parametrize("command", [("check",), ("plan",), ("audit",)])
def test_commands_say_so(tmp_path: Path, command: tuple[str, ...]) -> None:
    fifo = tmp_path / "study.toml"
    os.mkfifo(fifo)
    done = call(*command, fifo)
    assert (done.returncode, "FIFO" in done.stderr) == (2, True)


def dotted(parts: int, part: str = "a") -> str:
    return ".".join([part] * parts)


@pytest.mark.parametrize(
    "text",
    [
        f"{dotted(50_000)} = 1",
        f"[{dotted(50_000)}]",
        "[[ " + dotted(50_000, '"a"') + " ]]",
        "x = { " + dotted(50_000, "'a' ") + " = 1 }",
        f"x = 1\ny = 2\n{dotted(PARTS_MAX + 1)} = 1",
    ],
    ids=["key", "table", "quoted", "inline", "later"],
)
def test_a_key_of_too_many_parts_is_refused(text: str) -> None:
    with pytest.raises(DeepKeyError) as told:
        parse_toml(text)
    assert told.value.line == text.count("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        f"{dotted(PARTS_MAX)} = 1",
        "x = [" + "1.5, " * 1000 + "]",
        'x = "' + "A sentence. " * 1000 + '"',
        'x = "' + "." * 1000 + '"',
    ],
    ids=["most", "floats", "prose", "dots"],
)
def test_plain_files_are_read_as_ever(text: str) -> None:
    assert parse_toml(text) == tomllib.loads(text)
