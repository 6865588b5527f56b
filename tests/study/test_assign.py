"""Values set over a study: `--set`, scales and `--path`."""

from __future__ import annotations

import pytest

from iolab.core.workload import Axis
from iolab.loads.fileio.workload import Job, WrittenContents
from iolab.study.parse import StudyOverrides, overrides_for_resume, scale_names
from tests.plans import parse_study
from tests.study.studies import SMALL, load, told


def test_full_is_no_name_for_a_scale() -> None:
    (fault,) = told(SMALL + "[scale.full]\n")
    assert "Scale 'full' is" in fault


def test_an_override_over_a_value_that_is_no_table_tells_the_files_own_fault() -> None:
    text = SMALL.replace("rwmixread = 70", "rwmixread = 70\nfio = 3")
    (fault,) = told(text, "workload.mix.fio.norandommap=1")
    assert fault.startswith("s.toml:15: fio of workload 'mix' is 3")


def test_one_value_over_a_list_stays_an_axis() -> None:
    assert load(SMALL, "workload.rand-read.iodepth=8").workloads[0].sweep == (
        Axis("iodepth", (8,)),
    )
    assert load(SMALL, "workload.mix.iodepth=8").workloads[1].sweep == ()


def test_every_section_can_be_set() -> None:
    study = load(
        SMALL,
        "method.runtime=10s",
        "method.warmup=0.5",
        "method.drop_caches=false",
        "telemetry.interval=500ms",
        "target.keep_files=true",
        "configuration.default.title=2024",
        "configuration.default.capacity.raw_tb=461",
        "configuration.default.hardware.ssd=10",
        "configuration.*.nodes=6",
        "host.local.path=/on/local",
        "workload.mix.contents=zeros",
        "workload.mix.fio.cpus_allowed=0,1",
        path=None,
    )
    assert (study.method.runtime_s, study.method.warmup_s) == (10.0, 0.5)
    assert not study.method.drop_caches
    assert study.telemetry.interval_ms == 500
    assert study.target.keep_files
    configuration = study.configurations[0]
    assert (configuration.title, configuration.nodes) == ("2024", 6)
    assert configuration.capacity.raw_tb == 461
    assert configuration.hardware == (("ssd", "10"),)
    assert study.hosts[0].path == "/on/local"
    assert Job.require_type(study.workloads[1].job).contents is WrittenContents.ZEROS
    assert study.workloads[1].job.options == (("cpus_allowed", "0,1"),)


def test_set_wins_over_the_scale_and_the_later_over_the_earlier() -> None:
    study = load(SMALL, "workload.mix.filesize=32k", "workload.mix.filesize=16k", scale="tiny")
    assert [Job.require_type(workload.job).file_bytes for workload in study.workloads] == [
        64 << 10,
        16 << 10,
    ]
    assert study.scale == "tiny"


def test_a_scale_may_be_written_without_quotes() -> None:
    text = SMALL + "[scale.other]\nmethod.runtime = 3\nworkload.mix.iodepth = [2, 4]\n"
    study = load(text, scale="other")
    assert study.method.runtime_s == 3
    assert study.workloads[1].sweep == (Axis("iodepth", (2, 4)),)


def test_ids_with_dots_are_found() -> None:
    text = SMALL.replace('"mix"', '"rand-read.mix.v1"')
    assert (
        Job.require_type(load(text, "workload.rand-read.mix.v1.iodepth=4").workloads[1].job).iodepth
        == 4
    )


def test_the_study_remembers_what_was_set() -> None:
    study = load(SMALL, "method.runtime=10s", path="/mnt/x", scale="tiny")
    assert study.overrides == ("method.runtime=10s", "target.path=/mnt/x")
    assert study.text == SMALL
    assert parse_study(study.text, "again.toml", overrides_for_resume(study)) == study


