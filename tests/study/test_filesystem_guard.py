"""What stands against a file system of the session's own, and against bounds of memory."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.host import DeviceFacts, DeviceRefusal, HostFacts, TargetProbe, ToolFacts
from iolab.core.study import Study
from iolab.errors import HostError
from iolab.loads.keyvalue.workload import ServerKind, ServerSettings
from iolab.study.readiness import (
    is_memory_limited,
    needs_root_rights,
    version_argv_by_target_program,
)
from iolab.study.targets import targets_of_study
from tests.plans import check_ready, make_plan
from tests.study.studies import SMALL, load
from tests.study.test_guard import FACTS, PROBE, TARGET

GIB = 1 << 30


def on_xfs(image_bytes: int | None = GIB, *sets: str) -> Study:
    """The small study on an XFS of its own, without asking the study file's own checks."""
    study = load(SMALL, *sets)
    return replace(study, target=replace(study.target, make_xfs=True, image_bytes=image_bytes))


def faults(
    study: Study,
    facts: HostFacts = FACTS,
    probe: TargetProbe = PROBE,
    present: int = 0,
    device: DeviceFacts | None = None,
) -> list[str]:
    (target,) = targets_of_study(study)
    devices = {} if device is None else {target.key: device}
    told = {target.key: facts}, {target.key: probe}, {target.key: present}
    try:
        check_ready(study, make_plan(study), *told, devices=devices)
    except HostError as error:
        return [str(fault) for fault in error.faults]
    return []


def with_free(free_bytes: int) -> HostFacts:
    return replace(FACTS, target=replace(TARGET, free_bytes=free_bytes))


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (None, "has no size. Set target.image, or name a device."),
        (299 << 20, "An image of 299 MiB is too small for an XFS in '/mnt/t' on host 'local'."),
    ],
)
def test_an_image_must_be_one(image: int | None, message: str) -> None:
    (fault,) = faults(on_xfs(image))
    assert message in fault


def test_files_must_fit_the_image() -> None:
    study = on_xfs(400 << 20)
    study = replace(study, workloads=load(SMALL.replace('"1m"', '"390m"')).workloads)
    (fault,) = faults(study)
    assert "400 MiB in '/mnt/t' on host 'local'" in fault


def test_the_disk_below_must_hold_what_the_image_does_not_have_yet() -> None:
    study = on_xfs(4 * GIB)
    (fault,) = faults(study, with_free(2 * GIB))
    assert "has 2 GiB free" in fault
    assert faults(study, with_free(2 * GIB), present=3 * GIB) == []
    assert faults(study, with_free(0), present=4 * GIB) == []


def test_the_directory_need_not_take_direct_io_itself() -> None:
    probe = replace(PROBE, direct_error="EINVAL", direct_align_bytes=None)
    assert faults(on_xfs(), probe=probe) == []


def test_a_host_without_the_right_to_mount_is_named() -> None:
    probe = replace(PROBE, mount_error="the agent may not mount anything \x1b[2J")
    (fault,) = faults(on_xfs(), probe=probe)
    assert fault.startswith("Host 'local' cannot")
    assert fault.isprintable()
    assert faults(load(SMALL), probe=probe) == []


def test_the_program_that_makes_it_is_asked_for_whatever_the_load_is() -> None:
    assert version_argv_by_target_program(load(SMALL)) == {}
    assert version_argv_by_target_program(on_xfs()) == {"mkfs.xfs": ["mkfs.xfs", "-V"]}
    (fault,) = faults(
        on_xfs(), replace(FACTS, tools=(*FACTS.tools, ToolFacts("mkfs.xfs", None, "")))
    )
    assert fault.startswith("There is no 'mkfs.xfs' on host 'local'. Install xfsprogs")
    assert (
        faults(
            on_xfs(), replace(FACTS, tools=(*FACTS.tools, ToolFacts("mkfs.xfs", "/sbin/m", "6")))
        )
        == []
    )


def test_a_device_is_asked_for_the_same_rights() -> None:
    study = on_xfs(None)
    (one,) = study.configurations
    study = replace(study, configurations=(replace(one, path="/dev/sdx", serial="S5"),))
    device = DeviceFacts(
        path="/dev/sdx",
        real_path="/dev/sdx",
        name="sdx",
        serial="S5",
        size_bytes=GIB,
        logical_block_bytes=512,
        discards=True,
        devices=("sdx",),
        memory_backed=False,
        objections=(),
    )
    assert faults(study, device=device) == []
    mounted = replace(device, objections=(DeviceRefusal("mounted", "sdx is mounted on /m"),))
    told = faults(study, probe=replace(PROBE, mount_error="EPERM"), device=mounted)
    assert ["is refused: sdx is mounted" in told[0], "cannot have a file" in told[1]] == [True] * 2


def test_clients_cannot_read_each_others_files_on_it() -> None:
    study = on_xfs()
    study = replace(study, target=replace(study.target, rotate=1))
    assert any("each has on its own" in fault for fault in faults(study))


def test_rights_are_asked_for_where_they_are_needed_alone() -> None:
    plain = load(SMALL)
    assert not needs_root_rights(plain)
    assert needs_root_rights(on_xfs())
    assert not is_memory_limited(on_xfs())
    managed = replace(plain, server=ServerSettings(ServerKind.MANAGED, memory_bytes=GIB))
    assert is_memory_limited(managed)
    assert needs_root_rights(managed)
    cannot = replace(PROBE, memory_error="no control group hands memory on")
    (fault,) = faults(managed, probe=cannot)
    assert fault.startswith("Host 'local' cannot bound memory")
    assert faults(plain, probe=cannot) == []
