"""Print what is linked into the agents, with versions and licences, as CycloneDX 1.6 in JSON.

Usage: sbom.py RUSTC GLIBC_VERSION. The same commit and versions give the same bytes: it has no time
and no serial number.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
TARGETS: Final = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
AGENT: Final = "iolab-agent"


def output(*words: str) -> str:
    """What a command prints; CalledProcessError when it fails."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def crates() -> Iterator[dict[str, Any]]:
    """The packages that cargo links into the agent for any of its targets, without the agent."""
    found: dict[str, dict[str, Any]] = {}
    for target in TARGETS:
        asked = ("--locked", "--format-version", "1", "--filter-platform", target)
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


def main(rustc: str, glibc: str) -> None:
    """Print the document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    release = output(rustc, "--version").split()[1]
    linked = [
        component(
            one["name"],
            one["version"],
            one["license"].replace("/", " OR "),
            f"pkg:cargo/{one['name']}@{one['version']}",
        )
        for one in crates()
    ]
    rust = component("rust-std", release, "MIT OR Apache-2.0", f"pkg:generic/rust-std@{release}")
    libc = component("glibc", glibc, "LGPL-2.1-or-later", f"pkg:generic/glibc@{glibc}")
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
        "components": [*linked, rust, libc],
    }
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
