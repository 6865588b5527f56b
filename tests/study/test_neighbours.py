"""Events that are loads: what a study may ask for, and what its plan has of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.run import Plan
from iolab.core.scenario import IoLimit
from iolab.core.study import Study
from iolab.errors import HostError, StudyError
from iolab.registry import study_kinds
from iolab.study.parse import StudyOverrides
from iolab.study.readiness import study_change_faults
from iolab.study.writes import forecast_writes
from tests.plans import check_ready, make_plan, parse_study
from tests.study.test_guard import FACTS, PROBE, TARGET

STUDY = """
format = 1
id = "noise"

[[host]]
name = "a"
path = "/mnt/a"
[[host]]
name = "b"
path = "/mnt/b"

[[workload]]
id = "victim"
engine = "native"
rw = "randread"
bs = "4k"
rate_iops = 100
filesize = "64m"

[[workload]]
id = "noise"
engine = "native"
rw = "randread"
bs = "4k"
numjobs = 4
fleet_rate_iops = 400
filesize = "64m"

[[phase]]
id = "alone"
seconds = "20s"
[[phase]]
id = "neighbour"
seconds = "20s"
[[phase]]
id = "after"
seconds = "20s"

[[event]]
id = "begin"
workload = "noise"
phase = "neighbour"
undo_phase = "after"
HOSTS

