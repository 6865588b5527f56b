"""Actions of an inventory: what each becomes, what undoes it, and every fault of one."""

from __future__ import annotations

import pytest

from iolab.core.scenario import READBACK_PHASE, Action, ActionKind
from iolab.core.study import Study
from iolab.errors import StudyError
from iolab.study.inventory import Inventory
from iolab.study.parse import StudyOverrides
from tests.plans import parse_study

STUDY = """
format = 1
id = "loss"
[[workload]]
id = "reads"
engine = "fio"
rw = "randread"
bs = "4k"
filesize = "16m"
[[phase]]
id = "before"
seconds = "20s"
[[phase]]
id = "degraded"
seconds = "15s"
[[event]]
id = "lose"
action = "act"
phase = "degraded"
"""

HOST = """
format = 1
[[host]]
name = "a"
kind = "command"
command = ["reach", "a"]
path = "/mnt/bench"
[[action]]
id = "act"
host = "a"
"""


LIMIT = 'limit = "/sys/fs/cgroup/noise"'


def action_of(lines: str) -> Action:
    inventory = Inventory(HOST + lines, "fleet.toml")
    study = parse_study(STUDY, "s.toml", StudyOverrides(inventory=inventory))
    assert study.scenario is not None
    return study.scenario.action("act")


@pytest.mark.parametrize(
    ("lines", "kind", "summary", "undo"),
    [
        ('stop = "/run/osd.pid"', ActionKind.STOP, "/run/osd.pid", "go on"),
        ('stop = "ceph-osd@1.service"', ActionKind.STOP, "unit ceph-osd@1.service", "go on"),
        ('kill = "ceph-osd@1.service"', ActionKind.KILL, "ceph-osd@1", "start ceph-osd@1.service"),
        ('kill = "/run/osd.pid"', ActionKind.KILL, "kill the process in /run/osd.pid", ""),
        ('detach = "/dev/loop3"', ActionKind.DETACH, "detach /dev/loop3", "attach"),
        ('offline = "/dev/sdb"', ActionKind.OFFLINE, "offline /dev/sdb", "running"),
        ('cut_link = "eth1"', ActionKind.CUT_LINK, "link eth1 down", "eth1 up"),
        (
            'cut_link = "eth1"\nundo_after = "10s"',
            ActionKind.CUT_LINK,
            "eth1",
            "by the host itself 10 s later",
        ),
        (
            f'{LIMIT}\ndevice = "/dev/sdb"\nread_iops = 200\nwrite_bw = "1m"',
            ActionKind.LIMIT,
            "200 read IOPS and 1 MiB/s written",
            "limits of before",
        ),
        ('command = ["/bin/lose"]\ndestructive = true', ActionKind.COMMAND, "/bin/lose", ""),
    ],
)
def test_an_action_says_what_it_does_and_what_undoes_it(
    lines: str, kind: ActionKind, summary: str, undo: str
) -> None:
    action = action_of(lines)
    assert action.kind is kind
    assert summary in action.summary_text
    assert undo in action.undo_summary_text
    assert action.has_undo is bool(undo)


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        ("", ("none of command, stop", "limit")),
        ('stop = "/run/a.pid"\ndetach = "/dev/loop3"', ("stop and detach",)),
        ('stop = "osd"', ("osd", "pid file")),
        ('stop = "-x.service"', ("-x.service",)),
        ('detach = "loop3"', ("loop3",)),
        ('cut_link = "-eth1"', ("-eth1", "network interface")),
        ('limit = "/sys/fs/cgroup/noise"', ("limit without device",)),
        ('limit = "/sys/fs/cgroup/noise"\ndevice = "/dev/sdb"', ("without a rate", "read_iops")),
        ('stop = "/run/a.pid"\nread_iops = 5', ("read_iops without limit",)),
        ('kill = "/run/a.pid"\nundo_after = "5s"', ("undo_after beside kill", "cut_link and stop")),
        ('kill = "a.service"\nundo_after = "5s"', ("undo_after beside kill", "undo_phase")),
        (
            'command = ["/bin/lose"]\nundo = ["/bin/find"]\nundo_after = "5s"',
            ("undo_after beside command", "undo_phase"),
        ),
        ('detach = "/dev/loop3"\nundo_after = "5s"', ("undo_after beside detach",)),
        ('file = "/etc/hostname"\ntext = "a"', ("/etc/hostname", "/proc/sys", "command")),
        ('file = "/sys/../etc/hostname"\ntext = "a"', ("/sys/../etc/hostname", "/proc/sys")),
        ('file = "/proc/self/oom_adj"\ntext = "a"', ("/proc/self/oom_adj", "/proc/sys")),
        ('stop = "/run/a.pid"\ndestructive = true', ("destructive, and an undo",)),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_value(lines: str, parts: tuple[str, ...]) -> None:
    with pytest.raises(StudyError) as caught:
        action_of(lines)
    told = " ".join(f"{fault.message} {fault.hint}" for fault in caught.value.faults)
    for part in parts:
        assert part in told


