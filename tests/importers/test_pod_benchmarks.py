"""kubestr, kbench and dbench: figures to the digit, jobs side by side named, no unit guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.importers.files import ImportOutcome, read_foreign_files
from iolab.importers.foreign_run import ForeignRun
from iolab.importers.registry import IMPORTERS
from tests.cli.in_process import call
from tests.importers.importing import lay_down, results, value
from tests.recorded import recorded

PODS = "import/pods/"
FOUR = ["read_bw", "read_iops", "write_bw", "write_iops"]


def outcome(tmp_path: Path, name: str, text: str | None = None) -> ImportOutcome:
    (path,) = lay_down(tmp_path, f"{PODS}{name}")
    if text is not None:
        path.write_text(text, encoding="utf-8")
    found = read_foreign_files([path], IMPORTERS)
    assert found.faults == ()
    return found


def runs_by_name(found: ImportOutcome) -> dict[str, ForeignRun]:
    return {run.name: run for _, run in found.runs}


@pytest.mark.parametrize(
    ("name", "workload", "metric", "number"),
    [
        ("kubestr.json", "read-iops", "read_iops", 4014.235),
        ("kubestr.txt", "read-iops", "iops", 4014.235349),
        ("kubestr.txt", "write-bw", "bw_bytes_per_s", None),
        ("kbench.txt", "rand-read-iops", "iops", 37352),
        ("kbench.txt", "seq-write-bw", "bw_bytes_per_s", 1994394 * 1024),
        ("kbench.txt", "rand-read-lat", "lat_ns_mean", 122834),
        ("dbench-3.33.txt", "read-latency", "lat_ns_mean", 343.61e3),
        ("dbench-3.33.txt", "read-iops", "iops", 37.0e3),
        ("dbench-summary.txt", "read-iops", "iops", 37.0e3),
        ("dbench-summary.txt", "write-seq", "bw_bytes_per_s", 2374 << 20),
    ],
)
def test_figures_are_those_that_are_printed(
    name: str, workload: str, metric: str, number: float | None, tmp_path: Path
) -> None:
    (result,) = (
        result
        for label, result in results(tmp_path, f"{PODS}{name}").items()
        if label.partition(" ")[0] == workload
    )
    found = value(result, metric)
    if number is None:
        assert found is not None
    else:
        assert found == pytest.approx(number, rel=2e-3)


@pytest.mark.parametrize("name", ["kubestr.json", "kubestr.txt"])
def test_jobs_of_kubestr_run_side_by_side(name: str, tmp_path: Path) -> None:
    runs = runs_by_name(outcome(tmp_path, name))
    assert set(FOUR) <= set(runs)
    for job in FOUR:
        settings = dict(runs[job].settings)
        assert settings["beside"] == ", ".join(other for other in FOUR if other != job)
        assert settings["storage class"] == "fast"
        assert any("at the same time" in note for note in runs[job].details.notes)


def test_a_job_that_kubestr_does_not_name_is_read_also_where_a_page_indents_it(
    tmp_path: Path,
) -> None:
    text = """\
    Running FIO test (own.fio) on StorageClass (high) with a PVC of Size (100Gi)
    FIO version - fio-3.20
    Global options - ioengine= verify= direct= gtod_reduce=

    JobName:
      blocksize=4k filesize=1g iodepth=32 rw=randwrite
    write:
      IOPS=377553.281250 BW(KiB/s)=1510221
      iops: min=249082 max=535406 avg=378120.718750
"""
    found = outcome(tmp_path, "kubestr.txt", text)
    (run,) = runs_by_name(found).values()
    (figures,) = run.clients[0].details.figures
    assert (figures.operation, figures.rate_per_s) == ("write", 377553.28125)
    assert figures.bw_bytes_per_s == 1510221 * 1024
    assert dict(run.settings)["bs"] == "4k"
    assert not found.left_out_lines


def test_options_that_kubestr_leaves_out_come_from_its_job_file(tmp_path: Path) -> None:
    text = recorded(f"{PODS}kubestr.json").decode().replace(r"[job2]", r"[job2]\nnumjobs=3")
    found = runs_by_name(outcome(tmp_path, "kubestr.json", text))
    assert dict(found["write_iops"].settings)["numjobs"] == "3"
    assert found["write_iops"].in_flight == 3 * 64
    assert found["read_iops"].in_flight == 64


def test_job_files_with_walls_have_no_such_note(tmp_path: Path) -> None:
    text = recorded(f"{PODS}kubestr.json").decode().replace(r"[job2]", r"[job2]\nstonewall")
    found = runs_by_name(outcome(tmp_path, "kubestr.json", text))
    assert not any("same time" in note for note in found["read_iops"].details.notes)


def test_volumes_that_kbench_compares_are_points_of_their_own(tmp_path: Path) -> None:
    found = outcome(tmp_path, "kbench-compare.txt")
    volumes = [dict(run.settings)["volume"] for _, run in found.runs]
    assert sorted(volumes) == ["local-path"] * 12 + ["second"] * 12
    assert any("idle" in entry.reason for entry in found.left_out_lines)


def test_a_latency_of_dbench_without_its_unit_is_left_out(tmp_path: Path) -> None:
    whole = outcome(tmp_path, "dbench-3.33.txt")
    assert len(whole.runs) == 9
    summary = outcome(tmp_path, "dbench-summary.txt")
    assert {run.name for _, run in summary.runs} == {
        *FOUR,
        "read_seq",
        "write_seq",
        "rw_mix",
    }
    assert ["unit" in entry.reason for entry in summary.left_out_lines] == [True]


def test_latencies_of_dbench_have_the_unit_of_fio(tmp_path: Path) -> None:
    text = recorded(f"{PODS}dbench-3.33.txt").decode()
    slow = text.replace(
        "lat (usec): min=38, max=39204, avg=343.61", "lat (msec): min=3, max=92, avg=12.50"
    )
    run = runs_by_name(outcome(tmp_path, "dbench-3.33.txt", slow))["read_latency"]
    assert run.clients[0].details.figures[0].lat_mean_ns == 12.5e6


def test_a_log_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    text = recorded(f"{PODS}kbench.txt").decode().partition("IOPS (Read")[0]
    path = tmp_path / "kbench.txt"
    path.write_text(text, encoding="utf-8")
    done = call("import", path, "--out", tmp_path / "session")
    assert done.returncode == 2
    assert "kbench printed no figure" in done.stderr
