"""What guests boot from: kernel, first file system and disk of tools, made once on this machine.

The kernel is the distribution's for clouds, taken from its package; the first file system holds our
agent as its init and the few modules that it needs; the tools are this machine's own.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from iolab.errors import EngineError
from iolab.guests.kit.debian import (
    NAME_PACKAGE_HINT,
    AptKernelSource,
    KernelPackage,
    KernelTree,
    KernelUnavailableError,
    PathPrograms,
    read_kernel_package_file,
    unpack_kernel,
)
from iolab.guests.kit.image import (
    DIRECTORY,
    PROGRAM,
    PROGRAMS,
    REGULAR_FILE,
    CpioEntry,
    FioWithLibraries,
    KernelCompression,
    cpio_archive,
    detect_compression,
    find_fio,
    is_kernel_module_file,
    kernel_payload,
    supports_pvh_boot,
    wanted_modules_in_load_order,
    write_tools_image,
)
from iolab.guests.kit.image import decompress_content as unpacked_bytes
from iolab.hosts.host import Host
from iolab.hosts.kit_cache import (
    DIGEST_SHOWN,
    TOKEN,
    KitCache,
    KitRecipe,
    Notify,
    copy_jars_to_host,
    is_file_visible_on_host,
    kit_cache_folder,
)
from iolab.hosts.push import agent_binary
from iolab.record import Record

MACHINE: Final = "x86_64"
"""The kind of machine that guests can be made on and for."""

MODULES_FOLDER: Final = "modules"
LOAD_ORDER_FILE: Final = f"{MODULES_FOLDER}/order"
"""Names of the files beside it, one a line, in the order in which they are loaded."""

KERNEL: Final = "vmlinux"
INITRD: Final = "initrd"
TOOLS: Final = "tools.img"
RELEASE: Final = "release"

_KIT_LAYOUT: Final = "1"
"""Counts changes of how kits are made that their parts do not show."""

_MODULES_LIMIT: Final = 50
"""More than a guest can need; it takes eight."""


class GuestKit(Record):
    """A kit on this machine; `release` is the kernel's, `digest` tells kits apart."""

    kernel: Path
    initrd: Path
    tools: Path
    release: str
    digest: str
    folder: Path


class NodeKitPaths(Record):
    """The same files on a node."""

    kernel: str
    initrd: str
    tools: str


class KitBuildEnvironment(Record):
    """Where and with what kits of guests are made; `agent` None for the packaged one."""

    cache: Path
    programs: PathPrograms
    apt: AptKernelSource
    agent: Path | None = None
    machine: str = MACHINE


def default_kit_build_environment() -> KitBuildEnvironment:
    """The one of this user and this machine."""
    asked = dict(os.environ)
    cache = kit_cache_folder(asked)
    programs = PathPrograms(asked)
    return KitBuildEnvironment(
        cache, programs, AptKernelSource(programs, cache.parent / "apt"), machine=platform.machine()
    )


async def build_guest_kit(
    notify: Notify, *, package: str = "", build_environment: KitBuildEnvironment | None = None
) -> GuestKit:
    """The kit with the newest kernel that apt offers, or with that of the `package` file.

    Made if it is not in the user's cache yet; `notify` is told of what takes long. EngineError when
    it cannot be made, with what to install.
    """
    used = build_environment or default_kit_build_environment()
    if used.machine != MACHINE:
        raise EngineError(
            f"Guests can be made on {MACHINE} alone, and this machine is {used.machine}.",
            f"Run the session from an {MACHINE} machine, or use guests that exist already.",
        )
    if package:
        offer = await read_kernel_package_file(used.programs, Path(package))
        return await _find_or_build_kit(used, offer, notify)
    used.programs.require_programs("apt-cache", "apt-get", "fio", "ldd")
    try:
        return await _find_or_build_kit(used, await used.apt.find_newest_kernel_package(), notify)
    except KernelUnavailableError:
        notify("fetching the lists of packages")
        return await _find_or_build_kit(
            used, await used.apt.update_lists_and_find_kernel_package(), notify
        )


async def install_kit_on_node(
    host: Host, kit: GuestKit, directory: str, notify: Notify
) -> NodeKitPaths:
    """The kit on a node: where it lies if the node sees it, else a copy in its scratch folder.

    HostError when the node fails or does not hold what was sent.
    """
    files = (kit.kernel, kit.initrd, kit.tools)
    if await is_file_visible_on_host(host, kit.folder / TOKEN):
        return NodeKitPaths(*map(str, files))
    notify(f"copying what guests boot from to {host.name}")
    return NodeKitPaths(*await copy_jars_to_host(host, files, f"{directory}/kit-{kit.folder.name}"))


async def _find_or_build_kit(
    build_environment: KitBuildEnvironment, package: KernelPackage, notify: Notify
) -> GuestKit:
    tools = await find_fio(build_environment.programs)
    digest = await asyncio.to_thread(_kit_digest, build_environment, package, tools)

    async def build_kit_in_folder(build_folder: Path) -> Path:
        return await _build_kit(build_environment, package, tools, build_folder)

    name = f"guest-{package.name.removeprefix('linux-image-')}-{digest[:DIGEST_SHOWN]}"
    message = (
        f"making what guests boot from, of {package.name} {package.version}, once on this machine"
    )
    folder = await KitCache(build_environment.cache).get_or_build_kit(
        KitRecipe(name, message, build_kit_in_folder), notify
    )
    release = (folder / RELEASE).read_text().strip()
    return GuestKit(folder / KERNEL, folder / INITRD, folder / TOOLS, release, digest, folder)


