"""How the agent is compiled: for the machine asked for, and without the path of the checkout."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from build_agent import MACHINES, settings

ROOT = Path("/a checkout")


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