[[event]]
id = "limit"
limits = "begin"
io_limit = { read_iops = 200, write_bw = "1m" }
phase = "neighbour"
after = "10s"
"""


def planned(hosts: str = "") -> tuple[Study, Plan]:
    study = parse_study(STUDY.replace("HOSTS", hosts), "study.toml", StudyOverrides())
    return study, make_plan(study)


def test_a_neighbour_is_no_point_and_has_files_and_a_share_of_its_rate() -> None:
    study, plan = planned()
    assert [workload.id for workload in study.workloads] == ["victim"]
    assert [point.workload for point in plan.points] == ["victim"]
    (neighbour,) = plan.neighbours
    assert neighbour.hosts == ("a", "b")
    assert neighbour.point.job.target_iops_per_job == 400 / 8
    sets = {item.id: item for item in plan.data_sets}
    assert neighbour.point.data_set in sets
    assert neighbour.point.data_set != plan.points[0].data_set
    assert study.scenario is not None
    assert study.scenario.events[1].io_limit == IoLimit(200, write_bytes_per_s=1 << 20)
    assert study.scenario.event_consent_names(is_destructive=False) == ()


def test_a_host_that_is_named_makes_the_neighbours_load_alone() -> None:
    _, plan = planned('hosts = ["b"]')
    (neighbour,) = plan.neighbours
    assert neighbour.hosts == ("b",)
    assert neighbour.point.job.target_iops_per_job == 400 / 4
    own = plan.data_set(neighbour.point.data_set)
    shared = plan.data_set(plan.points[0].data_set)
    assert [own.with_jobs_of_host(name).numjobs for name in "ab"] == [0, 4]
    assert [shared.with_jobs_of_host(name).numjobs for name in "ab"] == [1, 0]


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ('workload = "noise"', 'workload = "nois"', ("'nois'", "'noise'")),
        ("numjobs = 4", "numjobs = [4, 8]", ("numjobs", "4", "8")),
        ("HOSTS", 'hosts = ["a", "b"]', ("no client",)),
        ("HOSTS", 'hosts = ["c"]', ("'c'",)),
        ("HOSTS", 'action = "lose"', ("action and workload",)),
        ("HOSTS", 'expect = "healthy"', ("expect without action",)),
        ('limits = "begin"', 'limits = "limit"', ("'limit'", "no event with a workload")),
        ("io_limit = { read_iops = 200,", "io_limit = { read_iops = 0,", ("read_iops",)),
        ('io_limit = { read_iops = 200, write_bw = "1m" }', "", ("limits without io_limit",)),
        ('io_limit = { read_iops = 200, write_bw = "1m" }', "io_limit = {}", ("empty io_limit",)),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_value(
    old: str, new: str, parts: tuple[str, ...]
) -> None:
    with pytest.raises(StudyError) as raised:
        parse_study(STUDY.replace(old, new).replace("HOSTS", ""), "s.toml", StudyOverrides())
    text = " ".join(f"{fault.message} {fault.hint}" for fault in raised.value.faults)
    for part in parts:
        assert part in text


@pytest.mark.parametrize(
    ("load_after", "limit", "parts"),
    [
        ("5s", 'phase = "neighbour"\nafter = "4s"', ("4 s into phase 'neighbour'", "5 s into")),
        ("0s", 'phase = "after"', ("phase 'after'", "has ended")),
        ("0s", 'phase = "later"', ("phase 'later'", "has ended", "phase 'after' begins")),
        ("5s", 'phase = "neighbour"\nafter = "5s"', ()),
        ("0s", 'phase = "neighbour"\nafter = "19s"', ()),
    ],
)
def test_a_limit_is_of_a_load_that_runs(
    load_after: str, limit: str, parts: tuple[str, ...]
) -> None:
    text = STUDY.replace("HOSTS", f'after = "{load_after}"')
    text = text.replace('phase = "neighbour"\nafter = "10s"', limit)
    text = text.replace("[[event]]", '[[phase]]\nid = "later"\nseconds = "20s"\n[[event]]', 1)
    faults = study_faults(text)
    assert len(faults) == bool(parts)
    assert all(part in fault for fault in faults for part in parts)


@pytest.mark.parametrize(
    ("devices", "hosts", "refused"),
    [
        ({"a": (), "b": ("sdb",)}, "", ["'/mnt/a' on host 'a'"]),
        ({"a": (), "b": ("sdb",)}, 'hosts = ["b"]', []),
        ({"a": ("sda",), "b": ()}, 'hosts = ["b"]', ["'/mnt/b' on host 'b'"]),
        ({"a": ("sda",), "b": ("sdb",)}, "", []),
    ],
)
def test_a_limit_needs_a_block_device_where_its_load_runs(
    devices: dict[str, tuple[str, ...]], hosts: str, refused: list[str]
) -> None:
    study, plan = planned(hosts)
    facts = {}
    for host, names in devices.items():
        source = "/dev/sda1" if names else "server:/export"
        target = replace(TARGET, path=f"/mnt/{host}", devices=names, mount_source=source)
        facts[host] = replace(FACTS, target=replace(target, fs_type="xfs" if names else "nfs4"))
    messages = []
    try:
        check_ready(study, plan, facts, dict.fromkeys(facts, PROBE))
    except HostError as error:
        messages = [f"{fault.message} {fault.hint}" for fault in error.faults]
    assert len(messages) == len(refused)
    for message, where in zip(messages, refused, strict=True):
        assert all(part in message for part in ("'limit'", where, "nfs4", "workload.noise."))


def test_a_limit_before_the_phase_of_its_load_is_told() -> None:
    """Without an undo_phase the load goes on to the end: every later phase has it."""
    text = STUDY.replace("HOSTS", "").replace('undo_phase = "after"', "")
    later = text.replace('phase = "neighbour"\n\n', 'phase = "after"\n\n')
    (fault,) = study_faults(later)
    assert "before its load begins" in fault
    assert study_faults(text.replace('phase = "neighbour"\nafter', 'phase = "after"\nafter')) == []


def study_faults(text: str) -> list[str]:
    try:
        parse_study(text, "s.toml", StudyOverrides())
    except StudyError as error:
        return [f"{fault.message} {fault.hint}" for fault in error.faults]
    return []


def changed(old: str, new: str) -> Study:
    text = STUDY.replace("HOSTS", "")
    assert old in text
    return parse_study(text.replace(old, new), "s.toml", StudyOverrides())


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('id = "neighbour"\nseconds = "20s"', 'id = "neighbour"\nseconds = "21s"', "phase"),
        ('undo_phase = "after"', "", "event.begin.undo_phase"),
        ("read_iops = 200", "read_iops = 201", "event.limit.io_limit"),
        ("numjobs = 4", "numjobs = 5", "workload.noise.job"),
        ("fleet_rate_iops = 400", "fleet_rate_iops = 401", "workload.noise.job"),
        ('after = "10s"', 'after = "11s"', "event.limit.after_s"),
    ],
)
def test_another_scenario_is_another_plan_and_says_in_what(old: str, new: str, named: str) -> None:
    (before, plan), now = planned(), changed(old, new)
    assert make_plan(now).digest != plan.digest
    assert any(named in fault.message for fault in study_change_faults(before, now))


def test_what_sentences_call_an_event_makes_no_other_plan() -> None:
    _, plan = planned()
    titled = changed('limits = "begin"', 'limits = "begin"\ntitle = "Holding it back"')
    assert make_plan(titled).digest == plan.digest


def test_a_plan_counts_what_neighbours_write() -> None:
    """20 s of 400 writes of 4 KiB a second; without a rate 20 s of each host's own speed."""
    study, plan = planned()
    before = forecast_writes(study, plan, study_kinds())
    writing = changed('rw = "randread"\nbs = "4k"\nnumjobs', 'rw = "randwrite"\nbs = "4k"\nnumjobs')
    limited = forecast_writes(writing, make_plan(writing), study_kinds())
    assert limited.known_bytes - before.known_bytes == 20 * 400 * 4096
    assert not limited.depends_on_target_speed
    old = 'rw = "randread"\nbs = "4k"\nnumjobs = 4\nfleet_rate_iops = 400'
    free = changed(old, 'rw = "randwrite"\nbs = "4k"\nnumjobs = 4')
    forecast = forecast_writes(free, make_plan(free), study_kinds())
    assert forecast.seconds_range_at_target_speed == (2 * 20, 2 * 20)
    assert forecast.known_bytes == before.known_bytes


