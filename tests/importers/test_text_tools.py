"""Outputs of mdtest, IOR, IO500, YCSB and db_bench whose structure was read wrongly once."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.importers.files import ImportOutcome, parse_number, read_foreign_files
from iolab.importers.registry import IMPORTERS
from iolab.importers.session import plan_imported_session
from tests.importers.importing import found_in, lay_down, objections, results, value
from tests.recorded import recorded

CASES = "import/cases"
MS, US = 1_000_000, 1_000


def rates(folder: Path, *names: str) -> dict[str, float | None]:
    """Operations a second by workload."""
    found = results(folder, *(f"{CASES}/{name}" for name in names))
    return {name: value(result, "ops_per_s") for name, result in found.items()}


def reasons(found: ImportOutcome) -> str:
    return " ".join(entry.message for entry in found.left_out_lines)


def test_unlike_commands_of_mdtest_are_two_points(tmp_path: Path) -> None:
    names = ("mdtest_easy_stat.txt", "mdtest_hard_stat.txt")
    found = results(tmp_path, *(f"{CASES}/05-mdtest-easy-and-hard/{name}" for name in names))
    assert sorted(value(each, "ops_per_s") or 0 for each in found.values()) == [40_000, 60_000]
    assert all(each.repeat == 1 and not objections(each) for each in found.values())


def test_the_same_command_in_another_order_and_folder_is_a_repeat(tmp_path: Path) -> None:
    text = recorded(f"{CASES}/24-mdtest-3.3-time.txt").decode()
    other = text.replace("'-E' '-F' '-n' '1000' '-d' '/mnt/fs/md'", "-n 1000 -F -E -d /data/2")
    assert other != text
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "b.txt").write_text(other.replace("8000.000", "8000.002").replace(":19", ":25"))
    found = read_foreign_files([tmp_path], IMPORTERS)
    assert len(found.runs) == 2
    assert found.runs[0][1].load_settings == found.runs[1][1].load_settings


def test_directories_of_mdtest_have_their_rows(tmp_path: Path) -> None:
    found = rates(tmp_path, "23-mdtest-directories.txt")
    assert {name: rate for name, rate in found.items() if name.startswith("directory")} == {
        "directory-create": 3100,
        "directory-stat": 47_000,
        "directory-rename": 5300,
        "directory-remove": 4100,
    }
    assert len(found) == 10


def test_times_of_mdtest_3_3_are_the_window(tmp_path: Path) -> None:
    (result,) = results(tmp_path, f"{CASES}/24-mdtest-3.3-time.txt").values()
    assert (value(result, "ops_per_s"), result.window_s) == (8000, 1)
    assert objections(result) == {"run-too-short": "invalid"}


def test_every_invocation_of_mdtest_in_a_log_is_read(tmp_path: Path) -> None:
    found = results(tmp_path, f"{CASES}/25-mdtest-several-in-one-file.txt")
    assert {name: value(each, "ops_per_s") for name, each in found.items()} == {
        "file-create": 8000,
        "tree-create": 500,
        "file-stat": 40_000,
    }
    assert not any(map(objections, found.values()))


def test_an_invocation_without_a_summary_costs_no_other(tmp_path: Path) -> None:
    text = recorded(f"{CASES}/25-mdtest-several-in-one-file.txt").decode()
    cut = text[: text.rindex("SUMMARY")]
    (tmp_path / "log.txt").write_text(cut)
    found = read_foreign_files([tmp_path / "log.txt"], IMPORTERS)
    assert [run.name for _, run in found.runs] == ["file-create", "tree-create"]
    assert "no summary" in reasons(found)


def test_direct_io_is_seen_wherever_it_stands_in_the_command_of_ior(tmp_path: Path) -> None:
    (result,) = results(tmp_path, f"{CASES}/26-ior-odirect-late-in-command.out").values()
    assert objections(result) == {}
    text = recorded(f"{CASES}/26-ior-odirect-late-in-command.out").decode()
    (tmp_path / "other.out").write_text(text.replace(" --posix.odirect", ""))
    (_, run), *_ = read_foreign_files([tmp_path / "other.out"], IMPORTERS).runs
    assert run.details.buffered


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ordering in a file  : sequential", "ordering in a file  : random"),
        ("access              : file-per-process", "access              : single-shared-file"),
        ("-k -e -o", "-k -o"),
    ],
)
def test_rows_of_unlike_ior_runs_are_points_of_their_own(
    old: str, new: str, tmp_path: Path
) -> None:
    text = recorded(f"{CASES}/26-ior-odirect-late-in-command.out").decode()
    assert old in text
    (tmp_path / "a.out").write_text(text)
    (tmp_path / "b.out").write_text(text.replace(old, new).replace("4096.00 ", "2048.00 "))
    one, other = (run for _, run in read_foreign_files([tmp_path], IMPORTERS).runs)
    assert one.load_settings != other.load_settings


def test_an_odd_file_costs_no_phase_of_io500(tmp_path: Path) -> None:
    (tmp_path / "config-orig.ini").write_bytes(
        recorded(f"{CASES}/27-io500-comments-in-ini/config-orig.ini")
    )
    (tmp_path / "result_summary.txt").write_bytes(
        recorded(f"{CASES}/27-io500-comments-in-ini/result_summary.txt")
    )
    found = read_foreign_files([tmp_path], IMPORTERS)
    assert not found.faults
    assert [run.name for _, run in found.runs] == [
        "ior-easy-write",
        "mdtest-easy-write",
        "ior-hard-write",
        "find",
        "ior-easy-read",
    ]
    assert "no rate" in reasons(found)


def test_the_shell_form_of_io500_is_read(tmp_path: Path) -> None:
    (tmp_path / "summary.txt").write_text(
        "[Summary] Results files in /fs/io500/results/1\n"
        "[RESULT] BW   phase 1            ior_easy_write                8.500 GB/s : time  58.00 "
        "seconds\n"
        "[RESULT] IOPS phase 1         mdtest_easy_write               20.500 kiops : time 333.00 "
        "seconds\n"
        "[RESULT-invalid]       ior-hard-write      0.250 GiB/s : time 8.000 seconds\n"
        "[      ]   ior-rnd4K-easy-read      0.125 GiB/s : time 300.000 seconds\n"
        "[SCORE] Bandwidth 1.0 GB/s : IOPS 20.1 kiops : TOTAL 4.5\n"
    )
    found = read_foreign_files([tmp_path], IMPORTERS)
    runs = {run.name: run.clients[0].details for _, run in found.runs}
    assert runs["ior_easy_write"].figures[0].bw_bytes_per_s == 8.5 * 2**30
    assert runs["mdtest_easy_write"].figures[0].rate_per_s == 20_500
    assert runs["mdtest_easy_write"].figures[0].operation == "file_create"
    assert runs["ior-hard-write"].errors
    assert runs["ior-rnd4K-easy-read"].figures[0].bw_bytes_per_s == 2**27
    assert not found.left_out_lines


def test_a_load_and_its_transactions_of_ycsb_are_two_runs(tmp_path: Path) -> None:
    found = list(results(tmp_path, f"{CASES}/31-ycsb-load-and-run.txt").values())
    assert [(value(each, "ops_per_s"), each.window_s) for each in found] == [
        (25_000, 40),
        (10_000, 100),
    ]
    assert not any(map(objections, found))


def test_operations_of_ycsb_count_those_that_failed_once(tmp_path: Path) -> None:
    (result,) = results(tmp_path, f"{CASES}/32-ycsb-share-of-failures.txt").values()
    (check,) = (each for each in result.verdict.checks if each.code == "operations-failed")
    assert (check.evidence["failed"], check.evidence["done"]) == (250_000, 650_000)


def test_files_of_ycsb_with_one_name_in_two_folders_are_no_repeats_if_unlike(
    tmp_path: Path,
) -> None:
    text = recorded(f"{CASES}/32-ycsb-share-of-failures.txt").decode()
    for folder, threads in (("a", 4), ("b", 8)):
        (tmp_path / folder).mkdir()
        changed = text.replace("-threads 4", f"-threads {threads}").replace(
            "9000.0", f"90{threads}"
        )
        (tmp_path / folder / "run.txt").write_text(changed)
    one, other = (run for _, run in read_foreign_files([tmp_path], IMPORTERS).runs)
    assert one.load_settings != other.load_settings


def test_a_mix_of_db_bench_keeps_the_latencies_of_both_kinds(tmp_path: Path) -> None:
    found = results(tmp_path, f"{CASES}/35-db_bench-reads-and-writes.txt")
    mix = found["readrandomwriterandom"]
    assert value(mix, "ops_per_s") == 400_000
    assert value(mix, "key_read_lat_ns_p99") == 80 * US
    assert value(mix, "key_write_lat_ns_p99") == 300 * US
    assert objections(mix) == {}


LEVELDB = b"""LevelDB:    version 1.23
Keys:       16 bytes each
DB path: [/t/db]
fillseq      :       1.765 micros/op;   62.7 MB/s
"""
YCSB_JSON = b'[ {"metric":"OVERALL","measurement":"RunTime(ms)","value":1000} ]'
ELBENCHO = b"""OPERATION RESULT TYPE        FIRST DONE  LAST DONE
========= ================   ==========  =========
WRITE     Elapsed time     :       1.5s       1.6s
"""


WARP = b"""\
Report: PUT. Concurrency: 512. Ran: 1m2s
 * Average: 473.72 MiB/s, 496.73 obj/s
