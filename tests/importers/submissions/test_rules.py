"""Each rule on a tree with the fault that it finds, and on an honest one."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from iolab.importers.foreign_run import EvidenceKind
from iolab.importers.submissions.row import RowStatus
from iolab.importers.submissions.rows import JudgedRow, read_submission_tree, row_status_counts_text
from tests.importers.submissions import tree_writer as tree
from tests.importers.submissions.tree_writer import (
    ACCELERATORS,
    EPOCHS,
    FILES,
    SAMPLE_BYTES,
    SAMPLES_PER_S,
    SIZE_GIB,
    write_checkpoint,
    write_kv_cache,
    write_system,
    write_training,
)

Write = Callable[[Path], object]
Said = tuple[str, EvidenceKind, str]

CONTRADICTS, QUESTIONS = EvidenceKind.CONTRADICTS, EvidenceKind.QUESTIONS
EXPLAINS, SUPPORTS = EvidenceKind.EXPLAINS, EvidenceKind.SUPPORTS

PRELOAD = "LD_PRELOAD=/opt/libnofadvise.so:/usr/lib/libeatmydata.so "


def only_row(root: Path) -> JudgedRow:
    rows = read_submission_tree(root)
    assert rows is not None
    assert len(rows) == 1
    return rows[0]


def with_overrides(root: Path) -> None:
    metadata = tree.training_metadata()
    metadata["executed_command"] = "dlio_benchmark ++workload.reader.read_threads=32"
    write_training(root, metadata=metadata)


def with_commands(root: Path, prefix: str = "", duration: int = 300) -> None:
    commands = [{"command": tree.kv_command(1, trial, duration, prefix)} for trial in range(3)]
    write_kv_cache(
        root,
        metadata={
            "parameters": {"num_users": 100, "duration": 60},
            "command_output_files": commands,
        },
    )


def pruned(root: Path) -> None:
    folder = write_checkpoint(root)
    for rank in range(ACCELERATORS):
        (folder / f"{rank}_per_epoch_stats.json").write_bytes(b"PRUNED BY STAFF\n")


def without_image(root: Path) -> None:
    folder = write_training(root)
    (folder / ".mlps-code-image").write_text("md5-tree-v2:64104f046ea4f45d52ae17edb072a0c7")


def slower_first_epoch(root: Path) -> None:
    rates = [0.7 * SAMPLES_PER_S, *[SAMPLES_PER_S] * (EPOCHS - 1)]
    write_training(root, summary={"train_throughput_samples_per_second": rates})


def write_described(
    root: Path, *, speed: float = 400, drives: bool = False, sysctl: str = ""
) -> None:
    write_kv_cache(root)
    write_system(root, speed=speed, drives=drives, sysctl=sysctl)


def with_fast_loads(root: Path) -> None:
    """The loads of what was saved last are four times as fast as the others."""
    write_checkpoint(root)
    for file in root.rglob("*_per_epoch_stats.json"):
        document = json.loads(file.read_text())
        for name in ("load_ckpt9", "load_ckpt10"):
            if name in document["1"]:
                document["1"][name]["duration"] = 5.0
        file.write_text(json.dumps(document))


def with_slow_start(root: Path) -> None:
    """The ranks of the second command took a minute to start, so its summary begins later."""
    write_checkpoint(root)
    path = max(root.rglob("summary.json"))
    document = json.loads(path.read_text())
    document["start"] = (
        datetime.fromisoformat(document["start"]) + timedelta(minutes=1)
    ).isoformat()
    path.write_text(json.dumps(document))


CLAIMED = FILES * EPOCHS * SAMPLE_BYTES

PLANTED: dict[str, tuple[Write, Said]] = {
    "MB of 1,000,000 bytes": (
        lambda root: write_training(
            root, summary={"train_io_mean_MB_per_second": SAMPLES_PER_S * SAMPLE_BYTES / 1e6}
        ),
        ("units", QUESTIONS, "1,000,000 bytes"),
    ),
    "a rate that its samples do not give": (
        lambda root: write_training(root, summary={"train_io_mean_MB_per_second": 50_000.0}),
        ("units", CONTRADICTS, "50,000 are published"),
    ),
    "samples a second that its epochs do not give": (
        lambda root: write_training(root, epochs=tree.epoch_stats(FILES / SAMPLES_PER_S * 1.4)),
        ("epoch-times", CONTRADICTS, "116.4 samples/s; 163.0 are published"),
    ),
    "utilization below its threshold": (
        lambda root: write_training(root, summary={"train_au_mean_percentage": 89.0}),
        ("utilization", CONTRADICTS, "89.00 %"),
    ),
    "utilization that its samples do not give": (
        lambda root: write_training(
            root,
            summary={
                "train_au_mean_percentage": 91.0,
                "train_throughput_mean_samples_per_second": SAMPLES_PER_S * 1.02,
            },
        ),
        ("utilization", CONTRADICTS, "95.90 %"),
    ),
    "data of a fifth of the rule": (
        lambda root: write_training(
            root,
            summary={"host_memory_GB": [8192.0, 8192.0]},
            metadata=tree.training_metadata(received=0),
        ),
        ("memory", QUESTIONS, "times the clients' memory of 16 TiB"),
    ),
    "half of the bytes": (
        lambda root: write_training(root, metadata=tree.training_metadata(received=CLAIMED / 2)),
        ("counters", QUESTIONS, "50 %"),
    ),
    "later epochs from a cache": (slower_first_epoch, ("first-epoch", QUESTIONS, "114.1")),
    "a rank that is slower than rank 0": (
        lambda root: write_checkpoint(root, rank_seconds={5: 44.0}, pause_s=30),
        ("slowest-rank", CONTRADICTS, "8 ranks took 44.0 s, 20.0 s are published"),
    ),
    "rank 0 alone": (
        lambda root: write_checkpoint(root, ranks=1, pause_s=25),
        ("slowest-rank", QUESTIONS, "up to 40.0 s"),
    ),
    "a mean of unequal rates": (
        lambda root: write_checkpoint(
            root,
            commands=[("save",)],
            metric={"save_checkpoint_io_mean_GB_per_second": 1.4 * SIZE_GIB / 20},
        ),
        ("mean-of-rates", QUESTIONS, "a mean of unequal rates"),
    ),
    "a mean of rates below bytes over time": (
        lambda root: write_checkpoint(
            root,
            commands=[("save",)],
            metric={"save_checkpoint_io_mean_GB_per_second": 0.8 * SIZE_GIB / 20},
        ),
        ("mean-of-rates", CONTRADICTS, "published"),
    ),
    "loads that memory holds": (
        lambda root: write_checkpoint(root, commands=[("save", "load")]),
        ("memory", QUESTIONS, "loads may come from memory"),
    ),
    "loads that are faster than the others": (
        with_fast_loads,
        ("uneven-loads", QUESTIONS, "2 loads (9, 10) took up to 4.0 times"),
    ),
    "loads long after saves": (
        lambda root: write_checkpoint(root, gap_s=400),
        ("gaps", QUESTIONS, "400 s after the saves"),
    ),
    "loads before the saves end": (
        lambda root: write_checkpoint(root, gap_s=-12),
        ("gaps", EXPLAINS, "12.0 s before"),
    ),
    "a percentile beyond the window": (
        lambda root: write_kv_cache(root, option={"aggregated_p95_latency_ms": 463_143.6}),
        ("percentile-window", CONTRADICTS, "463.1 s in a window of 300 s"),
    ),
    "ranks that its summary lacks": (
        lambda root: write_kv_cache(root, option={"missing_files": ["a"], "rank_count": 3}),
        ("missing-ranks", CONTRADICTS, "3 of 4 ranks; 1 file"),
    ),
    "ranks that its files lack": (
        lambda root: write_kv_cache(root, left_out=2),
        ("missing-ranks", QUESTIONS, "10 of 12"),
    ),
    "a rate that is not the sum of its ranks": (
        lambda root: write_kv_cache(root, option={"aggregated_read_bandwidth_gbps": 30.0}),
        ("rank-sums", CONTRADICTS, "published"),
    ),
    "sync calls that end at once": (
        lambda root: write_kv_cache(
            root,
            rank_result=tree.kv_rank_result(
                storage_write_device_p95_ms=0.0117, storage_write_host_p50_ms=1967.0
            ),
        ),
        ("sync-time", QUESTIONS, "11.7 us where a write takes 1.97 s"),
    ),
    "a preload of calls that do nothing": (
        lambda root: with_commands(root, PRELOAD),
        ("preload", CONTRADICTS, "libnofadvise.so"),
    ),
    "a preload of something else": (
        lambda root: with_commands(root, "LD_PRELOAD=/opt/libspeed.so "),
        ("preload", QUESTIONS, "libspeed.so"),
    ),
    "an allocator": (
        lambda root: with_commands(root, "env LD_PRELOAD=/usr/lib/libjemalloc.so.2 "),
        ("preload", EXPLAINS, "jemalloc"),
    ),
    "users and seconds of the command": (
        with_commands,
        ("command-overrides", EXPLAINS, "num_users = 200 (stored: 100) and duration = 300"),
    ),
    "threads of the command": (with_overrides, ("command-overrides", EXPLAINS, "= 32 (stored: 4)")),
    "times that were taken out": (pruned, ("pruned-files", QUESTIONS, "taken out")),
    "a program that is not in the tree": (without_image, ("code-image", QUESTIONS, "64104f04")),
    "more than the interfaces have": (
        lambda root: write_described(root, speed=10),
        ("line-rate", CONTRADICTS, "2.50 GB/s in all"),
    ),
    "more than the interfaces have, with drives": (
        lambda root: write_described(root, speed=10, drives=True),
        ("line-rate", QUESTIONS, "drives of their own"),
    ),
    "writeback that is set": (
        lambda root: write_described(root, sysctl="vm.dirty_bytes"),
        ("preload", EXPLAINS, "vm.dirty_bytes = 4294967296"),
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_fault_is_found_and_named_with_its_file(tmp_path: Path, fault: str) -> None:
    write, (rule, kind, words) = PLANTED[fault]
    write(tmp_path)
    row = only_row(tmp_path)
    found = [each for each in row.evidence if (each.rule, each.kind) == (rule, kind)]
    assert any(words in each.message for each in found), row.evidence
    assert all(each.file for each in found)
    if kind is CONTRADICTS:
        assert row.status is RowStatus.CONTRADICTED
    elif kind is QUESTIONS:
        assert row.status is not RowStatus.SUPPORTED


HONEST: dict[str, Write] = {
    "training": write_training,
    "training by the first five": lambda root: write_training(root, runs=5),
    "checkpointing by two commands": write_checkpoint,
    "checkpointing, times of rank 0 whose starts leave no room": (
        lambda root: write_checkpoint(root, ranks=1)
    ),
    "checkpointing whose ranks took a minute to start": with_slow_start,
    "KV cache": write_kv_cache,
    "KV cache within its line rate": write_described,
}


@pytest.mark.parametrize("kind", HONEST)
def test_honest_tree_is_supported(tmp_path: Path, kind: str) -> None:
    HONEST[kind](tmp_path)
    row = only_row(tmp_path)
    assert row.status is RowStatus.SUPPORTED, row.evidence
    assert not {each.kind for each in row.evidence} & {CONTRADICTS, QUESTIONS}
    assert row_status_counts_text([row]) == "Of 1 row: 1 supported, 0 unsupported, 0 contradicted."


def test_counters_leave_out_what_counts_twice(tmp_path: Path) -> None:
    write_training(tmp_path)
    row = only_row(tmp_path)
    (found,) = [each for each in row.evidence if each.rule == "counters"]
    assert found.kind is SUPPORTS
    assert "102 %" in found.message


def test_hosts_without_memory_have_that_of_the_writer(tmp_path: Path) -> None:
    """Rank 0's list repeats its host's memory for each rank there, and has 0 for other hosts."""
    write_training(tmp_path, summary={"host_memory_GB": [2048.0, 0.0]})
    (found,) = [each for each in only_row(tmp_path).evidence if each.rule == "memory"]
    assert "1 TiB" in found.message


def test_figures_are_binary_units(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, commands=[("save",)])
    row = only_row(tmp_path)
    assert row.figure_text == "save 48.9 GB/s in 20.00 s"
    (_, run) = row.runs[0]
    (figure,) = run.clients[0].details.figures
    assert figure.bw_bytes_per_s == pytest.approx(SIZE_GIB * 2**30 / 20)


def test_first_of_six_runs_is_a_warm_up(tmp_path: Path) -> None:
    folder = write_training(tmp_path)
    path = folder / "summary.json"
    document = json.loads(path.read_text())
    document["metric"]["train_throughput_mean_samples_per_second"] = 1.0
    path.write_text(json.dumps(document))
    assert "163.0 samples/s" in only_row(tmp_path).figure_text
