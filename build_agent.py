"""The build hook: compiles the agent and puts it into the package, for one kind of machine or all.

`python build_agent.py` compiles it for this machine, `build_agent.py MACHINE …` for others. A wheel
gets the agents of the machines that IOLAB_MACHINES names, of this one alone without it; with all of
them it serves hosts of every kind from wherever Python runs, and says so by its tag.
"""

from __future__ import annotations

import contextlib
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
LINKER: Final = "rust-lld"
"""What rustup brings beside its compiler; it links for every machine."""
FETCH_LIMIT_S: Final = 300
"""For a standard library of 40 MB over a slow line."""


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
            man_page = Path(self.root, "src", "iolab", "_agent", "iolab.1")
            if whole and man_page.is_file():
                build_data["shared_data"][str(man_page)] = "share/man/man1/iolab.1"
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
    triple = target(machine)
    # The target is named so that the flags hold for the agent alone: with the static flag, cargo
    # could not build the compiler plugins that run on this machine.
    outcome = subprocess.run(
        # Where the program is looked for below, wherever the user's other builds go.
        [
            *(cargo, "build", "--release", "--locked", "--target", triple),
            *("--target-dir", str(root / "agent" / "target")),
        ],
        cwd=root / "agent",
        env={**os.environ, **settings(root, triple, os.environ)},
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


def target(machine: str) -> str:
    """The target that the agent for `machine` is built for, either of which is linked statically.

    musl, by which it is a third smaller, where rustup has or can fetch its standard library; else
    glibc, and a sentence says so.
    """
    musl, glibc = (f"{machine}-unknown-linux-{library}" for library in ("musl", "gnu"))
    if has_musl(musl):
        return musl
    if shutil.which("rustup"):
        # Without a network, or with a Rust that is not rustup's, this fails and changes nothing.
        fetch = ["rustup", "target", "add", musl]
        print(f"Fetching what the agent is linked from: {' '.join(fetch)}", file=sys.stderr)
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(fetch, capture_output=True, check=False, timeout=FETCH_LIMIT_S)
        if has_musl(musl):
            return musl
    print(
        f"The agent for {machine} is linked with glibc and so 0.8 MB larger than with musl, for "
        f"which Rust of rustup is needed: rustup target add {musl}",
        file=sys.stderr,
    )
    return glibc


def has_musl(triple: str) -> bool:
    """Whether the compiler has what the agent is linked from with musl, and by.

    With the compiler's own linker its bytes depend on nothing else of the machine.
    """
    library = compiler_says("--target", triple, "--print", "target-libdir")
    own = compiler_says("--print", "target-libdir")
    if library is None or own is None:
        return False
    linker = Path(own).with_name("bin") / LINKER
    return linker.is_file() and any(Path(library).glob("libstd-*.rlib"))


def compiler_says(*asked: str) -> str | None:
    """The answer of the compiler that cargo will call; None where it has none."""
    rustc = os.environ.get("RUSTC") or "rustc"
    try:
        told = subprocess.run([rustc, *asked], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return told.stdout.strip() if told.returncode == 0 else None


def settings(root: Path, triple: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables by which cargo builds the same bytes for `triple` wherever `root` lies.

    The C library is linked in, so that the one program runs on every Linux host of the machine's
    kind.
    """
    home = Path(environment.get("CARGO_HOME") or Path.home() / ".cargo")
    flags = (
        "-Ctarget-feature=+crt-static",
        f"--remap-path-prefix={root}=/iolab",
        f"--remap-path-prefix={home}=/cargo",
    )
    # Separated by what no path has in it; whatever the user's RUSTFLAGS say stays out.
    return {"CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags), **linker(triple)}


def linker(triple: str) -> Mapping[str, str]:
    """What links for a target; nothing where that is the C compiler of this machine."""
    variable = f"CARGO_TARGET_{triple.upper().replace('-', '_')}_LINKER"
    machine = triple.partition("-")[0]
    if triple.endswith("-musl"):
        return {variable: LINKER}
    if machine == platform.machine():
        return {}
    # The compiler of Debian and its kin that links for another machine.
    return {variable: f"{machine.replace('_', '-')}-linux-gnu-gcc"}


if __name__ == "__main__":
    for wanted in sys.argv[1:] or [platform.machine()]:
        print(build(Path(__file__).resolve().parent, wanted))