"""


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (recorded(f"{CASES}/47-diskspd-text.txt"), "-Rxml"),
        (LEVELDB, "RocksDB"),
        (YCSB_JSON, "exporter"),
        (ELBENCHO, "--csvfile"),
        (WARP, "--benchdata"),
    ],
)
def test_formats_that_are_not_read_are_named_with_what_to_do(
    content: bytes, word: str, tmp_path: Path
) -> None:
    (tmp_path / "output.txt").write_bytes(content)
    found = read_foreign_files([tmp_path / "output.txt"], IMPORTERS)
    assert not found.runs
    assert any(word in fault.hint for fault in found.faults)


def test_points_of_vdbench_differ_in_what_its_loops_change(tmp_path: Path) -> None:
    found = results(tmp_path, f"{CASES}/02-vdbench-forrdpct.html")
    assert sorted(value(each, "iops") or 0 for each in found.values()) == [20_000, 50_000, 80_000]
    assert not found_in(tmp_path, f"{CASES}/02-vdbench-forrdpct.html").faults
    assert len(lay_down(tmp_path, f"{CASES}/02-vdbench-forrdpct.html")) == 1


def test_random_and_sequential_reads_of_elbencho_are_two_points(tmp_path: Path) -> None:
    found = results(tmp_path, f"{CASES}/01-elbencho-seq-and-random.csv")
    reads = {
        dict(one.axis_values)["random"]: value(one, "iops")
        for one in found.values()
        if one.axis_values
    }
    assert reads == {0: 200_000, 1: 20_000}


def test_a_return_of_zero_is_no_failure(tmp_path: Path) -> None:
    def old(text: str) -> str:
        return text.replace("Return=OK, 200000", "Return=0, 450000").replace(
            "[READ], Return=ERROR, 1000\n[READ], Return=NOT_FOUND, 249000\n", ""
        )

    name = f"{CASES}/32-ycsb-share-of-failures.txt"
    (result,) = results(tmp_path, name, edit=old).values()
    assert "operations-failed" not in objections(result)


def test_files_of_one_name_without_a_command_are_apart_by_their_folders(tmp_path: Path) -> None:
    text = "[OVERALL], RunTime(ms), 100000\n[OVERALL], Throughput(ops/sec), {0}.0\n"
    text += "[READ], Operations, {0}00\n[READ], AverageLatency(us), 400.0\n"
    for folder, rate in (("mongodb", 9000), ("redis", 60000)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(text.format(rate))
    session = plan_imported_session(
        read_foreign_files([tmp_path], IMPORTERS).runs,
        configuration_id="imported",
        title="imported",
    )
    assert [one.planned_run.repeat for one in session.runs] == [1, 1]


IOR_TEST = """
Test {number} started: Thu Mar  6 09:00:00 2014
Path: /mnt
Summary:
    api                = POSIX
    access             = single-shared-file
    clients            = {clients} ({clients} per node)
    repetitions        = 1
    xfersize           = {transfer}
    blocksize          = 1 GiB
    aggregate filesize = {clients} GiB

