"""Debian packages that kits of guests are made of, and the programs that find and unpack them."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import field
from msgspec.structs import replace

from iolab.errors import EngineError
from iolab.hosts.process import run_local_process
from iolab.record import Record
from iolab.text import excerpt, list_text

SYSTEM_PROGRAMS: Final = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where mke2fs lies, and users who are not root do not look."""

PACKAGES: Final = {
    "apt-get": "apt",
    "apt-cache": "apt",
    "dpkg-deb": "dpkg",
    "mke2fs": "e2fsprogs",
    "fio": "fio",
    "ldd": "libc-bin",
    "lz4": "lz4",
    "zstd": "zstd",
}
"""The Debian package with each program."""

ANSWER_LIMIT_S: Final = 60.0
"""For what needs no network: seconds at most, more on a machine with a loaded disk."""

OUTPUT_LIMIT_BYTES: Final = 16 << 20
"""What apt tells of three packages has some 10 kB."""

MESSAGE_CHARACTERS_MAX: Final = 300
"""Characters of what a program said that go into a sentence."""

_DISK_FULL_TEXT: Final = b"No space left on device"

META_PACKAGES: Final = ("linux-image-cloud-amd64", "linux-image-kvm", "linux-image-virtual")
"""What depends on the newest kernel for guests: Debian's, then Ubuntu's two. Most wanted first."""

SYSTEM_LISTS: Final = Path("/var/lib/apt/lists")

LISTS_LIMIT_S: Final = 300.0
"""25 MB over a slow line."""

FETCH_LIMIT_S: Final = 900.0
"""30 MB; Ubuntu's modules are another 30 MB."""

NAME_PACKAGE_HINT: Final = "name a kernel package that you have with `kernel` in [vm]"
_NAME: Final = r"linux-(?:image|modules|binary)-(?:unsigned-)?\d[\w.+~-]*"
_WITH_VERSION: Final = re.compile(rf"({_NAME})(?:\s*\(=\s*([^)\s]+)\s*\))?")

_SETTINGS: Final = b"#clear APT::Update;\n"
"""What a system does after its own update is not for ours."""

_UNSIGNED: Final = "-unsigned"


class ProgramExit(Record):
    """How a program ended: its exit code, and all that it printed."""

    exit_code: int
    stdout: bytes
    stderr: bytes

    @property
    def summary_line(self) -> str:
        """The line of its errors that tells most, else of what it printed, for a sentence."""
        lines = [line.strip() for line in (self.stderr or self.stdout).splitlines() if line.strip()]
        grave = [line for line in lines if line.startswith((b"E:", b"dpkg-deb: error"))]
        chosen = (grave or lines or [b"it does not say why"])[-1 if not grave else 0]
        return excerpt(chosen, MESSAGE_CHARACTERS_MAX).rstrip(".")


class PathPrograms(Record):
    """The programs on the environment's PATH, then in `extra_directories`."""

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    extra_directories: str = SYSTEM_PROGRAMS

    def require_programs(self, *names: str) -> None:
        """EngineError that names all of these that are missing, and what to install."""
        missing = [name for name in names if self._find_program(name) is None]
        if missing:
            packages = " ".join(sorted({PACKAGES[name] for name in missing}))
            raise EngineError(
                f"Guests are made with {list_text(missing)}, which this machine does not have.",
                f"Install what is missing here (`apt-get install {packages}`) and run again.",
            )

    def program_path(self, name: str) -> Path:
        """Where a program lies. EngineError when it is missing."""
        self.require_programs(name)
        return Path(self._find_program(name) or name)

    async def run_program(
        self, name: str, *words: str, cwd: Path | None = None, limit_s: float = ANSWER_LIMIT_S
    ) -> ProgramExit:
        """Run a program to its end, whatever its code.

        EngineError when it is missing, does not start or takes longer than `limit_s`; OSError when
        it says that the disk is full.
        """
        path = self.program_path(name)
        try:
            code, output, errors = await run_local_process(
                (str(path), *words),
                limit_s=limit_s,
                output_bytes=OUTPUT_LIMIT_BYTES,
                environment={**self.environment, "LC_ALL": "C"},
                cwd=cwd,
            )
        except TimeoutError:
            raise EngineError(
                f"{name} did not end within {limit_s:g} s.",
                "See what holds it up by running it by hand, and run again.",
            ) from None
        except OSError as fault:
            hint = f"Reinstall it (`apt-get install --reinstall {PACKAGES[name]}`) and run again."
            raise EngineError(
                f"{name} at {path} does not start ({fault.strerror}).", hint
            ) from None
        if code and _DISK_FULL_TEXT in errors:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return ProgramExit(code, output, errors)

    def _find_program(self, name: str) -> str | None:
        searched = (self.environment.get("PATH", os.defpath), self.extra_directories)
        return shutil.which(name, path=":".join(folders for folders in searched if folders))


