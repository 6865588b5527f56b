"""Other tools: their own figures to the digit, and planted faults found where nothing else is."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iolab.importers.files import read_foreign_files
from iolab.importers.registry import IMPORTERS
from iolab.importers.session import plan_imported_session
from tests.importers.importing import Edit, found_in, objections, results, value
from tests.recorded import recorded, recordings

MIB, GIB = 1 << 20, 1 << 30

YCSB = ("ycsb/a.txt", "ycsb/a.err", "ycsb/a_READ.hdr", "ycsb/a_UPDATE.hdr")
KILLED = tuple(f"ycsb/cql-server-killed{end}" for end in (".txt", ".err"))
DB_BENCH = tuple(f"db_bench/readrandom-4096{end}" for end in (".txt", ".err", ".csv"))
MDTEST = "mdtest/one-4.0.0.txt"
IOR = "import/io500/ior-easy-write.txt"
IO500 = ("import/io500/result_summary.txt", IOR, "import/io500/mdtest-easy-write.txt")
ELBENCHO = "import/elbencho/bw-direct-2.1-0.csv"
ELBENCHO_VERSIONS = ("3.0-27", "3.1-9")
ELBENCHO_JSON = "import/elbencho/block-3.1-9.json"
VDBENCH = "import/vdbench/flatfile.html"
DISKSPD = "diskspd/sequential-read-2.0.21a.txt"

PRINTED = [
    (YCSB, "transactions", "ops_per_s", 13270.382165605095),
    (YCSB, "transactions", "key_read_lat_ns_mean", 67.05292023477341e3),
    (YCSB, "transactions", "key_read_lat_ns_p99", 73e3),
    (YCSB, "transactions", "key_read_lat_ns_max", 61311e3),
    (("ycsb/f-rate.txt",), "f-rate", "key_read_lat_ns_mean", None),
    (DB_BENCH, "readrandom", "ops_per_s", 221459),
    (DB_BENCH, "readrandom", "lat_ns_mean", 18.059e3),
    (DB_BENCH, "readrandom", "lat_ns_p99", 95.86e3),
    (DB_BENCH, "readrandom", "lat_ns_p99_9", 3751.48e3),
    (DB_BENCH, "readrandom", "lat_ns_max", 21325e3),
    ((IOR,), "ior-write", "bw_bytes_per_s", 361270 * MIB),
    ((IOR,), "ior-write", "iops", 180641),
    (IO500, "mdtest-easy-write", "ops_per_s", 119113.150),
    (IO500, "ior-hard-read", "bw_bytes_per_s", 227.682852 * GIB),
    (IO500, "find", "ops_per_s", 2872215.129),
    ((ELBENCHO,), "elbencho-write", "iops", 4831),
    ((ELBENCHO,), "elbencho-write", "bw_bytes_per_s", 4831 * MIB),
    ((ELBENCHO,), "elbencho-write", "lat_ns_mean", 6621e3),
    ((ELBENCHO,), "elbencho-write", "lat_ns_max", 93525e3),
    ((ELBENCHO_JSON,), "elbencho-read", "iops", 47270),
    ((ELBENCHO_JSON,), "elbencho-read", "bw_bytes_per_s", 193619930),
    ((ELBENCHO_JSON,), "elbencho-read", "lat_ns_mean", 168e3),
    ((VDBENCH,), "sequential-read-max-4k", "iops", 19890.4444),
    ((VDBENCH,), "sequential-read-max-4k", "bw_bytes_per_s", 77.6970 * MIB),
    ((VDBENCH,), "sequential-read-max-4k", "lat_ns_mean", 0.3997e6),
    ((VDBENCH,), "sequential-read-max-4k", "lat_ns_max", 121.165e6),
]


@pytest.mark.parametrize(("files", "workload", "key", "printed"), PRINTED)
def test_figures_are_the_tool_s_own(
    files: tuple[str, ...], workload: str, key: str, printed: float | None, tmp_path: Path
) -> None:
    found = {name.split(" ")[0]: one for name, one in results(tmp_path, *files).items()}
    told = value(found[workload], key)
    if printed is None:
        assert told is not None
    else:
        assert told == pytest.approx(printed, rel=1e-12)


@pytest.mark.parametrize("name", ["a", "cql-a", "d-scan", "f-rate"])
def test_ycsb_s_operations_add_up_to_its_throughput(name: str, tmp_path: Path) -> None:
    text = recorded(f"ycsb/{name}.txt").decode()
    found = re.search(r"Throughput\(ops/sec\), (\S+)", text)
    assert found
    (result,) = results(tmp_path, f"ycsb/{name}.txt", f"ycsb/{name}.err").values()
    assert value(result, "ops_per_s") == pytest.approx(float(found[1]), rel=1e-9)
    assert not {"operations-failed", "totals-disagree", "engine-errors"} & set(objections(result))


@pytest.mark.parametrize("name", recordings("mdtest", ".txt"))
def test_every_version_of_mdtest_is_read_or_named(name: str, tmp_path: Path) -> None:
    found = found_in(tmp_path, name)
    if name.startswith(("mdtest/one", "mdtest/three", "mdtest/quiet", "mdtest/saved")):
        text = recorded(name).decode()
        for _, run in found.runs:
            (figures,) = run.clients[0].details.figures
            assert f"{figures.rate_per_s:.3f}" in text
        assert {run.name for _, run in found.runs} >= {"file-create", "file-stat", "file-remove"}
    else:
        assert Path(name).name in found.faults[0].message


@pytest.mark.parametrize("version", ELBENCHO_VERSIONS)
@pytest.mark.parametrize("name", ["block", "files", "mixed"])
def test_elbencho_s_json_and_csv_tell_the_same_and_one_is_read(
    name: str, version: str, tmp_path: Path
) -> None:
    folders = [tmp_path / end for end in ("json", "csv", "both")]
    for folder in folders:
        folder.mkdir()
    files = [f"import/elbencho/{name}-{version}.{end}" for end in ("json", "csv")]
    first = results(folders[0], files[0])
    second = results(folders[1], files[1])
    assert first.keys() == second.keys()
    for order in (files, files[::-1]):
        assert results(folders[2], *order).keys() == first.keys()
    for label, told in first.items():
        for key, metric in told.metrics.items():
            other = value(second[label], key)
            if metric.value is not None and other is not None:
                whole_mib = 2 * MIB if "bw" in key else 1e3 if key == "lat_ns_mean" else 0
                assert other == pytest.approx(metric.value, abs=whole_mib)
        assert not {"reported-rates", "totals-disagree", "percentiles-contradicted"} & set(
            objections(told) | objections(second[label])
        )


@pytest.mark.parametrize("version", ELBENCHO_VERSIONS)
def test_elbencho_s_percentiles_are_those_that_it_printed(version: str, tmp_path: Path) -> None:
    printed = recorded(f"import/elbencho/block-{version}.out").decode()
    ranks = re.findall(r"IO lat % us +: \[ 1%<=\S+ 50%<=(\S+) 75%<=\S+ 99%<=(\S+) \]", printed)
    found = results(tmp_path, f"import/elbencho/block-{version}.json").values()
    assert [(value(one, "lat_ns_p50"), value(one, "lat_ns_p99")) for one in found] == [
        (1e3 * float(half), 1e3 * float(most)) for half, most in ranks
    ]


def test_diskspd_s_spans_are_counts_over_time(tmp_path: Path) -> None:
    (result,) = results(tmp_path, DISKSPD).values()
    text = recorded(DISKSPD).decode()
    counts = [int(one) for one in re.findall(r"<ReadCount>(\d+)</ReadCount>", text)]
    seconds = re.search(r"<TestTimeSeconds>([\d.]+)<", text)
    assert seconds
    assert value(result, "read_iops") == pytest.approx(sum(counts) / float(seconds[1]))
    assert objections(result).keys() <= {"run-too-short", "buffered-io", "littles-law"}


@pytest.mark.parametrize(
    ("edit", "hint"),
    [
        (lambda text: text.replace("</Results>", ""), "Keep all that one run prints"),
        (
            lambda text: re.sub("(<TestTimeSeconds>)[^<]*", r"\g<1>0.0", text),
            "Let it run for a second or more.",
        ),
    ],
)
def test_a_refused_document_of_diskspd_tells_what_to_do(
    edit: Edit, hint: str, tmp_path: Path
) -> None:
    (fault,) = found_in(tmp_path, DISKSPD, edit=edit).faults
    assert hint in fault.hint


def test_a_server_that_died_leaves_a_throughput_that_is_none(tmp_path: Path) -> None:
    (result,) = results(tmp_path, *KILLED).values()
    found = objections(result)
    assert found["operations-failed"] == "invalid"
    assert found["totals-disagree"] == "invalid"
    assert value(result, "ops_per_s") == pytest.approx((1146 + 1221) / 5.112)


def test_a_server_that_answered_is_not_complained_of(tmp_path: Path) -> None:
    (result,) = results(tmp_path, *YCSB).values()
    assert objections(result).keys() <= {"run-too-short"}


def test_a_server_that_was_never_there_is_no_result(tmp_path: Path) -> None:
    (result,) = results(tmp_path, "ycsb/server-down.txt", "ycsb/server-down.err").values()
    assert objections(result)["engine-errors"] == "invalid"


def changed(pattern: str, text: str) -> Edit:
    return lambda before: re.sub(pattern, text, before, count=1, flags=re.DOTALL)


FAULTS = {
    "a p99 of YCSB beyond its maximum": (
        YCSB,
        changed(
            r"\[READ\], 99thPercentileLatency\(us\), \d+",
            "[READ], 99thPercentileLatency(us), 99999999",
        ),
        "percentiles-contradicted",
    ),
    "more reads than their latency log has": (
        YCSB,
        changed(r"\[READ\], Operations, \d+", "[READ], Operations, 29999"),
        "totals-disagree",
    ),
    "a median of YCSB that its log does not give": (
        YCSB,
        changed(
            r"\[READ\], 50thPercentileLatency\(us\), \d+", "[READ], 50thPercentileLatency(us), 20"
        ),
        "percentiles-contradicted",
    ),
    "reads of which some failed": (
        YCSB,
        changed(
            r"\[READ\], Return=OK, 20786", "[READ], Return=OK, 20000\n[READ], Return=ERROR, 786"
        ),
        "operations-failed",
    ),
    "a rate of db_bench that its count does not give": (
        DB_BENCH,
        changed(r"221459 ops/sec", "442918 ops/sec"),
        "reported-rates",
    ),
    "a p99 of db_bench beyond its maximum": (
        DB_BENCH,
        changed(r"P99: 95.86", "P99: 99999.99"),
        "percentiles-contradicted",
    ),
    "a mean of mdtest above its maximum": (
        (MDTEST,),
        changed(r"(File creation +[\d.]+ +[\d.]+ +)[\d.]+", r"\g<1>99999999.000"),
        "engine-errors",
    ),
    "a bandwidth of IOR that its bytes do not give": (
        (IOR,),
        changed(r"write     361270", "write     999999"),
        "reported-rates",
    ),
    "a summary of IO500 that IOR did not print": (
        IO500,
        changed(r"352\.803032", "452.803032"),
        "totals-disagree",
    ),
    "a result that IO500 calls invalid": (
        IO500,
        changed(r"(352\.803032.*?seconds)", r"\1 [INVALID]"),
        "engine-errors",
    ),
    "IOPS of elbencho that its bytes do not give": (
        (ELBENCHO,),
        changed(r"4792,4831,4792,4831", "4792,9999,4792,4831"),
        "reported-rates",
    ),
    "more in flight than elbencho has threads": (
        (ELBENCHO,),
        changed(r"(dir,1,)4,8(,1,1,1099511627776,1048576,1,0,,1,1,0,WRITE)", r"\g<1>1,8\2"),
        "littles-law",
    ),
    "buffered writes of elbencho": (
        (ELBENCHO,),
        changed(r"(1048576,)1(,0,,1,1,0,WRITE)", r"\g<1>0\2"),
        "buffered-io",
    ),
    "a latency of elbencho that no read had": (
        (ELBENCHO_JSON,),
        changed(r'("phase_type":"READ".*?"count":")\d+', r"\g<1>9999"),
        "totals-disagree",
    ),
    "a maximum of elbencho below its percentiles": (
        (ELBENCHO_JSON,),
        changed(r'("phase_type":"READ".*?"max_us":")\d+', r"\g<1>170"),
        "percentiles-contradicted",
    ),
    "IOPS of elbencho's JSON that its bytes do not give": (
        (ELBENCHO_JSON,),
        changed(r'("phase_type":"READ".*?"last_done".*?"iops":")\d+', r"\g<1>94540"),
        "reported-rates",
    ),
    "bytes of vdbench that its rate does not give": (
        (VDBENCH,),
        changed(r"(avg_2-10 +[\d.]+ +[\d.]+ +)[\d.]+", r"\g<1>99.0000"),
        "reported-rates",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_and_its_file_else_not_complained_of(
    fault: str, tmp_path: Path
) -> None:
    files, edit, code = FAULTS[fault]
    for result in results(tmp_path, *files).values():
        assert code not in objections(result)
    found = [objections(one) for one in results(tmp_path, *files, edit=edit).values()]
    assert any(code in one for one in found)


def test_data_that_fits_into_the_memory_told_beside_it_is_found(tmp_path: Path) -> None:
    (sound,) = results(tmp_path, *DB_BENCH).values()
    assert "reads-from-memory" not in objections(sound)
    meminfo = tmp_path / "meminfo"
    paths = [tmp_path / Path(name).name for name in DB_BENCH]
    for kilobytes, expected in ((16_000_000, True), (16_000, False)):
        meminfo.write_text(f"MemTotal:       {kilobytes} kB\nMemFree: 1 kB\n")
        found = read_foreign_files([*paths, meminfo], IMPORTERS)
        assert not found.faults
        (result,) = results(tmp_path, *DB_BENCH, beside=[meminfo]).values()
        assert ("reads-from-memory" in objections(result)) is expected


def test_a_folder_of_many_tools_is_one_import(tmp_path: Path) -> None:
    for name in (*YCSB, *DB_BENCH, MDTEST, *IO500, ELBENCHO, VDBENCH, DISKSPD):
        (tmp_path / Path(name).name).write_bytes(recorded(name))
    (tmp_path / "full.txt").write_bytes(recorded("mdtest/full-4.1.0-dev.txt"))
    (tmp_path / "notes.md").write_text("what we did")
    found = read_foreign_files([tmp_path], IMPORTERS)
    assert not found.faults
    assert [one.name for one in found.unknown_files] == ["notes.md"]
    assert len(found.skipped_file_faults) == 1
    tools = {run.details.tool for _, run in found.runs}
    assert tools == {"ycsb", "db_bench", "mdtest", "io500", "elbencho", "vdbench", "diskspd"}


@pytest.mark.parametrize(
    "name",
    [MDTEST, IOR, IO500[0], YCSB[0], DB_BENCH[0], ELBENCHO, ELBENCHO_JSON, VDBENCH, DISKSPD],
)
def test_files_that_are_cut_anywhere_end_in_runs_or_faults(name: str, tmp_path: Path) -> None:
    content = recorded(name)
    path = tmp_path / Path(name).name
    for share in range(1, 20):
        path.write_bytes(content[: len(content) * share // 20])
        found = read_foreign_files([path], IMPORTERS)
        assert found.runs or found.faults


DISKSPD_WRITE = "diskspd/random-write-2.3.0.txt"


@pytest.mark.parametrize(
    ("old", "new", "paced"),
    [
        ("<Throughput>0<", '<Throughput unit="IOPS">22000<', True),
        ("<Throughput>0<", '<Throughput unit="IOPS">90000<', False),
        # Bytes in a millisecond: 22114 writes of 4 KiB in 1.01 s are 89,682.
        ("<Throughput>0<", "<Throughput>90000<", True),
        ("<Throughput>0<", "<Throughput>900000<", False),
    ],
)
def test_a_rate_of_diskspd_that_is_reached_holds_the_load(
    old: str, new: str, *, paced: bool, tmp_path: Path
) -> None:
    found = found_in(tmp_path, DISKSPD_WRITE, edit=lambda text: text.replace(old, new))
    ((_, run),) = found.runs
    assert run.details.paced is paced


def test_files_of_one_load_of_diskspd_are_repeats_and_are_dated(tmp_path: Path) -> None:
    text = recorded(DISKSPD_WRITE).decode()
    (tmp_path / "run1.xml").write_text(text)
    (tmp_path / "run2.xml").write_text(text.replace("06:30:32", "06:40:32"))
    session = plan_imported_session(
        read_foreign_files([tmp_path], IMPORTERS).runs, configuration_id="c", title="c"
    )
    assert [one.planned_run.repeat for one in session.runs] == [1, 2]
    first, second = (one.foreign_run.ended_real_ns or 0 for one in session.runs)
    assert second - first == 600 * 10**9
    moment = datetime.fromtimestamp(first / 10**9, UTC)
    assert (moment.year, moment.month, moment.hour, moment.minute) == (2026, 9, 6, 30)


@pytest.mark.parametrize(("second", "buffered"), [("true", False), ("false", True), ("", True)])
def test_the_cache_of_diskspd_is_of_each_target(
    second: str, *, buffered: bool, tmp_path: Path
) -> None:
    def two_targets(text: str) -> str:
        (target,) = re.findall(r"<Targets>(.*?)</Targets>", text, re.S)
        told = re.search(r"<DisableOSCache>true</DisableOSCache>", target)
        assert told
        word = f"<DisableOSCache>{second}</DisableOSCache>" if second else ""
        return text.replace(target, target + target.replace(told[0], word))

    ((_, run),) = found_in(tmp_path, DISKSPD_WRITE, edit=two_targets).runs
    assert run.details.buffered is buffered
