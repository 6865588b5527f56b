"""Print what is linked into the agents, with versions and licences, as CycloneDX 1.6 in JSON.

Usage: RUSTC=... sbom.py GLIBC_VERSION, which agents have that are linked with glibc. The same
commit and versions give the same bytes: it has no time and no serial number.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from build_agent import MACHINES, target  # noqa: E402 - a module of the checkout

AGENT: Final = "iolab-agent"


def output(*words: str) -> str:
    """What a command prints; CalledProcessError when it fails."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def crates(targets: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The packages that cargo links into the agent for any of its targets, without the agent."""
    found: dict[str, dict[str, Any]] = {}
    for triple in targets:
        asked = ("--locked", "--format-version", "1", "--filter-platform", triple)
        manifest = str(ROOT / "agent" / "Cargo.toml")
        told = json.loads(output("cargo", "metadata", "--manifest-path", manifest, *asked))
        packages = {package["id"]: package for package in told["packages"]}
        nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
        waiting = [told["resolve"]["root"]]
        while waiting:
            package = packages[(name := waiting.pop())]
            is_macro = any("proc-macro" in kind["kind"] for kind in package["targets"])
            # A macro runs in the compiler: it and what it needs is not in the program.
            if name in found or is_macro:
                continue
            found[name] = package
            waiting += [
                needed["pkg"]
                for needed in nodes[name]["deps"]
                if any(kind["kind"] is None for kind in needed["dep_kinds"])
            ]
    packages_found = sorted(found.values(), key=lambda one: (one["name"], one["version"]))
    return (one for one in packages_found if one["name"] != AGENT)


def component(name: str, version: str, licence: str, purl: str) -> dict[str, Any]:
    """One library; `licence` is an SPDX expression."""
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "licenses": [{"expression": licence}],
        "purl": purl,
    }


def c_libraries(rustc: str, targets: Sequence[str], glibc: str) -> Iterator[dict[str, Any]]:
    """The C libraries of the targets; that of musl comes with the compiler."""
    for triple in targets:
        if triple.endswith("-musl"):
            folder = Path(output(rustc, "--print", "target-libdir", "--target", triple).strip())
            archive = (folder / "self-contained" / "libc.a").read_bytes()
            (version,) = re.findall(rb"\0(\d+\.\d+\.\d+)\0", archive)
            musl = version.decode()
            yield component("musl", musl, "MIT", f"pkg:generic/musl@{musl}")
        else:
            yield component("glibc", glibc, "LGPL-2.1-or-later", f"pkg:generic/glibc@{glibc}")


def main(glibc: str) -> None:
    """Print the document."""
    rustc = os.environ.get("RUSTC") or "rustc"
    targets = [target(machine) for machine in MACHINES]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    release = output(rustc, "--version").split()[1]
    linked = [
        component(
            one["name"],
            one["version"],
            one["license"].replace("/", " OR "),
            f"pkg:cargo/{one['name']}@{one['version']}",
        )
        for one in crates(targets)
    ]
    rust = component("rust-std", release, "MIT OR Apache-2.0", f"pkg:generic/rust-std@{release}")
    libraries = {one["bom-ref"]: one for one in c_libraries(rustc, targets, glibc)}
    what = component(
        project["name"],
        project["version"],
        project["license"],
        f"pkg:pypi/{project['name']}@{project['version']}",
    )
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**what, "type": "application"}},
        "components": [*linked, rust, *libraries.values()],
    }
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
