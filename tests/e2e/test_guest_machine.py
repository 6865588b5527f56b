"""The machine of a guest in a real QEMU that never runs it: its disks, its bounds, its counters.

I/O is made in QEMU itself, as if the guest had asked for it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from iolab.core.limits import REPLY_BYTES_MAX
from iolab.errors import HostError
from iolab.guests.blocks import (
    COUNTERS,
    HISTOGRAM_ARGUMENTS,
    HISTOGRAMS,
    GuestDiskCounts,
    block_counts_between,
    parse_block_stats,
)
from iolab.guests.copies import DiskReplica, nbd_copy_command, nbd_server_command
from iolab.guests.guest import Accelerator, GuestDiskKind, GuestSettings
from iolab.guests.machine import (
    QemuMachine,
    Replica,
    agent_socket_file_name,
    monitor_socket_file_name,
    qemu_argv,
)
from iolab.guests.qemu import QmpClient
from iolab.hosts.message import HostLostError

pytestmark = pytest.mark.e2e

PATIENCE_S: Final = 60.0
DISK_BYTES: Final = 4 << 20
LOOPBACK: Final = "127.0.0.1"
SETTINGS: Final = GuestSettings(vcpus=1, memory_bytes=64 << 20, disk_bytes=DISK_BYTES)
MODELLED: Final = replace(SETTINGS, disk=GuestDiskKind.MODELLED, latency_ns=10_000_000)


@pytest.fixture
def folder() -> Iterator[Path]:
    """On disk, because /tmp may be in memory, by a name that QEMU could misread."""
    with tempfile.TemporaryDirectory(prefix="iolab test, a=b,", dir="/var/tmp") as name:
        yield Path(name)


def machine(folder: Path, settings: GuestSettings, **more: Any) -> QemuMachine:
    """A machine whose kernel is a header and zeros."""
    kernel = bytearray(64 << 10)
    kernel[0x202:0x208] = b"HdrS\x0c\x02"
    kernel[0x22C:0x230] = b"\xff\xff\xff\x7f"
    (folder / "kernel").write_bytes(kernel)
    (folder / "tools.img").write_bytes(bytes(64 << 10))
    image = None
    if settings.disk is GuestDiskKind.IMAGE:
        image = str(folder / "image")
        Path(image).write_bytes(os.urandom(DISK_BYTES))
    return QemuMachine(
        guest="vm01",
        settings=settings,
        accelerator=Accelerator.TCG,
        kernel=str(folder / "kernel"),
        initrd=str(folder / "kernel"),
        tools=str(folder / "tools.img"),
        image=image,
        tsc_khz=1_000_000,
        **more,
    )


def image_of(built: QemuMachine) -> bytes:
    return Path(str(built.image)).read_bytes()


@asynccontextmanager
async def started(argv: Sequence[str], folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=folder, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def halted(built: QemuMachine, folder: Path) -> AsyncIterator[QmpClient]:
    """A QEMU that waits for ever before the first instruction, with its histograms begun."""
    async with started((*qemu_argv(built, "qemu-system-x86_64"), "-S"), folder) as process:
        reader, writer = await connected(folder / monitor_socket_file_name(built.guest), process)
        monitor = await QmpClient.open(built.guest, reader, writer)
        await monitor.run_command(HISTOGRAMS, HISTOGRAM_ARGUMENTS, deadline_s=PATIENCE_S)
        yield monitor
        await monitor.close()


async def connected(
    path: Path, process: asyncio.subprocess.Process
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection, by a path that may be longer than an address has room for."""
    descriptor = os.open(path.parent, os.O_PATH)
    try:
        while process.returncode is None:
            try:
                short = f"/proc/self/fd/{descriptor}/{path.name}"
                return await asyncio.open_unix_connection(short, limit=REPLY_BYTES_MAX)
            except (FileNotFoundError, ConnectionRefusedError):
                await asyncio.sleep(0.02)
    finally:
        os.close(descriptor)
    said = await process.stderr.read() if process.stderr else b""
    pytest.fail(f"QEMU ended: {said.decode()}")