def test_a_study_without_a_path_can_be_read_to_be_listed() -> None:
    study = parse_study(SMALL, "s.toml", StudyOverrides(requires_path=False))
    assert study.configurations[0].path == ""
    assert parse_study(study.text, "s.toml", overrides_for_resume(study)) == study


def test_the_scales_of_a_study() -> None:
    assert scale_names(SMALL) == ("full", "tiny")
    assert scale_names("not = = toml") == ("full",)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("workload.mix.iodpeth=1", "Unknown key 'iodpeth'. Did you mean 'iodepth'?"),
        ("workload.*.iodpeth=1", "Unknown key 'iodpeth'. Did you mean 'iodepth'?"),
        ("workload.mxi.iodepth=1", "There is no workload 'mxi'. Did you mean 'mix'?"),
        ("workload.zzzzz.iodepth=1", "The workload ids are rand-read, mix."),
        ("workload.mix=1", "There is no workload 'mix'."),
        ("host.lcal.path=/x", "There is no host 'lcal'. Did you mean 'local'?"),
        ("method.runtim=1", "Unknown key 'runtim'. Did you mean 'runtime'?"),
        ("method.runtime.x=1", "Unknown key 'runtime.x'."),
        ("method=1", "'method' names no value of a study."),
        ("workload=1", "Write workload.ID.KEY=VALUE."),
        ("worklaod.mix.bs=4k", "'worklaod.mix.bs' names no value of a study. Did you mean"),
        ("iodepth=1", "Write workload.ID.iodepth or workload.*.iodepth, for all of them."),
        ("title=x", "Write workload.ID.title or workload.*.title."),
        ("foo", "There is no '='."),
        ("=", "'' names no value of a study."),
        ("workload.mix.id=x", "'workload.mix.id' would rename an element."),
        ("workload.mix.fio=x", "'fio' is a table."),
        ("workload.mix.iodepth=", "iodepth of workload 'mix' is ''."),
        ("workload.mix.iodepth=1,,2", "iodepth of workload 'mix' is ''."),
        ("workload.mix.iodepth=1,1", "iodepth of workload 'mix' has 1 twice."),
        ("workload.mix.bs=4 parsecs", "bs of workload 'mix' is '4 parsecs', which is not a size."),
        ("workload.*.filesize=6k", "Workload 'rand-read' has filesize = '6k', which is not a mult"),
        ("workload.*.ioengine=sync", "has iodepth = 8 but ioengine = 'sync'"),
        ("workload.*.fio.exec_prerun=x", "fio option 'exec_prerun' of workload 'rand-read' is not"),
        ("configuration.default.cost.servers=3", "has no cost.currency."),
        ("workload.mix.iodepth=" + "9" * 400, "iodepth of workload 'mix' is '999"),
    ],
)
def test_a_wrong_assignment_names_itself(assignment: str, message: str) -> None:
    first = told(SMALL, assignment)[0]
    assert first.startswith(f"--set {assignment[:30]}")
    assert message in first


def test_a_fault_set_on_several_workloads_is_told_once() -> None:
    """Though each of them has another value that it does not go with."""
    third = '[[workload]]\nid = "write"\nrw = "randwrite"\nbs = "4k"\nfilesize = "1m"\n'
    (fault,) = told(SMALL + third, "workload.*.rwmixread=50")
    assert fault.startswith("--set workload.*.rwmixread=50: Workload 'rand-read' has rwmixread")


def test_an_assignment_is_shown_escaped_and_cut() -> None:
    (fault,) = told(SMALL, "workload.mix.\x1b[2J" + "x" * 500 + "=1")
    assert fault.isprintable()
    assert len(fault) < 300


def test_a_scale_that_is_not_there() -> None:
    assert "no scale 'tniy'. Did you mean 'tiny'" in told(SMALL, scale="tniy")[0]


def test_a_fault_of_a_replaced_list_is_not_told_at_its_old_line() -> None:
    (fault,) = told(SMALL, "workload.rand-read.iodepth=1,0")
    assert fault.startswith("--set workload.rand-read.iodepth=1,0: ")
