"""Samples of output in the documentation: made by the commands that they show.

A fenced block `console` begins with `$ iolab …`; the lines after it are what that command prints
to standard output at 110 columns, with the stored session of cluster-kpi as `first`.
`python -m tests.samples` writes them; tests/cli/test_samples.py holds them against the commands.
"""

from __future__ import annotations

import re
import shlex
import tarfile
import tempfile
from pathlib import Path

from tests.cli.in_process import call

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "tests" / "golden" / "sessions" / "cluster-kpi.tar.xz"
WIDTH = "110"
SAMPLE = re.compile(r"^```console\n\$ iolab (.+)\n((?:.*\n)*?)```$", re.M)


def pages() -> list[Path]:
    """The pages that have samples."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in every if SAMPLE.search(page.read_text(encoding="utf-8"))]


def sampled(page: Path, folder: Path) -> str:
    """The page's text with every sample as its command prints it in `folder`."""

    def shown(match: re.Match[str]) -> str:
        done = call(*shlex.split(match[1]), cwd=folder, env={"COLUMNS": WIDTH})
        assert done.returncode == 0, done.stderr
        lines = "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())
        return f"```console\n$ iolab {match[1]}\n{lines}\n```"

    return SAMPLE.sub(shown, page.read_text(encoding="utf-8"))


def unpack(folder: Path) -> None:
    """Put the stored session into `folder` as `first`."""
    with tarfile.open(STORED) as packed:
        packed.extractall(folder, filter="data")
    (folder / "cluster-kpi").rename(folder / "first")


def main() -> None:
    """Write every sample."""
    with tempfile.TemporaryDirectory() as name:
        unpack(Path(name))
        for page in pages():
            page.write_text(sampled(page, Path(name)), encoding="utf-8")


if __name__ == "__main__":
    main()
