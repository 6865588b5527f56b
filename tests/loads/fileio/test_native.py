"""Workloads of the native engine in study files, and the engine chosen on the command line."""

from __future__ import annotations

import pytest

from iolab.core.engine import EngineName
from iolab.core.study import Study
from iolab.errors import StudyError
from iolab.loads.fileio.engine_facts import FIO_ENGINE, NATIVE_ENGINE
from iolab.loads.fileio.workload import Job
from iolab.study.parse import StudyOverrides, overrides_for_resume
from tests.guests.guest_studies import FLEET
from tests.plans import make_plan, parse_study
from tests.study.studies import FILE, SMALL, told, workload

META = '[[workload]]\nid = "meta"\nengine = "metadata"\nranks = 1\nfiles_per_rank = 9\n'
NATIVE = 'engine = "native"\n'


def study(text: str, engine: EngineName | None = None) -> Study:
    return parse_study(text, FILE, StudyOverrides(path="/data", engine=engine))


def test_a_native_workload_takes_the_best_way_unless_one_is_written() -> None:
    free = Job.require_type(study(workload(NATIVE)).workloads[0].job)
    assert (free.engine, free.ioengine) == (NATIVE_ENGINE, "auto")
    named = Job.require_type(study(workload(NATIVE + 'ioengine = "libaio"')).workloads[0].job)
    assert named.ioengine == "libaio"
    assert Job.require_type(study(workload()).workloads[0].job).ioengine == "libaio"


def test_what_it_cannot_do_is_refused_all_at_once_with_the_value() -> None:
    text = workload(
        NATIVE
        + 'ioengine = "posixaio"\n'
        + 'fio = { sync = "dsync", nice = 5, random_distribution = "normal:50" }'
    )
    said = told(text)
    named = ["'posixaio'", "sync = 'dsync'", "option nice", "random_distribution = 'normal:50'"]
    assert len(said) == 4
    assert all(any(value in one for one in said) for value in named), said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("random_distribution", "zipf:0"),
        ("random_distribution", "zipf:101"),
        ("random_distribution", "pareto:0"),
        ("random_distribution", "pareto:1.0"),
        ("random_distribution", "zoned:60/40:30/60"),
        ("random_distribution", "zipf:1.2:0.5"),
        ("bssplit", "4k/60:8k/50"),
        ("bssplit", "4k/0"),
        ("bssplit", "4k/50:6k/50"),
        ("bssplit", ":".join(f"{size}k/1" for size in range(4, 140, 4))),
        ("thinktime", "3601s"),
        ("fdatasync", 1),
        ("thinktime_blocks", 0),
    ],
)
def test_values_that_mean_something_else_are_refused(name: str, value: str | int) -> None:
    said = told(workload(f"{NATIVE}fio = {{ {name} = {value!r} }}".replace("'", '"')))
    assert any(f"fio option {name} = " in one for one in said), said


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('iodepth = 8\nfio = { thinktime = "1ms" }', "thinktime and iodepth = 8"),
        ('fio = { bssplit = "4k/50:8k/50" }', "bssplit without norandommap"),
        ('fio = { random_distribution = "zoned:80/20:20/80" }', "without norandommap"),
        ('fio = { bssplit = "4k/50:2m/50", norandommap = true }', "blocks of 2 MiB, more than"),
        ('ioengine = "libaio"\nfio = { hipri = true }', "hipri and ioengine = 'libaio'"),
        ("direct = false\nfio = { hipri = true }", "hipri and direct = false"),
        ('contents = "zeros"\nfio = { dedupe_percentage = 5 }', "and contents = 'zeros'"),
        ('contents = "zeros"\nverify = true', "verify and contents = 'zeros'"),
        ("verify = true\nfio = { dedupe_percentage = 5 }", "whose copies are alike"),
        (
            'verify = true\nfio = { bssplit = "4k/50:8k/50", norandommap = true }',
            "verify and fio option bssplit",
        ),
        ("verify = true\n[precondition]\nfill = 1", "verify and bs = 256 KiB"),
    ],
)
def test_what_it_would_not_do_alike_is_refused_before_anything_runs(
    lines: str, message: str
) -> None:
    bs = '"256k"' if "fill" in lines else '"4k"'
    said = told(workload(NATIVE + lines, bs=bs))
    assert any(message in one for one in said), said


