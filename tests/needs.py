"""What tests need of the machine: a missing tool skips those that use it, and no others."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NoReturn

import pytest

MUST_HAVE_ALL: Final = bool(os.environ.get("CI"))
"""Whether a missing tool fails the tests that need it; elsewhere they are skipped."""

ROOT: Final = "root"
"""Stands among the tools for the user's rights."""


FILES: Final = {
    "tests/fleet/": (ROOT, "ip", "ssh", "sshd", "nsenter"),
    "tests/fleet/test_busy_disk": ("fio", "losetup", "mkfs.xfs"),
    "tests/fleet/test_cluster": ("losetup", "mkfs.ext4"),
    "tests/fleet/test_slurm": ("slurmctld", "slurmd", "srun"),
    "tests/fleet/test_vm_": ("qemu-system-x86_64", "qemu-img", "losetup"),
    "tests/fleet/test_ycsb": ("mvn", "javac"),
    "tests/campaign/": (ROOT, "ip", "ssh", "sshd", "nsenter", "losetup", "mkfs.xfs", "fio"),
    "tests/e2e/test_bundled_studies": ("db_bench", "qemu-system-x86_64", "mvn", "javac"),
    "tests/e2e/test_cassandra": ("mvn", "javac"),
    "tests/e2e/test_ceph": (ROOT, "ceph", "ceph-mon", "ceph-mgr", "ceph-osd", "radosgw"),
    "tests/e2e/test_db_bench": ("db_bench",),
    "tests/e2e/test_filesystem": (ROOT, "mkfs.xfs"),
    "tests/e2e/test_guest_": (
        "qemu-system-x86_64",
        "qemu-img",
        "cpio",
        "readelf",
        "debugfs",
        "lz4",
        "zstd",
    ),
    "tests/e2e/test_vm_": ("qemu-system-x86_64", "qemu-img"),
    "tests/e2e/test_versitygw": ("go",),
    "tests/e2e/test_ycsb": ("mvn", "javac"),
    "tests/loads/keyvalue/": ("mvn", "javac"),
}
"""How the path of a file of end-to-end tests begins, and what all of its tests use. Where only some
do, the fixture that uses a tool requires it."""


NEEDS: Final = "needs "
"""How the reason begins where tools are missing."""

SKIPPED_FILE: Final = "IOLAB_SKIPPED"
"""The variable with the file to which a line is added for each skipped test."""


def packages_of(reason: str) -> list[str]:
    """The packages that have the tools of a reason, by the Makefile, which installs them.

    Of no package is `root`; a tool that the Makefile does not name stands for itself.
    """
    if NEEDS not in reason:
        return []
    makefile = Path(__file__).parents[1] / "Makefile"
    pairs = re.findall(r'"([^":]+):([^":]+):[^":]+"', makefile.read_text(encoding="utf-8"))
    packages = {Path(test.split()[0]).name: package for test, package in pairs}
    tools = reason.partition(NEEDS)[2].split(", ")
    return list(dict.fromkeys(packages.get(tool, tool) for tool in tools))


def record_skips(reasons: Iterable[str]) -> None:
    """Add the skipped tests to the file that `tools/phases.sh` sums up at its end."""
    if path := os.environ.get(SKIPPED_FILE):
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(
                f"{' '.join(found)}\n" for each in reasons if (found := packages_of(each))
            )


def require_of_file(path: str) -> None:
    """Require what the tests of that file use."""
    require(*(tool for begin, tools in FILES.items() if path.startswith(begin) for tool in tools))


def require(*tools: str) -> None:
    """Skip the running test, or what makes its fixture, where one of the programs is missing."""
    lacking = sorted({tool for tool in tools if not has(tool)})
    if not lacking:
        return
    do_without(f"{NEEDS}{', '.join(lacking)}")


def do_without(reason: str) -> NoReturn:
    """Skip what runs for that reason; in CI, where nothing may be skipped, it fails."""
    if MUST_HAVE_ALL:
        pytest.fail(f"{reason}: the Makefile installs all that tests need", pytrace=False)
    raise pytest.skip.Exception(reason, _use_item_location=True)


def has(tool: str) -> bool:
    """Whether a program is on the path or among root's, or whether we are root."""
    if tool == ROOT:
        return os.geteuid() == 0
    return shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None