def _kit_digest(
    build_environment: KitBuildEnvironment, package: KernelPackage, tools: FioWithLibraries
) -> str:
    """Of everything that a kit is made of."""
    agent = build_environment.agent or agent_binary(build_environment.machine)
    files = [agent] if package.package_file is None else [agent, package.package_file]
    contents = (hashlib.sha256(path.read_bytes()).hexdigest() for path in files)
    parts = (_KIT_LAYOUT, package.name, package.version, tools.file_states_digest(), *contents)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


async def _build_kit(
    build_environment: KitBuildEnvironment,
    package: KernelPackage,
    tools: FioWithLibraries,
    build_folder: Path,
) -> Path:
    build_environment.programs.require_programs("dpkg-deb", "mke2fs")
    kit = build_folder / "kit"
    kit.mkdir()
    packages = await build_environment.apt.download(package, build_folder)
    tree = await unpack_kernel(build_environment.programs, packages, build_folder / "tree")
    try:
        await _write_uncompressed_kernel(
            build_environment.programs, tree, build_folder, kit / KERNEL
        )
        modules = await _read_guest_kernel_modules(build_environment.programs, tree, build_folder)
    except ValueError as fault:
        raise EngineError(
            f"Guests cannot boot the kernel in {packages[0].name}: {fault}.",
            f"Take another kernel: {NAME_PACKAGE_HINT}.",
        ) from None
    agent = await asyncio.to_thread(
        (build_environment.agent or agent_binary(build_environment.machine)).read_bytes
    )
    (kit / INITRD).write_bytes(cpio_archive(_initrd_entries(agent, modules)))
    await write_tools_image(build_environment.programs, tools, kit / TOOLS, build_folder)
    (kit / RELEASE).write_text(f"{tree.release}\n")
    return kit


async def _write_uncompressed_kernel(
    programs: PathPrograms, tree: KernelTree, build_folder: Path, target: Path
) -> None:
    """ValueError when the image is none that QEMU starts directly."""
    packed = kernel_payload(await asyncio.to_thread(tree.image.read_bytes))
    kernel = await _decompress_kernel_file(
        programs, packed.compression, packed.content, build_folder / "payload"
    )
    if not supports_pvh_boot(kernel):
        raise ValueError("it has no entry for direct boot (CONFIG_PVH)")
    await asyncio.to_thread(target.write_bytes, kernel)


async def _read_guest_kernel_modules(
    programs: PathPrograms, tree: KernelTree, build_folder: Path
) -> Mapping[str, bytes]:
    """The modules that guests need, unpacked, in the order in which they are loaded."""
    files = sorted(path for path in tree.modules.rglob("*.ko*") if is_kernel_module_file(path.name))
    listing = tree.modules / "modules.builtin"
    built_in = listing.read_text().splitlines() if listing.is_file() else []
    contents: dict[str, bytes] = {}
    for _ in range(_MODULES_LIMIT):
        try:
            return wanted_modules_in_load_order(
                [str(path) for path in files], built_in, contents.__getitem__
            )
        except KeyError as wanted:
            path = Path(wanted.args[0])
            packed = await asyncio.to_thread(path.read_bytes)
            packing = detect_compression(packed)
            if packing is None:
                raise ValueError(f"{path.name} is no module") from None
            contents[str(path)] = await _decompress_kernel_file(
                programs, packing, packed, build_folder / path.name
            )
    raise ValueError(f"it has over {_MODULES_LIMIT} modules that depend on each other")


async def _decompress_kernel_file(
    programs: PathPrograms, compression: KernelCompression, content: bytes, scratch_file: Path
) -> bytes:
    """ValueError when it is damaged; `scratch_file` is written over."""
    if compression not in PROGRAMS:
        return await asyncio.to_thread(unpacked_bytes, compression, content)
    program = PROGRAMS[compression]
    plain = scratch_file.with_name(f"{scratch_file.name}.plain")
    await asyncio.to_thread(scratch_file.write_bytes, content)
    words = (
        (str(scratch_file), str(plain))
        if compression is KernelCompression.LZ4
        else (str(scratch_file), "-o", str(plain))
    )
    ended = await programs.run_program(program, "-d", "-f", "-q", *words)
    if ended.exit_code:
        raise ValueError(f"{program} cannot unpack {scratch_file.name} ({ended.summary_line})")
    return await asyncio.to_thread(plain.read_bytes)


def _initrd_entries(agent: bytes, modules: Mapping[str, bytes]) -> tuple[CpioEntry, ...]:
    names = [f"{name}.ko" for name in modules]
    order = "".join(f"{name}\n" for name in names).encode()
    return (
        *(CpioEntry(folder, DIRECTORY) for folder in ("dev", "proc", "sys", MODULES_FOLDER)),
        CpioEntry("init", PROGRAM, agent),
        CpioEntry(LOAD_ORDER_FILE, REGULAR_FILE, order),
        *(
            CpioEntry(f"{MODULES_FOLDER}/{file}", REGULAR_FILE, content)
            for file, content in zip(names, modules.values(), strict=True)
        ),
    )
