"""`iolab init --from`: a study that does the same, and why any option is not in it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from iolab.errors import UsageError
from iolab.importers.job_files import ALL_JOBS, StudyDraft, draft_study
from iolab.loads.fileio.options import LEFT_OUT
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
ioengine=windowsaio
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
    draft = draft_study("study", "file", text)
    return tomllib.loads(draft.text), draft


def reasons(draft: StudyDraft, job: str) -> dict[str, str]:
    """What is told of a job's options, also where the same is so of others."""
    return {
        re.split(r"[= ]", one.option)[0]: one.reason
        for one in draft.notes
        if job in one.job_name.split(", ") or one.job_name == ALL_JOBS
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


FIO_CASES: dict[str, dict[str, object]] = {
    # An option set to what a job may have: what the study then has, or what is told of it.
    "bs=64KB": {"bs": "64k"},
    "bs=64KiB": {"bs": "64000", "note": "64000"},
    "bs=65536": {"bs": "64k"},
    "bs=0x10000": {"bs": "64k"},
    "bs=4k,16k": {"bs": "4k"},
    "bs=,16k": {"bs": "4k"},
    "bs=8K;a comment": {"bs": "8k"},
    "bs=1000": {"note": "4k"},
    "bs=${BS}": {"note": "${BS}"},
    "blocksize=8k": {"bs": "8k"},
    "bsrange=8k-8k": {"bs": "8k"},
    "bsrange=8k-64k": {"bs": "8k", "note": "8k-64k"},
    "bssplit=4K/60:64K/40": {"fio": {"bssplit": "4k/60:64k/40"}},
    "bssplit=4k/60:64k/40,8k/100": {"fio": {"bssplit": "4k/60:64k/40"}},
    "bssplit=64KiB/100": {"note": "64KiB/100"},
    "bssplit=4k/60:64k/60": {"note": "100 %"},
    "size=10GiB": {"filesize": "9765624k", "note": "10000000000"},
    "size=20%": {"filesize": "1g", "note": "20%"},
    "size=1.5g": {"filesize": "1g", "note": "1.5g"},
    "filesize=2g": {"filesize": "2g", "note": "size=4g"},
    "nrfiles=4": {"files": 4, "filesize": "1g"},
    "iodepth=0x10": {"iodepth": 16},
    "iodepth=${QD}": {"iodepth": 1, "note": "${QD}"},
    "iodepth=(4*8)": {"iodepth": 1, "note": "(4*8)"},
    "numjobs=2*2": {"numjobs": 1, "note": "2*2"},
    "numjobs=$ncpus": {"numjobs": 1, "note": "$ncpus"},
    "direct=${DIRECT}": {"direct": False, "note": "${DIRECT}"},
    "buffered=1": {"direct": False, "note": "direct=0"},
    "rwmixread=70": {"rw": "randread", "note": "rwmixread=70"},
    "rate_iops=0": {"note": "rate_iops=0"},
    "rate_iops=500": {"rate_iops": 500},
    "rate_iops=500,": {"rate_iops": 500},
    "rate_iops=,500": {"note": "rate_iops=,500"},
    "rate=1m,2m": {"rate": 1 << 20},
    "rate_process=poisson": {"note": "rate_process=poisson"},
    "thinktime=0": {"note": "thinktime=0"},
    "thinktime=2ms": {"fio": {"thinktime": "2ms"}},
    "ramp_time=0": {"note": "ramp_time=0"},
    "zonemode=zbd": {"note": "zonemode=zbd"},
    "verify=crc32c": {"note": "verify=crc32c"},
    "read_iolog=trace.log": {"note": "read_iolog=trace.log"},
    "loops=3": {"note": "loops=3"},
    "kb_base=1000": {"note": "kb_base=1000"},
    "filename=/dev/sda:/dev/sdb": {"filesize": "2g", "note": "one of 2 devices"},
    "filename=a:b": {"files": 2, "filesize": "2g", "note": "filename=a:b"},
    f"ramp_time={'9' * 5000}": {"note": "ramp_time=9"},
    "include=other.fio": {"note": "include=other.fio"},
    "ioengine=mmap": {"ioengine": "psync", "note": "ioengine=mmap"},
}
READS = "[a]\nrw=randread\nioengine=libaio\ndirect=1\nsize=4g\nruntime=60\ntime_based\n"


@pytest.mark.parametrize("line", FIO_CASES)
def test_an_option_of_fio_s_is_kept_or_its_note_has_what_stood_there(line: str) -> None:
    expected = dict(FIO_CASES[line])
    study, draft = drafted(f"{READS}{line}\n")
    note = str(expected.pop("note", ""))
    (job,) = study["workload"]
    assert {key: job.get(key) for key in expected} == expected
    assert {"rate", "rate_iops"} & job.keys() == {"rate", "rate_iops"} & expected.keys()
    notes = [str(each) for each in draft.notes if not str(each).endswith(LEFT_OUT["time_based"])]
    if note:
        assert any(note in text for text in notes)
    elif not line.startswith("filename"):
        assert notes == []


def test_fio_s_units_follow_kb_base() -> None:
    study, _ = drafted(f"{READS}kb_base=1000\nbs=64KiB\nsize=64m\n")
    (job,) = study["workload"]
    assert (job["bs"], job["filesize"]) == ("64k", "61m")


def test_what_comes_last_of_two_opposites_holds() -> None:
    study, _ = drafted("[a]\nrw=randrw\nrwmixwrite=30\nrwmixread=20\ndirect=1\nbuffered=1\n")
    (job,) = study["workload"]
    assert (job["rwmixread"], job["direct"]) == (20, False)


def test_values_for_writes_are_those_of_a_job_that_writes() -> None:
    study, draft = drafted("[a]\nrw=randwrite\nbs=4k,16k\nrate=1m,2m\nsize=1g\ndirect=1\n")
    (job,) = study["workload"]
    assert (job["bs"], job["rate"]) == ("16k", 2 << 20)
    assert not {"bs", "rate"} & reasons(draft, "a").keys()


OPTIONS = re.findall(r"^ *(\w+) +:", recorded("import/fio/cmdhelp-3.33.txt").decode(), re.MULTILINE)


@pytest.mark.parametrize("option", OPTIONS)
def test_no_option_of_fio_s_is_dropped_without_a_note(option: str) -> None:
    """With a value that is no default; the names are those that fio prints."""
    job = READS.replace("direct=1\n", "") if option == "direct" else READS
    # A job that is alone starts by itself, with or without stonewall.
    job += "[b]\n" if option == "stonewall" else ""
    plain = drafted(job)[1]
    if option in ("rw", "ioengine"):
        with pytest.raises(UsageError, match=f"{option}=3"):
            drafted(f"{job}{option}=3\n")
        return
    draft = drafted(f"{job}{option}=3\n")[1]
    assert draft.text != plain.text
    named = any(option in str(note) for note in draft.notes)
    assert named or _workloads(draft) != _workloads(plain) or option == "stonewall"


def _workloads(draft: StudyDraft) -> object:
    study = tomllib.loads(draft.text)
    return study["workload"], study["method"]


SECTIONS = """
bs=1k
[global]
rw=read
bs=64k
size=1g
direct=1
[one]
runtime=1m
[global]
bs=128k
[one]
stonewall
runtime=60
ramp_time=5
[three]
new_group
runtime=2m
[waits]
wait_for=one
"""


def test_sections_are_read_in_order_and_may_have_one_name() -> None:
    study, draft = drafted(SECTIONS)
    assert [job["id"] for job in study["workload"]] == ["one", "one-2", "three", "waits"]
    assert [job["bs"] for job in study["workload"]] == ["64k", "128k", "128k", "128k"]
    assert (study["method"]["runtime"], study["method"]["warmup"]) == ("2m", "5s")
    assert {"bs", "runtime", "ramp_time"} <= reasons(draft, ALL_JOBS).keys()
    # What a new group reports apart still runs beside the job before it.
    assert "stonewall" in reasons(draft, "three")
    assert "stonewall" not in reasons(draft, "waits")
    assert "wait_for" in reasons(draft, "waits")


@pytest.mark.parametrize(
    "text",
    [
        "[a]\nioengine=net\nrw=write\nhostname=peer\n",
        "[a]\nioengine=null\nrw=read\nsize=1g\n",
        "[a]\nioengine=${ENGINE}\nrw=read\n",
        "[a]\nrw=${MODE}\nsize=1g\n",
        "[a]\nrw=trimwrite\nsize=1g\n",
        "[mysqld]\nport=3306\nmax_connections = 100\n",
        "#!/bin/sh\n[ -n a ]\nrw=read\n",
        '{"fio version": "fio-2.1", "jobs": [{"jobname": "a", "read": {}}]}',
        "fsd=f,anchor=/mnt,depth=2,width=4,files=100\nfwd=w,fsd=f\nrd=r,fwd=w,fwdrate=max\n",
        "sd=s,lun=/dev/sdb\nwd=w,sd=s\nrd=r,wd=other,iorate=max\n",
        "include=disks\nwd=w,sd=sd*\nrd=r,wd=w,iorate=max\n",
    ],
)
def test_there_is_no_study_where_nothing_of_the_load_is_left(text: str, tmp_path: Path) -> None:
    source = tmp_path / "job"
    source.write_text(text)
    done = call("init", str(tmp_path / "s.toml"), "--from", str(source))
    assert done.returncode == 2
    assert not (tmp_path / "s.toml").exists()


def test_jobs_of_one_name_in_a_report_are_kept_where_their_options_differ() -> None:
    jobs = [{"jobname": "a", "job options": {"bs": size}} for size in ("4k", "8k", "4k")]
    text = json.dumps({"fio version": "fio-3.30", "global options": {"rw": "read"}, "jobs": jobs})
    study, _ = drafted(text)
    assert [job["bs"] for job in study["workload"]] == ["4k", "8k"]


VDBENCH_SHORT = """
* short words, defaults, and definitions over lines
compratio=2
sd=default,openf=o_direct,th=4
sd=sd1,lun=/dev/sdb,size=10m
sd=sd2,lun=/dev/sdc,
size=10m,range=(0,50)
wd=default,xf=8k
wd=mixed,sd=sd1,rdpct=100,wrpct=30,seek=seq
wd=sizes,sd=sd*,xf=(4k,50,8k,50),rdp=50
wd=idle,sd=sd1
rd=default,el=2m,in=1,wa=10
rd=rd1,wd=mixed,io=10,forth=(1-16,d) comment
rd=rd2,wd=(mixed,sizes),io=100,dist=det
rd=nearly,wd=mixed,io=max,seek=.1
rd=rd3,wd=mixed,io=max,forxf=(4k,12k),forrd=(0,50),forse=(0,100)
eof
rd=rd4,wd=mixed
"""


def test_vdbench_s_words_may_be_short_and_its_definitions_have_defaults() -> None:
    study, draft = drafted(VDBENCH_SHORT)
    first, second, third, nearly, last = study["workload"]
    assert study["method"] == {"warmup": "10s", "runtime": "2m", "repeats": 3}
    assert (first["rw"], first["rwmixread"], first["bs"]) == ("rw", 70, "8k")
    assert (first["iodepth"], first["direct"]) == ([1, 2, 4, 8, 16], True)
    # vdbench draws the times of its I/Os under a rate at random unless a run says otherwise.
    assert (first["rate_iops"], first["arrivals"]) == (10, "poisson")
    assert (second["id"], third["id"]) == ("rd2-mixed", "rd2-sizes")
    assert third["fio"] == {"bssplit": "4k/50:8k/50"}
    assert (third["rw"], third["rwmixread"]) == ("randrw", 50)
    assert "rate_iops" not in second.keys() | third.keys()
    assert (last["bs"], last["rwmixread"], last["filesize"]) == (["4k", "12k"], [0, 50], "10236k")
    # A tenth of a percent of seeks is nearer to none than to all.
    assert (nearly["rw"], "seekpct" in reasons(draft, "nearly")) == ("rw", True)
    assert {"wd", "iorate"} <= reasons(draft, "rd2-mixed").keys()
    assert {"sd", "sd2", "distribution"} <= reasons(draft, "rd2-sizes").keys()
    assert "seekpct" in reasons(draft, "rd3")
    assert {"compratio", "wd"} <= reasons(draft, "file").keys()


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
