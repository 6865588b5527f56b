"""What guests boot from is made once, of the right parts, and every failure says what to do."""

from __future__ import annotations

import asyncio
import lzma
import os
import secrets
import stat
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.core.host import HostSpec, HostTransport
from iolab.errors import EngineError
from iolab.guests.kit.build import GuestKit, NodeKitPaths, build_guest_kit, install_kit_on_node
from iolab.guests.kit.image import KernelCompression
from iolab.hosts.connect import CommandHost, LocalHost
from iolab.hosts.kit_cache import TOKEN
from tests.guests.cpio import read_newc
from tests.guests.kernels import bz_image, elf_kernel, module, packed
from tests.guests.kit_bench import APART, META, PACKAGE, RELEASE, KitBench
from tests.needs import ROOT, require

KERNEL = elf_kernel()


@pytest.fixture
def bench(tmp_path: Path) -> KitBench:
    return KitBench(tmp_path)


def initrd_of(kit: GuestKit) -> dict[str, tuple[int, bytes]]:
    return {entry.name: (entry.mode, entry.content) for entry in read_newc(kit.initrd.read_bytes())}


def test_what_mke2fs_says_is_told(bench: KitBench) -> None:
    bench.tell("mke2fs fails", "mke2fs: invalid option -- 'd'\n")
    with pytest.raises(EngineError, match="invalid option") as caught:
        bench.kit()
    assert "e2fsprogs 1.43" in caught.value.hint


def test_a_kit_is_made_of_the_kernel_the_agent_and_the_tools(bench: KitBench) -> None:
    kit = bench.kit()
    assert kit.release == RELEASE
    assert kit.folder.name == f"guest-{RELEASE}-{kit.digest[:16]}"
    assert kit.kernel.read_bytes() == KERNEL
    files = initrd_of(kit)
    assert files["init"] == (0o100755, bench.agent.read_bytes())
    assert files["modules/order"][1] == (
        b"virtio_ring.ko\nvirtio.ko\nvirtio_blk.ko\nvirtio_console.ko\n"
    )
    assert files["modules/virtio.ko"][1] == module("virtio_ring")
    assert all(stat.S_ISDIR(files[name][0]) for name in ("dev", "proc", "sys", "modules"))
    tools = kit.tools.read_text().splitlines()
    assert "usr/bin/fio" in tools
    assert str(bench.library).lstrip("/") in tools


def test_a_kit_is_made_once(bench: KitBench) -> None:
    first = bench.kit()
    assert bench.kit() == first
    assert bench.count("apt-get", "download") == 1
    (said,) = bench.said
    assert f"{PACKAGE} 6.1.5-1" in said
    assert bench.left == [first.folder.name]


def test_two_sessions_make_it_once(bench: KitBench) -> None:
    async def both() -> list[GuestKit]:
        making = (
            build_guest_kit(bench.said.append, build_environment=bench.shop) for _ in range(2)
        )
        return list(await asyncio.gather(*making))

    first, second = asyncio.run(both())
    assert first == second
    assert bench.count("apt-get", "download") == 1
    assert sum("another session" in said for said in bench.said) == 1


def test_other_parts_are_another_kit(bench: KitBench) -> None:
    digests = {bench.kit().digest}
    bench.agent.write_bytes(b"\x7fELF another agent")
    digests.add(bench.kit().digest)
    bench.library.write_bytes(b"another library")
    digests.add(bench.kit().digest)
    bench.tell("meta", META.replace("6.1.5-1", "6.1.6-1"))
    digests.add(bench.kit().digest)
    own = bench.folder / "own.deb"
    own.write_bytes(b"one")
    digests.add(bench.kit(str(own)).digest)
    own.write_bytes(b"two")
    digests.add(bench.kit(str(own)).digest)
    assert len(digests) == 6


def test_modules_in_a_package_of_their_own_are_fetched_too(bench: KitBench) -> None:
    bench.tell("image", APART)
    bench.kit()
    assert any(call.endswith(f"download {PACKAGE} linux-modules-{RELEASE}") for call in bench.calls)


def test_a_kernel_may_lie_beside_its_modules(bench: KitBench) -> None:
    image = bench.told / "tree" / "boot" / f"vmlinuz-{RELEASE}"
    image.rename(bench.told / "tree" / "lib" / "modules" / RELEASE / "vmlinuz")
    assert bench.kit().release == RELEASE


def test_modules_may_be_packed(bench: KitBench) -> None:
    bench.remove_module("block/virtio_blk.ko")
    bench.put_module("block/virtio_blk.ko.xz", lzma.compress(module("virtio")))
    bench.remove_module("char/virtio_console.ko")
    bench.put_module("char/virtio_console.ko.zst", b"(\xb5/\xfd" + module("virtio"))
    files = initrd_of(bench.kit())
    assert files["modules/virtio_blk.ko"][1] == module("virtio")
    assert files["modules/virtio_console.ko"][1] == module("virtio")


