"""Files of one client each: the run of all of them where a user says so, told as repeats else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from iolab.core.metric import RunResult
from iolab.importers.clients import find_assumed_repeats, join_clients_of_same_load
from iolab.importers.files import read_foreign_files
from iolab.importers.registry import IMPORTERS
from iolab.importers.session import build_imported_run_record, plan_imported_session
from tests.cli.in_process import call
from tests.facts import tells
from tests.importers.importing import objections, results, value
from tests.judging import judge
from tests.recorded import recorded

APART = "import/fio/apart-3.42.json"
TOGETHER = "import/fio/together-3.42.json"


def split(folder: Path, name: str, *, later_s: int = 0, timed: bool = True) -> list[Path]:
    """What fio of each client would have written: a real report of a server's clients in parts."""
    text = recorded(name).decode()
    whole = json.loads(text[text.index("{") :])
    entries = [entry for entry in whole.pop("client_stats") if entry["jobname"] != "All clients"]
    paths = []
    for number, entry in enumerate(entries):
        for key in ("hostname", "port"):
            entry.pop(key, None)
        entry["job_start"] += 1000 * later_s
        if not timed:
            del entry["job_start"]
        path = folder / f"c{number + 1}{f'-{later_s}' if later_s else ''}.json"
        path.write_text(json.dumps({**whole, "jobs": [entry]}))
        paths.append(path)
    assert len(paths) == 2
    return paths


def joined(paths: list[Path]) -> Mapping[int, RunResult]:
    """The results by repeat, as `iolab import --clients` has them."""
    session = plan_imported_session(
        join_clients_of_same_load(read_foreign_files(paths, IMPORTERS).runs),
        configuration_id="c",
        title="c",
    )
    every = [judge(build_imported_run_record(one, one.files), {}) for one in session.runs]
    assert {one.workload for one in every} == {every[0].workload}
    return {one.repeat: one for one in every}


def test_clients_in_files_of_their_own_are_what_fio_tells_of_them_in_one(tmp_path: Path) -> None:
    (own,) = joined(split(tmp_path, TOGETHER)).values()
    (whole,) = results(tmp_path, TOGETHER).values()
    names = ("iops", "bw_bytes_per_s", "lat_ns_mean", "lat_ns_p50", "lat_ns_p99")
    assert [value(own, name) for name in names] == [value(whole, name) for name in names]
    assert objections(own) == objections(whole)
    assert [host.name for host in own.hosts] == ["c1", "c2"]


def test_clients_that_never_overlapped_are_found_also_in_files_of_their_own(
    tmp_path: Path,
) -> None:
    (own,) = joined(split(tmp_path, APART)).values()
    assert objections(own)["no-common-window"] == "invalid"
    assert value(own, "iops") is None


def test_moments_that_files_tell_of_are_repeats_of_all_clients(tmp_path: Path) -> None:
    paths = [*split(tmp_path, TOGETHER), *split(tmp_path, TOGETHER, later_s=900)]
    first, second = joined(paths).values()
    assert [len(one.hosts) for one in (first, second)] == [2, 2]
    assert value(first, "iops") == value(second, "iops")


def test_files_that_tell_no_time_are_clients_where_the_user_says_so(tmp_path: Path) -> None:
    (own,) = joined(split(tmp_path, TOGETHER, timed=False)).values()
    assert len(own.hosts) == 2
    assert objections(own)["no-common-window"] == "indicative"


def test_a_file_is_kept_with_a_client_that_it_tells_of(tmp_path: Path) -> None:
    both, (_, second) = tmp_path / "both.json", split(tmp_path, TOGETHER)
    both.write_bytes(recorded(TOGETHER))
    found = read_foreign_files([both, second], IMPORTERS).runs
    (placed,) = plan_imported_session(
        join_clients_of_same_load(found), configuration_id="c", title="c"
    ).runs
    record = build_imported_run_record(placed, placed.files)
    assert len(record.hosts) == 3
    kept = [(one.host, one.name) for one in record.outputs]
    assert kept == [(record.hosts[0].host, "both.json"), ("c2", "c2.json")]


@pytest.mark.parametrize(("name", "overlap"), [(TOGETHER, True), (APART, False)])
def test_what_is_assumed_of_several_files_is_known(
    name: str, *, overlap: bool, tmp_path: Path
) -> None:
    session = plan_imported_session(
        read_foreign_files(split(tmp_path, name), IMPORTERS).runs, configuration_id="c", title="c"
    )
    (assumed,) = find_assumed_repeats(session.runs)
    assert (len(assumed.files), assumed.has_overlap) == (2, overlap)


def test_the_command_says_what_it_assumed_and_takes_the_users_word(tmp_path: Path) -> None:
    files: list[Any] = split(tmp_path, TOGETHER)
    assumed = call("import", *files, "--out", tmp_path / "repeats")
    assert tells(assumed.stderr, "c1.json", "c2.json", "--clients")
    told = call("import", *files, "--clients", "--out", tmp_path / "clients", "--json")
    assert json.loads(told.stdout)["runs"] == 1
    assert "--clients" not in told.stderr
    (manifest,) = tmp_path.glob("clients/points/*/run-1/manifest.json")
    kept = json.loads(manifest.read_bytes())["outputs"]
    assert [(one["host"], one["name"]) for one in kept] == [("c1", "c1.json"), ("c2", "c2.json")]
    assert call("show", tmp_path / "clients").returncode == 0
