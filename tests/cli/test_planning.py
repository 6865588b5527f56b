"""A plan tells what the load works on: files in a directory, or a region of a device."""

from __future__ import annotations

import json
import re
from pathlib import Path

from bench.store import write_session
from bench.synthetic import Shape
from msgspec.structs import replace

from iolab.cli.planning import plan_document, plan_lines, plan_note_texts
from iolab.errors import ExitCode, Fault, HostError
from iolab.study.inventory import Inventory
from iolab.study.parse import StudyOverrides
from tests.cli.in_process import call
from tests.cli.screens import drawn
from tests.facts import tells
from tests.guests.guest_studies import FLEET
from tests.loads.keyvalue.key_value_studies import db_bench, ycsb
from tests.plans import make_plan, parse_study
from tests.study.studies import SMALL, load
from tests.study.test_guard import FACTS, TARGET

HEAD = 'format = 1\nid = "d"\n'
STUDY = """
[[workload]]
id = "w"
rw = "randwrite"
bs = "4k"
numjobs = 2
filesize = "1m"
"""


def test_a_device_has_a_region_and_a_directory_has_files() -> None:
    def told(options: StudyOverrides, more: str = "") -> str:
        study = parse_study(HEAD + more + STUDY, "d.toml", options)
        return "\n".join(drawn(plan_lines(study, make_plan(study), None)))

    for fill, times in (("", "once"), ("[precondition]\nfill = 2\n", "2 times")):
        text = told(StudyOverrides(device="/dev/x", serial="S"), fill)
        assert tells(text, "first 2 MiB", f"written over {times}"), text
        assert "laid out" not in text
    assert tells(told(StudyOverrides(path="/mnt")), "2 MiB", "each host", "2 x 1 MiB")


PHASES = """
format = 1
id = "loss"
[[workload]]
id = "reads"
engine = "native"
rw = "randread"
bs = "4k"
filesize = "16m"
[[phase]]
id = "before"
seconds = "20s"
[[phase]]
id = "degraded"
seconds = "20s"
[[phase]]
id = "rebuild"
until = "whole"
longest = "3m"
[[event]]
id = "lose"
action = "lose"
phase = "degraded"
undo_phase = "rebuild"
[[event]]
id = "stop"
action = "lose"
phase = "degraded"
after = "5s"
[[event]]
id = "fail"
action = "fail"
phase = "rebuild"
[method]
warmup = "2s"
"""
ACTIONS = """
format = 1
[[host]]
name = "a"
path = "/mnt/bench"
[[action]]
id = "lose"
host = "a"
command = ["/bin/lose"]
undo = ["/bin/find"]
[[action]]
id = "fail"
host = "a"
command = ["/bin/fail"]
destructive = true
[[witness]]
id = "whole"
host = "a"
command = ["/bin/state"]
"""


def test_a_plan_says_what_events_destroy_when_they_are_undone_and_what_consents() -> None:
    options = StudyOverrides(inventory=Inventory(ACTIONS, "hosts.toml"))
    study = parse_study(PHASES, "s.toml", options)
    plan = make_plan(study)
    rows = drawn(plan_lines(study, plan, None))
    text = "\n".join(rows)
    assert tells(
        text, "lose@a, as phase 'degraded' begins", "undone when 'rebuild' begins: /bin/find"
    )
    assert tells(
        text, "stop@a, 5 s into phase 'degraded'", "undone at the end of the run: /bin/find"
    )
    assert tells(text, "--event lose@a --event stop@a --destroy fail@a")
    (destroys,) = (row for row in rows if row.startswith("destroys"))
    assert tells(destroys, "event fail on host a", "/bin/fail")
    assert "nothing" not in destroys
    document = plan_document(study, plan, None)
    assert len(document["destroys"]) == 1
    # 2 s of warm-up and 40 s of phases, to three minutes more.
    assert document["budget"]["seconds"] - document["budget"]["least_seconds"] == 180
    assert tells(text, "phases of 40 s to 4 min")
    # Of repeats, too, what witnesses may end is a range.
    assert re.search(r"--repeats 3 takes \d+ (s|min) to \d+ min", text)


def shown(text: str, *sets: str, fs_type: str | None = None) -> str:
    """The plan of a whole study's text, on a host with that file system if any is given."""
    study = parse_study(text, "k.toml", StudyOverrides(path="/mnt", set_arguments=sets))
    facts = None
    if fs_type is not None:
        facts = {"local": replace(FACTS, target=replace(TARGET, fs_type=fs_type))}
    return "\n".join(drawn(plan_lines(study, make_plan(study), facts)))