def test_where_apt_has_no_lists_ours_are_fetched_once(bench: KitBench) -> None:
    bench.untell("system knows")
    first = bench.kit()
    assert bench.said[0] == "fetching the lists of packages"
    assert bench.kit() == first
    assert bench.count("apt-get", "update") == 1


def test_where_the_mirror_has_dropped_what_old_lists_name_ours_are_fetched(bench: KitBench) -> None:
    bench.tell("gone", "")
    bench.kit()
    assert bench.count("apt-get", "update") == 1


@pytest.mark.parametrize(("program", "magic"), [("lz4", b"\x02!L\x18"), ("zstd", b"(\xb5/\xfd")])
def test_a_kernel_that_a_program_unpacks(bench: KitBench, program: str, magic: bytes) -> None:
    bench.put_kernel(bz_image(packed(KernelCompression.LZ4, magic + KERNEL)))
    assert bench.kit().kernel.read_bytes() == KERNEL
    bench.agent.write_bytes(b"another")
    bench.remove(program)
    with pytest.raises(EngineError, match=f"are made with {program}, which") as caught:
        bench.kit()
    assert f"apt-get install {program}`" in caught.value.hint


@pytest.mark.parametrize(
    ("missing", "message", "packages"),
    [
        (("apt-get", "apt-cache"), "apt-cache and apt-get", "apt"),
        (("fio",), "fio", "fio"),
        (("apt-get", "fio"), "apt-get and fio", "apt fio"),
        (("dpkg-deb",), "dpkg-deb", "dpkg"),
        (("mke2fs",), "mke2fs", "e2fsprogs"),
        (("dpkg-deb", "mke2fs"), "dpkg-deb and mke2fs", "dpkg e2fsprogs"),
    ],
)
def test_all_missing_programs_are_named_at_once(
    bench: KitBench, missing: tuple[str, ...], message: str, packages: str
) -> None:
    for program in missing:
        bench.remove(program)
    with pytest.raises(EngineError, match=f"made with {message}, which this machine") as caught:
        bench.kit()
    assert f"`apt-get install {packages}`" in caught.value.hint
    assert bench.left == []


def test_without_apt_the_users_own_package_still_serves(bench: KitBench) -> None:
    bench.remove("apt-get")
    bench.remove("apt-cache")
    own = bench.folder / "own.deb"
    own.touch()
    assert bench.kit(str(own)).release == RELEASE


def test_without_the_network_it_is_told(bench: KitBench) -> None:
    bench.tell("offline", "")
    with pytest.raises(EngineError, match=rf"cannot fetch {PACKAGE} .*404") as caught:
        bench.kit()
    assert "reaches its package mirror" in caught.value.hint
    bench.untell("system knows")
    with pytest.raises(EngineError, match=r"Temporary failure resolving"):
        bench.kit()
    assert bench.left == []


def test_an_apt_that_knows_no_kernel_is_told(bench: KitBench) -> None:
    bench.tell("meta", "")
    with pytest.raises(EngineError, match=r"No source .* any of linux-image-cloud-amd64") as caught:
        bench.kit()
    assert "`kernel` in [vm]" in caught.value.hint


def test_a_package_that_is_broken_is_told(bench: KitBench) -> None:
    bench.tell("dpkg-deb fails", "dpkg-deb: error: 'x.deb' is not a Debian format archive\n")
    with pytest.raises(EngineError, match=rf"{PACKAGE}_.*no Debian package"):
        bench.kit()
    own = bench.folder / "own.deb"
    own.touch()
    with pytest.raises(EngineError, match=r"own\.deb is no Debian package") as caught:
        bench.kit(str(own))
    assert "Fetch it again" in caught.value.hint
    with pytest.raises(EngineError, match="no kernel package at"):
        bench.kit(str(bench.folder / "none.deb"))
    assert bench.left == []


def test_a_package_without_a_kernel_is_told(bench: KitBench) -> None:
    (bench.told / "tree" / "boot" / f"vmlinuz-{RELEASE}").unlink()
    with pytest.raises(EngineError, match="holds 0 kernels"):
        bench.kit()


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (b"not a kernel", "it has no Linux boot header"),
        (
            bz_image(packed(KernelCompression.GZIP, elf_kernel(note=1))),
            r"no entry for direct boot \(CONFIG_",
        ),
    ],
)
def test_a_kernel_that_no_guest_boots_is_told(bench: KitBench, image: bytes, reason: str) -> None:
    bench.put_kernel(image)
    with pytest.raises(EngineError, match=f"cannot boot the kernel in {PACKAGE}.*{reason}"):
        bench.kit()


