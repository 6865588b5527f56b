"""How the agent is compiled: for the machine asked for, and without the path of the checkout."""

from __future__ import annotations

import platform
import struct
import tomllib
from pathlib import Path
from typing import Any

import pytest
from build_agent import LINKER, MACHINES, settings, target

import iolab
from iolab.hosts.push import AGENTS_FOLDER

ROOT = Path("/a checkout")
CHECKOUT = Path(__file__).resolve().parents[1]


PACKAGED = AGENTS_FOLDER / platform.machine() / "iolab-agent"
MOST_BYTES = {"musl": 4_700_000, "glibc": 5_500_000}
INTERPRETER = 3
"""The type of the program header that names a loader of shared libraries."""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("library", ["musl", "gnu"])
def test_no_path_of_the_checkout_stays_and_no_flag_of_the_user_comes_in(
    machine: str, library: str
) -> None:
    user = {"CARGO_HOME": "/cargo home", "RUSTFLAGS": "-Copt-level=0"}
    flags = settings(ROOT, f"{machine}-unknown-linux-{library}", user)["CARGO_ENCODED_RUSTFLAGS"]
    assert {f"--remap-path-prefix={ROOT}=/iolab", "--remap-path-prefix=/cargo home=/cargo"} <= {
        *flags.split("\x1f")
    }
    assert "opt-level" not in flags


@pytest.mark.parametrize("machine", MACHINES)
def test_another_machine_has_a_linker_of_its_own_and_musl_the_compilers(machine: str) -> None:
    def linkers(triple: str) -> list[str]:
        made = settings(ROOT, triple, {})
        return [value for name, value in made.items() if name.endswith("_LINKER")]

    own = [f"{machine.replace('_', '-')}-linux-gnu-gcc"]
    is_here = machine == platform.machine()
    assert linkers(f"{machine}-unknown-linux-gnu") == ([] if is_here else own)
    assert linkers(f"{machine}-unknown-linux-musl") == [LINKER]


@pytest.mark.parametrize(
    ("has_library", "has_linker", "library"),
    [(True, True, "musl"), (True, False, "gnu"), (False, True, "gnu")],
)
def test_musl_is_linked_where_the_compiler_has_all_for_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    has_library: bool,  # noqa: FBT001 - a column of the table above
    has_linker: bool,  # noqa: FBT001
    library: str,
) -> None:
    for triple in ("own", "x86_64-unknown-linux-musl"):
        (tmp_path / triple / "lib").mkdir(parents=True)
    (tmp_path / "own" / "bin").mkdir()
    if has_library:
        (tmp_path / "x86_64-unknown-linux-musl" / "lib" / "libstd-1.rlib").touch()
    if has_linker:
        (tmp_path / "own" / "bin" / LINKER).touch()
    compiler = tmp_path / "rustc"
    compiler.write_text(
        f'#!/bin/sh\ntriple=own\n[ "$1" != --target ] || triple=$2\necho "{tmp_path}/$triple/lib"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("RUSTC", str(compiler))
    # Where no rustup is found that could fetch anything.
    monkeypatch.setenv("PATH", str(tmp_path))
    assert target("x86_64") == f"x86_64-unknown-linux-{library}"
    assert ("rustup target add x86_64-unknown-linux-musl" in capfd.readouterr().err) == (
        library == "gnu"
    )


def test_a_musl_that_cannot_be_fetched_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("rustc", "rustup"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.delenv("RUSTC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert target("aarch64") == "aarch64-unknown-linux-gnu"
    fetched, without = capsys.readouterr().err.splitlines()
    assert fetched.endswith(": rustup target add aarch64-unknown-linux-musl")
    assert "linked with glibc" in without


def test_the_agent_is_one_small_program_that_loads_no_library() -> None:
    program = PACKAGED.read_bytes()
    (table,) = struct.unpack_from("<Q", program, 0x20)
    size, count = struct.unpack_from("<HH", program, 0x36)
    types = {struct.unpack_from("<I", program, table + at * size)[0] for at in range(count)}
    assert types, "an ELF program has headers"
    assert INTERPRETER not in types
    library = "glibc" if b"GCONV_PATH" in program else "musl"
    assert len(program) <= MOST_BYTES[library]


def test_the_agent_holds_no_path_of_where_it_was_built() -> None:
    program = PACKAGED.read_bytes()
    assert b"/cargo/registry/" in program
    for folder in (CHECKOUT, Path.home() / ".cargo"):
        assert str(folder).encode() not in program


def test_all_files_have_one_version() -> None:
    def read(name: str) -> dict[str, Any]:
        return tomllib.loads((CHECKOUT / name).read_text("utf-8"))

    packages = [*read("agent/Cargo.lock")["package"], *read("uv.lock")["package"]]
    locked = {one["name"]: one["version"] for one in packages if "iolab" in one["name"]}
    packaged = (read("pyproject.toml")["project"], read("agent/Cargo.toml")["package"])
    assert {iolab.__version__, *locked.values(), *(one["version"] for one in packaged)} == {
        iolab.__version__
    }
    assert {"iolab", "iolab-agent"} <= locked.keys()
