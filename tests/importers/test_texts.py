"""What tools print as text: each run and row read or named, unlike loads kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from iolab.core.metric import Result
from iolab.importers.files import read_all
from iolab.importers.registry import IMPORTERS
from iolab.importers.session import arrange, record_of
from tests.cli.in_process import call
from tests.facts import tells
from tests.importers.importing import objections, results, value
from tests.judging import judge
from tests.recorded import recorded, recordings

CASES = "import/cases"


def rates(found: Mapping[str, Result], key: str) -> dict[str, float | None]:
    return {name: value(one, key) for name, one in found.items()}


def in_folder(folder: Path, case: str) -> list[Result]:
    """The results of a folder of files."""
    for name in recordings(f"{CASES}/{case}", ""):
        (folder / Path(name).name).write_bytes(recorded(name))
    found = read_all([folder], IMPORTERS)
    assert not found.faults
    session = arrange(found.runs, configuration="imported", title="imported")
    return [judge(record_of(one), {}) for one in session.runs]


def test_random_and_sequential_reads_of_elbencho_are_two_points(tmp_path: Path) -> None:
    found = results(tmp_path, f"{CASES}/01-elbencho-seq-and-random.csv")
    reads = {dict(one.axis)["random"]: value(one, "iops") for one in found.values() if one.axis}
    assert reads == {0: 200_000, 1: 20_000}


def test_a_loop_of_vdbench_has_a_point_for_each_turn(tmp_path: Path) -> None:
    found = results(tmp_path, f"{CASES}/02-vdbench-forrdpct.html")
    points = {dict(one.axis)["rdpct"]: value(one, "iops") for one in found.values()}
    assert points == {100: 80_000, 0: 20_000, 70: 50_000}


def test_the_time_table_of_mdtest_3_3_is_read(tmp_path: Path) -> None:
    (read,) = results(tmp_path, f"{CASES}/24-mdtest-3.3-time.txt").values()
    assert objections(read) == {"run-too-short": "invalid"}


def test_several_outputs_of_mdtest_in_a_log_are_runs_of_their_own(tmp_path: Path) -> None:
    found = results(tmp_path, f"{CASES}/25-mdtest-several-in-one-file.txt")
    assert rates(found, "ops_per_s") == {
        "tree-create": 500,
        "file-create": 8000,
        "file-stat": 40_000,
    }
    assert not any(objections(one) for one in found.values())


def test_an_option_late_in_a_long_command_counts(tmp_path: Path) -> None:
    (write,) = results(tmp_path, f"{CASES}/26-ior-odirect-late-in-command.out").values()
    assert not objections(write)


def test_comments_that_look_like_results_lose_no_folder(tmp_path: Path) -> None:
    phases = in_folder(tmp_path, "27-io500-comments-in-ini")
    assert len(phases) == 5
    assert {value(one, "bw_bytes_per_s") for one in phases} >= {12.5 * (1 << 30), 20 * (1 << 30)}


def test_load_and_transactions_of_ycsb_in_a_log_are_two_runs(tmp_path: Path) -> None:
    found = results(tmp_path, f"{CASES}/31-ycsb-load-and-run.txt")
    assert sorted(rates(found, "ops_per_s").values(), key=str) == [10_000, 25_000]
    assert not any(objections(one) for one in found.values())


def test_what_failed_is_a_share_of_what_was_tried(tmp_path: Path) -> None:
    (result,) = results(tmp_path, f"{CASES}/32-ycsb-share-of-failures.txt").values()
    (failed,) = [one for one in result.verdict.objections if one.code == "operations-failed"]
    assert tells(failed.says, "250 k", "28")


def test_a_return_of_zero_is_no_failure(tmp_path: Path) -> None:
    def old(text: str) -> str:
        return text.replace("Return=OK, 200000", "Return=0, 450000").replace(
            "[READ], Return=ERROR, 1000\n[READ], Return=NOT_FOUND, 249000\n", ""
        )

    name = f"{CASES}/32-ycsb-share-of-failures.txt"
    (result,) = results(tmp_path, name, edit=old).values()
    assert "operations-failed" not in objections(result)


def test_a_mix_of_db_bench_has_the_percentiles_of_each_operation(tmp_path: Path) -> None:
    found = results(tmp_path, f"{CASES}/35-db_bench-reads-and-writes.txt")
    mix = found["readrandomwriterandom"]
    assert value(mix, "ops_per_s") == 400_000
    assert value(mix, "key_read_lat_ns_p99") == 80_000
    assert value(mix, "key_write_lat_ns_p99") == 300_000
    assert not objections(mix)


UNREAD = {
    "diskspd": (recorded(f"{CASES}/47-diskspd-text.txt").decode(), "-Rxml"),
    "YCSB": ('{"metric":"OVERALL","measurement":"RunTime(ms)","value":7}', "exporter"),
    "elbencho": ("OPERATION   RESULT TYPE        FIRST DONE   LAST DONE\n", "--csvfile"),
    "LevelDB": ("LevelDB:    version 1.23\nfillseq : 1.7 micros/op; 62.7 MB/s\n", "RocksDB"),
}


@pytest.mark.parametrize("tool", UNREAD)
def test_a_form_that_is_not_read_is_named_with_what_to_run(tool: str, tmp_path: Path) -> None:
    text, remedy = UNREAD[tool]
    path = tmp_path / "a.txt"
    path.write_text(text)
    done = call("import", path, "--out", tmp_path / "S")
    assert done.returncode == 2
    assert tells(done.stderr, tool, remedy)


def test_results_of_the_scripts_before_the_program_of_io500_are_read(tmp_path: Path) -> None:
    (tmp_path / "result_summary.txt").write_text(
        "[RESULT] BW   phase 1            ior_easy_write                8.581 GB/s : time  58.27 "
        "seconds\n[RESULT-invalid] IOPS phase 1     mdtest_easy_write        20.608 kiops : time "
        "333.32 seconds\n[SCORE] Bandwidth 1 GB/s : IOPS 2 kiops : TOTAL 3\n"
    )
    found = read_all([tmp_path], IMPORTERS)
    runs = {run.name: run for _, run in found.runs}
    (write,) = runs["ior_easy_write"].clients[0].details.figures
    assert write.bw_bytes_per_s == 8.581 * (1 << 30)
    assert runs["mdtest_easy_write"].clients[0].details.errors
    assert not found.left_out


def test_files_of_one_name_without_a_command_are_apart_by_their_folders(tmp_path: Path) -> None:
    text = "[OVERALL], RunTime(ms), 100000\n[OVERALL], Throughput(ops/sec), {0}.0\n"
    text += "[READ], Operations, {0}00\n[READ], AverageLatency(us), 400.0\n"
    for folder, rate in (("mongodb", 9000), ("redis", 60000)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(text.format(rate))
    session = arrange(
        read_all([tmp_path], IMPORTERS).runs, configuration="imported", title="imported"
    )
    assert [one.planned.repeat for one in session.runs] == [1, 1]
