"""fio's reports: its own figures, merged ones as by brute force, and planted faults found."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.core.histogram import MIDDLE_NS
from iolab.core.limits import FILE_BYTES_MAX, TOTAL_BYTES_MAX
from iolab.importers.files import read_foreign_files
from iolab.importers.metrics import PERCENTILES
from iolab.importers.registry import IMPORTERS
from iolab.importers.session import (
    build_imported_run_record,
    plan_imported_session,
    write_imported_session,
)
from iolab.store.reader import SessionReader
from iolab.study.schedule import expand_points
from tests.importers.importing import (
    Edit,
    found_in,
    lay_down,
    objections,
    records,
    results,
    value,
)
from tests.judging import judge
from tests.recorded import recorded

PLAIN = "import/fio/plain-3.33.json"
GROUPS = "import/fio/two-groups-3.33.json"
APART = "import/fio/apart-3.42.json"
TOGETHER = "import/fio/together-3.42.json"
LOGS = tuple(
    f"import/fio/logged_{kind}.{job}.log"
    for kind in ("iops", "bw", "lat", "clat", "clat_hist")
    for job in (1, 2)
)
SUPPORT = {"percentile-support": "indicative"}
SHORT = {**SUPPORT, "run-too-short": "indicative"}


def document(name: str) -> Any:
    text = recorded(name).decode()
    return json.loads(text[text.index("{") :])


def brute_force(blocks: list[dict[str, Any]], percent: float) -> float:
    """fio's rank rule over every single latency of all bins."""
    pairs = sorted((int(at), count) for one in blocks for at, count in one["bins"].items())
    every = np.repeat([at for at, _ in pairs], [count for _, count in pairs])
    place = int(np.ceil(percent * len(every) / 100))
    return float(every[max(place, 1) - 1])


def test_one_job_has_the_figures_that_fio_prints(tmp_path: Path) -> None:
    (result,) = results(tmp_path, PLAIN).values()
    read = document(PLAIN)["jobs"][0]["read"]
    assert value(result, "iops") == read["iops"]
    assert value(result, "bw_bytes_per_s") == read["bw_bytes"]
    assert value(result, "lat_ns_mean") == read["clat_ns"]["mean"]
    assert value(result, "lat_ns_max") == read["clat_ns"]["max"]
    for name, percent in PERCENTILES:
        own = read["clat_ns"]["percentile"][f"{percent:f}"]
        assert value(result, f"lat_ns_{name}") in (own, None)
    assert value(result, "lat_ns_p99") is not None
    assert objections(result).keys() <= {"startup-transient"}


def test_text_output_of_fio_is_named_and_says_what_to_do(tmp_path: Path) -> None:
    text = (
        "randread: (groupid=0, jobs=1): err= 0: pid=7: Tue Nov 24 12:24:13 2026\n  read: IOPS=7\n"
    )
    path = tmp_path / "out.txt"
    path.write_text(text)
    (fault,) = read_foreign_files([path], IMPORTERS).faults
    assert "json+" in fault.hint


def test_a_session_tells_what_was_measured_and_when(tmp_path: Path) -> None:
    files = lay_down(tmp_path, PLAIN)
    session = plan_imported_session(
        read_foreign_files(files, IMPORTERS).runs, configuration_id="mine", title="mine"
    )
    for word in ("mine", "full", "randread", "4k", "iodepth 8", "libaio"):
        assert word in session.study.title
    write_imported_session(session, tmp_path / "S", (), lambda record: judge(record, {}))
    measured = document(PLAIN)["timestamp"] - 20
    made = SessionReader(tmp_path / "S").session.created_real_ns
    assert made / 1e9 == pytest.approx(measured, abs=5)


def test_clients_that_ran_together_are_merged_bin_by_bin(tmp_path: Path) -> None:
    (result,) = results(tmp_path, TOGETHER).values()
    *clients, every = document(TOGETHER)["client_stats"]
    blocks = [one["read"]["clat_ns"] for one in clients]
    assert value(result, "iops") == sum(one["read"]["iops"] for one in clients)
    assert value(result, "iops") == pytest.approx(every["read"]["iops"], rel=1e-3)
    for name, percent in PERCENTILES[:4]:
        assert value(result, f"lat_ns_{name}") == brute_force(blocks, percent)
    assert set(MIDDLE_NS) >= {value(result, "lat_ns_p50")}
    assert objections(result) == SHORT


