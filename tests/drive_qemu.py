"""A QEMU whose NVMe drives count what their flash writes: this machine's, or that of backports.

QEMU has flexible data placement since 8.0 and the OCP's log page since 9.1. Debian 12 has both in
its backports alone: three packages of 20 MB are unpacked into the user's cache, none is installed.
`python -m tests.drive_qemu` does that, so that no test has to wait for it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Final

from iolab.errors import EngineError
from iolab.guests.kit.debian import LISTS_LIMIT_S, PathPrograms
from iolab.hosts.kit_cache import KitCache, KitRecipe, kit_cache_folder
from tests.processes import run_program

PROGRAM: Final = "qemu-system-x86_64"
RELEASE: Final = "bookworm"
PACKAGES: Final = ("qemu-system-x86", "qemu-system-data", "seabios")
KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
FIRMWARE: Final = ("usr/share/qemu", "usr/share/seabios")


async def drive_qemu() -> tuple[str, ...]:
    """The program with the arguments that it needs. EngineError where there is none to be had."""
    system = shutil.which(PROGRAM)
    if system and has_drives_that_count(system):
        return (system,)
    plan = KitRecipe(f"qemu-{RELEASE}-backports", "fetching QEMU from Debian's backports", _fetch)
    folder = await KitCache(kit_cache_folder(os.environ)).get_or_build_kit(plan, print)
    firmware = (word for path in FIRMWARE for word in ("-L", str(folder / path)))
    return (str(folder / "usr/bin" / PROGRAM), *firmware)


def has_drives_that_count(program: str | Path) -> bool:
    """Whether its NVMe drives have both sources of media bytes."""
    wanted = (("nvme-subsys", "fdp="), ("nvme", "ocp="))
    for device, option in wanted:
        words = (program, "-device", f"{device},help")
        if option not in run_program(words).stdout:
            return False
    return True


async def _fetch(folder: Path) -> Path:
    """The packages, unpacked; by lists and sources of our own, from where the release comes."""
    apt = folder / "apt"
    for name in ("lists/partial", "cache/archives/partial", "sources"):
        (apt / name).mkdir(parents=True)
    programs = PathPrograms()
    wanted = ("Created-By: Packages", f"Release: {RELEASE}", "Component: main")
    listed = await programs.run_program(
        # Also of a machine that has fetched no lists yet.
        *("apt-get", "indextargets", "--no-release-info", "--format", "$(REPO_URI)", *wanted)
    )
    origins = listed.stdout.decode().split()
    if not origins:
        raise EngineError(
            f"This machine's QEMU has no drives with FDP, and its apt has no source of {RELEASE}.",
            f"Install QEMU 9.1 or newer as {PROGRAM}.",
        )
    source = f"deb [signed-by={KEYRING}] {origins[0]} {RELEASE}-backports main\n"
    (apt / "sources/backports.list").write_text(source, encoding="utf-8")
    options = (
        *("-o", "APT::Sandbox::User=root", "-o", "Dir::Etc::sourcelist=/dev/null"),
        *("-o", f"Dir::Etc::sourceparts={apt}/sources", "-o", f"Dir::State::lists={apt}/lists"),
        *("-o", f"Dir::Cache={apt}/cache", "-q"),
    )
    names = [f"{name}/{RELEASE}-backports" for name in PACKAGES]
    for words in (("update",), ("download", *names)):
        ended = await programs.run_program(
            "apt-get", *options, *words, cwd=apt, limit_s=LISTS_LIMIT_S
        )
        if ended.exit_code:
            hint = "See that the machine's source of packages has backports."
            raise EngineError(f"QEMU cannot be fetched: {ended.summary_line}.", hint)
    made = folder / "qemu"
    for package in sorted(apt.glob("*.deb")):
        await programs.run_program("dpkg-deb", "-x", str(package), str(made))
    return made


def main() -> int:
    """Fetch it if it is needed and not there yet; where it cannot be had, 1 if CI is set."""
    try:
        print(*asyncio.run(drive_qemu()))
    except EngineError as fault:
        print(f"{fault}\nThe tests of drives that count are skipped.", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