def test_a_plan_of_db_bench_names_its_databases_and_jobs() -> None:
    text = db_bench(
        'write_rate = "2m"\nmemory = "256m"',
        benchmark="readwhilewriting",
        block_size='["4k", "16k"]',
    )
    told = shown(text, "target.filesystem=xfs", "target.image=1g", "method.repeats=3")
    assert tells(told, "readwhilewriting", "4 KiB", "4 threads", "2.10 MB/s"), told
    assert tells(told, "2 databases", "1.05 MiB", "1,000 keys", "1 KiB")
    assert tells(told, "XFS in an image", "1 GiB")
    assert "note" not in told
    mixed = shown(db_bench("read_percent = 70", benchmark="readrandomwriterandom"))
    assert "readrandomwriterandom 70% read" in mixed
    own = shown(db_bench('database = "/mnt/db"\nkey_size = 16\nvalue_size = 1024'))
    assert "copy of /mnt/db" in own


def test_a_plan_of_ycsb_names_its_server() -> None:
    told = shown(ycsb("rate = 1000"))
    assert tells(told, "0.5 read", "0.5 update", "uniform", "8 threads", "1,000 ops/s"), told
    assert tells(told, "1 database", "4.24 MiB", "1,000 records", "4 fields of 1 KiB")
    server = next(line for line in told.splitlines() if line.startswith("server"))
    assert server.split()[1:3] == ["embedded:", "RocksDB"]
    managed = shown(ycsb(), "server.kind=managed", "server.memory=2g")
    assert tells(managed, "Cassandra 4.0.17", "heap 1 GiB", "memory 2 GiB", "replication 1")
    given = shown(ycsb(), "server.kind=given", "server.addresses=a,b:9043")
    assert "given: a, b:9043, replication 1, consistency ONE" in given


def test_a_device_that_gets_an_xfs_is_destroyed() -> None:
    more = '[target]\nfilesystem = "xfs"\ndevice = "/dev/x"\nserial = "S"\n'
    study = parse_study(db_bench() + more, "k.toml", StudyOverrides())
    (told,) = make_plan(study).destroyed_device_texts
    for part in ("'/dev/x'", "'S'", "'local'", "formatted"):
        assert part in told


def test_notes_stand_in_the_plan_and_in_its_document() -> None:
    text = db_bench('memory = "32m"')
    assert "note" in shown(text, "method.repeats=3")
    assert "no reflinks" in shown(text, fs_type="ext4")
    assert "reflinks" not in shown(text, fs_type="xfs")
    study = parse_study(
        text, "k.toml", StudyOverrides(path="/mnt", set_arguments=("method.repeats=3",))
    )
    (note,) = plan_document(study, make_plan(study), None)["notes"]
    assert note.startswith("w has 32 MiB")


def test_a_plan_of_guests_says_what_they_have_and_what_to_know() -> None:
    text = shown(FLEET + "iops = 200\n")
    for part in (
        "3 on each of 2 nodes, each 2 vCPUs and 256 MiB",
        "64 MiB for each guest",
        "at most 200 IOPS",
        "/mnt on node-1 and node-2",
        "guests are emulated",
        "limited to 200 IOPS each",
        "stay up",
        "destroys    nothing",
    ):
        assert part in text
    assert "region" not in text


def test_a_plan_of_guests_tells_what_kinds_of_disks_and_processors_they_have() -> None:
    modelled = 'disk_kind = "modelled"\nlatency = "10ms"\naccel = "tcg"\npin = "cores"\n'
    text = shown(FLEET.replace("[1, 2, 3]", "1") + modelled)
    assert tells(text, "2 vCPUs", "of its own")
    assert "modelled: 10 ms" in text
    assert tells(text, "vm.accel")
    assert "no storage" in text
    assert "stay up" not in text
    kvm = shown(FLEET + 'accel = "kvm"\npin = "numa"\n')
    assert "on one NUMA node" in kvm
    assert "emulated" not in kvm


def test_a_plan_names_nodes_that_are_one_machine_or_short_of_processors() -> None:
    study = load(FLEET, "vm.pin=cores")
    two = replace(FACTS, cpu=replace(FACTS.cpu, threads=4))
    notes = list(plan_note_texts(study, make_plan(study), {"node-1": two, "node-2": two}))
    for part in ("are one machine", "12 vCPUs share the 4 processors", "4 of 6 guests"):
        assert any(part in note for note in notes)
    many = replace(FACTS, cpu=replace(FACTS.cpu, threads=64))
    others = replace(many, kernel=replace(many.kernel, boot_id="other"))
    apart = list(plan_note_texts(study, make_plan(study), {"node-1": many, "node-2": others}))
    assert not any("node-1" in note for note in apart)