def test_clients_of_an_older_fio_may_have_run_apart(tmp_path: Path) -> None:
    (result,) = results(tmp_path, "import/fio/together-3.33.json").values()
    assert objections(result) == {**SHORT, "no-common-window": "indicative"}


def test_groups_that_ran_after_each_other_are_not_added(tmp_path: Path) -> None:
    first, second, every = results(tmp_path, GROUPS).values()
    assert objections(every)["phases-added"] == "invalid"
    assert value(every, "iops") is None
    assert value(first, "iops") == pytest.approx(3870.485254)
    assert value(second, "iops") == pytest.approx(3997.500624)
    for one in (first, second):
        assert "phases-added" not in objections(one)


def test_clients_that_never_overlapped_have_no_fleet_number(tmp_path: Path) -> None:
    (result,) = results(tmp_path, APART).values()
    assert objections(result) == {
        **SHORT,
        "no-common-window": "invalid",
        "start-skew": "invalid",
    }
    assert value(result, "iops") is None
    assert [value_of["iops"].value for value_of in (host.metrics for host in result.hosts)] == [
        1997.752248,
        1974.506373,
    ]


def test_a_run_shorter_than_its_ramp_is_found(tmp_path: Path) -> None:
    (result,) = results(tmp_path, "import/fio/ramp-3.33.json").values()
    assert objections(result)["run-too-short"] == "invalid"


def test_buffered_io_is_found_in_the_options(tmp_path: Path) -> None:
    (result,) = results(tmp_path, "import/fio/buffered-3.33.json").values()
    assert objections(result)["buffered-io"] == "indicative"


@pytest.mark.parametrize(
    ("name", "objected"),
    [("import/fio/honest-3.33.json", {}), (PLAIN, {}), (TOGETHER, SHORT)],
)
def test_a_sound_report_is_not_complained_of(
    name: str, objected: dict[str, str], tmp_path: Path
) -> None:
    """Of direct I/O, without a ramp, by clients that ran together; the last for 4 s."""
    (result,) = results(tmp_path, name).values()
    assert objections(result) == objected


def test_status_intervals_are_one_run_with_its_seconds(tmp_path: Path) -> None:
    (record,) = records(tmp_path, "import/fio/honest-3.33.json")
    reads = record.intervals.direction == 0
    assert np.count_nonzero(reads) >= 19
    last = recorded("import/fio/honest-3.33.json").decode().rsplit('"fio version"', 1)[1]
    total = sum(int(found) for found in re.findall(r'"total_ios" : (\d+)', last))
    assert int(record.intervals.ios.sum()) <= total


def test_logs_beside_a_report_tell_seconds_and_bins(tmp_path: Path) -> None:
    (record,) = records(tmp_path, "import/fio/logged-3.33.json", *LOGS)
    job = document("import/fio/logged-3.33.json")["jobs"][0]["read"]
    # This version loses the last window of its bins.
    assert len(record.bins) == 0
    assert int(record.intervals.ios.sum()) == pytest.approx(job["total_ios"] * 5 / 6, rel=0.05)
    assert len(record.intervals) >= 5
    (result,) = results(tmp_path, "import/fio/logged-3.33.json", *LOGS).values()
    assert value(result, "lat_ns_p99") == job["clat_ns"]["percentile"]["99.000000"]
    assert "percentiles-contradicted" not in objections(result)
    assert "totals-disagree" not in objections(result)


def changed(pattern: str, text: str) -> Edit:
    return lambda before: re.sub(pattern, text, before, count=1, flags=re.DOTALL)


