"""Which Java a host has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from iolab.errors import EngineError
from iolab.hosts.host import Host
from iolab.loads.keyvalue.java import JavaInstallation, find_java, parse_java_version
from tests.loads.keyvalue.local import on_this_machine

pytestmark = [pytest.mark.e2e, pytest.mark.long]

OPENJDK_17 = """\
openjdk version "17.0.15" 2025-04-15
OpenJDK Runtime Environment (build 17.0.15+6-Debian-1deb12u1)
"""


@pytest.mark.parametrize(
    ("said", "release"),
    [
        (OPENJDK_17, 17),
        ('java version "1.8.0_412"\n', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19\n', 21),
        ('openjdk version "25-ea" 2025-09-16\n', 25),
    ],
)
def test_the_release_is_read(said: str, release: int) -> None:
    java = parse_java_version("java", said)
    assert java is not None
    assert java.release == release


def test_other_words_are_no_version() -> None:
    assert parse_java_version("java", "a stand-in for java") is None


def java_that_says(folder: Path, said: str, code: int = 0) -> str:
    program = folder / "java"
    text = f"#!{sys.executable}\nimport sys\nsys.stderr.write({said!r})\nsys.exit({code})\n"
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def asked(program: str) -> JavaInstallation:
    async def work(host: Host) -> JavaInstallation:
        return await find_java(host, program, oldest_release=11)

    return on_this_machine(work)


def test_a_host_is_asked(tmp_path: Path) -> None:
    program = java_that_says(tmp_path, OPENJDK_17)
    assert asked(program) == JavaInstallation(program, "17.0.15", 17)


def test_no_java_says_what_to_install() -> None:
    with pytest.raises(EngineError, match="no java to run on") as caught:
        asked("/nowhere/java")
    assert "openjdk" in caught.value.hint


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ('openjdk version "1.8.0_412"\n', 0, r"Java 1\.8\.0_412 on host 'local' is too old: 11"),
        ("a toaster\n", 0, "says no version of Java: 'a toaster'"),
        ("cannot allocate memory\n", 1, "exit code 1 .*cannot allocate memory"),
    ],
)
def test_a_java_that_cannot_serve_is_refused(
    tmp_path: Path, said: str, code: int, words: str
) -> None:
    with pytest.raises(EngineError, match=words):
        asked(java_that_says(tmp_path, said, code))