def test_a_polled_ring_does_not_flush() -> None:
    text = workload(f"{NATIVE}fio = {{ hipri = true, fsync = 8 }}", rw="randwrite")
    assert any("hipri and fsync" in one for one in told(text))


@pytest.mark.parametrize(
    "lines",
    [
        'iodepth = 1\nfio = { thinktime = "1ms" }',
        'fio = { bssplit = "4k/50:8k/50", norandommap = true }',
        'fio = { random_distribution = "zoned:80/20:20/80", norandommap = true }',
        'iodepth = 8\nfio = { thinktime = 0, random_distribution = "pareto:0.2" }',
        "verify = true\nfio = { buffer_compress_percentage = 50 }",
    ],
)
def test_what_it_does_alike_is_taken(lines: str) -> None:
    assert (
        Job.require_type(study(workload(NATIVE + lines)).workloads[0].job).engine == NATIVE_ENGINE
    )


def test_a_block_of_two_writes_is_not_verified() -> None:
    text = workload(f"{NATIVE}verify = true").replace('"1m"', '"12k"').replace('"4k"', '"12k"')
    assert any("verify and bs = 12 KiB" in one for one in told(text))


def test_what_arrives_does_not_think() -> None:
    text = workload(NATIVE + 'rate_iops = 100\narrivals = "poisson"\nfio = { thinktime = "1ms" }')
    assert any("arrivals and fio option thinktime" in one for one in told(text))


def test_fio_verifies_nothing() -> None:
    assert any("has verify" in one for one in told(workload("verify = true")))


def test_verified_files_are_nobody_elses() -> None:
    plain = make_plan(study(workload(NATIVE))).data_sets[0].id
    verified = make_plan(study(workload(NATIVE + "verify = true"))).data_sets[0].id
    assert (plain, verified) == ("s1m", "s1mv4k")


def test_verified_blocks_of_each_size_have_their_own() -> None:
    sets = make_plan(study(workload(NATIVE + "verify = true", bs='["4k", "64k"]'))).data_sets
    assert [one.id for one in sets] == ["s1mv4k", "s1mv64k"]


def test_both_engines_use_the_same_files() -> None:
    ours, fios = study(SMALL, NATIVE_ENGINE), study(SMALL)
    assert make_plan(ours).data_sets == make_plan(fios).data_sets


def test_an_engine_chosen_on_the_command_line_stands_in_the_overrides() -> None:
    found = study(SMALL, NATIVE_ENGINE)
    assert {Job.require_type(one.job).engine for one in found.workloads} == {NATIVE_ENGINE}
    assert found.overrides[:2] == ("workload.rand-read.engine=native", "workload.mix.engine=native")
    again = parse_study(found.text, FILE, overrides_for_resume(found))
    assert again.workloads == found.workloads


def test_workloads_of_other_kinds_keep_theirs() -> None:
    text = SMALL.replace("[scale", META + "\n[scale")
    found = study(text, NATIVE_ENGINE)
    assert [one.job.engine for one in found.workloads] == ["native", "native", "metadata"]


def test_a_study_without_io_has_no_engine_to_choose() -> None:
    text = f'format = 1\nid = "s"\n{META}'
    options = StudyOverrides(path="/data", engine=FIO_ENGINE)
    with pytest.raises(StudyError) as caught:
        parse_study(text, FILE, options)
    assert "no workload that engine 'fio'" in str(caught.value.faults[0])


def test_more_than_a_ledger_holds_is_refused() -> None:
    large = workload(NATIVE + "verify = true\nnumjobs = 4").replace('"1m"', '"257g"')
    assert any("269484032 blocks on a host" in one for one in told(large)), told(large)
    many = workload(NATIVE + "verify = true\nnumjobs = [1, 7]\nfiles = 10000")
    assert any("70000 files on a host" in one for one in told(many)), told(many)
    assert study(workload(NATIVE + "verify = true\nnumjobs = 4").replace('"1m"', '"256g"'))


def test_disks_of_booted_guests_are_not_verified() -> None:
    verified = FLEET.replace('rw = "randrw"', f'{NATIVE}verify = true\nrw = "randrw"')
    assert any("laid out without stamps" in one for one in told(verified)), told(verified)