def test_guests_stand_in_the_plans_document() -> None:
    study = load(FLEET)
    document = plan_document(study, make_plan(study), {"node-1": FACTS})
    assert document["guests"]["booted"]["memory_bytes"] == 256 << 20
    assert document["guests"]["nodes"][0] == {
        "node": "node-1",
        "path": "/mnt/t",
        "guests": ["node-1-vm01", "node-1-vm02", "node-1-vm03"],
        "free_bytes": TARGET.free_bytes,
    }
    assert document["destroys"] == []
    assert plan_document(load(SMALL), make_plan(load(SMALL)), None)["guests"] is None


def test_a_summary_has_a_row_for_each_workload_and_the_same_cost() -> None:
    read = load(SWEPT)
    plan = make_plan(read)
    whole = drawn(plan_lines(read, plan, None))
    short = drawn(plan_lines(read, plan, None, is_summary=True))
    rows = [line for line in short if line.startswith("reads ")]
    assert [line.split()[1:3] for line in rows] == [["3", "6"]]
    assert "iodepth 1, 4, 8" in rows[0]
    costs = [line for line in whole if line.startswith(("runs ", "writes "))]
    assert [line for line in short if line.startswith(("runs ", "writes "))] == costs
    assert len(short) < len(whole)


def test_a_refused_plan_still_says_how_long_it_takes_and_its_reason_once() -> None:
    read = load(SWEPT)
    reason = Fault("There is no room.", "Make room.")
    error = HostError("The plan cannot run for 1 reason.", "Correct this.", (reason,))
    lines = drawn(plan_lines(read, make_plan(read), None, is_summary=True, refusal=error))
    (time,) = [line for line in lines if line.startswith("time ")]
    assert re.search(r"\d (min|s)\b", time)
    assert "the reason is at the end" in lines[0]
    assert not any("no room" in line for line in lines), "the error that follows has it"


def test_a_summary_without_axes_has_no_column_for_them() -> None:
    read = load(SWEPT.replace("[1, 4, 8]", "4"))
    lines = drawn(plan_lines(read, make_plan(read), None, is_summary=True))
    (head,) = [line for line in lines if line.startswith("workload ")]
    assert head.split() == ["workload", "points", "runs"]


def test_where_room_is_missing_a_scale_that_needs_less_is_named(tmp_path: Path) -> None:
    study = tmp_path / "big.toml"
    big = SWEPT.replace('path = "/mnt/x"', f'path = "{tmp_path}"').replace('"64m"', '"1000t"')
    smaller = '[scale.small]\n"workload.reads.filesize" = "64m"\n'
    for text, is_named in ((big, False), (big + smaller, True)):
        study.write_text(text, encoding="utf-8")
        done = call("plan", study)
        assert done.returncode != 0
        assert ("--scale small" in done.stderr) is is_named, done.stderr


SWEPT = """
format = 1
id = "swept"
title = "Swept"
[method]
runtime = "20s"
repeats = 2
[target]
path = "/mnt/x"
[[workload]]
id = "reads"
rw = "randread"
bs = "4k"
iodepth = [1, 4, 8]
numjobs = 1
filesize = "64m"
"""


def test_the_plan_of_a_session_is_at_the_rates_that_it_measured(tmp_path: Path) -> None:
    session = tmp_path / "session"
    write_session(session, Shape(points=60, seconds=2, cores=1, disks=1, nics=1))
    plan = call("plan", session, "--json")
    assert plan.returncode == 0, plan.stderr
    writes = json.loads(plan.stdout)["budget"]["writes"]
    assert writes["measured_runs"] > 0
    assert writes["measured_bytes"] > 0
    assert call("plan", session, "--path", tmp_path).returncode == ExitCode.STUDY


def test_too_few_repeats_are_named_with_the_option_and_time_that_add_them() -> None:
    def notes(*sets: str) -> list[str]:
        study = parse_study(HEAD + STUDY, "d.toml", StudyOverrides(path="/mnt", set_arguments=sets))
        return list(plan_note_texts(study, make_plan(study), None))

    (note,) = notes("method.runtime=10min")
    assert tells(note, "once", "--repeats 3", "30 min"), note
    (note,) = notes("method.repeats=2")
    assert "twice" in note
    assert not notes("method.repeats=3")
    assert not notes("method.kind=adaptive")
