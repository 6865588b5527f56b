"""A real kit of guests: of a kernel package fetched now, looked into with other people's tools."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from iolab.guests.kit.build import GuestKit
from iolab.guests.kit.image import supports_pvh_boot
from iolab.hosts.push import agent_binary
from tests.e2e.guest_sessions import users_kit
from tests.needs import ROOT, require

pytestmark = [pytest.mark.e2e, pytest.mark.long]


@pytest.fixture(scope="module")
def kit() -> GuestKit:
    return users_kit()


def told(*argv: str, content: bytes = b"") -> str:
    return subprocess.run(argv, input=content, capture_output=True, check=True).stdout.decode()


def test_the_kernel_is_one_that_qemu_starts_directly(kit: GuestKit) -> None:
    kernel = kit.kernel.read_bytes()
    assert supports_pvh_boot(kernel)
    assert f"Linux version {kit.release} ".encode() in kernel
    notes = told("readelf", "--notes", "--file-header", str(kit.kernel))
    assert "Advanced Micro Devices X86-64" in notes
    assert "Xen" in notes


def test_the_first_file_system_holds_agent_and_modules(kit: GuestKit) -> None:
    archive = kit.initrd.read_bytes()
    listing = told("cpio", "-tv", "--quiet", content=archive).splitlines()
    names = [line.split()[-1] for line in listing]
    order = told("cpio", "-i", "--to-stdout", "--quiet", "modules/order", content=archive).split()
    assert order == [Path(name).name for name in names if name.endswith(".ko")]
    assert {"virtio_blk.ko", "virtio_console.ko", "virtio_mmio.ko"} <= set(order)
    assert order.index("virtio_ring.ko") < order.index("virtio.ko") < order.index("virtio_blk.ko")
    (init,) = (line for line in listing if line.endswith(" init"))
    assert init.startswith("-rwxr-xr-x")
    assert f" {agent_binary().stat().st_size} " in init


@pytest.fixture(scope="module")
def root(kit: GuestKit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the disk of tools holds."""
    folder = tmp_path_factory.mktemp("root")
    told("debugfs", "-R", f"rdump / {folder}", str(kit.tools))
    return folder


def test_the_disk_of_tools_is_whole(kit: GuestKit, root: Path) -> None:
    told("e2fsck", "-fn", str(kit.tools))
    assert "has_journal" not in told("dumpe2fs", "-h", str(kit.tools))
    assert {"dev", "proc", "sys", "tmp", "run", "usr"} <= {path.name for path in root.iterdir()}
    mine = Path(shutil.which("fio") or "fio").read_bytes()
    assert (root / "usr/bin/fio").read_bytes() == mine


def test_the_tools_run_in_a_root_of_their_own(root: Path) -> None:
    """As in a guest, where nothing else is."""
    require(ROOT)
    job = ("--name=a", "--ioengine=null", "--size=1M", "--thread", "--numjobs=2", "--minimal")
    said = told("chroot", str(root), "/usr/bin/fio", *job)
    assert len(said.splitlines()) == 2
