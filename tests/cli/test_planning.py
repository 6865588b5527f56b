"""A plan tells what the load works on: files in a directory, or a region of a device."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from iolab.cli.planning import notes_of, plan_document, plan_screen
from iolab.plan.load import LoadOptions, parse_study
from iolab.plan.schedule import make_plan
from tests.plan.guest_studies import FLEET, with_hosts
from tests.plan.key_value_studies import db_bench, ycsb
from tests.plan.studies import SMALL, load
from tests.plan.test_guard import FACTS, TARGET

HEAD = 'format = 1\nid = "d"\n'
STUDY = """
[[workload]]
id = "w"
rw = "randwrite"
bs = "4k"
numjobs = 2
filesize = "1m"
"""


def told(options: LoadOptions, more: str = "") -> str:
    study = parse_study(HEAD + more + STUDY, "d.toml", options)
    written = io.StringIO()
    screen = Console(file=written, width=160, color_system=None)
    screen.print(*plan_screen(study, make_plan(study), None))
    return written.getvalue()


TWICE = "[precondition]\nfill = 2\n"


@pytest.mark.parametrize(("fill", "times"), [("", "once"), (TWICE, "2 times")])
def test_a_device_has_a_region_and_needs_no_room(fill: str, times: str) -> None:
    text = told(LoadOptions(device="/dev/x", serial="S"), fill)
    assert f"the first 2 MiB of each device, written over {times} by each fill" in text
    assert "free space" not in text
    assert "laid out" not in text
    assert "lay out" not in text


def test_a_directory_has_files_and_needs_room() -> None:
    text = told(LoadOptions(path="/mnt"))
    assert "2 MiB laid out on each host (2 x 1 MiB)" in text
    assert "needed on each host" in text
    assert "region" not in text


def shown(text: str, *sets: str, fs_type: str | None = None) -> str:
    """The plan of a whole study's text, on a host with that file system if any is given."""
    study = parse_study(text, "k.toml", LoadOptions(path="/mnt", sets=sets))
    facts = None
    if fs_type is not None:
        facts = {"local": replace(FACTS, target=replace(TARGET, fs_type=fs_type))}
    written = io.StringIO()
    screen = Console(file=written, width=200, color_system=None)
    screen.print(*plan_screen(study, make_plan(study), facts))
    return written.getvalue()


def test_a_plan_of_db_bench_names_its_databases_and_jobs() -> None:
    text = db_bench(
        'write_rate = "2m"\nmemory = "256m"',
        benchmark="readwhilewriting",
        block_size='["4k", "16k"]',
    )
    told = shown(text, "target.filesystem=xfs", "target.image=1g")
    assert "db_bench: readwhilewriting, blocks of 4 KiB, 4 threads, writes 2.1 MB/s, memory" in told
    assert "2 databases: 1.05 MiB (1,000 keys, values of 1 KiB, blocks of 4 KiB); 1.05 MiB" in told
    assert "an XFS in an image file of 1 GiB, made on each client for this session" in told
    assert "none laid out" not in told
    assert "note" not in told
    mixed = shown(db_bench("read_percent = 70", benchmark="readrandomwriterandom"))
    assert "db_bench: readrandomwriterandom 70% read, blocks of 4 KiB, 4 threads" in mixed
    own = shown(db_bench('database = "/mnt/db"\nkey_size = 16\nvalue_size = 1024'))
    assert "blocks of 4 KiB, a copy of /mnt/db)" in own


def test_a_plan_of_ycsb_names_its_server() -> None:
    told = shown(ycsb("rate = 1000"))
    assert "ycsb: 0.5 read, 0.5 update, uniform, 8 threads, 1,000 ops/s" in told
    assert "1 database: 4.24 MiB (1,000 records, 4 fields of 1 KiB)" in told
    assert next(line for line in told.splitlines() if line.startswith("server")).split() == [
        "server",
        "embedded:",
        "RocksDB",
        "inside",
        "each",
        "client's",
        "process",
    ]
    managed = shown(ycsb(), "server.kind=managed", "server.memory=2g")
    assert (
        "managed: Apache Cassandra 4.0.17, heap 1 GiB, memory 2 GiB, replication 1, consistency ONE"
    ) in managed
    given = shown(ycsb(), "server.kind=given", "server.addresses=a,b:9043")
    assert "given: a, b:9043, replication 1, consistency ONE" in given


