"""Studies with block devices as targets: opted into by path and serial, refused with all faults."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.host import DeviceFacts, DeviceRefusal, ToolFacts
from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.core.target_state import PurgeMethod, RestorePolicy
from iolab.errors import HostError
from iolab.study.parse import StudyOverrides, overrides_for_resume
from iolab.study.targets import targets_of_study, used_device_bytes
from tests.plans import check_ready, make_plan, parse_study
from tests.study.studies import faults
from tests.study.test_guard import FACTS

WRITES = """\
format = 1
id = "d"
[[workload]]
id = "w"
rw = "randwrite"
bs = "4k"
numjobs = [1, 2]
filesize = "1m"
{more}
"""
TARGET = '[target]\ndevice = "/dev/nvme9n1"\nserial = "S5"\n'
DEVICE = DeviceFacts(
    path="/dev/nvme9n1",
    real_path="/dev/nvme9n1",
    name="nvme9n1",
    serial="S5",
    size_bytes=1 << 30,
    logical_block_bytes=512,
    discards=True,
    devices=("nvme9n1",),
    memory_backed=False,
    objections=(),
)


def study_of(more: str = TARGET, options: StudyOverrides | None = None) -> Study:
    return parse_study(WRITES.format(more=more), "d.toml", options or StudyOverrides())


def refused(study: Study, device: DeviceFacts | None, tools: tuple[ToolFacts, ...] = ()) -> str:
    """What the guard says; empty when it lets the plan run."""
    facts = replace(FACTS, tools=(*FACTS.tools, *tools))
    (target,) = targets_of_study(study)
    devices = {target.key: device} if device else {}
    try:
        check_ready(study, make_plan(study), {target.key: facts}, {}, devices=devices)
    except HostError as error:
        return "\n".join(fault.message for fault in error.faults)
    return ""


def test_a_device_is_a_target_with_a_serial() -> None:
    (target,) = targets_of_study(study_of())
    assert (target.path, target.serial) == ("/dev/nvme9n1", "S5")
    options = StudyOverrides(device="/dev/nvme9n1", serial="S5")
    given = study_of("", options)
    assert targets_of_study(given) == (target,)
    assert targets_of_study(parse_study(given.text, "d.toml", overrides_for_resume(given))) == (
        target,
    )


def test_what_is_set_hides_what_the_file_says() -> None:
    over_folder = study_of('[target]\npath = "/mnt"\n', StudyOverrides(device="/dev/x", serial="S"))
    assert [target.path for target in targets_of_study(over_folder)] == ["/dev/x"]
    over_device = study_of(TARGET, StudyOverrides(path="/mnt/t"))
    assert [(t.path, t.serial) for t in targets_of_study(over_device)] == [("/mnt/t", None)]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('[target]\ndevice = "/dev/sdz"\n', "no serial"),
        ('[target]\nserial = "S5"\n', "no device"),
        ('[target]\ndevice = "sdz"\nserial = "S"\n', "below /dev"),
        ('[target]\ndevice = "/dev/../etc/x"\nserial = "S"\n', "below /dev"),
        (TARGET + 'path = "/mnt"\n', "two targets"),
        (TARGET + "rotate = 1\n", "rotate"),
        (TARGET + "keep_files = true\n", "keep_files"),
        (TARGET + '[precondition]\npurge = "fstrim"\n', "is a device"),
        ('[target]\npath = "/mnt"\n[precondition]\npurge = "discard"\n', "is a directory"),
        ('[target]\npath = "/mnt"\n[precondition]\nfill = 0\n', "fill"),
        (TARGET + "[precondition]\nfill = 0.5\n", "fill"),
        (TARGET + "[precondition]\nround = 10\n", "no effect"),
        (TARGET + '[precondition]\npurge = "wipe"\n', "wipe"),
        (
            TARGET + '[precondition]\nfill = 0\n[[workload]]\nid = "r"\nrw = "read"\nbs = "4k"\n'
            'filesize = "1m"\n',
            "nothing was written",
        ),
    ],
)
def test_faults_of_device_targets(more: str, message: str) -> None:
    found = faults(WRITES.format(more=more), path=None)
    told = " ".join(f"{one.message} {one.hint}" for one in found)
    assert message in told


def test_a_sound_device_may_be_destroyed_and_the_plan_says_so() -> None:
    study = study_of()
    assert refused(study, DEVICE) == ""
    (sentence,) = make_plan(study).destroyed_device_texts
    for part in ("/dev/nvme9n1", "S5", "written over"):
        assert part in sentence
    assert make_plan(study_of('[target]\npath = "/mnt"\n')).destroyed_device_texts == ()


def test_every_reason_is_told_at_once() -> None:
    objections = (
        DeviceRefusal("mounted", "it is mounted"),
        DeviceRefusal("swap", "it is swap"),
    )
    small = replace(DEVICE, objections=objections, size_bytes=1 << 20, logical_block_bytes=8192)
    message = refused(study_of(), small)
    for part in ("it is mounted", "it is swap", "the jobs use 2 MiB", "blocks of 8192"):
        assert part in message
    assert "was not looked at" in refused(study_of(), None)


def test_a_purge_that_the_device_has_not_is_refused() -> None:
    discard = study_of(TARGET + '[precondition]\npurge = "discard"\n')
    assert "no discards" in refused(discard, replace(DEVICE, discards=False))
    erase = study_of(TARGET + '[precondition]\npurge = "nvme-format"\n')
    assert "no nvme-cli" in refused(erase, DEVICE)
    tool = (ToolFacts("nvme", "/usr/sbin/nvme", "nvme version 2.3"),)
    assert refused(erase, DEVICE, tool) == ""
    assert "no NVMe device" in refused(erase, replace(DEVICE, name="sda"), tool)


def costs(plan: Plan) -> dict[str, float]:
    return {message.split(",")[0]: seconds for message, seconds in plan.demand.time_items}


def test_the_plan_foretells_purge_fill_and_rounds() -> None:
    more = '[precondition]\npurge = "discard"\nfill = 2\nsteady = true\nround = 10\n'
    study = study_of(TARGET + more)
    wish = study.precondition
    assert (wish.purge, wish.restore) == (PurgeMethod.DISCARD, RestorePolicy.ONCE)
    plan = make_plan(study)
    (target,) = targets_of_study(study)
    assert used_device_bytes(plan, target) == 2 << 20
    told = costs(plan)
    assert told["1 x purge by discard (assumed)"] == 30
    assert told["1 x fill"] == pytest.approx(2 * (2 << 20) / 200e6)
    assert [cost for message, cost in told.items() if "5 to 25 rounds" in message] == [250]
    assert plan.demand.layout_bytes_per_host == 0
    assert plan.demand.free_bytes_needed_per_host == 0
    assert not any(message.startswith("lay out") for message in told)
    again = make_plan(study_of(TARGET + more + 'restore = "each-point"\n'))
    assert 500 in costs(again).values()
    assert again.digest != plan.digest