def test_a_kernel_without_the_modules_is_told(bench: KitBench) -> None:
    bench.remove_module("block/virtio_blk.ko")
    with pytest.raises(EngineError, match="it has no virtio_blk"):
        bench.kit()
    bench.put_module("block/virtio_blk.ko", b"rubbish")
    with pytest.raises(EngineError, match=r"virtio_blk\.ko is no module"):
        bench.kit()


@pytest.mark.parametrize("program", ["lz4", "mke2fs", "dpkg-deb"])
def test_a_full_disk_is_told(bench: KitBench, program: str) -> None:
    bench.put_kernel(bz_image(packed(KernelCompression.LZ4, b"\x02!L\x18" + KERNEL)))
    bench.tell(f"{program} fails", f"{program}: x: No space left on device\n")
    with pytest.raises(EngineError, match="no room left in") as caught:
        bench.kit()
    assert "XDG_CACHE_HOME" in caught.value.hint
    assert bench.left == []


def test_a_fio_that_guests_cannot_run_is_told(bench: KitBench) -> None:
    bench.tell("libraries", "\tlibaio.so.1 => not found\n")
    with pytest.raises(EngineError, match=r"fio at .* lacks libaio\.so\.1"):
        bench.kit()
    (bench.bin / "fio").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(EngineError, match="is a script or"):
        bench.kit()


def test_another_kind_of_machine_is_told(bench: KitBench) -> None:
    shop = replace(bench.shop, machine="aarch64")
    with pytest.raises(EngineError, match="x86_64 alone, and this machine is aarch64") as caught:
        asyncio.run(build_guest_kit(print, build_environment=shop))
    assert "guests that exist already" in caught.value.hint


def test_a_program_that_hangs_is_killed_when_the_session_is_cancelled(bench: KitBench) -> None:
    bench.tell("mke2fs hangs", "")

    async def cancelled() -> int:
        making = asyncio.ensure_future(build_guest_kit(print, build_environment=bench.shop))
        pid = await asyncio.to_thread(_appears, bench.told / "pid")
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)
        return pid

    pid = asyncio.run(cancelled())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert bench.left == []


def _appears(path: Path) -> int:
    while not (path.exists() and path.read_text()):
        time.sleep(0.02)
    return int(path.read_text())


HIDDEN = 'mount -t tmpfs none "$0" && exec "$@"'
"""What stands before an agent that shall not see a folder of ours."""


@pytest.fixture
def kit(tmp_path: Path) -> GuestKit:
    folder = tmp_path / "cache" / "guest-6.1-0123456789abcdef"
    folder.mkdir(parents=True)
    for name, size in (("vmlinux", 5000), ("initrd", 10), ("tools.img", 3 << 20)):
        (folder / name).write_bytes(secrets.token_bytes(size))
    (folder / TOKEN).write_text(secrets.token_hex(32))
    files = (folder / "vmlinux", folder / "initrd", folder / "tools.img")
    return GuestKit(*files, "6.1", "0123456789abcdef", folder)


def test_this_machine_uses_the_kit_itself(kit: GuestKit) -> None:
    said: list[str] = []
    host = LocalHost(HostSpec("local", HostTransport.LOCAL))
    found = asyncio.run(install_kit_on_node(host, kit, "/scratch", said.append))
    assert found == NodeKitPaths(str(kit.kernel), str(kit.initrd), str(kit.tools))
    assert said == []


@pytest.mark.long
@pytest.mark.e2e
@pytest.mark.parametrize("sees", [True, False])
def test_a_node_gets_a_copy_unless_it_sees_the_kit(
    tmp_path: Path, kit: GuestKit, *, sees: bool
) -> None:
    hiding = ("unshare", "--mount", "sh", "-c", HIDDEN, str(kit.folder))
    require(*(() if sees else (ROOT,)))
    command = ("env",) if sees else hiding
    host = CommandHost(HostSpec("far", HostTransport.COMMAND, command_prefix=command))
    scratch = tmp_path / "scratch"
    said: list[str] = []

    async def session() -> NodeKitPaths:
        await host.connect()
        try:
            return await install_kit_on_node(host, kit, str(scratch), said.append)
        finally:
            await host.close()

    found = asyncio.run(session())
    if sees:
        assert found.tools == str(kit.tools)
        assert not scratch.exists()
        return
    assert ["to far" in one for one in said] == [True]
    there = (found.kernel, found.initrd, found.tools)
    for path, mine in zip(there, (kit.kernel, kit.initrd, kit.tools), strict=True):
        assert Path(path).parent == scratch / f"kit-{kit.folder.name}"
        assert Path(path).read_bytes() == mine.read_bytes()
