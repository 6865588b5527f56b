"""Samples of output in the documentation: made by the commands that they show.

A fenced block `console` begins with `$ iolab …`; the lines after it are what that command prints
at 110 columns (an error where it fails), in a folder with the sessions and studies of `prepare`.
`python -m tests.samples` writes them; tests/cli/test_samples.py compares them with the commands.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from iolab.core.host import HostFacts
from tests.cli.compared import Target, make_target
from tests.cli.in_process import call

ROOT = Path(__file__).resolve().parents[1]
STORED: Final = {"cluster-kpi": "first", "two-ssds": "ssds"}
"""Recorded sessions of tests/golden/sessions by the name that the pages give them."""
WIDTH = "110"
SAMPLE = re.compile(r"^```console\n\$ iolab (.+)\n((?:.*\n)*?)```$", re.M)
NIGHTS = (0.4, -0.6, 0.1, 0.5, -0.2, -0.4, 0.3, 0.0, -0.3, 0.6, -0.1, 0.2, -0.5, 0.3, 0.1, -0.4)
"""By how many per cent the nights differ."""
UPGRADE_NIGHT = 8
WRONG_STUDY = """\
format = 1
id = "wrong"

[[workload]]
id = "rand-read"
rw = "randread"
bs = "4x"
iodpth = 32
filesize = "4g"
"""


def pages() -> list[Path]:
    """The pages that have samples."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in every if SAMPLE.search(page.read_text(encoding="utf-8"))]


def sampled(page: Path, folder: Path) -> str:
    """The page's text with every sample as its command prints it in `folder`."""

    def shown(match: re.Match[str]) -> str:
        done = call(*shlex.split(match[1]), cwd=folder, env={"COLUMNS": WIDTH})
        output = done.stdout or done.stderr
        assert "Traceback" not in output
        lines = "\n".join(line.rstrip() for line in output.strip("\n").splitlines())
        return f"```console\n$ iolab {match[1]}\n{lines}\n```"

    return SAMPLE.sub(shown, page.read_text(encoding="utf-8"))


def unpack(folder: Path) -> None:
    """Put the recorded sessions into `folder`."""
    for name, shown in STORED.items():
        archive = ROOT / "tests" / "golden" / "sessions" / f"{name}.tar.xz"
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        (folder / name).rename(folder / shown)


def prepare(folder: Path) -> None:
    """Put the sessions and studies of the samples into `folder`."""
    unpack(folder)
    make_target(folder / "before", Target(name="before", points=1))
    noise = (0.006, 0.004, -0.006)
    slower = Target(name="after", factor=0.9, noise=noise, points=1, day=1, facts=upgraded)
    make_target(folder / "after", slower)
    for night, per_cent in enumerate(NIGHTS):
        factor = (1 + per_cent / 100) * (0.93 if night >= UPGRADE_NIGHT else 1)
        name = f"2025-06-{15 + night}"
        target = Target(factor=factor, name=name, points=1, day=night)
        if night >= UPGRADE_NIGHT:
            target = dataclasses.replace(target, facts=upgraded)
        make_target(folder / "nightly" / name, target)
    (folder / "wrong.toml").write_text(WRONG_STUDY, encoding="utf-8")


def upgraded(facts: Mapping[str, HostFacts]) -> dict[str, HostFacts]:
    """The hosts with another kernel."""
    return {
        name: replace(one, kernel=replace(one.kernel, release="6.12.0"))
        for name, one in facts.items()
    }


def main() -> None:
    """Write every sample."""
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        for page in pages():
            page.write_text(sampled(page, Path(name)), encoding="utf-8")


if __name__ == "__main__":
    main()
