"""Rates of jobs in I/Os and bytes, of the whole fleet, and workloads that trim."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.cli.planning import job_text
from iolab.core.run import Plan
from iolab.loads.fileio.workload import AccessPattern, Job
from iolab.study.cost import start_state_preparation_count, steady_state_series_count
from iolab.study.parse import StudyOverrides
from tests.plans import make_plan, parse_study
from tests.study.studies import FILE, load, told, workload
from tests.study.test_devices import DEVICE, TARGET, refused, study_of

HOSTS = '[[host]]\nname = "c[1-4]"\n'
TRIM = '[[workload]]\nid = "t"\nrw = "{rw}"\nbs = "64k"\nfilesize = "1m"\n{more}'


def plan_of(text: str) -> Plan:
    return make_plan(load(text))


def trims(more: str = "", rw: str = "randtrim", target: str = TARGET) -> str:
    return 'format = 1\nid = "s"\n' + TRIM.format(rw=rw, more=more) + target


def test_a_rate_in_bytes_is_an_axis() -> None:
    points = plan_of(workload('rate = ["1m", "20m"]\narrivals = "poisson"')).points
    assert [Job.require_type(point.job).rate_bytes_per_s for point in points] == [1 << 20, 20 << 20]
    assert [point.axis_values for point in points] == [(("rate", "1m"),), (("rate", "20m"),)]
    assert Job.require_type(points[0].job).target_iops_per_job == 256.0
    assert job_text(Job.require_type(points[0].job)).endswith("1.05 MB/s a job, poisson arrivals")


def test_a_rate_in_bytes_of_mixed_blocks_is_a_rate_of_their_mean() -> None:
    job = Job.require_type(
        load(workload('rate = "1m"\nfio = { bssplit = "4k/75:16k/25" }')).workloads[0].job
    )
    assert job.target_iops_per_job == (1 << 20) / (4096 * 0.75 + 16384 * 0.25)
    apart = replace(job, options=(("bssplit", "4k,8k"),))
    assert (
        apart.mean_block_bytes,
        replace(apart, access=AccessPattern.RANDWRITE).mean_block_bytes,
    ) == (
        4096,
        8192,
    )


def test_a_rate_of_the_fleet_is_shared_by_all_jobs_of_a_point() -> None:
    text = workload("fleet_rate_iops = 12000\nnumjobs = [1, 3]\nhosts = [1, 4]") + HOSTS
    points = plan_of(text).points
    assert [Job.require_type(point.job).rate_iops for point in points] == [12000, 3000, 4000, 1000]
    assert "the fleet, 1000 IOPS a job" in job_text(Job.require_type(points[-1].job))


def test_jobs_of_a_hosts_own_number_have_the_same_share_each() -> None:
    own = HOSTS + '[[host]]\nname = "big"\nnumjobs = 6\n'
    (point,) = plan_of(workload("fleet_rate_iops = 1000") + own).points
    assert (
        Job.require_type(point.job).rate_iops,
        Job.require_type(point.job_on_host("big")).numjobs,
    ) == (100, 6)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("fleet_rate_iops = 1001", "is 1001, which 4 jobs of all hosts cannot share"),
        ("fleet_rate_iops = 1001", "Give 1000 or 1004."),
        ("fleet_rate_iops = 3", "Give 4."),
        ("fleet_rate_iops = [4, 11]\nnumjobs = [1, 3]", "Give 12."),
        ("fleet_rate_iops = 0", "fleet_rate_iops of workload 'w' is 0."),
        ("fleet_rate_iops = 5000000000", "is 5000000000, 1250000000 for each job, which may have"),
        ("fleet_rate_iops = 5000000000", "which may have 100000000."),
        ("fleet_rate_iops = 400000004", "Give 400000000."),
        ("fleet_rate_iops = 5000000001", "Give 400000000."),
        ("rate_iops = 9\nfleet_rate_iops = 4", "has rate_iops and fleet_rate_iops"),
        ('rate_iops = 9\nrate = "1m"', "has rate_iops and rate"),
        ('rate = ["1m", "2k"]', "less than one block of 4 KiB a second"),
        ('rate = "fast"', "which is not a size"),
        ('objective = "max-load"\nlimit = "p99 <= 2ms"\nrate = "1m"', "'max-load' and rate"),
        ('arrivals = "fixed"', "has arrivals but no rate_iops"),
    ],
)
def test_rates_that_cannot_be_are_refused_with_their_value(lines: str, message: str) -> None:
    said = told(workload(lines) + HOSTS)
    assert any(message in one for one in said), said


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        ("rate_iops = 100", "rate_iops"),
        ("fleet_rate_iops = 100", "fleet_rate_iops"),
        ('rate = "1m"\narrivals = "poisson"', "rate"),
    ],
)
def test_what_fio_reckons_from_the_smallest_block_is_refused(lines: str, key: str) -> None:
    split = 'fio = { bssplit = "4k/50:8k/50", norandommap = true }\n'
    said = told(workload(f"{lines}\n{split}"))
    assert any(f"has {key} and fio option bssplit" in one for one in said), said
    assert load(workload(f'engine = "native"\n{lines}\n{split}'))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("rwmixread = 90", "of which fio makes 10 % writes: less than one block of 128 KiB a"),
        ("rwmixread = 90", "Give at least 1310720 bytes a second, smaller blocks, or engine ="),
        ("rwmixread = [50, 7]", "of which fio makes 7 % reads"),
    ],
)
def test_a_direction_of_less_than_an_io_a_second_is_refused(lines: str, message: str) -> None:
    text = f'rate = ["8m", "1m"]\narrivals = "poisson"\n{lines}\n'
    (said,) = told(workload(text, rw="randrw", bs='["4k", "128k"]'))
    assert "Poisson arrivals at rate = '1m'" in said
    assert message in said
    native = workload(f'engine = "native"\n{text}', rw="randrw", bs='["4k", "128k"]')
    assert load(native)


@pytest.mark.parametrize(
    "lines",
    [
        'rate = 1310720\narrivals = "poisson"\nrwmixread = 90',
        'rate = "1m"\narrivals = "poisson"\nrwmixread = [0, 100]',
        'rate = "1m"\narrivals = "fixed"\nrwmixread = 90',
        'rate = "1m"\nrwmixread = 90',
    ],
)
def test_rates_that_fio_keeps_are_taken(lines: str) -> None:
    assert load(workload(lines, rw="randrw", bs='"128k"'))


def test_blocks_of_their_own_for_each_direction_make_no_mix_of_ios_at_a_rate_of_bytes() -> None:
    split = 'rate = "1m"\nfio = { bssplit = "4k/100,64k/100" }\n'
    (said,) = told(workload(split, rw="randrw"))
    assert "where rwmixread means I/Os" in said
    assert load(workload(split, rw="randwrite"))
    assert load(workload(split.replace(",64k/100", ""), rw="randrw"))
    assert load(workload(split.replace('rate = "1m"', ""), rw="randrw"))


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("4k/0", "come to 0 % in '4k/0'."),
        ("4k/80:64k/80", "come to 160 % in '4k/80:64k/80'."),
        ("4k/100,8k/0:16k/0", "come to 0 % in '8k/0:16k/0'."),
    ],
)
def test_shares_of_blocks_that_cannot_be_drawn_are_refused(split: str, message: str) -> None:
    (said,) = told(workload(f'rate = "1m"\nfio = {{ bssplit = "{split}" }}'))
    assert "bssplit" in said
    assert message in said


@pytest.mark.parametrize("split", ["4k", "4k:8k:16k", "4k/100:8k", "4k/0:8k", "4k/60", "4k/1,8k"])
def test_shares_that_leave_some_over_are_taken(split: str) -> None:
    job = Job.require_type(
        load(workload(f'rate = "1m"\nfio = {{ bssplit = "{split}" }}')).workloads[0].job
    )
    assert 4096 <= job.mean_block_bytes <= 16384


def test_trims_need_a_block_device() -> None:
    study = parse_study(trims(), FILE, StudyOverrides())
    assert Job.require_type(study.workloads[0].job).access.has_trims
    assert parse_study(trims(target=""), FILE, StudyOverrides(requires_path=False))
    for target in ('[target]\npath = "/mnt"\n', TARGET + 'filesystem = "xfs"\n'):
        said = told(trims(target=target), path=None)
        assert any("'t' has rw = " in one and "trims" in one for one in said), said
    said = told(trims("", "trim", ""))
    assert any("'t' has rw = " in one and "trims" in one for one in said), said


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("iodepth = [1, 4]\n", "iodepth = 4, but fio trims one at a time"),
        ('engine = "native"\nverify = true\n', "verify and rw = 'randtrim'"),
        ('engine = "native"\nfio = { hipri = true }\n', "hipri and rw = 'randtrim'"),
        ("rwmixread = 50\n", "does not mix"),
        ("[precondition]\nfill = 0\n", "trims, but with fill = 0 nothing was written"),
    ],
)
def test_trims_that_cannot_be_are_refused(more: str, message: str) -> None:
    said = told(trims(more), path=None)
    assert any(message in one for one in said), said


def test_the_native_engine_trims_at_a_depth() -> None:
    text = trims('engine = "native"\nioengine = "libaio"\niodepth = 16\n')
    assert (
        Job.require_type(parse_study(text, FILE, StudyOverrides()).workloads[0].job).iodepth == 16
    )


def test_a_device_that_takes_no_discards_is_refused_for_trims_alone() -> None:
    none = replace(DEVICE, discards=False)
    study = study_of(TRIM.format(rw="trim", more="") + TARGET)
    assert "takes no discards, which workloads that trim" in refused(study, none)
    assert refused(study, DEVICE) == refused(study_of(), none) == ""


def test_the_plan_fills_again_after_trims_and_says_what_becomes_of_the_device() -> None:
    study = study_of(TRIM.format(rw="trim", more="") + TARGET + "[method]\nrepeats = 2\n")
    plan = make_plan(study)
    labels = [run.point.workload for run in plan.runs]
    assert labels == ["w", "w", "t", "w", "w", "t"]
    # Once for the first writes and the trim, once after it.
    assert start_state_preparation_count(study, plan.runs) == 2
    assert start_state_preparation_count(study, (*plan.runs, plan.runs[0])) == 3
    assert any("2 x fill" in message for message, _ in plan.demand.time_items)
    assert "written over and trimmed" in plan.destroyed_device_texts[0]


def test_a_steady_state_is_made_again_after_trims() -> None:
    wish = "[precondition]\nsteady = true\n[method]\nrepeats = 2\n"
    study = study_of(TRIM.format(rw="trim", more="") + TARGET + wish)
    runs = make_plan(study).runs
    assert steady_state_series_count(study, runs) == 2
    assert (
        steady_state_series_count(study, tuple(run for run in runs if run.point.workload == "w"))
        == 1
    )


READ = '[[workload]]\nid = "r"\nrw = "randread"\nbs = "4k"\nfilesize = "1m"\n'


@pytest.mark.parametrize(("restore", "series"), [("once", 1), ("each-workload", 2)])
def test_a_state_that_is_made_anew_is_steady_no_more(restore: str, series: int) -> None:
    wish = f'[precondition]\nsteady = true\nrestore = "{restore}"\n'
    study = study_of(READ + TARGET + wish)
    runs = {run.point.workload: run for run in make_plan(study).runs}
    assert steady_state_series_count(study, (runs["w"], runs["r"], runs["w"])) == series


@pytest.mark.parametrize(("other", "times"), [("9", 1), ("8", 2)])
def test_configurations_that_share_a_device_share_its_state(other: str, times: int) -> None:
    table = '[[configuration]]\nid = "{0}"\ndevice = "/dev/nvme{1}n1"\nserial = "S{1}"\n'
    study = study_of(table.format("a", 9) + table.format("b", other))
    runs = {run.point.configuration: run for run in make_plan(study).runs}
    assert start_state_preparation_count(study, (runs["a"], runs["b"], runs["a"])) == times


def test_a_turn_is_each_targets_own() -> None:
    table = '[[configuration]]\nid = "{0}"\ndevice = "/dev/nvme{1}n1"\nserial = "S{1}"\n'
    wish = '[precondition]\nrestore = "each-workload"\nsteady = true\n'
    study = study_of(READ + wish + table.format("a", 9) + table.format("b", 8))
    runs = {(one.point.configuration, one.point.workload): one for one in make_plan(study).runs}
    scenario = (runs["a", "w"], runs["b", "w"], runs["a", "w"], runs["a", "r"], runs["b", "w"])
    assert (
        start_state_preparation_count(study, scenario),
        steady_state_series_count(study, scenario),
    ) == (3, 2)
