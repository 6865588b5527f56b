"""What `iolab doctor` makes of the answers of a machine."""

from __future__ import annotations

import pytest
from bench.synthetic import make_facts
from msgspec.structs import replace

from iolab.cli.doctor.findings import (
    FindingState,
    device_counter_findings,
    drive_log_findings,
    kernel_power_meter_findings,
    machine_findings,
    power_meter_findings,
    program_findings,
    target_findings,
    target_probe_findings,
)
from iolab.core.host import MachineFacts, TargetProbe, ToolFacts
from tests.analysis.drives import ocp_page, reading, smart_page
from tests.cli.command_line import SHAPE
from tests.facts import tells

FACTS = next(iter(make_facts(SHAPE).values()))
TARGET = FACTS.target
assert TARGET is not None
FREE = TargetProbe(direct_error=None, direct_align_bytes=512, held_by=None)
DISK = TARGET.devices[0]


def states(found: object) -> dict[str, FindingState]:
    assert isinstance(found, list)
    assert all(item.hint for item in found if item.state is FindingState.FAULT)
    return {item.topic: item.state for item in found}


@pytest.mark.parametrize(
    ("tool", "state"),
    [
        (ToolFacts("fio", "/usr/bin/fio", "fio-3.33"), FindingState.OK),
        (ToolFacts("fio", "/usr/bin/fio", "fio-3.16"), FindingState.OK),
        (ToolFacts("fio", "/usr/bin/fio", "fio-3.15"), FindingState.FAULT),
        (ToolFacts("fio", "/usr/bin/fio", "command not found"), FindingState.FAULT),
        (ToolFacts("fio", None, None), FindingState.FAULT),
    ],
)
def test_fio(tool: ToolFacts, state: FindingState) -> None:
    (found,) = program_findings(replace(FACTS, tools=(tool,)))
    assert found.state is state
    assert found.is_engine_fault == (state is FindingState.FAULT)
    assert ("--engine native" in found.hint) == (state is FindingState.FAULT)


def test_a_directory() -> None:
    def with_target(**changes: object) -> dict[str, FindingState]:
        target = replace(TARGET, **changes)  # type: ignore[type-var]
        return states(list(target_findings(replace(FACTS, target=target), "/mnt")))

    well = dict.fromkeys(("directory", "file system", "free space"), FindingState.OK)
    assert with_target() == well
    assert with_target(writable=False)["directory"] is FindingState.FAULT
    assert with_target(in_memory=True, fs_type="tmpfs")["file system"] is FindingState.FAULT
    assert with_target(network=True, fs_type="nfs4")["file system"] is FindingState.NOTE
    assert with_target(free_bytes=1 << 20)["free space"] is FindingState.NOTE
    (found,) = target_findings(replace(FACTS, target=None), "/none")
    assert found.state is FindingState.FAULT
    assert tells(found.message, "/none")


def test_direct_io_and_other_sessions() -> None:
    assert states(list(target_probe_findings(FREE))) == {"O_DIRECT": FindingState.OK}
    refused = replace(FREE, direct_error="Invalid argument (EINVAL)")
    assert states(list(target_probe_findings(refused))) == {"O_DIRECT": FindingState.FAULT}
    held = states(list(target_probe_findings(replace(FREE, held_by="session-9"))))
    assert held["other sessions"] is FindingState.FAULT


def test_other_users_beside_a_session_are_noted_and_no_fault() -> None:
    theirs = replace(FREE, other_user="user 7, x", movable_by="/mnt belongs to user 7")
    found = states(list(target_probe_findings(theirs)))
    assert found["owner"] is found["other users"] is FindingState.NOTE
    assert FindingState.FAULT not in found.values()


def test_the_device_and_its_counters() -> None:
    rows = [[DISK, 1, 2, 3], ["sdz", 1, 2, 3]]
    found = list(device_counter_findings(TARGET, {"disks": rows}))
    assert states(found) == {"device": FindingState.OK, "counters": FindingState.OK}
    found = list(device_counter_findings(TARGET, {"disks": [["sdz", 1]]}))
    assert states(found)["counters"] is FindingState.FAULT
    assert states(list(device_counter_findings(TARGET, {})))["counters"] is FindingState.FAULT


def test_power_and_drives_are_told_where_there_are_any() -> None:
    row = ["processors:package-0", None, 5, 100]
    (found,) = kernel_power_meter_findings({"power": [row]})
    assert (found.state, found.message) == (FindingState.OK, "processors:package-0")
    drive = reading(smart_page(1), ocp_page(1))
    (found,) = drive_log_findings([drive])
    assert (found.state, found.message) == (
        FindingState.OK,
        "nvme0n1: OCP extended SMART log (0xC0)",
    )
    hidden = reading(fault="its log pages need CAP_SYS_ADMIN")
    (found,) = drive_log_findings([hidden])
    assert found.state is FindingState.NOTE
    assert tells(found.message, "nvme0n1", "CAP_SYS_ADMIN")
    assert "root" in found.hint
    # Where there is neither, nothing is said.
    assert [
        *kernel_power_meter_findings({}),
        *drive_log_findings([]),
        *power_meter_findings(()),
    ] == []


def test_a_file_system_without_a_device_is_noted() -> None:
    bare = replace(TARGET, device=None, devices=())  # type: ignore[type-var]
    assert states(list(device_counter_findings(bare, {"disks": []}))) == {
        "device": FindingState.NOTE
    }


def test_a_machine_that_tells_its_name_is_named() -> None:
    machine = MachineFacts("Amazon EC2", "i4i.2xlarge", None)
    first, *_ = machine_findings(replace(FACTS, machine=machine))
    assert tells(first.message, "Amazon EC2 i4i.2xlarge", FACTS.cpu.model)


def test_what_a_machine_would_not_tell_is_noted() -> None:
    *_, last = machine_findings(replace(FACTS, faults=("DMI is closed.",)))
    assert (last.state, last.message) == (FindingState.NOTE, "DMI is closed.")


@pytest.mark.parametrize(
    ("allowed", "quota", "told"),
    [(None, None, None), (4, 6.0, None), (4, 0.1, "0.1"), (1, 2.0, "1")],
)
def test_a_machine_that_gives_a_load_few_cores_says_how_many(
    allowed: int | None, quota: float | None, told: str | None
) -> None:
    cpu = replace(FACTS.cpu, threads=4, allowed_cores=allowed, quota_cores=quota)
    found = [
        one.message
        for one in machine_findings(replace(FACTS, cpu=cpu))
        if one.topic == "processors"
    ]
    assert len(found) == (told is not None)
    assert told is None or tells(found[0], told, "4")
