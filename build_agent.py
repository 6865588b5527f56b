"""The build hook: compiles the agent and puts it into the package, for one kind of machine or all.

`python build_agent.py` compiles it for this machine, `build_agent.py MACHINE …` for others. A wheel
gets the agents of the machines that IOLAB_MACHINES names, of this one alone without it; with all of
them it serves hosts of every kind from wherever Python runs, and says so by its tag.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

MACHINES: Final = ("x86_64", "aarch64")
"""What `uname -m` says of the machines that the agent is built for."""
MACHINES_VARIABLE: Final = "IOLAB_MACHINES"
OLDEST_CARGO: Final = (1, 85)
"""The first that knows the edition the agent is written in; Cargo.toml says the same."""


def get_build_hook() -> type:
    """The hook that hatchling asks for; imported here, so that this file also runs by itself."""
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class AgentBuildHook(BuildHookInterface):  # type: ignore[misc]  # hatchling is untyped here
        """Adds the compiled agents to a wheel, editable or not; the source archive stays source."""

        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile the agents before the files of a wheel are gathered."""
            del version
            if self.target_name != "wheel":
                return
            machines = os.environ.get(MACHINES_VARIABLE, platform.machine()).split()
            for machine in machines:
                agent = build(Path(self.root), machine)
                build_data["force_include"][str(agent)] = f"iolab/_agent/{machine}/iolab-agent"
            whole = set(machines) == set(MACHINES)
            build_data["tag"] = f"py3-none-{'any' if whole else platform_tag()}"
            build_data["pure_python"] = whole
            sbom = Path(self.root, "src", "iolab", "_agent", "iolab-agent.cdx.json")
            if whole and sbom.is_file():
                build_data["sbom_files"].append(str(sbom))

    return AgentBuildHook


def find_cargo() -> str:
    """The cargo to build with; `SystemExit` with what to install when it is missing or too old."""
    install = (
        f"install Rust {OLDEST_CARGO[0]}.{OLDEST_CARGO[1]} or newer (https://rustup.rs, or a "
        "package such as cargo, on Debian 12 cargo-web) and build again."
    )
    cargo = shutil.which("cargo")
    if cargo is None:
        raise SystemExit(f"The iolab agent is written in Rust and cargo is not on PATH: {install}")
    told = subprocess.run([cargo, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"(\d+)\.(\d+)", told)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_CARGO:
        raise SystemExit(
            f"The iolab agent needs a newer cargo than {cargo} ({told.strip()}): {install}"
        )
    return cargo


def platform_tag() -> str:
    """The tag of a wheel with this machine's agent alone, which is no wheel for everybody."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def build(root: Path, machine: str) -> Path:
    """Compile the agent in `root` and put it where the package finds it; returns that path.

    `SystemExit` with a sentence when this machine cannot compile it.
    """
    cargo = find_cargo()
    if platform.system() != "Linux" or machine not in MACHINES:
        raise SystemExit(
            f"The iolab agent is built on Linux for {' and '.join(MACHINES)}, "
            f"not on {platform.system()} for {machine}."
        )
    triple = f"{machine}-unknown-linux-gnu"
    # The target is named so that the flags hold for the agent alone: with the static flag, cargo
    # could not build the compiler plugins that run on this machine.
    outcome = subprocess.run(
        # Where the program is looked for below, wherever the user's other builds go.
        [
            *(cargo, "build", "--release", "--locked", "--target", triple),
            *("--target-dir", str(root / "agent" / "target")),
        ],
        cwd=root / "agent",
        env={**os.environ, **settings(root, machine, os.environ)},
        check=False,
    )
    if outcome.returncode != 0:
        raise SystemExit(f"The iolab agent for {machine} did not compile: cargo says why above.")
    built = root / "agent" / "target" / triple / "release" / "iolab-agent"
    placed = root / "src" / "iolab" / "_agent" / machine / "iolab-agent"
    placed.parent.mkdir(parents=True, exist_ok=True)
    # Renamed into place: an agent that runs from there keeps its file.
    aside = placed.with_name(".iolab-agent.new")
    shutil.copy2(built, aside)
    aside.replace(placed)
    return placed


def settings(root: Path, machine: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables by which cargo builds the same bytes for `machine` wherever `root` lies.

    glibc is linked in, so that the one program runs on every Linux host of the machine's kind.
    """
    home = Path(environment.get("CARGO_HOME") or Path.home() / ".cargo")
    flags = (
        "-Ctarget-feature=+crt-static",
        f"--remap-path-prefix={root}=/iolab",
        f"--remap-path-prefix={home}=/cargo",
    )
    linker = {} if machine == platform.machine() else cross_linker(machine)
    # Separated by what no path has in it; whatever the user's RUSTFLAGS say stays out.
    return {"CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags), **linker}


def cross_linker(machine: str) -> Mapping[str, str]:
    """The compiler of Debian and its kin that links for another machine."""
    variable = f"CARGO_TARGET_{machine.upper()}_UNKNOWN_LINUX_GNU_LINKER"
    return {variable: f"{machine.replace('_', '-')}-linux-gnu-gcc"}


if __name__ == "__main__":
    for wanted in sys.argv[1:] or [platform.machine()]:
        print(build(Path(__file__).resolve().parent, wanted))
