"""`iolab init --from`: a study that does the same, and why any option is not in it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from iolab.importers.job_files import ALL_JOBS, StudyDraft, draft_of
from tests.cli.in_process import call
from tests.recorded import recorded

JOB = """
; what we always run
[global]
ioengine=libaio
direct=1
size=1g
runtime=60
time_based
ramp_time=10s
exec_prerun=rm -rf /tmp/x

[reads]
rw=randread
bs=4k
iodepth=32
numjobs=4
random_distribution=zipf:1.2

[mixed]
stonewall
rw=randrw
rwmixwrite=30
bs=8k,16k
unheard=7
include other.fio

[beside]
rw=write
bs=1m
ioengine=net
size=20%
"""
VDBENCH = """
* a curve
sd=sd1,lun=/dev/rdsk/c1,size=10g,threads=8,openflags=o_direct
wd=wd1,sd=sd1,xfersize=4k,rdpct=70,seekpct=100
wd=wd2,sd=sd1,xfersize=1m,rdpct=100,seekpct=0,range=(0,50)
rd=run1,wd=wd1,iorate=max,elapsed=60,interval=1,forthreads=(1,8,32)
rd=run2,wd=wd2,iorate=500,elapsed=60
"""


def drafted(text: str) -> tuple[dict[str, Any], StudyDraft]:
    draft = draft_of("study", "file", text)
    return tomllib.loads(draft.text), draft


def reasons(draft: StudyDraft, job: str) -> dict[str, str]:
    """What is told of a job's options, also where the same is so of others."""
    return {
        re.split(r"[= ]", one.option)[0]: one.reason
        for one in draft.notes
        if job in one.job.split(", ") or one.job == ALL_JOBS
    }


def test_a_job_file_of_fio_s_becomes_workloads_with_the_same_load() -> None:
    study, _ = drafted(JOB)
    assert study["method"]["runtime"] == "60s"
    assert study["method"]["warmup"] == "10s"
    reads, mixed, beside = study["workload"]
    assert reads == {
        "id": "reads",
        "title": "reads",
        "rw": "randread",
        "bs": "4k",
        "filesize": "1g",
        "numjobs": 4,
        "ioengine": "libaio",
        "iodepth": 32,
        "direct": True,
        "fio": {"random_distribution": "zipf:1.2"},
    }
    assert (mixed["rw"], mixed["rwmixread"], mixed["bs"]) == ("randrw", 70, "8k")
    assert (beside["rw"], beside["bs"]) == ("write", "1m")


def test_every_option_that_is_refused_or_changed_is_named_with_the_reason() -> None:
    _, draft = drafted(JOB)
    assert reasons(draft, "reads").keys() == {"time_based", "exec_prerun"}
    assert reasons(draft, "mixed").keys() >= {
        "exec_prerun",
        "bs",
        "unheard",
        "include",
        "stonewall",
    }
    assert reasons(draft, "beside").keys() >= {"ioengine", "size", "stonewall"}
    for one in draft.notes:
        assert str(one) in draft.text
        assert one.reason


def test_a_parameter_file_of_vdbench_s_becomes_workloads_as_far_as_it_maps() -> None:
    study, draft = drafted(VDBENCH)
    one, two = study["workload"]
    assert (one["rw"], one["rwmixread"], one["bs"], one["iodepth"]) == (
        "randrw",
        70,
        "4k",
        [1, 8, 32],
    )
    assert one["direct"] is True
    assert (two["rw"], two["bs"], two["rate_iops"], two["filesize"]) == ("read", "1m", 500, "10g")
    assert reasons(draft, "run2").keys() >= {"range", "threads"}


def test_the_options_in_a_report_of_fio_s_are_a_job_file() -> None:
    text = recorded("import/fio/plain-3.33.json").decode()
    options = json.loads(text)["jobs"][0]["job options"]
    study, _ = drafted(text)
    (job,) = study["workload"]
    assert job["rw"] == options["rw"]
    assert job["iodepth"] == int(options["iodepth"])
    assert job["direct"] is True
    assert study["method"]["runtime"] == f"{options['runtime']}s"


@pytest.mark.parametrize("text", [JOB, VDBENCH], ids=["fio", "vdbench"])
def test_the_study_is_right_and_is_written_with_its_notes(text: str, tmp_path: Path) -> None:
    source, target = tmp_path / "job.txt", tmp_path / "mine.toml"
    source.write_text(text)
    done = call("init", str(target), "--from", str(source), "--json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert told["written"] == str(target)
    assert len(told["notes"]) >= 2
    assert call("check", str(target)).returncode == 0
    again = call("init", str(target), "--from", str(source))
    assert again.returncode != 0


DEVICE = """
[global]
filename=/dev/nvme0n1
ioengine=libaio
hipri=1
thread
direct=1
size=8g
timeout=1m
time_based
include before.fio
[random]
rw=randread
bs=4k
numjobs=4
size=${SIZE}
[scan]
rw=read
bs=128k
numjobs=4
[trims]
rw=trimwrite
"""


def test_a_device_of_several_jobs_is_divided_and_what_is_of_all_jobs_is_told_once() -> None:
    study, draft = drafted(DEVICE)
    random, scan = study["workload"]
    assert (random["filesize"], scan["filesize"]) == ("1g", "2g")
    assert random["fio"] == {"thread": "1"}
    assert "shared_file" not in random
    assert study["method"]["runtime"] == "1m"
    assert {"rw"} <= reasons(draft, "trims").keys()
    assert {"hipri", "filename", "size", "include"} <= reasons(draft, "random").keys()
    assert len({(one.option, one.reason) for one in draft.notes}) == len(draft.notes)


def test_jobs_of_one_file_have_together_what_the_file_has() -> None:
    study, draft = drafted("[w]\nfilename=one\nsize=8g\nnumjobs=4\nrw=write\nbs=1m\ndirect=1\n")
    (job,) = study["workload"]
    assert (job["shared_file"], job["filesize"], job["numjobs"]) == (True, "2g", 4)
    assert "filename" in reasons(draft, "w")


def test_the_draft_tells_what_in_it_no_study_may_have(tmp_path: Path) -> None:
    source, target = tmp_path / "job.fio", tmp_path / "mine.toml"
    source.write_text("[a]\nrw=read\nbs=4k\nsize=1g\nioengine=libaio\niodepth=99999999\n")
    done = call("init", str(target), "--from", str(source))
    assert done.returncode == 0
    assert "99999999" in done.stderr


@pytest.mark.parametrize(
    "text", ["", "no job", '{"fio version": "x", "jobs": 3', "[global]\nbs=4k\n"]
)
def test_what_is_no_job_file_is_refused(text: str, tmp_path: Path) -> None:
    source = tmp_path / "job.fio"
    source.write_text(text)
    done = call("init", str(tmp_path / "s.toml"), "--from", str(source))
    assert done.returncode == 2
    assert not (tmp_path / "s.toml").exists()


def test_hostile_options_never_leave_their_string(tmp_path: Path) -> None:
    source = tmp_path / "job.fio"
    source.write_text(
        '[a"]\nevil = "x"\n[b\\\n]\nrw=randread"\nbs=-1\niodepth=9999999999\nnumjobs=-4\nsize=1k\n'
        'norandommap=1"\nthinktime=${HOME}\n[c]\nsize=99999999999999999999g\nruntime=0\n'
    )
    target = tmp_path / "s.toml"
    done = call("init", str(target), "--from", str(source))
    if done.returncode == 0:
        tomllib.loads(target.read_text(encoding="utf-8"))
    else:
        assert done.returncode == 2