FAULTS = {
    "a p99 beyond the maximum": (
        PLAIN,
        changed(r'"99.000000" : \d+', '"99.000000" : 99000000000'),
        "percentiles-contradicted",
    ),
    "a median that is not that of the bins": (
        PLAIN,
        changed(r'"50.000000" : \d+', '"50.000000" : 29000'),
        "percentiles-contradicted",
    ),
    "a percentile below a lower one": (
        "import/fio/buffered-3.33.json",
        changed(r'"95.000000" : \d+', '"95.000000" : 1'),
        "percentiles-contradicted",
    ),
    "a rate of twice the I/Os": (
        PLAIN,
        changed(r'"iops" : [1-9]\d+\.\d+', '"iops" : 9000000.0'),
        "reported-rates",
    ),
    "bytes that are not the bandwidth": (
        PLAIN,
        changed(r'"bw_bytes" : [1-9]\d+', '"bw_bytes" : 1000'),
        "reported-rates",
    ),
    "latencies of more in flight than there are": (
        PLAIN,
        changed(r'"iodepth" : "8"', '"iodepth" : "2"'),
        "littles-law",
    ),
    "a job that told of an error": (
        PLAIN,
        changed(r'"error" : 0', '"error" : 5'),
        "engine-errors",
    ),
    "more I/Os of all clients than of each": (
        TOGETHER,
        lambda text: text.replace('"total_ios" : 15987', '"total_ios" : 19999'),
        "totals-disagree",
    ),
    "percentiles of all clients that their bins do not give": (
        TOGETHER,
        lambda text: re.sub(
            r'("jobname" : "All clients".*?"90.000000" : )\d+',
            r"\g<1>40000",
            text,
            count=1,
            flags=re.DOTALL,
        ),
        "percentiles-contradicted",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_and_its_file_else_not_complained_of(
    fault: str, tmp_path: Path
) -> None:
    name, edit, code = FAULTS[fault]
    (sound,) = results(tmp_path, name).values()
    assert code not in objections(sound)
    (result,) = results(tmp_path, name, edit=edit).values()
    assert objections(result)[code] == "invalid"


def test_every_imported_run_is_indicative_at_best_and_says_so(tmp_path: Path) -> None:
    for result in results(tmp_path, PLAIN, TOGETHER).values():
        assert result.verdict.level.rank >= 1
        assert "imported-evidence" in {one.code for one in result.verdict.objections}
        unknown = [one for one in result.verdict.checks if one.message.startswith("Not known")]
        assert len(unknown) >= 10
        assert all(one.level is None for one in unknown)


def test_what_is_cut_off_or_of_no_format_is_named_and_all_at_once(tmp_path: Path) -> None:
    (report,) = lay_down(tmp_path, PLAIN, edit=lambda text: text[:2000])
    other = tmp_path / "notes.txt"
    other.write_text("no results here")

    found = read_foreign_files([report, other, tmp_path / "none.json"], IMPORTERS)
    told = " ".join(fault.message for fault in found.faults)
    assert len(found.faults) == 3
    for name in ("plain-3.33.json", "notes.txt", "none.json"):
        assert name in told


def test_a_file_of_a_folder_that_nobody_knows_is_named_and_no_fault(tmp_path: Path) -> None:
    found = found_in(tmp_path, PLAIN)
    (tmp_path / "notes.txt").write_text("no results here")

    again = read_foreign_files([tmp_path], IMPORTERS)
    assert [one.name for one in again.unknown_files] == ["notes.txt"]
    assert not again.faults
    assert len(again.runs) == len(found.runs)


@pytest.mark.parametrize(
    "text",
    [
        '{"fio version": "fio-3.33", "jobs": 7}',
        '{"fio version": "fio-3.33", "jobs": []}',
        '{"fio version": 1' + "[" * 5000,
        '{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read": {"total_ios": 1e400}}]}',
        '{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read": {"total_ios": "9"}}]}',
        '{"fio version": "fio-3.33", "jobs": [{"jobname": "\\u001b[2J", "read": {"iops": -nan}}]}',
        '{"fio version": "fio-3.33", "jobs": [{"read": {"total_ios": 5, "clat_ns": '
        '{"bins": {"17000000000000": 5}}}}]}',
    ],
)
def test_hostile_reports_end_in_a_fault_or_an_invalid_run(text: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.json"
    path.write_text(text)

    found = read_foreign_files([path], IMPORTERS)
    for one in plan_imported_session(found.runs, configuration_id="x", title="x").runs:
        assert judge(build_imported_run_record(one, one.files), {}).verdict.level.value == "invalid"
        assert "\x1b" not in one.planned_run.point.workload
    assert found.runs or found.faults


def test_files_that_are_too_large_together_are_not_read(tmp_path: Path) -> None:
    for number in range(TOTAL_BYTES_MAX // FILE_BYTES_MAX + 1):
        with (tmp_path / f"large-{number}.json").open("wb") as file:
            file.truncate(FILE_BYTES_MAX)
    found = read_foreign_files([tmp_path], IMPORTERS)
    assert len(found.faults) == 1
    assert not found.runs


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)

    (fault,) = read_foreign_files([path], IMPORTERS).faults
    assert "large.json" in fault.message


def test_bins_of_a_log_are_the_runs_where_they_are_of_all_of_it(tmp_path: Path) -> None:
    report = "import/fio/logged-3.42.json"
    logs = [f"import/fio/logged42_{kind}.1.log" for kind in ("iops", "bw", "lat", "clat_hist")]
    told = recorded(logs[-1]).decode().splitlines()
    counted = sum(int(one) for line in told for one in line.split(",")[3:])
    (record,) = records(tmp_path, report, *logs)
    assert len(record.bins) == 0
    assert counted < document(report)["jobs"][0]["read"]["total_ios"]
    ended = changed(r'"total_ios" : \d+', f'"total_ios" : {counted}')
    (record,) = records(tmp_path, report, *logs, edit=ended)
    assert int(record.bins.count.sum()) == counted


def test_runs_that_differ_in_many_options_make_few_points(tmp_path: Path) -> None:
    base = recorded(PLAIN).decode()
    for number in range(60):
        text = base.replace('"iodepth" : "8"', f'"iodepth" : "{8 + number}"')
        text = text.replace('"bs" : "4k"', f'"bs" : "{4 + number}k"')
        text = text.replace('"job options" : {', f'"job options" : {{"size": "{1 + number}m",', 1)
        (tmp_path / f"{number}.json").write_text(text)
    found = read_foreign_files([tmp_path], IMPORTERS)
    session = plan_imported_session(found.runs, configuration_id="x", title="x")
    assert len(session.runs) == len(session.plan.points) == 60
    assert len(expand_points(session.study)) <= 2000


def test_latencies_that_a_version_did_not_count_are_not_zero(tmp_path: Path) -> None:
    (result,) = results(tmp_path, "import/fio/ramp-3.33.json").values()
    assert value(result, "lat_ns_mean") is None
    assert value(result, "iops")


def in_one_group(text: str) -> str:
    return re.sub(r'"groupid" : \d+', '"groupid" : 0', text)


def started_together(text: str) -> str:
    first = re.search(r'"job_start" : \d+', text)
    assert first is not None
    return re.sub(r'"job_start" : \d+', first[0], text)


WITHOUT: dict[str, tuple[str, Edit, str]] = {
    "groups that ran after each other": (GROUPS, in_one_group, "phases-added"),
    "clients that never overlapped": (APART, started_together, "no-common-window"),
    "a run shorter than its ramp": (
        "import/fio/ramp-3.33.json",
        changed(r'"ramp_time" : "\d+s?"', '"ramp_time" : "1"'),
        "run-too-short",
    ),
    "buffered I/O": (
        "import/fio/buffered-3.33.json",
        changed(r'"direct" : "0"', '"direct" : "1"'),
        "buffered-io",
    ),
}


@pytest.mark.parametrize("fault", WITHOUT)
def test_a_real_report_with_a_fault_is_not_complained_of_without_it(
    fault: str, tmp_path: Path
) -> None:
    name, mended, code = WITHOUT[fault]
    found = [objections(one).get(code) for one in results(tmp_path, name).values()]
    level = "indicative" if code == "buffered-io" else "invalid"
    assert level in found
    after = [objections(one).get(code) for one in results(tmp_path, name, edit=mended).values()]
    assert level not in after


def test_percentiles_of_too_few_operations_are_found(tmp_path: Path) -> None:
    (sound,) = results(tmp_path, PLAIN).values()
    assert "percentile-support" not in objections(sound)
    few = changed(r'"total_ios" : [1-9]\d*', '"total_ios" : 50')
    (result,) = results(tmp_path, PLAIN, edit=few).values()
    assert objections(result)["percentile-support"] == "indicative"
    assert value(result, "lat_ns_p99") is None