async def work(monitor: QmpClient, *commands: str) -> None:
    """Commands of qemu-io on the data disk, all of them ended when this returns."""
    await begin(monitor, *commands, "aio_flush")


async def begin(monitor: QmpClient, *commands: str) -> None:
    for command in commands:
        line = {"command-line": f'qemu-io -d data-disk "{command}"'}
        said = await monitor.run_command("human-monitor-command", line, deadline_s=PATIENCE_S)
        assert said == "", said


async def counted(monitor: QmpClient) -> GuestDiskCounts:
    return parse_block_stats("vm01", await monitor.run_command(COUNTERS, deadline_s=PATIENCE_S))


def talk(conversation: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def within_limit() -> None:
        async with asyncio.timeout(2 * PATIENCE_S):
            await conversation()

    asyncio.run(within_limit())


def test_an_image_is_written_and_counted(folder: Path) -> None:
    built = machine(folder, SETTINGS, cpus=(min(os.sched_getaffinity(0)),))

    async def conversation() -> None:
        async with halted(built, folder) as monitor:
            before = await counted(monitor)
            await work(monitor, "aio_write -q -P 0x5a 8192 65536", "aio_read -q 0 4096")
            read, write = block_counts_between("vm01", before, await counted(monitor))
        assert (read.ios, read.bytes, write.ios, write.bytes) == (1, 4096, 1, 65536)
        assert [sum(n for *_, n in counts.bins) for counts in (read, write)] == [1, 1]
        assert image_of(built)[8192 : 8192 + 65536] == b"\x5a" * 65536

    talk(conversation)


def test_memory_is_bound_to_a_numa_node(folder: Path) -> None:
    async def conversation() -> None:
        async with halted(machine(folder, MODELLED, memory_numa_node=0), folder) as monitor:
            answer = await monitor.run_command("query-memdev", deadline_s=PATIENCE_S)
        assert isinstance(answer, list)
        (memory,) = answer
        assert (memory["size"], memory["host-nodes"], memory["policy"]) == (64 << 20, [0], "bind")

    talk(conversation)


def test_a_modelled_disk_takes_its_time_for_each(folder: Path) -> None:
    async def conversation() -> None:
        async with halted(machine(folder, MODELLED), folder) as monitor:
            await work(monitor, *["aio_read -q 0 4096"] * 5)
            read = (await counted(monitor)).read
        assert read.ios == 5
        assert read.total_ns >= 5 * 10_000_000

    talk(conversation)


def test_a_wait_for_the_bound_is_in_the_latency(folder: Path) -> None:
    """15 at once at 10 a second: the last waits a second, less what it took to ask for them."""
    bounded = replace(SETTINGS, iops_limit=10)

    async def conversation() -> None:
        async with halted(machine(folder, bounded), folder) as monitor:
            before = await counted(monitor)
            await begin(monitor, *["aio_read -q 0 4096"] * 15)
            # No flush: QEMU lifts the bound for one.
            while (now := await counted(monitor)).read.ios < 15:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            read, _ = block_counts_between("vm01", before, now)
        assert max(high for _, high, _ in read.bins) > 200_000_000

    talk(conversation)


def test_a_copy_has_all_that_the_image_has(folder: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
    mirror = DiskReplica("vm01", "node-2", Replica(LOOPBACK, port, "vm01-copy1"))
    built = machine(folder, replace(SETTINGS, replicas=2), replicas=(mirror.replica,))
    copy = folder / mirror.image_file_name
    copy.write_bytes(b"")
    os.truncate(copy, DISK_BYTES)

    async def conversation() -> None:
        async with started(nbd_server_command(mirror, str(copy), "qemu-nbd"), folder) as server:
            await listening(port, server)
            async with started(
                nbd_copy_command(mirror, str(built.image), "qemu-img"), folder
            ) as copying:
                assert await copying.wait() == 0
            assert copy.read_bytes() == image_of(built)
            assert copy.stat().st_blocks * 512 >= DISK_BYTES
            async with halted(built, folder) as monitor:
                await work(monitor, "aio_write -q -P 0x77 4096 8192", "aio_read -q 0 4096")
                write = (await counted(monitor)).write
            assert (write.ios, write.bytes) == (1, 8192)
            assert copy.read_bytes()[4096:12288] == b"\x77" * 8192
            assert copy.read_bytes() == image_of(built)

    talk(conversation)


def test_a_copy_that_is_lost_is_an_error_and_no_guest_that_hangs(folder: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
    mirror = DiskReplica("vm01", "node-2", Replica(LOOPBACK, port, "vm01-copy1"))
    built = machine(folder, replace(SETTINGS, replicas=2), replicas=(mirror.replica,))
    copy = folder / mirror.image_file_name
    copy.write_bytes(bytes(DISK_BYTES))

    async def conversation() -> None:
        async with started(nbd_server_command(mirror, str(copy), "qemu-nbd"), folder) as server:
            await listening(port, server)
            async with halted(built, folder) as monitor:
                server.kill()
                await server.wait()
                await work(monitor, "aio_write -q 0 4096")
                write = (await counted(monitor)).write
            assert (write.ios, write.bytes) == (1, 0)

    talk(conversation)


async def listening(port: int, server: asyncio.subprocess.Process) -> None:
    while server.returncode is None:
        try:
            _, writer = await asyncio.open_connection(LOOPBACK, port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.02)
            continue
        writer.close()
        return
    said = await server.stderr.read() if server.stderr else b""
    pytest.fail(f"qemu-nbd ended: {said.decode()}")


def test_a_port_that_is_taken_ends_the_server_with_a_word(folder: Path) -> None:
    (folder / "copy").write_bytes(bytes(DISK_BYTES))

    async def conversation() -> None:
        with socket.create_server((LOOPBACK, 0)) as taken:
            mirror = DiskReplica("vm01", "n", Replica(LOOPBACK, taken.getsockname()[1], "x"))
            async with started(
                nbd_server_command(mirror, str(folder / "copy"), "qemu-nbd"), folder
            ) as one:
                _, said = await one.communicate()
        assert one.returncode == 1
        assert b"Address already in use" in said

    talk(conversation)


def test_two_guests_on_one_image_are_refused(folder: Path) -> None:
    built = machine(folder, SETTINGS)

    async def conversation() -> None:
        async with halted(built, folder):
            other = qemu_argv(replace(built, guest="vm02"), "qemu-system-x86_64")
            async with started((*other, "-S"), folder) as second:
                _, said = await second.communicate()
        assert second.returncode == 1
        assert b"lock" in said

    talk(conversation)


def test_the_end_of_a_qemu_is_told(folder: Path) -> None:
    async def conversation() -> None:
        async with halted(machine(folder, MODELLED), folder) as monitor:
            await monitor.run_command("quit", deadline_s=PATIENCE_S)
            with pytest.raises(HostLostError, match="The hypervisor of guest 'vm01' "):
                await asked_until_the_end(monitor)

    talk(conversation)


async def asked_until_the_end(monitor: QmpClient) -> None:
    while True:
        await monitor.run_command("query-status", deadline_s=PATIENCE_S)


def test_the_monitor_refuses_what_there_is_not_and_goes_on(folder: Path) -> None:
    async def conversation() -> None:
        async with halted(machine(folder, MODELLED), folder) as monitor:
            with pytest.raises(HostError, match="Device 'other' not found"):
                await monitor.run_command(
                    HISTOGRAMS, {**HISTOGRAM_ARGUMENTS, "id": "other"}, deadline_s=PATIENCE_S
                )
            status = await monitor.run_command("query-status", deadline_s=PATIENCE_S)
            assert isinstance(status, dict)
            assert status["status"] == "prelaunch"
            assert (folder / agent_socket_file_name("vm01")).is_socket()

    talk(conversation)
