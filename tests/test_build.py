"""How the agent is compiled: for the machine asked for, and without the path of the checkout."""

from __future__ import annotations

import platform
import tomllib
from pathlib import Path
from typing import Any

import pytest
from build_agent import MACHINES, settings

import iolab
from iolab.hosts.push import AGENTS_FOLDER

ROOT = Path("/a checkout")
CHECKOUT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("machine", MACHINES)
def test_no_path_of_the_checkout_stays_and_no_flag_of_the_user_comes_in(machine: str) -> None:
    made = settings(ROOT, machine, {"CARGO_HOME": "/cargo home", "RUSTFLAGS": "-Copt-level=0"})
    flags = made["CARGO_ENCODED_RUSTFLAGS"].split("\x1f")
    assert {f"--remap-path-prefix={ROOT}=/iolab", "--remap-path-prefix=/cargo home=/cargo"} <= {
        *flags
    }
    assert not [flag for flag in flags if "opt-level" in flag]


@pytest.mark.parametrize("machine", MACHINES)
def test_another_machine_has_a_linker_of_its_own(machine: str) -> None:
    linkers = [value for name, value in settings(ROOT, machine, {}).items() if "LINKER" in name]
    own = [f"{machine.replace('_', '-')}-linux-gnu-gcc"]
    assert linkers == ([] if machine == platform.machine() else own)


def test_the_agent_holds_no_path_of_where_it_was_built() -> None:
    program = (AGENTS_FOLDER / platform.machine() / "iolab-agent").read_bytes()
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