def test_a_neighbour_is_counted_once_for_each_run_and_only_where_it_runs() -> None:
    text = STUDY.replace("HOSTS", 'hosts = ["b"]').replace('undo_phase = "after"', "")
    text = text.replace('"randread"\nbs = "4k"\nnumjobs', '"randwrite"\nbs = "4k"\nnumjobs')
    study = parse_study(f"{text}\n[method]\nrepeats = 3\n", "s.toml", StudyOverrides())
    plan = make_plan(study)
    laid_out = sum(
        plan.data_set(item.id).with_jobs_of_host(host).bytes_per_host
        for item in plan.data_sets
        for host in "ab"
    )
    forecast = forecast_writes(study, plan, study_kinds())
    assert forecast.known_bytes - laid_out == 3 * 40 * 400 * 4096


DEVICES = """
[[host]]
name = "a"
device = "/dev/sdx"
serial = "S1"
[[host]]
name = "b"
device = "/dev/sdy"
serial = "S2"
"""


@pytest.mark.parametrize("verifying", ["victim", "noise"])
def test_a_load_that_writes_what_another_verifies_is_refused(verifying: str) -> None:
    """On a device both begin at its first block; of a file system each has its own files."""
    first = STUDY.index("[[host]]")
    folders = STUDY[: STUDY.index("[[workload]]")]
    loads = STUDY[len(folders) :].replace('rw = "randread"', 'rw = "randwrite"')
    place = loads.index(f'id = "{verifying}"')
    loads = loads[:place] + loads[place:].replace('bs = "4k"', 'bs = "4k"\nverify = true', 1)
    alone = loads.replace("HOSTS", 'hosts = ["b"]')
    beside = loads.replace("HOSTS", "")
    devices = STUDY[:first] + DEVICES
    with pytest.raises(StudyError) as raised:
        parse_study(devices + beside, "s.toml", StudyOverrides())
    (fault,) = raised.value.faults
    for part in ("'begin'", "'victim'", "'noise'", "'S1'", f"{verifying}' verifies"):
        assert part in fault.message
    assert fault.line is not None
    parse_study(folders + beside, "s.toml", StudyOverrides())
    parse_study(devices + alone, "s.toml", StudyOverrides())
    with pytest.raises(StudyError):
        parse_study(devices.replace("S2", "S1") + alone, "s.toml", StudyOverrides())
    parse_study(devices + beside.replace("verify = true", ""), "s.toml", StudyOverrides())
