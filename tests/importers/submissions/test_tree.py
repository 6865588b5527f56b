"""Trees of submissions as files: what is no result, what is damaged, and what is too much."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.importers.files import ForeignFileError
from iolab.importers.foreign_run import EvidenceKind
from iolab.importers.submissions.result_folder import TreeReader, find_result_folders
from iolab.importers.submissions.row import RowStatus
from iolab.importers.submissions.rows import read_submission_tree
from iolab.importers.submissions.yaml_scalars import yaml_scalar_key_paths_and_texts
from tests.cli.in_process import call
from tests.importers.importing import lay_down
from tests.importers.submissions.tree_writer import (
    organization,
    write_checkpoint,
    write_json,
    write_kv_cache,
    write_training,
)


def test_rows_of_a_tree_name_division_organization_system_and_workload(tmp_path: Path) -> None:
    write_training(tmp_path)
    write_checkpoint(tmp_path)
    write_kv_cache(tmp_path)
    rows = read_submission_tree(tmp_path) or []
    assert [row.name for row in rows] == [
        "closed / Acme / sys1 / checkpointing llama3-70b",
        "closed / Acme / sys1 / kv_cache llama3.1-8b 20260807_155647",
        "closed / Acme / sys1 / training unet3d",
    ]
    below = read_submission_tree(organization(tmp_path) / "results/sys1/training") or []
    assert [row.name for row in below] == ["closed / Acme / sys1 / training unet3d"]


def test_folder_without_results_is_no_tree(tmp_path: Path) -> None:
    write_json(tmp_path / "a" / "summary.json", {"metric": {"score": 1}})
    write_json(tmp_path / "b" / "summary.json", [1])
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "summary.json").write_text("{")
    assert read_submission_tree(tmp_path) is None


def test_program_folders_and_links_are_passed_over(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write_training(outside)
    root = tmp_path / "root"
    write_training(root / "closed" / "Acme" / "code-206c50e8")
    (root / "closed" / "link").symlink_to(outside)
    assert read_submission_tree(root) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff\xfe\x00", b'{"1": 3}', b"[" * 100_000, b'{"1": {"block1": 1e999}}'],
)
def test_damaged_times_leave_a_row_unsupported(tmp_path: Path, content: bytes) -> None:
    folder = write_checkpoint(tmp_path)
    for file in folder.glob("*_per_epoch_stats.json"):
        file.write_bytes(content)
    (row,) = read_submission_tree(tmp_path) or []
    assert row.status is RowStatus.UNSUPPORTED


@pytest.mark.parametrize("value", [float("1e300"), "x", None, True, [], {}, -1, 0])
def test_figures_that_are_none_are_no_figures(tmp_path: Path, value: object) -> None:
    write_training(tmp_path, summary={"train_io_mean_MB_per_second": value})
    write_checkpoint(tmp_path, commands=[("save",)])
    rows = read_submission_tree(tmp_path) or []
    assert len(rows) == 2


def test_too_many_entries_and_bytes_are_told(tmp_path: Path) -> None:
    write_training(tmp_path)
    with pytest.raises(ForeignFileError, match="more than 20 files"):
        find_result_folders(tmp_path, entries_max=20)
    reader = TreeReader(bytes_left=10)
    with pytest.raises(OSError, match="10 bytes"):
        reader.read(next(tmp_path.rglob("summary.json")))


def test_values_of_yaml_have_their_paths() -> None:
    text = "a:\n- b: '1'\n  c:\n  - d\n  - e: 2 # two\n- b: 3\nf: &id001\n  g: x: y\n"
    assert dict(yaml_scalar_key_paths_and_texts(text)) == {
        "a.0.b": "1",
        "a.0.c.0": "d",
        "a.0.c.1.e": "2",
        "a.1.b": "3",
        "f.g": "x: y",
    }


def test_import_prints_rows_their_files_and_how_many(tmp_path: Path) -> None:
    root, session = tmp_path / "tree", tmp_path / "S"
    write_training(root)
    write_kv_cache(root, option={"aggregated_p95_latency_ms": 463_143.6})
    done = call("import", str(root), "--out", str(session))
    assert done.returncode == 0
    assert done.stdout.endswith("Of 2 rows: 1 supported, 0 unsupported, 1 contradicted.\n")
    assert "20260807_155647/summary.json: options.1.aggregated_p95_latency_ms" in done.stdout
    shown = json.loads(call("show", str(session), "--json").stdout)
    levels = {one["workload"]: one["verdict"]["level"] for one in shown["results"]}
    assert sorted(levels.values()) == ["indicative", "invalid"]


def test_import_of_a_tree_beside_files_has_both(tmp_path: Path) -> None:
    root, session = tmp_path / "tree", tmp_path / "S"
    write_kv_cache(root)
    (file,) = lay_down(tmp_path, "import/fio/plain-3.33.json")
    done = call("import", str(root), str(file), "--out", str(session), "--json")
    document = json.loads(done.stdout)
    assert document["summary"] == "Of 1 row: 1 supported, 0 unsupported, 0 contradicted."
    (row,) = document["rows"]
    assert row["status"] == "supported"
    assert {each["kind"] for each in row["evidence"]} == {EvidenceKind.SUPPORTS.value}
    assert document["runs"] == 2