def test_a_device_that_gets_an_xfs_is_destroyed() -> None:
    more = '[target]\nfilesystem = "xfs"\ndevice = "/dev/x"\nserial = "S"\n'
    study = parse_study(db_bench() + more, "k.toml", LoadOptions())
    assert make_plan(study).destroys == (
        "All that is on the device '/dev/x' (serial 'S') of host 'local': it is formatted: an XFS "
        "is made on it.",
    )


def test_notes_stand_in_the_plan_and_in_its_document() -> None:
    text = db_bench('memory = "32m"')
    assert "note" in shown(text)
    assert "whose file system has no reflinks" in shown(text, fs_type="ext4")
    assert "reflinks" not in shown(text, fs_type="xfs")
    study = parse_study(text, "k.toml", LoadOptions(path="/mnt"))
    (note,) = plan_document(study, make_plan(study), None)["notes"]
    assert note.startswith("w has 32 MiB, but is likely to need")


def test_a_plan_of_guests_says_what_they_have_and_what_to_know() -> None:
    text = shown(FLEET + "iops = 200\n")
    assert "3 on each of 2 nodes, each 2 vCPUs and 256 MiB of memory; booted for this" in text
    assert "64 MiB for each guest, an image laid out in full, at most 200 IOPS" in text
    assert "/mnt on node-1, node-2" in text
    assert "guest-data" not in text
    assert "region" not in text
    assert "needed on each node" in text
    assert "where it does not, guests are emulated" in text
    assert "disks are limited to 200 IOPS each" in text
    assert "all 3 guests of a node stay up; those that make no load are idle" in text
    assert "nothing; the files lie in a folder of their own" in text


def test_a_plan_of_guests_tells_what_kinds_of_disks_and_processors_they_have() -> None:
    modelled = 'disk_kind = "modelled"\nlatency = "10ms"\naccel = "tcg"\npin = "cores"\n'
    text = shown(FLEET.replace("[1, 2, 3]", "1") + modelled)
    assert "each 2 vCPUs on processors of its own and 256 MiB" in text
    assert "modelled: 10 ms for each I/O" in text
    assert "guests are emulated, as vm.accel says" in text
    assert "no storage is measured" in text
    assert "stay up" not in text
    kvm = shown(FLEET + 'accel = "kvm"\npin = "numa"\n')
    assert "on one NUMA node" in kvm
    assert "emulated" not in kvm


def test_a_plan_names_nodes_that_are_one_machine_or_short_of_processors() -> None:
    study = load(FLEET, "vm.pin=cores")
    two = replace(FACTS, cpu=replace(FACTS.cpu, threads=4))
    notes = list(notes_of(study, make_plan(study), {"node-1": two, "node-2": two}))
    assert "node-1 and node-2 are one machine: their guests share its processors and its " in (
        " ".join(notes)
    )
    assert any(note.startswith("12 vCPUs share the 4 processors of node-1 and") for note in notes)
    assert any("for 4 of 6 guests no processors of their own are left" in note for note in notes)
    many = replace(FACTS, cpu=replace(FACTS.cpu, threads=64))
    others = replace(many, kernel=replace(many.kernel, boot_id="other"))
    apart = list(notes_of(study, make_plan(study), {"node-1": many, "node-2": others}))
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


def test_guests_that_exist_are_named_as_such() -> None:
    study = with_hosts(FLEET)
    written = io.StringIO()
    Console(file=written, width=200).print(*plan_screen(study, make_plan(study), None))
    assert "3 on hv-1, 3 on hv-2; they exist already and are only used" in written.getvalue()
    document = plan_document(study, make_plan(study), None)
    assert document["guests"]["booted"] is None
    assert "stay up" not in written.getvalue()