class KernelPackage(Record):
    """An available kernel package.

    It comes from apt by `package_lists` (None: the system's), or is the file `package_file`.
    """

    name: str
    version: str
    package_lists: Path | None = None
    package_file: Path | None = None


class KernelTree(Record):
    """An unpacked kernel: its image, and the folder of its modules (which may not exist)."""

    release: str
    image: Path
    modules: Path


class KernelUnavailableError(EngineError):
    """apt knows no kernel for guests, or its mirror does not have what apt's lists name."""


class AptKernelSource(Record):
    """The machine's apt, and `own_lists`, a folder for lists of our own."""

    programs: PathPrograms
    own_lists: Path
    system_lists: Path = SYSTEM_LISTS

    async def find_newest_kernel_package(self) -> KernelPackage:
        """The newest kernel for guests, by the newer of the system's lists and ours.

        KernelUnavailableError when neither knows one.
        """
        sources: list[Path | None] = [None]
        if _modification_time_s_or_zero(self.own_lists / "lists") > _modification_time_s_or_zero(
            self.system_lists
        ):
            sources = [self.own_lists, None]
        for lists in sources:
            if offer := await self._find_newest_package(lists):
                return offer
        raise KernelUnavailableError(
            f"apt here knows none of {', '.join(META_PACKAGES)}.",
            f"Run `apt-get update` with a source that has one, or {NAME_PACKAGE_HINT}.",
        )

    async def update_lists_and_find_kernel_package(self) -> KernelPackage:
        """The same from new lists of our own. KernelUnavailableError when that does not help."""
        for folder in (
            self.own_lists / "lists" / "partial",
            self.own_lists / "cache/archives/partial",
        ):
            folder.mkdir(parents=True, exist_ok=True)
        settings = self.own_lists / "apt.conf"
        settings.write_bytes(_SETTINGS)
        words = ("-c", str(settings), *_apt_options(self.own_lists), "-qq", "update")
        ended = await self.programs.run_program("apt-get", *words, limit_s=LISTS_LIMIT_S)
        # One of many sources may fail without need of it.
        if offer := await self._find_newest_package(self.own_lists):
            (self.own_lists / "lists").touch()
            return offer
        if ended.exit_code or ended.stderr:
            raise KernelUnavailableError(
                f"apt-get cannot fetch its lists ({ended.summary_line}).", _package_sources_hint()
            )
        raise KernelUnavailableError(
            f"No source of this machine's apt has any of {', '.join(META_PACKAGES)}.",
            f"Add one that does, or {NAME_PACKAGE_HINT}.",
        )

    async def download(self, package: KernelPackage, folder: Path) -> tuple[Path, ...]:
        """The package, and that with its modules where they are apart, below `folder`.

        KernelUnavailableError when the mirror does not give it.
        """
        if package.package_file is not None:
            return (package.package_file,)
        shown = await self._run_apt_cache_show(package.package_lists, package.name)
        parts = [package.name]
        for stanza in parse_stanzas(shown.stdout.decode("utf-8", "replace")):
            wanted = stanza.get("Depends", "")
            parts += [name for name, _ in _WITH_VERSION.findall(wanted) if name not in parts]
        words = (*_apt_options(package.package_lists), "-q", "download", *parts)
        ended = await self.programs.run_program(
            "apt-get", *words, cwd=folder, limit_s=FETCH_LIMIT_S
        )
        packages = await asyncio.to_thread(lambda: tuple(sorted(folder.glob("*.deb"))))
        if ended.exit_code or len(packages) < len(parts):
            raise KernelUnavailableError(
                f"apt-get cannot fetch {list_text(parts)} ({ended.summary_line}).",
                _package_sources_hint(),
            )
        return packages

    async def _find_newest_package(self, lists: Path | None) -> KernelPackage | None:
        ended = await self._run_apt_cache_show(lists, *META_PACKAGES)
        offer = newest_kernel_package(ended.stdout.decode("utf-8", "replace"))
        return offer and replace(offer, package_lists=lists)

    async def _run_apt_cache_show(self, lists: Path | None, *names: str) -> ProgramExit:
        words = (*_apt_options(lists), "show", "--no-all-versions", *names)
        return await self.programs.run_program("apt-cache", *words)


