"""Facts of this very host, held against what other programs say of it."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.speaker import Agent
from tests.needs import ROOT, require
from tests.processes import run_program


@pytest.fixture
def facts(agent: Agent) -> Any:
    return agent.ask("facts", path=None)["facts"]


def target_of(agent: Agent, path: Path | str) -> Any:
    return agent.ask("facts", path=str(path))["facts"]["target"]


def said_by(*argv: str) -> str:
    return run_program(argv, check=True).stdout.strip()


def test_processors_and_memory(facts: Any) -> None:
    cpu = facts["cpu"]
    assert 1 <= cpu["sockets"] <= cpu["cores"] <= cpu["threads"]
    model = next(
        (
            line.split(":", 1)[1]
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        cpu["model"],
    )
    assert cpu["model"] == " ".join(model.split())
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert facts["memory"]["total_bytes"] == total
    assert sum(node["memory_bytes"] for node in cpu["numa"]) <= total


def test_the_operating_system(facts: Any) -> None:
    kernel = facts["kernel"]
    assert kernel["release"] == platform.release()
    assert kernel["architecture"] == platform.machine()
    assert kernel["hostname"] == socket.gethostname()
    assert kernel["os"] == platform.freedesktop_os_release()["PRETTY_NAME"]
    assert kernel["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_the_machine_is_what_its_firmware_tells(facts: Any) -> None:
    def told(name: str) -> str | None:
        file = Path("/sys/class/dmi/id") / name
        return (file.read_text().strip() or None) if file.exists() else None

    expected = {
        "vendor": told("sys_vendor"),
        "product": told("product_name"),
        "asset_tag": told("chassis_asset_tag"),
    }
    assert facts["machine"] == expected


def test_disks_are_those_with_a_size(facts: Any) -> None:
    sizes = {
        folder.name: int((folder / "size").read_text()) * 512
        for folder in Path("/sys/block").iterdir()
    }
    expected = {name: size for name, size in sizes.items() if size}
    told = {disk["name"]: disk["size_bytes"] for disk in facts["disks"]}
    # Loop devices of other programs come and go.
    assert {n: s for n, s in told.items() if not n.startswith("loop")} == {
        n: s for n, s in expected.items() if not n.startswith("loop")
    }


def test_ports_are_those_of_the_host(facts: Any) -> None:
    expected = {name for _, name in socket.if_nameindex()} - {"lo"}
    assert {nic["name"] for nic in facts["nics"]} == expected


def test_a_target_on_a_disk(agent: Agent) -> None:
    folder = Path(__file__).parent
    target = target_of(agent, folder)
    told = said_by("stat", "-f", "-c", "%S %b %a", str(folder)).split()
    unit, total, _ = map(int, told)
    assert target["total_bytes"] == unit * total
    assert target["mount_point"] == said_by("stat", "-c", "%m", str(folder))
    assert (target["in_memory"], target["network"], target["writable"]) == (False, False, True)
    assert target["device"] == target["devices"][0]
    device = Path("/sys/class/block") / target["device"] / "dev"
    number = folder.stat().st_dev
    assert device.read_text().strip() == f"{os.major(number)}:{os.minor(number)}"


def test_a_target_in_memory(agent: Agent) -> None:
    target = target_of(agent, "/dev/shm")
    assert (target["fs_type"], target["in_memory"]) == ("tmpfs", True)
    assert (target["device"], target["devices"]) == (None, [])


def test_a_link_is_followed_to_its_file_system(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/shm")
    target = target_of(agent, tmp_path / "link")
    assert (target["path"], target["fs_type"]) == (str(tmp_path / "link"), "tmpfs")


def test_a_target_that_is_not_there_still_gives_the_other_facts(
    agent: Agent, tmp_path: Path
) -> None:
    facts = agent.ask("facts", path=str(tmp_path / "gone"))["facts"]
    assert facts["target"] is None
    assert facts["target_fault"]["code"] == "missing"
    assert "ENOENT" in facts["target_fault"]["message"]
    assert facts["cpu"]["threads"] >= 1


@pytest.fixture
def loop_mount(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, Path]]:
    """An ext4 in a file beside the checkout: its folder, its loop device, its file."""
    require(ROOT, "mkfs.ext4", "losetup")
    root = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory(dir=root, prefix="scratch-") as name:
        image, folder = Path(name) / "image", Path(name) / "mnt"
        folder.mkdir()
        with image.open("wb") as file:
            file.truncate(64 << 20)
        said_by("mkfs.ext4", "-q", "-F", str(image))
        device = said_by("losetup", "--find", "--show", str(image))
        try:
            said_by("mount", device, str(folder))
            yield folder, Path(device).name, image
        finally:
            subprocess.run(["umount", folder], check=False)
            said_by("losetup", "--detach", device)


def test_a_target_on_a_loop_device_names_what_is_below(
    agent: Agent, loop_mount: tuple[Path, str, Path]
) -> None:
    folder, loop, image = loop_mount
    facts = agent.ask("facts", path=str(folder))["facts"]
    below = target_of(agent, image.parent)
    assert facts["target"]["device"] == loop
    assert facts["target"]["devices"] == [loop, *below["devices"]]
    disk = next(disk for disk in facts["disks"] if disk["name"] == loop)
    assert (disk["backing_file"], disk["parents"]) == (str(image), [below["device"]])
    assert facts["target"]["in_memory"] is False


def test_an_overlay_counts_as_its_upper_folder(agent: Agent, tmp_path: Path) -> None:
    require(ROOT)
    for name in ("lower", "upper", "work", "merged"):
        (tmp_path / name).mkdir()
    options = ",".join(f"{part}dir={tmp_path / part}" for part in ("lower", "upper", "work"))
    said_by("mount", "-t", "overlay", "overlay", "-o", options, str(tmp_path / "merged"))
    try:
        target = target_of(agent, tmp_path / "merged")
    finally:
        said_by("umount", str(tmp_path / "merged"))
    upper = target_of(agent, tmp_path / "upper")
    assert target["fs_type"] == "overlay"
    assert (target["devices"], target["in_memory"]) == (upper["devices"], upper["in_memory"])


def scripts_in(folder: Path, **texts: str) -> dict[str, list[str]]:
    """A tool of each text."""
    for name, text in texts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return {name: [str(folder / name)] for name in texts}


def test_tools_tell_their_version(agent: Agent, tmp_path: Path) -> None:
    asked = {
        "fio": ["fio", "--version"],
        "gone": ["no-such-tool", "--version"],
        **scripts_in(tmp_path, mute="exit 0", loud="echo '  version 9 ' >&2"),
    }
    facts = agent.ask("facts", path=None, tools=asked)["facts"]
    unknown = [name for name in asked if f"of {name} is unknown" in "\n".join(facts["faults"])]
    assert unknown == ["mute"]
    tools = {tool["name"]: tool for tool in facts["tools"]}
    assert tools["fio"]["path"] == shutil.which("fio")
    assert tools["fio"]["version"] == said_by("fio", "--version")
    assert tools["gone"] == {"name": "gone", "path": None, "version": None, "fault": None}
    assert (tools["mute"]["version"], tools["loud"]["version"]) == (None, "version 9")


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ("echo smalloc: failed adding pool >&2; kill -SEGV $$", "signal 11: smalloc: failed"),
        ("echo cannot map segment; exit 127", "code 127: cannot map segment"),
        ("echo version 3.33; exit 1", "code 1: version 3.33"),
    ],
)
def test_what_a_failing_tool_prints_is_no_version(
    agent: Agent, tmp_path: Path, script: str, how: str
) -> None:
    asked = scripts_in(tmp_path, tool=script)
    facts = agent.ask("facts", path=None, tools=asked)["facts"]
    (tool,) = facts["tools"]
    assert tool["version"] is None
    assert how in tool["fault"]
    assert any(how in fault for fault in facts["faults"])