access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ---------- ---------  --------   --------   --------   --------   ----
write     {rate}     1048576    1024.00    0.000231   20.00      0.000231   20.00      0

Max Write: {rate} MiB/sec
"""
IOR = "IOR-3.0.1: MPI Coordinated Test of Parallel I/O\nCommand line used: ior -f tests\n"


def test_tests_of_one_ior_invocation_have_each_its_own_options(tmp_path: Path) -> None:
    tests = [
        IOR_TEST.format(number=number, clients=clients, transfer=transfer, rate=rate)
        for number, (clients, transfer, rate) in enumerate(
            [(8, "1 MiB", 409.6), (16, "4096 bytes", 819.2)]
        )
    ]
    (tmp_path / "a.out").write_text(IOR + "".join(tests))
    one, other = (run for _, run in read_foreign_files([tmp_path], IMPORTERS).runs)
    assert (one.load_settings["xfersize"], other.load_settings["xfersize"]) == (
        "1 MiB",
        "4096 bytes",
    )
    assert (one.load_settings["clients"], other.load_settings["clients"]) == (
        "8 (8 per node)",
        "16 (16 per node)",
    )
    assert (one.in_flight, other.in_flight) == (8, 16)
    assert other.clients[0].details.figures[0].bytes == 16 << 30


def test_an_error_of_ior_before_its_table_is_no_setting(tmp_path: Path) -> None:
    table = IOR_TEST.format(number=0, clients=8, transfer="1 MiB", rate=409.6)
    said = "ERROR: open64() failed, errno 5\nWARNING: file exists: it is written over\n"
    (tmp_path / "a.out").write_text(IOR + table.replace("\naccess ", f"\n{said}access "))
    ((_, run),) = read_foreign_files([tmp_path], IMPORTERS).runs
    assert run.clients[0].details.errors == ("ERROR: open64() failed, errno 5",)
    assert not {"ERROR", "WARNING"} & set(run.load_settings)


def test_more_bytes_than_there_can_be_are_refused(tmp_path: Path) -> None:
    table = IOR_TEST.format(number=0, clients=8, transfer="1 MiB", rate=409.6)
    moved = f"WARNING: Using actual aggregate bytes moved = {'9' * 5000}\n"
    (tmp_path / "a.out").write_text(IOR + table.replace("write  ", f"{moved}write  "))
    (fault, *_) = read_foreign_files([tmp_path], IMPORTERS).faults
    assert "more bytes" in fault.message


def test_io500_takes_no_file_of_another_run_or_tool(tmp_path: Path) -> None:
    names = ("result_summary.txt", "ior-hard-read.txt", "ior-easy-write.txt")
    lay_down(tmp_path, *(f"import/io500/{name}" for name in names))
    summary = (tmp_path / "result_summary.txt").read_text()
    (tmp_path / "io500.out").write_text(f"{summary}\n")
    (tmp_path / "result_summary_2.txt").write_text(summary.replace("352.8", "301.5"))
    (tmp_path / "results-mdtest.txt").write_bytes(recorded(f"{CASES}/23-mdtest-directories.txt"))
    (tmp_path / "find.txt").write_text("MATCHED 1/2\n")
    (tmp_path / "config-orig.ini").write_text("[global]\n")
    found = read_foreign_files([tmp_path], IMPORTERS)
    assert not found.faults
    assert not found.unknown_files
    rates = [
        run.clients[0].details.figures[0].bw_bytes_per_s
        for _, run in found.runs
        if run.name == "ior-easy-write"
    ]
    assert rates == [361270 * 2**20, 301.503032 * 2**30]
    assert "mdtest" in {run.details.tool for _, run in found.runs}
    assert all(name in reasons(found) for name in ("config-orig.ini", "find.txt", "once more"))


DB_BENCH = """RocksDB:    version 8.1.1
Date:       Thu May 18 08:09:44 2023
Keys:       16 bytes each (+ 0 bytes user-defined timestamp)
Values:     {size} bytes each (50 bytes after compression)
Entries:    1000000
------------------------------------------------
"""
BENCH = """fillrandom   : {mean:.3f} micros/op 100000 ops/sec 10.000 seconds 1000000 operations;
Microseconds per write:
Count: 1000000 Average: {mean:.4f}  StdDev: 3.10
Min: 1  Median: 2.0000  Max: 4000
Percentiles: P50: 2.00 P75: 3.00 P99: {p99}.00 P99.9: 30.00 P99.99: 900.00
------------------------------------------------------
[       0,    4400 ]  1000000 100.000% 100.000% ##########