def parse_stanzas(text: str) -> Iterator[Mapping[str, str]]:
    """The paragraphs of what apt and dpkg print, by field; lines that go on are left out."""
    for paragraph in re.split(r"\n\s*\n", text):
        rows = (line.partition(":") for line in paragraph.splitlines() if line[:1].strip())
        fields = {name: content.strip() for name, mark, content in rows if mark}
        if fields:
            yield fields


def newest_kernel_package(apt_cache_output: str) -> KernelPackage | None:
    """The kernel that the most wanted of the shown meta packages depends on; None without one."""
    by_name = {stanza.get("Package", ""): stanza for stanza in parse_stanzas(apt_cache_output)}
    for meta in META_PACKAGES:
        stanza = by_name.get(meta, {})
        kernels = [
            (name, version)
            for name, version in _WITH_VERSION.findall(stanza.get("Depends", ""))
            if name.startswith("linux-image-")
        ]
        if kernels:
            name, version = min(kernels, key=lambda kernel: kernel[0].endswith(_UNSIGNED))
            return KernelPackage(name, version or stanza.get("Version", ""))
    return None


async def read_kernel_package_file(programs: PathPrograms, path: Path) -> KernelPackage:
    """What a package file of the user's is. EngineError when it is none."""
    if not await asyncio.to_thread(path.is_file):
        raise EngineError(f"There is no kernel package at {path}.", "Correct `kernel` in [vm].")
    ended = await programs.run_program("dpkg-deb", "-f", str(path), "Package", "Version")
    fields = next(parse_stanzas(ended.stdout.decode("utf-8", "replace")), {})
    if ended.exit_code or not fields.keys() >= {"Package", "Version"}:
        raise _not_a_package_error(path, ended)
    return KernelPackage(fields["Package"], fields["Version"], package_file=path)


async def unpack_kernel(
    programs: PathPrograms, packages: Sequence[Path], folder: Path
) -> KernelTree:
    """Unpack packages into `folder`. EngineError when one is damaged or holds no kernel."""
    for package in packages:
        ended = await programs.run_program("dpkg-deb", "-x", str(package), str(folder))
        if ended.exit_code:
            raise _not_a_package_error(package, ended)
    below = next((b for b in ("lib", "usr/lib") if (folder / b / "modules").is_dir()), "lib")
    modules = folder / below / "modules"
    images = _kernel_image_by_release(folder, modules)
    if len(images) != 1:
        names = list_text(package.name for package in packages)
        raise EngineError(
            f"{names} holds {len(images)} kernels (boot/vmlinuz-*, modules/*/vmlinuz) and not one.",
            "Name a package such as linux-image-6.1.0-56-cloud-amd64 with `kernel` in [vm].",
        )
    ((release, image),) = images.items()
    return KernelTree(release, image, modules / release)


def _kernel_image_by_release(folder: Path, modules: Path) -> dict[str, Path]:
    """Unpacked kernels by their release; Debian puts them beside their modules since Linux 7.1."""
    images = {path.name.removeprefix("vmlinuz-"): path for path in folder.glob("boot/vmlinuz-*")}
    return images | {path.parent.name: path for path in modules.glob("*/vmlinuz")}


def _not_a_package_error(path: Path, ended: ProgramExit) -> EngineError:
    return EngineError(
        f"{path.name} is no Debian package that can be unpacked ({ended.summary_line}).",
        f"Fetch it again, or {NAME_PACKAGE_HINT}.",
    )


def _apt_options(package_lists: Path | None) -> tuple[str, ...]:
    """Who fetches as root hands that to a user who cannot write in a folder of root's."""
    own = ("-o", "APT::Sandbox::User=root")
    if package_lists is None:
        return own
    return (
        *own,
        "-o",
        f"Dir::State::lists={package_lists}/lists",
        "-o",
        f"Dir::Cache={package_lists}/cache",
    )


def _modification_time_s_or_zero(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _package_sources_hint() -> str:
    return f"See that this machine reaches its package mirror, or {NAME_PACKAGE_HINT}."
