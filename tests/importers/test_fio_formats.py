"""How fio printed from 2.1 to 3.42, and where its reports stand in files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from iolab.core.metric import RunResult
from iolab.core.run import RunRecord
from iolab.importers.files import read_foreign_files
from iolab.importers.fio_units import parse_fio_bytes, parse_fio_seconds
from iolab.importers.foreign_run import ImportedRunDetails
from iolab.importers.registry import IMPORTERS
from iolab.importers.session import build_imported_run_record, plan_imported_session
from tests.cli.in_process import call
from tests.importers.fio_reports import MOMENT, Document, direction, job, one_read, report
from tests.importers.importing import objections, results, value
from tests.judging import judge
from tests.recorded import recorded

CASES = "import/cases/"

FIGURES: list[tuple[str, dict[str, float]]] = [
    (
        "11-fio-2.16-units.json",
        {"iops": 40e3, "bw_bytes_per_s": 163.84e6, "lat_ns_mean": 395e3, "lat_ns_max": 9e6},
    ),
    (
        "12-fio-2.1.4-writes.json",
        {"write_iops": 200, "bw_bytes_per_s": 102.4e6, "lat_ns_mean": 318e6, "lat_ns_p99": 700e6},
    ),
    (
        "13-fio-unified-rw.json",
        {"iops": 40e3, "bw_bytes_per_s": 163.84e6, "lat_ns_mean": 180e3, "lat_ns_p99": 257024},
    ),
    (
        "14-fio-fdatasync.json",
        {
            "iops": 2200,
            "bw_bytes_per_s": 5.06e6,
            "write_lat_ns_p99": 25702,
            "sync_lat_ns_mean": 440e3,
            "sync_lat_ns_p99": 12124160,
            "sync_lat_ns_p99_9": 24510464,
        },
    ),
    ("15-fio-3.1-zero-percentile.json", {"iops": 50e3, "lat_ns_p99": 257024}),
    ("18b-fio-indented.txt", {"iops": 50e3}),
    ("18c-fio-begins-within-a-line.txt", {"iops": 50e3}),
    ("19-fio-after-64k-of-progress.json", {"iops": 50e3}),
]


@pytest.mark.parametrize(("name", "figures"), FIGURES)
def test_figures_of_every_version_are_in_their_units(
    name: str, figures: Mapping[str, float], tmp_path: Path
) -> None:
    (result,) = results(tmp_path, CASES + name).values()
    for key, printed in figures.items():
        assert value(result, key) == pytest.approx(printed), key
    assert objections(result).keys() <= {"buffered-io"}


def test_reports_in_an_array_are_runs(tmp_path: Path) -> None:
    both = results(tmp_path, f"{CASES}18a-fio-array.json").values()
    assert [value(one, "iops") for one in both] == [50e3, 30e3]


def runs(folder: Path, *texts: str | Document) -> list[RunRecord]:
    """The runs in a file of these texts and reports, one after the other."""
    parts = [text if isinstance(text, str) else json.dumps(text, indent=1) for text in texts]
    (folder / "out.json").write_text("\n".join(parts) + "\n")
    found = read_foreign_files([folder / "out.json"], IMPORTERS)
    assert not found.faults
    session = plan_imported_session(found.runs, configuration_id="c", title="c")
    return [build_imported_run_record(placed) for placed in session.runs]


def judged(folder: Path, *texts: str | Document) -> list[RunResult]:
    return [judge(record, {}) for record in runs(folder, *texts)]


def left_out(folder: Path, *texts: str | Document) -> list[str]:
    """What is left out of such a file."""
    runs(folder, *texts)
    return [
        entry.message
        for entry in read_foreign_files([folder / "out.json"], IMPORTERS).left_out_lines
    ]


def details(record: RunRecord) -> ImportedRunDetails:
    return ImportedRunDetails.require_type(record.details)


def test_the_rule_that_was_used_is_told(tmp_path: Path) -> None:
    old = recorded(f"{CASES}11-fio-2.16-units.json").decode()
    (record,) = runs(tmp_path, old)
    assert any("KiB" in note and "2.99" in note for note in details(record).notes)
    (record,) = runs(tmp_path, one_read(1000))
    assert not any("2.99" in note for note in details(record).notes)


READ = {"rw": "randread", "bs": "4k", "direct": "1", "ioengine": "libaio", "iodepth": "4"}


def reads(iops: float, *, name: str = "a", at: int = MOMENT, **more: Any) -> Document:
    """A report of one job with four reads in flight."""
    entry = job(name, {**READ, **more.pop("options", {})}, read=direction(iops, 4e9 / iops))
    return report({**entry, **more}, at=at)


def test_reports_that_were_appended_are_runs_of_their_own(tmp_path: Path) -> None:
    every = judged(tmp_path, reads(1000), reads(1010, at=MOMENT + 61), reads(1010))
    assert [value(one, "iops") for one in every] == [1000, 1010, 1010]
    assert {one.digest for one in every} == {every[0].digest}


def test_reports_of_one_run_at_intervals_are_one_run(tmp_path: Path) -> None:
    steps = []
    for seconds in (20, 40, 60):
        read = direction(1000, 4e6, seconds=seconds)
        steps.append(report(job("a", READ, read=read, elapsed=seconds + 1), at=MOMENT + seconds))
    (record,) = runs(tmp_path, *steps)
    assert len(record.intervals) == 3


def test_a_report_that_is_cut_off_between_others_is_named(tmp_path: Path) -> None:
    whole = json.dumps(reads(2000), indent=1)
    texts = (reads(1000), whole[: len(whole) // 2], reads(3000, at=MOMENT + 500))
    every = judged(tmp_path, *texts)
    assert sorted(value(one, "iops") or 0 for one in every) == [1000, 3000]
    (message,) = left_out(tmp_path, *texts)
    line = len(json.dumps(reads(1000), indent=1).splitlines()) + 1
    assert f"lines {line}-" in message
    assert "cut off" in message


def test_text_and_terse_output_beside_a_report_are_named(tmp_path: Path) -> None:
    text = "a: (groupid=0, jobs=1): err= 0: pid=7: Tue Nov 24\n  read: IOPS=7\n\nRun status group"
    terse = "3;fio-3.36;a;0;0;" + ";".join("0" for _ in range(100))
    messages = left_out(tmp_path, "fio-3.36\nStarting 1 process", reads(1000), terse, text)
    assert len(messages) == 2
    assert "terse" in messages[0]
    assert "text" in messages[1]


def test_lines_of_others_are_named(tmp_path: Path) -> None:
    (message,) = left_out(tmp_path, "+ ./run.sh 7", reads(1000))
    assert "line 1:" in message


def test_a_report_that_was_sorted_by_name_is_read(tmp_path: Path) -> None:
    document = {**reads(1000), "disk_util": [{"name": "sda"}]}
    (one,) = judged(tmp_path, json.dumps(document, sort_keys=True))
    assert value(one, "iops") == 1000


@pytest.mark.parametrize("terse", [True, False])
def test_output_that_is_not_read_says_what_to_run(terse: bool, tmp_path: Path) -> None:  # noqa: FBT001
    text = (
        "3;fio-3.36;a;0;0;" + ";".join("0" for _ in range(100))
        if terse
        else ("Jobs: 1\n" * 9000 + "a: (groupid=0, jobs=1): err= 0: pid=7\n")
    )
    (tmp_path / "out.txt").write_text(text)
    (fault,) = read_foreign_files([tmp_path / "out.txt"], IMPORTERS).faults
    assert ("terse" in fault.message) == terse
    assert "json+" in fault.hint


def test_syncs_count_in_littles_law_and_not_in_iops(tmp_path: Path) -> None:
    options = {"rw": "write", "bs": "4k", "direct": "1", "fsync": "1"}
    sync = {"total_ios": 60_000, "lat_ns": {"min": 1, "max": 9_000_000, "mean": 900e3, "N": 60_000}}
    write = direction(1000, 50e3)
    (one,) = judged(tmp_path, report(job("a", options, write=write, sync=sync)))
    assert (value(one, "iops"), value(one, "sync_lat_ns_mean")) == (1000, 900e3)
    assert "littles-law" not in objections(one)
    (alone,) = judged(tmp_path, report(job("a", options, write=write)))
    assert objections(alone)["littles-law"] == "indicative"


def test_syncs_are_shown_beside_the_writes(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(recorded(f"{CASES}14-fio-fdatasync.json"))
    done = call("import", tmp_path / "a.json", "--out", tmp_path / "S")
    row = next(line for line in done.stdout.splitlines() if "syncs" in line)
    assert all(figure in row for figure in ("440 µs", "12.1 ms", "24.5 ms"))


def test_jobs_of_one_group_ran_side_by_side(tmp_path: Path) -> None:
    read, write = direction(1000, 4e6), direction(500, 8e6)
    both = [job("a", READ, read=read), job("b", {**READ, "rw": "randwrite"}, write=write)]
    first, second, every = judged(tmp_path, report(*both))
    assert [value(one, "iops") for one in (first, second, every)] == [1000, 500, 1500]
    assert every.workload == "a-b"
    assert "littles-law" not in objections(every)
    alone = judged(tmp_path, report(both[0]), report(*both, at=MOMENT + 99))
    points = {one.digest for one in alone}
    assert len(points) == 4, "a job alone is another load than beside another"


def test_groups_ran_after_each_other_unless_they_are_only_new_ones(tmp_path: Path) -> None:
    def reported(**options: str) -> list[RunResult]:
        second = job("b", {**READ, **options}, group=1, read=direction(500, 8e6))
        return judged(tmp_path, report(job("a", READ, read=direction(1000, 4e6)), second))

    assert len(reported(stonewall="")) == 2
    assert len(reported(new_group="")) == 3


def test_groups_that_are_only_new_ones_are_no_phases_added(tmp_path: Path) -> None:
    def reported(option: str) -> dict[str, str]:
        second = job("b", {**READ, option: ""}, group=1, read=direction(500, 8e6))
        entries = [job("a", READ, read=direction(1000, 4e6)), second]
        every = job("All clients", {}, read=direction(1500, 5.33e6))
        document = report(*[{**one, "hostname": "c1", "port": 1} for one in entries], every)
        document["client_stats"] = document.pop("jobs")
        return objections(judged(tmp_path, document)[-1])

    assert reported("stonewall")["phases-added"] == "invalid"
    assert "phases-added" not in reported("new_group")


def test_clients_whose_options_differ_are_not_those_of_the_first(tmp_path: Path) -> None:
    entries = [job("a", {**READ, "bs": bs}, read=direction(1000, 4e6)) for bs in ("4k", "8k")]
    document = report(*[{**one, "hostname": f"c{n}"} for n, one in enumerate(entries)])
    document["client_stats"] = document.pop("jobs")
    (record,) = runs(tmp_path, document)
    assert dict(record.run.point.job.options)["bs"] == "4k | 8k"


def test_a_run_that_took_no_time_is_too_short(tmp_path: Path) -> None:
    read = {**direction(1000, 4e6), "runtime": 0, "iops": 0.0, "bw_bytes": 0}
    (one,) = judged(tmp_path, report(job("a", READ, read=read)))
    assert objections(one)["run-too-short"] == "invalid"


def test_the_engine_that_is_not_told_may_be_that_of_windows(tmp_path: Path) -> None:
    options = {name: text for name, text in READ.items() if name != "ioengine"}
    (one,) = judged(tmp_path, report(job("a", options, read=direction(1000, 4e6))))
    assert "littles-law" not in objections(one)
    (sync,) = judged(tmp_path, reads(1000, options={"ioengine": "psync"}))
    assert objections(sync)["littles-law"] == "invalid"


def test_time_to_submit_counts_in_littles_law(tmp_path: Path) -> None:
    """Buffered I/O of libaio is done while it is submitted."""
    read = direction(1000, 4e6)
    read["clat_ns"] = {**read["clat_ns"], "mean": 1e3, "min": 500}
    (one,) = judged(tmp_path, report(job("a", READ, read=read)))
    assert "littles-law" not in objections(one)
    assert value(one, "lat_ns_mean") == 1e3


def test_percentiles_from_submission_have_their_own_mean_and_maximum(tmp_path: Path) -> None:
    """From 3.4 to 3.17 fio prints them among the completion latencies."""
    read = direction(1000, 4e6)
    read["clat_ns"] = {**read["clat_ns"], "max": 5_000_000}
    (one,) = judged(tmp_path, reads(1000, options={"lat_percentiles": "1"}, read=read))
    assert "percentiles-contradicted" not in objections(one)
    assert value(one, "lat_ns_p99") == 12e6
    (other,) = judged(tmp_path, reads(1000, read=read))
    assert objections(other)["percentiles-contradicted"] == "invalid"


def test_a_steady_state_that_was_not_attained_is_told(tmp_path: Path) -> None:
    def reported(attained: int) -> dict[str, str]:
        steady = {"ss": "iops:0.3%", "duration": 30, "attained": attained}
        (one,) = judged(tmp_path, reads(1000, steadystate=steady))
        return objections(one)

    assert reported(0)["startup-transient"] == "indicative"
    assert "startup-transient" not in reported(1)


def test_a_rate_of_zero_paces_nothing(tmp_path: Path) -> None:
    records = runs(tmp_path, reads(1000, options={"rate_iops": "0"}))
    records += runs(tmp_path, reads(1000, options={"rate_iops": "500,0"}))
    assert [details(record).paced for record in records] == [False, True]


@pytest.mark.parametrize(("rate", "verb"), [("1000", "serves 1 k"), ("0", "reaches 1 k")])
def test_a_rate_that_was_asked_for_is_no_maximum(rate: str, verb: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(one_read(1000, rate_iops=rate))
    done = call("import", tmp_path / "a.json", "--out", tmp_path / "S")
    assert verb in " ".join(done.stdout.split())


def test_a_bandwidth_of_all_clients_that_is_not_theirs_is_found(tmp_path: Path) -> None:
    def reported(**wrong: float) -> dict[str, str]:
        entries = [
            {**job("a", READ, read=direction(1000, 4e6)), "hostname": name} for name in ("c", "d")
        ]
        every = job("All clients", {}, read={**direction(2000, 4e6), **wrong})
        document = report(*entries, every)
        document["client_stats"] = document.pop("jobs")
        (one,) = judged(tmp_path, document)
        return objections(one)

    assert "reported-rates" not in reported()
    assert reported(bw_bytes=9e9)["reported-rates"] == "invalid"


def test_all_directions_together_are_held_against_each(tmp_path: Path) -> None:
    """As `unified_rw_reporting=both` prints them."""

    def reported(iops: float) -> list[RunResult]:
        entry = job(
            "a",
            {**READ, "rw": "randrw"},
            read=direction(700, 4e6),
            write=direction(300, 4e6),
            mixed=direction(iops, 4e6),
        )
        return judged(tmp_path, report(entry))

    (right,) = reported(1000)
    assert value(right, "iops") == 1000
    assert "totals-disagree" not in objections(right)
    (wrong,) = reported(2000)
    assert objections(wrong)["totals-disagree"] == "invalid"


def test_bins_of_old_versions_are_numbered_in_microseconds(tmp_path: Path) -> None:
    (text,) = [recorded(f"{CASES}11-fio-2.16-units.json").decode()]
    document = json.loads(text)
    for entry in document["jobs"]:
        counts = {str(number): 0 for number in range(1216)}
        counts |= {"100": 600_000, "200": 600_000, "FIO_IO_U_PLAT_BITS": 6}
        entry["read"]["clat"]["bins"] = counts
        entry["read"]["clat"]["percentile"] = {"50.000000": 100, "99.000000": 274}
    (record,) = runs(tmp_path, document)
    assert int(record.bins.count.sum()) == 2_400_000
    one = judge(record, {})
    assert value(one, "lat_ns_p50") == pytest.approx(100e3, rel=0.02)
    assert objections(one) == {}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("4k", 4096),
        ("64KB", 65536),
        ("64KiB", 64000),
        ("10GiB", 10**10),
        ("1M", 1 << 20),
        ("0x1000", 4096),
        ("50%", None),
        ("${SIZE}", None),
        ("2*4k", None),
    ],
)
def test_sizes_are_those_of_fio(text: str, size: int | None) -> None:
    assert parse_fio_bytes(text) == size


def test_sizes_and_times_in_any_form_are_one_load(tmp_path: Path) -> None:
    every = judged(
        tmp_path,
        reads(1000, options={"size": "1g", "runtime": "60"}),
        reads(1001, options={"size": "1024m", "runtime": "1m"}),
        reads(1002, options={"bs": "4096", "size": "1024MiB", "kb_base": "1000", "runtime": "60s"}),
    )
    assert len({one.digest for one in every}) == 1
    assert parse_fio_bytes("64KiB", 1000) == 65536
    assert parse_fio_seconds("2h") == 7200


LOG_OPTIONS = {"write_iops_log": "x", "write_bw_log": "x", "write_lat_log": "x"}


def logged(folder: Path, rows: Mapping[str, list[str]], **options: str) -> RunRecord:
    """The run of a report of ten seconds with such logs beside it."""
    for kind, lines in rows.items():
        (folder / f"x_{kind}.1.log").write_text("\n".join(lines) + "\n")
    entry = job("a", {**READ, **LOG_OPTIONS, **options}, read=direction(100, 4e6, seconds=10))
    (folder / "a.json").write_text(json.dumps(report(entry)))
    found = read_foreign_files([folder], IMPORTERS)
    (placed,) = plan_imported_session(found.runs, configuration_id="c", title="c").runs
    return build_imported_run_record(placed)


def test_logs_of_averages_and_of_every_io_tell_the_same_seconds(tmp_path: Path) -> None:
    averages = {
        "iops": [f"{1000 * n}, 100, 0, 0" for n in range(1, 11)],
        "bw": [f"{1000 * n}, 400, 0, 0" for n in range(1, 11)],
        "lat": [f"{1000 * n}, 4000000, 0, 0" for n in range(1, 11)],
    }
    every = {
        "iops": [f"{10 * n}, 1, 0, 4096, 0, 0x7fff" for n in range(1, 1001)],
        "lat": [f"{10 * n}, 4000000, 0, 4096, 0, 0x7fff" for n in range(1, 1001)],
    }
    moved = {
        kind: [
            f"{1_700_000_000_000 + int(line.partition(',')[0])},{line.partition(',')[2]}"
            for line in lines
        ]
        for kind, lines in averages.items()
    }
    told = []
    for name, rows, options in (
        ("averages", averages, {"log_avg_msec": "1000"}),
        ("every", every, {}),
        ("epoch", moved, {"log_avg_msec": "1000", "log_unix_epoch": "1"}),
    ):
        (tmp_path / name).mkdir()
        record = logged(tmp_path / name, rows, **options)
        ends = record.intervals.end_real_ns - record.intervals.end_real_ns.min()
        told.append(
            (record.intervals.ios.tolist(), ends.tolist(), record.intervals.lat_sum_ns.tolist())
        )
    assert told[0] == told[1] == told[2]
    assert told[0][0] == [100] * 10


def test_a_log_that_cannot_be_read_loses_nothing_else(tmp_path: Path) -> None:
    logged(tmp_path, {"iops": ["1000, 100, 0, 0", "no line"]}, log_avg_msec="1000")
    found = read_foreign_files([tmp_path], IMPORTERS)
    assert len(found.runs) == 1
    (entry,) = found.left_out_lines
    assert "Line 2" in entry.message


def test_a_log_without_its_report_is_named_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "y_bw.1.log").write_text("1000, 400, 0, 0\n")
    (fault,) = read_foreign_files([tmp_path], IMPORTERS).faults
    assert "write_iops_log" in fault.message
    (tmp_path / "a.json").write_text(one_read(1000))
    found = read_foreign_files([tmp_path], IMPORTERS)
    assert not found.faults
    assert [entry.file for entry in found.left_out_lines] == ["y_bw.1.log"]


def test_a_report_of_only_the_sum_is_a_run(tmp_path: Path) -> None:
    """Of fio 2.6 with unified_rw_reporting, as somebody kept it."""
    mixed = {
        "io_bytes": 2021176,
        "bw": 16653,
        "iops": 2252.49,
        "runtime": 121363,
        "total_ios": 273369,
        "lat": {"min": 431, "max": 3781314, "mean": 1782.92, "stddev": 19405.44},
    }
    document = {
        "fio version": "fio-2.6",
        "global options": {"unified_rw_reporting": "1"},
        "client_stats": [{"jobname": "All clients", "groupid": 0, "error": 0, "mixed": mixed}],
    }
    (one,) = judged(tmp_path, document)
    assert value(one, "iops") == 2252.49
    assert value(one, "bw_bytes_per_s") == 16653 * 1024
    assert value(one, "lat_ns_mean") == pytest.approx(1782.92e3)
    assert objections(one) == {}


def test_a_group_reported_as_one_has_as_many_jobs_as_their_times_add_up_to(tmp_path: Path) -> None:
    entry = job("a", {**READ, "group_reporting": "1"}, read=direction(1000, 20e6))
    (one,) = judged(tmp_path, report({**entry, "job_runtime": 300_000}))
    assert "littles-law" not in objections(one)
    (other,) = judged(tmp_path, report({**entry, "job_runtime": 60_000}))
    assert objections(other)["littles-law"] == "indicative"


@pytest.mark.parametrize(("elapsed", "together"), [(62, True), (122, False)])
def test_groups_that_fio_had_no_time_for_one_by_one_ran_side_by_side(
    elapsed: int,
    together: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    entries = [
        job(name, READ, group=group, read=direction(1000, 4e6), elapsed=elapsed)
        for group, name in enumerate("ab")
    ]
    assert len(judged(tmp_path, report(*entries))) == (3 if together else 2)


def test_a_report_of_rates_alone_is_read(tmp_path: Path) -> None:
    read = {"iops": 9000, "bw": 36000, "clat_ns": {"mean": 100e3, "percentile": {"99.000000": 4e5}}}
    (one,) = judged(tmp_path, report(job("a", {}, read=read)))
    assert (value(one, "iops"), value(one, "lat_ns_mean")) == (9000, 100e3)
    assert objections(one) == {}


def test_jobs_of_unlike_length_are_no_contradiction(tmp_path: Path) -> None:
    short = direction(1000, 4e6, seconds=20)
    entries = [job("a", READ, read=direction(1000, 4e6)), job("b", READ, read=short)]
    *_, every = judged(tmp_path, report(*entries))
    assert value(every, "iops") == 2000
    assert "reported-rates" not in objections(every)
    wrong = job("b", READ, read={**short, "iops": 5000})
    *_, every = judged(tmp_path, report(entries[0], wrong))
    assert objections(every)["reported-rates"] == "invalid"


def test_a_job_that_did_all_of_its_size_was_not_cut_short(tmp_path: Path) -> None:
    size = {"runtime": "600", "size": str(1000 * 60 * 4096)}
    (one,) = judged(tmp_path, reads(1000, options=size))
    assert "run-too-short" not in objections(one)
    (other,) = judged(tmp_path, reads(1000, options={**size, "size": "1t"}))
    assert objections(other)["run-too-short"] == "indicative"


def test_names_that_differ_at_their_end_are_two_jobs(tmp_path: Path) -> None:
    every = judged(tmp_path, *(reads(1000 + n, name=f"{'x' * 120}{n}") for n in (1, 2)))
    assert len({one.workload for one in every}) == 2


def test_a_report_that_was_sorted_and_copied_is_no_repeat(tmp_path: Path) -> None:
    read = direction(1000, 4e6)
    read["clat_ns"]["percentile"] = {"5.000000": 1, "10.000000": 2, "50.000000": 3_000_000}
    document = report(job("a", READ, read=read))
    assert len(runs(tmp_path, document, json.dumps(document, sort_keys=True))) == 1
