"""Results of S3 tools: logs of requests, warp's JSON, elbencho's objects."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard

from iolab.core.metric import RunResult
from iolab.importers.files import ImportOutcome, read_foreign_files
from iolab.importers.foreign_run import ForeignRun
from iolab.importers.registry import IMPORTERS
from iolab.importers.session import build_imported_run_record, plan_imported_session
from tests.cli.in_process import call
from tests.facts import tells
from tests.importers.importing import objections, results, value
from tests.importers.warp_files import Phase, log_text, part, result_text, window
from tests.judging import judge

MS = 1e6
MIB = 1 << 20
S3DLIO = "import/warp/s3dlio-0.10.0.tsv"


def outcome(folder: Path, **texts: str) -> ImportOutcome:
    """What is found in files of those names, the last `_` of each a dot."""
    for name, text in texts.items():
        (folder / ".".join(name.rsplit("_", 1))).write_text(text)
    return read_foreign_files([folder], IMPORTERS)


def by_name(found: ImportOutcome) -> dict[str, ForeignRun]:
    """Its runs; there is no fault."""
    assert not found.faults
    assert not found.left_out_lines
    return {run.name: run for _, run in found.runs}


def judged(found: ImportOutcome) -> RunResult:
    """The result of its only run."""
    (one,) = plan_imported_session(found.runs, configuration_id="c", title="t").runs
    return judge(build_imported_run_record(one), {})


GETS = Phase("GET", begin_s=100, requests=8000, took_ms=20)


def test_a_log_has_its_phases_with_merged_latencies_and_first_bytes(tmp_path: Path) -> None:
    puts = Phase("PUT", begin_s=0, requests=100, took_ms=20)
    runs = by_name(outcome(tmp_path, a_csv=log_text([puts, GETS])))
    assert runs.keys() == {"warp put", "warp get"}
    gets, first = runs["warp get"].clients[0].details.figures
    assert (gets.operation, gets.count, gets.bytes) == ("object_get", 8000, 8000 * MIB)
    assert gets.rate_per_s == pytest.approx(8000 / 80)
    assert gets.lat_mean_ns == pytest.approx(20 * MS, rel=1e-4)
    assert first.operation == "object_get_first_byte"
    assert first.lat_max_ns == pytest.approx(10 * MS, rel=1e-3)
    commit = runs["warp put"].clients[0].details.figures[1]
    assert (commit.operation, commit.count) == ("object_put_commit", 100)
    settings = dict(runs["warp get"].settings)
    assert settings["concurrent"] == "2"
    assert not {"access-key", "secret-key"} & settings.keys()


def test_percentiles_of_several_clients_are_those_of_their_merged_latencies(
    tmp_path: Path,
) -> None:
    slow = Phase("GET", begin_s=100, requests=4000, took_ms=40, client="c2")
    result = judged(outcome(tmp_path, a_csv=log_text([GETS, slow])))
    assert value(result, "object_get_lat_ns_p50") == pytest.approx(20 * MS, rel=0.02)
    assert value(result, "object_get_lat_ns_p99") == pytest.approx(40 * MS, rel=0.02)
    assert value(result, "ops_per_s") == pytest.approx(100 + 50, rel=1e-3)
    assert "littles-law" not in objections(result)


def test_operations_of_one_time_are_one_mixed_load(tmp_path: Path) -> None:
    puts = Phase("PUT", begin_s=101, requests=2000, took_ms=70)
    (run,) = by_name(outcome(tmp_path, a_csv=log_text([GETS, puts], command="mixed"))).values()
    assert run.name == "warp get put"


def test_what_failed_is_no_request_that_was_done(tmp_path: Path) -> None:
    phase = Phase("GET", begin_s=0, requests=4000, took_ms=40, failed=30)
    result = judged(outcome(tmp_path, a_csv=log_text([phase])))
    assert value(result, "object_get_bw_bytes_per_s") == pytest.approx(3970 * MIB / 80)
    assert objections(result)["operations-failed"] == "invalid"
    assert objections(result)["engine-errors"] == "invalid"


def test_lines_of_a_log_that_are_damaged_are_named(tmp_path: Path) -> None:
    lines = log_text([GETS]).splitlines()
    lines[3] = lines[3].rpartition("\t")[0]
    cells = lines[5].split("\t")
    cells[9], cells[12] = cells[12], cells[9]
    lines[5] = "\t".join(cells)
    found = outcome(tmp_path, a_csv="\n".join(lines))
    assert [entry.first_line for entry in found.left_out_lines] == [4, 6]
    assert found.runs[0][1].clients[0].details.figures[0].count == 7998


def test_a_log_of_s3dlio_is_told_from_warp_s(tmp_path: Path) -> None:
    found = results(tmp_path, S3DLIO)
    assert {name.split(" ")[0] for name in found} == {"s3dlio-put", "s3dlio-get-get-range"} | {
        "s3dlio-list"
    }
    (many,) = (one for name, one in found.items() if name.startswith("s3dlio-get"))
    # The key that is missing.
    assert objections(many)["operations-failed"] == "invalid"


def test_compressed_files_are_read_and_a_result_beside_its_log_once(tmp_path: Path) -> None:
    parts = {"GET": part([window(2000, 40)] * 2)}
    for name, text in (("w.csv.zst", log_text([GETS])), ("w.json.zst", result_text(parts))):
        (tmp_path / name).write_bytes(zstandard.compress(text.encode()))
    runs = by_name(read_foreign_files([tmp_path], IMPORTERS))
    assert len(runs["warp get"].clients[0].bins) == 2


def test_frames_that_are_cut_off_are_named(tmp_path: Path) -> None:
    path = tmp_path / "w.csv.zst"
    path.write_bytes(zstandard.compress(log_text([GETS]).encode())[:-9])
    found = read_foreign_files([path], IMPORTERS)
    assert tells(found.faults[0].message, "w.csv.zst", "cut off")


def test_percentiles_of_windows_are_quoted_and_never_pooled(tmp_path: Path) -> None:
    found = outcome(
        tmp_path, a_json=result_text({"GET": part([window(1000, 40), window(9000, 20)])})
    )
    figures, first = by_name(found)["warp get"].clients[0].details.figures
    assert figures.lat_mean_ns == pytest.approx(22 * MS)
    assert (figures.lat_min_ns, figures.lat_max_ns) == (10 * MS, 120 * MS)
    assert figures.percentiles == ()
    assert dict(figures.printed)["dur_99_millis of windows"] == "40 to 80"
    assert first.lat_mean_ns == pytest.approx(11 * MS)
    assert value(judged(found), "object_get_lat_ns_p99") is None
    alone = outcome(tmp_path, a_json=result_text({"GET": part([window(12000, 10)])}))
    assert value(judged(alone), "object_get_lat_ns_p99") == 20 * MS


def test_results_of_other_stores_are_points_and_of_one_store_repeats(tmp_path: Path) -> None:
    texts = [result_text({"GET": part([window(requests, 20)])}) for requests in (6000, 6100, 6200)]
    other = texts[2].replace("--host=10.0.0.1:9000", "--host=10.0.0.9:9000")
    assert other != texts[2]
    found = outcome(tmp_path, a_json=texts[0], b_json=texts[1], c_json=other)
    planned = [
        one.planned_run
        for one in plan_imported_session(found.runs, configuration_id="c", title="t").runs
    ]
    assert [one.repeat for one in planned] == [1, 2, 1]
    assert dict(planned[2].point.axis_values)["host"] == "10.0.0.9:9000"
    alone = plan_imported_session(found.runs[:2], configuration_id="c", title="t")
    assert alone.study.workloads[0].sweep == ()


def test_failed_requests_are_taken_off_what_warp_counts(tmp_path: Path) -> None:
    found = outcome(tmp_path, a_json=result_text({"GET": part([window(6000, 20)], errors=60)}))
    result = judged(found)
    assert value(result, "object_get_ops_per_s") == pytest.approx(5940 / 60)
    assert value(result, "object_get_bw_bytes_per_s") == pytest.approx(5940 * MIB / 60)
    assert objections(result)["operations-failed"] == "invalid"


def test_a_rate_over_more_seconds_than_were_counted_is_found(tmp_path: Path) -> None:
    sound = {"GET": part([window(6000, 20)])}
    assert "reported-rates" not in objections(judged(outcome(tmp_path, a_json=result_text(sound))))
    planted = {"GET": part([window(6000, 20)], measured_s=64)}
    found = outcome(tmp_path, a_json=result_text(planted))
    assert objections(judged(found))["reported-rates"] == "indicative"


def test_results_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    parts = {"GET": part([window(6000, 20)])}
    for text, words in (
        (result_text(parts, version=7), ("Version 7", "2")),
        (result_text(parts)[:-9], ("damaged",)),
        (result_text({}), ("no request",)),
    ):
        found = outcome(tmp_path, a_json=text)
        assert any(tells(fault.message, *words) for fault in found.faults), found.faults


HEADER = (
    "ISO date,label,path type,hosts,threads,files,file size,block size,IO depth,operation,"
    "time ms [first],time ms [last],entries/s [first],entries/s [last],IOPS [last],MiB/s [last],"
    "entries [last],MiB [last],Ent lat us [min],Ent lat us [avg],Ent lat us [max],IO lat us [min],"
    "IO lat us [avg],IO lat us [max],version,command"
)
COMMAND = '"elbencho" "--s3endpoints" "http://s:9000" "--s3key" "AK" "--s3secret=HUSH" "b1"'
ELBENCHO_ROWS = {
    "MKBUCKETS": "4,4,914,908,,,4,,18,19,22,,,",
    "WRITE": "31000,32000,50,50,100,800,1600,25600,100000,160000,300000,50000,80000,150000",
    "LISTOBJ": "500,500,3200,3200,,,1600,,5000,9000,12000,,,",
    "RMOBJECTS": "700,800,2000,2000,,,1600,,900,4000,9000,,,",
}


def elbencho_text() -> str:
    """A CSV file of elbencho's phases on S3, with objects of two parts."""
    rows = (
        f"2026-11-24T16:10:3{place}.067+0000,,bucket,1,8,200,16777216,8388608,1,{name},{cells},3.1-9,"
        + COMMAND
        for place, (name, cells) in enumerate(ELBENCHO_ROWS.items())
    )
    return "\n".join([HEADER, *rows, ""])