"""


def test_every_result_of_db_bench_has_its_own_percentiles_and_header(tmp_path: Path) -> None:
    log = (
        DB_BENCH.format(size=100)
        + BENCH.format(mean=10, p99=11)
        + BENCH.format(mean=10, p99=12)
        + DB_BENCH.format(size=4096)
        + BENCH.format(mean=10, p99=13)
    )
    (tmp_path / "a.txt").write_text(log)
    runs = [run for _, run in read_foreign_files([tmp_path], IMPORTERS).runs]
    assert [run.load_settings["value size"] for run in runs] == [100, 100, 4096]
    assert [dict(run.clients[0].details.figures[0].percentiles)[99] for run in runs] == [
        11 * US,
        12 * US,
        13 * US,
    ]
    # It began at 08:09:44, and each took 10 s.
    assert [run.ended_real_ns for run in runs] == [
        1684397394 * 10**9,
        1684397404 * 10**9,
        1684397394 * 10**9,
    ]


def test_an_invocation_of_db_bench_without_a_result_costs_no_other(tmp_path: Path) -> None:
    log = DB_BENCH.format(size=100) + BENCH.format(mean=10, p99=11) + DB_BENCH.format(size=4096)
    (tmp_path / "a.txt").write_text(log)
    found = read_foreign_files([tmp_path], IMPORTERS)
    assert len(found.runs) == 1
    assert "no result" in reasons(found)


YCSB_RUN = """Command line: {command}
[OVERALL], RunTime(ms), 100000
[OVERALL], Throughput(ops/sec), {rate}
[READ], Operations, {rate}00
[READ], AverageLatency(us), 400.0
[READ], 95thPercentileLatency(us), 900
[READ], 9.9.9PercentileLatency(us), 900
[READ], Return=OK, {rate}00
"""


def test_files_of_one_command_of_ycsb_are_repeats_whatever_they_are_called(tmp_path: Path) -> None:
    command = "-t -P workloads/workloada -p threadcount=4 -p target=2000"
    for number, rate in ((1, 1990), (2, 2000)):
        (tmp_path / f"run{number}.txt").write_text(YCSB_RUN.format(command=command, rate=rate))
    session = plan_imported_session(
        read_foreign_files([tmp_path], IMPORTERS).runs, configuration_id="c", title="c"
    )
    assert [one.planned_run.repeat for one in session.runs] == [1, 2]
    assert {one.foreign_run.name for one in session.runs} == {"workloada"}
    assert all(
        one.foreign_run.in_flight == 4 and one.foreign_run.details.paced for one in session.runs
    )


def test_no_threads_and_no_rate_of_ycsb_are_not_told(tmp_path: Path) -> None:
    command = "-t -P workloads/workloada -threads 0 -target 0"
    (tmp_path / "run.txt").write_text(YCSB_RUN.format(command=command, rate=9000))
    ((_, run),) = read_foreign_files([tmp_path], IMPORTERS).runs
    assert run.in_flight is None
    assert not run.details.paced
    assert [at for at, _ in run.clients[0].details.figures[0].percentiles] == [95]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234", 1234),
        ("12,345,678.5", 12345678.5),
        ("1234,56", None),
        ("1,23", None),
        ("1,,234", None),
        (",123", None),
    ],
)
def test_commas_stand_only_between_thousands(text: str, number: float | None) -> None:
    assert parse_number(text) == number


def test_a_word_in_a_log_makes_no_other_format_of_it(tmp_path: Path) -> None:
    noise = "see http://host/summary.html and tod Interval ReqstdOps\n"
    text = recorded(f"{CASES}/25-mdtest-several-in-one-file.txt").decode()
    (tmp_path / "a.txt").write_text(noise + text)
    found = read_foreign_files([tmp_path / "a.txt"], IMPORTERS)
    assert found.runs
    assert not found.skipped_file_faults
    assert "vdbench" not in reasons(found)


def test_what_was_read_of_a_log_stays_read_where_another_format_is_not(tmp_path: Path) -> None:
    text = recorded(f"{CASES}/25-mdtest-several-in-one-file.txt").decode()
    (tmp_path / "a.txt").write_bytes(ELBENCHO + text.encode())
    found = read_foreign_files([tmp_path / "a.txt"], IMPORTERS)
    assert len(found.runs) == 3
    assert [(entry.first_line, entry.last_line) for entry in found.left_out_lines] == [(1, 3)]


def test_no_threads_and_no_name_of_a_run_of_vdbench_end_in_a_sentence(tmp_path: Path) -> None:
    name = f"{CASES}/02-vdbench-forrdpct.html"
    text = recorded(name).decode()
    header = next(line for line in text.splitlines() if line.split()[:1] == ["tod"])
    (tmp_path / "a.html").write_text(text.replace(header, header.replace("Run", "Ran", 1)))
    (fault, *_) = read_foreign_files([tmp_path / "a.html"], IMPORTERS).faults
    assert "no column Run" in fault.message

    place = header.split().index("threads")
    rows = [line.split() for line in text.splitlines()]
    for row in rows:
        if len(row) == len(header.split()) and ":" in row[0]:
            row[place] = "0"
    (tmp_path / "b.html").write_text("\n".join(" ".join(row) for row in rows))
    assert all(
        run.in_flight is None
        for _, run in read_foreign_files([tmp_path / "b.html"], IMPORTERS).runs
    )


def test_a_test_of_ior_without_a_table_is_left_out(tmp_path: Path) -> None:
    one = IOR_TEST.format(number=0, clients=8, transfer="1 MiB", rate=409.6)
    other = IOR_TEST.format(number=1, clients=16, transfer="1 MiB", rate=409.6)
    cut = other[: other.index("\naccess  ")] + "\nERROR: open64() failed, errno 5\n"
    (tmp_path / "a.out").write_text(IOR + one + cut)
    found = read_foreign_files([tmp_path], IMPORTERS)
    assert len(found.runs) == 1
    assert "no result" in reasons(found)


def test_every_workload_file_of_ycsb_is_of_the_load(tmp_path: Path) -> None:
    for number, first in ((1, "small"), (2, "large")):
        command = f"-t -P {first} -P workloads/workloada"
        (tmp_path / f"{number}.txt").write_text(YCSB_RUN.format(command=command, rate=number))
    one, other = (run for _, run in read_foreign_files([tmp_path], IMPORTERS).runs)
    assert (one.name, other.name) == ("small workloada", "large workloada")
    assert one.load_settings != other.load_settings
