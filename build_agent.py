"""The build hook: compiles the agent for this machine and puts it into the package."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, Final

STATIC: Final = "-C target-feature=+crt-static"
"""Links glibc in, so that the one program runs on every Linux host of the architecture."""
OLDEST_CARGO: Final = (1, 85)
"""The first that knows the edition the agent is written in; Cargo.toml says the same."""
TRIPLES: Final = {
    "x86_64": "x86_64-unknown-linux-gnu",
    "aarch64": "aarch64-unknown-linux-gnu",
}
"""The Rust target of each architecture that is built for."""


def get_build_hook() -> type:
    """The hook that hatchling asks for; imported here, so that this file also runs by itself."""
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class AgentBuildHook(BuildHookInterface):  # type: ignore[misc]  # hatchling is untyped here
        """Adds the compiled agent to a wheel, editable or not; the source archive stays source."""

        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile the agent before the files of a wheel are gathered."""
            del version
            if self.target_name == "wheel":
                build(Path(self.root))
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{platform_tag()}"

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
    """The wheel tag of this platform; the agent needs no library, so plain `linux_…` is true."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def build(root: Path) -> Path:
    """Compile the agent in `root` and put it where the package finds it; returns that path.

    `SystemExit` with a sentence when this machine cannot compile it.
    """
    cargo = find_cargo()
    triple = TRIPLES.get(platform.machine())
    if platform.system() != "Linux" or triple is None:
        raise SystemExit(
            f"The iolab agent runs on Linux on {' and '.join(TRIPLES)}, "
            f"not on {platform.system()} on {platform.machine()}."
        )
    flags = f"CARGO_TARGET_{triple.upper().replace('-', '_')}_RUSTFLAGS"
    # The target is named so that the flags hold for the agent alone: with the static flag, cargo
    # could not build the compiler plugins that run on this machine.
    outcome = subprocess.run(
        # Where the program is looked for below, wherever the user's other builds go.
        [
            *(cargo, "build", "--release", "--locked", "--target", triple),
            *("--target-dir", str(root / "agent" / "target")),
        ],
        cwd=root / "agent",
        env={**os.environ, flags: STATIC},
        check=False,
    )
    if outcome.returncode != 0:
        raise SystemExit("The iolab agent did not compile: cargo says why above.")
    built = root / "agent" / "target" / triple / "release" / "iolab-agent"
    placed = root / "src" / "iolab" / "_agent" / "iolab-agent"
    placed.parent.mkdir(parents=True, exist_ok=True)
    # Renamed into place: an agent that runs from there keeps its file.
    aside = placed.with_name(".iolab-agent.new")
    shutil.copy2(built, aside)
    aside.replace(placed)
    return placed


if __name__ == "__main__":
    print(build(Path(__file__).parent))