def test_elbencho_s_objects_are_told_from_their_parts(tmp_path: Path) -> None:
    runs = by_name(outcome(tmp_path, a_csv=elbencho_text()))
    whole, parts = runs["elbencho write"].clients[0].details.figures
    assert (whole.operation, whole.count, whole.lat_mean_ns) == ("object_put", 1600, 160 * MS)
    assert whole.bytes == 25600 * MIB
    assert (parts.operation, parts.count, parts.lat_mean_ns) == ("object_part", 3200, 80 * MS)
    # A latency of a list is of a request, its rate one of keys.
    keys, requests = runs["elbencho listobj"].clients[0].details.figures
    assert (keys.operation, keys.rate_per_s, keys.lat_mean_ns) == ("object_list_key", 3200, None)
    assert (requests.operation, requests.lat_mean_ns) == ("object_list", 9 * MS)


def test_keys_of_a_command_are_in_no_file_of_the_session(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(elbencho_text())
    done = call("import", path, "--out", tmp_path / "S")
    assert done.returncode == 0, done.stderr
    content = b"".join(
        zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True).read()
        if raw.startswith(b"\x28\xb5\x2f\xfd")
        else raw
        for file in (tmp_path / "S").rglob("*")
        if file.is_file()
        for raw in [file.read_bytes()]
    )
    assert b"REDACTED" in content
    assert b"HUSH" not in content + done.stdout.encode() + done.stderr.encode()
