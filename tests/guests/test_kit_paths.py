"""A kit on its node: where it lies, or a copy."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

from iolab.core.host import HostKind, HostSpec
from iolab.guests.kit.build import GuestKit, KitPaths, kit_paths
from iolab.hosts.builds import TOKEN
from iolab.hosts.connect import CommandHost, LocalHost
from tests.needs import ROOT, require

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
    host = LocalHost(HostSpec("local", HostKind.LOCAL))
    found = asyncio.run(kit_paths(host, kit, "/scratch", said.append))
    assert found == KitPaths(str(kit.kernel), str(kit.initrd), str(kit.tools))
    assert said == []


@pytest.mark.e2e
@pytest.mark.parametrize("sees", [True, False])
def test_a_node_gets_a_copy_unless_it_sees_the_kit(
    tmp_path: Path, kit: GuestKit, *, sees: bool
) -> None:
    hiding = ("unshare", "--mount", "sh", "-c", HIDDEN, str(kit.folder))
    require(*(() if sees else (ROOT,)))
    command = ("env",) if sees else hiding
    host = CommandHost(HostSpec("far", HostKind.COMMAND, command=command))
    scratch = tmp_path / "scratch"
    said: list[str] = []

    async def session() -> KitPaths:
        await host.connect()
        try:
            return await kit_paths(host, kit, str(scratch), said.append)
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
