"""Files that claim more than can be: a sentence, little memory, and nothing left behind."""

from __future__ import annotations

import json
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from iolab.core import limits
from iolab.importers.files import read_foreign_files
from iolab.importers.registry import IMPORTERS
from tests.cli.in_process import call
from tests.importers.importing import lay_down
from tests.needs import require
from tests.recorded import recorded

PLAIN = "import/fio/plain-3.33.json"
YEARS_30_MS = 30 * 365 * 86_400_000
MEMORY_BYTES = 300 << 20


def claiming(folder: Path, key: str, value: int) -> Path:
    """A report of fio in which a figure of each job is another one."""
    document = json.loads(recorded(PLAIN))
    for job in document["jobs"]:
        for part in (job, *(job[way] for way in ("read", "write"))):
            if key in part:
                part[key] = value
    path = folder / "claims.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("runtime", YEARS_30_MS),
        ("job_runtime", 10**18),
        ("runtime", 10**18),
        ("runtime", 10**400),
        ("total_ios", 10**400),
        ("total_ios", 2**62 + 2**20),
        ("io_bytes", 2**62 + 2**20),
    ],
)
def test_a_claim_beyond_its_bound_is_refused_with_a_sentence(
    tmp_path: Path, key: str, value: int
) -> None:
    path, out = claiming(tmp_path, key, value), tmp_path / "S"
    tracemalloc.start()
    done = call("import", str(path), "--out", str(out))
    exported = call("export", str(out), "-f", "openmetrics") if out.exists() else None
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < MEMORY_BYTES
    assert "Traceback" not in done.stderr
    if done.returncode == 0:  # a figure that is not needed may be passed over
        assert exported is not None
        assert exported.returncode == 0
    else:
        assert done.returncode == 2
        assert "claims.json" in done.stderr
        assert not out.exists()


@pytest.mark.parametrize("filling", [" ", "x", "="])
@pytest.mark.parametrize(
    "name",
    [
        "import/pods/kubestr.txt",
        "import/pods/dbench-3.33.txt",
        "import/gpu/nixlbench-write.txt",
        "import/io500/ior-easy-write.txt",
        "import/fleets/result.tsv",
    ],
)
def test_lines_without_end_take_no_more_time_than_their_bytes(
    name: str, filling: str, tmp_path: Path
) -> None:
    (path,) = lay_down(tmp_path, name)
    lines = path.read_text().split("\n")
    path.write_text("\n".join(f"{line[:3]}{filling * 100_000}{line[3:]}" for line in lines))
    outcome = read_foreign_files([path], IMPORTERS)
    assert outcome.runs or outcome.faults or outcome.unknown_files


def test_a_run_time_of_thirty_years_is_named(tmp_path: Path) -> None:
    done = call(
        "import",
        str(claiming(tmp_path, "runtime", YEARS_30_MS)),
        "--out",
        str(tmp_path / "S"),
    )
    assert done.returncode == 2
    assert "9.4608e+08 s" in done.stderr


def test_an_import_without_intervals_exports_no_series(tmp_path: Path) -> None:
    (file,) = lay_down(tmp_path, PLAIN)
    out = str(tmp_path / "S")
    assert call("import", str(file), "--out", out).returncode == 0
    exported = call("export", out, "-f", "openmetrics").stdout
    assert "iolab_point_operations_per_second{" in exported
    assert "iolab_operations_total{" not in exported
    assert "_bucket{" not in exported


def test_folders_nested_without_end_are_refused_and_links_that_lead_out_passed_over(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    lay_down(secret, PLAIN)
    folder, out = tmp_path / "folder", tmp_path / "S"
    folder.mkdir()
    (folder / "out.json").symlink_to(secret / "plain-3.33.json")
    (folder / "out").symlink_to(secret)
    refused = call("import", str(folder), "--out", str(out))
    assert refused.returncode == 2
    lay_down(folder, "import/fio/two-groups-3.33.json")
    done = call("import", str(folder), "--out", str(out))
    assert done.returncode == 0
    assert "out.json" in done.stderr
    assert "plain" not in (out / "study.toml").read_text()
    deep = folder
    for _ in range(60):
        deep = deep / "d"
        deep.mkdir()
    nested = call("import", str(folder), "--out", str(tmp_path / "T"))
    assert nested.returncode == 2
    assert "folders inside each other" in nested.stderr


def test_a_folder_that_is_no_folder_of_results_is_not_looked_through(tmp_path: Path) -> None:
    folder = tmp_path / "machine"
    for number in range(limits.ENTRIES_MAX + 1):
        (folder / str(number % 100) / str(number)).mkdir(parents=True)
    done = call("import", str(folder), "--out", str(tmp_path / "S"))
    assert done.returncode == 2
    assert f"more than {limits.ENTRIES_MAX}" in done.stderr


@pytest.mark.parametrize("free_kib", [8, 24, 40])
@pytest.mark.parametrize("name", ["S", ""])
def test_an_import_onto_a_disk_that_fills_leaves_nothing(
    tmp_path: Path, free_kib: int, name: str
) -> None:
    require("root")
    source, small = tmp_path / "plain.json", tmp_path / "small"
    source.write_bytes(recorded(PLAIN))
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={free_kib}k", "none", small], check=True)
    try:
        done = call("import", str(source), "--out", str(small / name))
        assert (done.returncode, "resume" in done.stderr) == (5, False)
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)