@pytest.mark.parametrize(
    "lines", ['stop = "/run/a.pid"', 'stop = "a.service"', 'cut_link = "eth1"']
)
def test_what_may_cut_its_host_off_is_undone_after_a_time(lines: str) -> None:
    assert action_of(f"{lines}\nundo_after = '10s'").undo_after_s == 10


def test_a_setting_is_any_file_of_the_kernel() -> None:
    action = action_of('file = "/sys/block/sda/queue/scheduler"\ntext = "none"')
    assert action.path == "/sys/block/sda/queue/scheduler"


@pytest.mark.parametrize("policy", ["retry", "without-host"])
def test_no_policy_repeats_an_event(policy: str) -> None:
    with pytest.raises(StudyError) as caught:
        study_of(f'{STUDY}[method]\non_failure = "{policy}"\n')
    (fault,) = caught.value.faults
    assert f"'{policy}'" in fault.message
    assert "'skip-point'" in fault.hint


@pytest.mark.parametrize("policy", ["stop", "skip-point"])
def test_a_run_with_events_that_fails_is_left_out(policy: str) -> None:
    study = study_of(f'{STUDY}[method]\non_failure = "{policy}"\n')
    assert study.method.on_failure.value == policy


def test_destructive_events_are_named_apart() -> None:
    inventory = Inventory(HOST + 'kill = "/run/osd.pid"\ndestructive = true\n', "fleet.toml")
    scenario = parse_study(STUDY, "s.toml", StudyOverrides(inventory=inventory)).scenario
    assert scenario is not None
    assert scenario.event_consent_names(is_destructive=True) == ("lose@a",)
    assert scenario.event_consent_names(is_destructive=False) == ()


REMOUNT = 'command = ["/usr/local/sbin/remount", "/mnt/bench"]'
READ_BACK = STUDY.replace('phase = "degraded"', 'phase = "read-back"')
VERIFIED = READ_BACK.replace(
    'engine = "fio"\nrw = "randread"', 'engine = "native"\nrw = "randrw"\nverify = true'
)


def study_of(text: str, action: str = REMOUNT) -> Study:
    return parse_study(
        text, "s.toml", StudyOverrides(inventory=Inventory(HOST + action, "fleet.toml"))
    )


def test_an_action_is_done_after_the_last_phase() -> None:
    scenario = study_of(VERIFIED).scenario
    assert scenario is not None
    assert [event.id for event in scenario.events_of_phase(READBACK_PHASE)] == ["lose"]
    assert scenario.event_consent_names(is_destructive=False) == ("lose@a",)


@pytest.mark.parametrize(
    ("text", "action", "parts"),
    [
        (READ_BACK, REMOUNT, ("verify = true",)),
        (VERIFIED, REMOUNT + '\nundo = ["/usr/bin/true"]', ("'act'", "undo")),
        (f"{VERIFIED}\nafter = '2s'", REMOUNT, ("after", "read-back")),
        (f"{VERIFIED}\nundo_phase = 'before'", REMOUNT, ("undo_phase", "read-back")),
        (VERIFIED.replace('id = "before"', 'id = "read-back"'), REMOUNT, ("another id",)),
    ],
)
def test_what_cannot_be_done_after_the_last_phase_is_told(
    text: str, action: str, parts: tuple[str, ...]
) -> None:
    with pytest.raises(StudyError) as caught:
        study_of(text, action)
    faults = " ".join(f"{fault.message} {fault.hint}" for fault in caught.value.faults)
    assert all(part in faults for part in parts)
