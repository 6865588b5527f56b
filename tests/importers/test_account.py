"""The mechanism of import: an account of every line, one run of copies, one point of repeats."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from iolab.importers.files import ForeignFile, ForeignFileError, ImportFileSet, read_foreign_files
from iolab.importers.line_coverage import LineCoverage
from iolab.importers.registry import IMPORTERS
from iolab.importers.session import plan_imported_session
from tests.cli.in_process import call
from tests.facts import tells
from tests.importers.fio_reports import MOMENT, one_read
from tests.importers.importing import lay_down
from tests.recorded import recorded, recordings

ELBENCHO = "import/elbencho/bw-direct-2.1-0.csv"
PLAIN = "import/fio/plain-3.33.json"
GROUPS = "import/fio/two-groups-3.33.json"
MDTEST = "mdtest/one-4.0.0.txt"


def test_lines_with_no_mark_are_the_remainder() -> None:
    account = LineCoverage("a.txt", ["one", "", "three", "four", " ", "six", "seven"])
    account.mark_read(1)
    account.mark_left_out(4, 5, "The report is cut off.")
    entries = [(entry.first_line, entry.last_line) for entry in account.unmarked_lines()]
    assert entries == [(3, 3), (6, 7)]
    assert [
        (entry.first_line, entry.last_line) for entry in account.left_out_and_unmarked_lines()
    ] == [
        (3, 3),
        (4, 5),
        (6, 7),
    ]
    assert tells(account.left_out_and_unmarked_lines()[1].message, "a.txt", "4-5", "cut off")
    account.mark_all_read()
    assert account.unmarked_lines() == []
    assert len(account.left_out_and_unmarked_lines()) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_is_read_in_the_encodings_of_windows(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(recorded(PLAIN).decode().encode(encoding))
    assert ForeignFile(path).utf8_bytes == recorded(PLAIN)
    found = read_foreign_files([path], IMPORTERS)
    assert len(found.runs) == 1


def test_a_place_of_the_text_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\ntwo\n\nfour")
    file = ForeignFile(path)
    assert [file.line_number_at(file.text.index(word)) for word in ("one", "two", "four")] == [
        1,
        2,
        4,
    ]


GOLDEN = Path(__file__).parents[1] / "golden"

FILES = [
    name
    for folder in (
        "import/cases",
        "import/fio",
        "import/io500",
        "import/pods",
        "import/warp",
        "import/gpu",
        "import/ceph",
        "import/fleets",
        "import/aiperf",
        "mdtest",
        "ycsb",
        "db_bench",
        *("elbencho", "vdbench", "diskspd"),
    )
    for name in (recordings(folder, "") or recordings(f"import/{folder}", ""))
]


@pytest.mark.parametrize("name", FILES)
def test_no_line_of_a_recorded_file_is_left_without_a_word(name: str, tmp_path: Path) -> None:
    (path,) = lay_down(tmp_path, name)
    file = ForeignFile(path)
    for importer in IMPORTERS:
        if importer.recognises(file):
            with suppress(ForeignFileError):
                importer.read(file, ImportFileSet([file]))
                assert file.line_coverage.is_begun
                assert file.line_coverage.unmarked_lines() == []


def points(paths: Sequence[Path]) -> Counter[tuple[str, str, int]]:
    """The points of an import, with the repeats of each."""
    session = plan_imported_session(
        read_foreign_files(paths, IMPORTERS).runs, configuration_id="c", title="c"
    )
    every = (one.planned_run for one in session.runs)
    return Counter((run.point.digest, run.point.title_text, run.repeat) for run in every)


def test_files_in_any_order_and_named_twice_give_the_same_points(tmp_path: Path) -> None:
    files = lay_down(tmp_path, PLAIN, GROUPS, ELBENCHO, MDTEST)
    again = tmp_path / "again"
    again.mkdir()
    for number in (2, 10):
        text = recorded(PLAIN).decode().replace('"iodepth" : "8"', f'"iodepth" : "{number}"')
        files.append(again / f"depth-{number}.json")
        files[-1].write_text(text)
    first = points(files)
    assert len(first) == 14
    assert points(files[::-1]) == points([*files, *files]) == points([tmp_path]) == first


def test_a_copy_is_no_repeat_and_is_named(tmp_path: Path) -> None:
    (file,) = lay_down(tmp_path, GROUPS)
    noise = "srun: job 7 queued and waiting for resources\n"
    (tmp_path / "slurm-7.out").write_bytes(noise.encode() + file.read_bytes())
    found = read_foreign_files([tmp_path], IMPORTERS)
    assert len(found.runs) == len(read_foreign_files([file], IMPORTERS).runs)
    (copy,) = found.duplicate_runs
    assert copy.run_count == len(found.runs)
    assert all(name in copy.message for name in ("slurm-7.out", "two-groups-3.33.json"))
    done = call("import", tmp_path, "--out", tmp_path / "S")
    assert "counted once" in done.stderr


def test_runs_of_one_load_are_repeats_and_of_unlike_loads_points(tmp_path: Path) -> None:
    reports = {
        "a": one_read(1000),
        "b": one_read(1001),
        "device": one_read(1002, filename="/dev/sdb"),
        "sync": one_read(1003, fsync="1"),
        "zipf": one_read(1004, random_distribution="zipf:1.2"),
    }
    for name, content in reports.items():
        (tmp_path / f"{name}.json").write_text(content)
    session = plan_imported_session(
        read_foreign_files([tmp_path], IMPORTERS).runs, configuration_id="c", title="c"
    )
    repeats = Counter(one.planned_run.point.digest for one in session.runs)
    assert sorted(repeats.values()) == [1, 1, 1, 2]
    names = {name for one in session.runs for name, _ in one.planned_run.point.axis_values}
    assert names == {"filename", "fsync", "random_distribution"}


def test_a_log_has_what_several_tools_printed(tmp_path: Path) -> None:
    texts = [recorded(MDTEST).decode(), recorded("import/io500/ior-easy-write.txt").decode()]
    path = tmp_path / "slurm-7.out"
    path.write_text("\n".join([one_read(1000), *texts]))
    found = read_foreign_files([path], IMPORTERS)
    assert not found.faults
    assert {run.details.tool for _, run in found.runs} == {"fio", "mdtest", "ior"}
    path.write_text("\n".join([texts[0], "a: (groupid=0, jobs=1): err= 0: pid=7"]))
    found = read_foreign_files([path], IMPORTERS)
    assert {run.details.tool for _, run in found.runs} == {"mdtest"}
    (refused,) = found.skipped_file_faults
    assert "json+" in refused.hint


def test_texts_that_differ_at_their_end_are_unlike_loads(tmp_path: Path) -> None:
    for number in (1, 2):
        text = one_read(1000 + number, filename=f"{'x' * 300}{number}")
        (tmp_path / f"{number}.json").write_text(text)
    session = plan_imported_session(
        read_foreign_files([tmp_path], IMPORTERS).runs, configuration_id="c", title="c"
    )
    labels = {one.planned_run.point.title_text for one in session.runs}
    assert len(labels) == 2
    assert all(len(label) < 100 for label in labels)


def test_import_prints_the_verdicts_that_show_does(tmp_path: Path) -> None:
    for rate in (1000, 9000, 90000):
        (tmp_path / f"{rate}.json").write_text(one_read(rate, at=MOMENT + rate))
    done = call("import", tmp_path, "--out", tmp_path / "S", "--json")
    printed = json.loads(done.stdout)["results"]
    shown = json.loads(call("show", tmp_path / "S", "--json").stdout)["results"]
    assert [one["verdict"] for one in printed] == [one["verdict"] for one in shown]
    assert [one["verdict"]["level"] for one in printed] == ["invalid"] * 3
    again = call("import", tmp_path, "--out", tmp_path / "T").stdout
    assert "repeats-disagree" in again
