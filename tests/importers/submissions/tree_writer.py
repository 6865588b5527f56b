"""A tree of submissions as its tools write it: honest, and each part can be replaced."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from iolab.units import MIB

SAMPLE_BYTES: Final = 146_600_628
HOSTS: Final = 2
ACCELERATORS: Final = 8
BATCH: Final = 7
COMPUTE_S: Final = 0.323
FILES: Final = 56_000
EPOCHS: Final = 5
SAMPLES_PER_S: Final = 163.0
MEMORY_GIB: Final = 512.0
SIZE_GIB: Final = 911.21213
CHECKPOINTS: Final = 10
START: Final = datetime(2026, 7, 4, 5, 0, 0)  # noqa: DTZ001 - the suite writes no zone
DIGEST: Final = "206c50e8aaaaaaaaaaaaaaaaaaaaaaaa"

Document = dict[str, Any]


def write_json(path: Path, document: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def organization(tree: Path, division: str = "closed", name: str = "Acme") -> Path:
    return tree / division / name


def training_folder(tree: Path, run: int = 0) -> Path:
    moment = START + timedelta(hours=run)
    below = f"results/sys1/training/unet3d/run/{moment:%Y%m%d_%H%M%S}"
    return organization(tree) / below


def snapshots(received: float, read: float, hosts: int = HOSTS) -> Document:
    """The counters of hosts before and after: those of all hosts together rose by so much."""

    def hosts_at(end: int) -> list[Document]:
        return [
            {
                "hostname": f"c{host}",
                "network": [
                    {
                        "interface_name": "ens5",
                        "rx_bytes": 10**12 + end * received / hosts,
                        "tx_bytes": 10**12 + end * received / hosts,
                    },
                    {"interface_name": "lo", "rx_bytes": end * 10**15, "tx_bytes": end * 10**15},
                    {"interface_name": "docker0", "rx_bytes": end * 10**15, "tx_bytes": 0},
                ],
                "disks": [
                    {
                        "device_name": "nvme0n1",
                        "sectors_read": 5000 + end * read / hosts / 512,
                        "sectors_written": 5000 + end * read / hosts / 512,
                    },
                    {"device_name": "nvme0n1p1", "sectors_read": end * 10**15},
                    {"device_name": "loop0", "sectors_read": end * 10**15},
                ],
            }
            for host in range(hosts)
        ]

    return {"start": {"hosts": hosts_at(0)}, "end": {"hosts": hosts_at(1)}}


def training_metadata(received: float | None = None) -> Document:
    claimed = FILES * EPOCHS * SAMPLE_BYTES
    return {
        "parameters": {
            "dataset": {"record_length_bytes": SAMPLE_BYTES, "num_files_train": FILES},
            "reader": {"batch_size": BATCH, "read_threads": 4},
            "train": {"epochs": EPOCHS, "computation_time": COMPUTE_S},
            "metric": {"au": 0.9},
        },
        "cluster_snapshots": snapshots(1.02 * claimed if received is None else received, 0),
        "executed_command": "mpirun -n 8 dlio_benchmark ++workload.reader.read_threads=4",
    }


def training_summary(run: int = 0, rate: float = SAMPLES_PER_S) -> Document:
    start = START + timedelta(hours=run)
    whole = 100 * rate * COMPUTE_S / (BATCH * ACCELERATORS)
    return {
        "start": start.isoformat(),
        "end": (start + timedelta(minutes=30)).isoformat(),
        "num_accelerators": ACCELERATORS,
        "num_hosts": HOSTS,
        "metric": {
            "train_au_percentage": [whole + 0.2] * EPOCHS,
            "train_au_mean_percentage": whole + 0.2,
            "train_au_meet_expectation": "success",
            "train_throughput_samples_per_second": [rate] * EPOCHS,
            "train_throughput_mean_samples_per_second": rate,
            "train_io_mean_MB_per_second": rate * SAMPLE_BYTES / MIB,
        },
        "num_files_train": FILES,
        "num_samples_per_file": 1,
        "host_memory_GB": [MEMORY_GIB] * HOSTS,
        "host_meminfo": {"MemTotal": f"{int(MEMORY_GIB * MIB)} kB"},
        "epochs": EPOCHS,
    }


def epoch_stats(seconds: float = FILES / SAMPLES_PER_S) -> Document:
    document: Document = {}
    start = START
    for epoch in range(1, EPOCHS + 1):
        end = start + timedelta(seconds=seconds)
        block = {"start": start.isoformat(), "end": end.isoformat(), "duration": f"{seconds:.2f}"}
        document[str(epoch)] = {"start": start.isoformat(), "block1": block}
        start = end + timedelta(seconds=5)
    return document


def write_training(
    tree: Path,
    *,
    runs: int = 6,
    summary: Mapping[str, Any] | None = None,
    metadata: Document | None = None,
    epochs: Document | None = None,
) -> Path:
    """The runs of a row, with changed keys of each summary's `metric` or top; the first folder."""
    for run in range(runs):
        folder = training_folder(tree, run)
        document = training_summary(run)
        for key, value in (summary or {}).items():
            (document["metric"] if key in document["metric"] else document)[key] = value
        write_json(folder / "summary.json", document)
        write_json(folder / "0_per_epoch_stats.json", epochs or epoch_stats())
        write_json(folder / "training_20260704_metadata.json", metadata or training_metadata())
        (folder / ".mlps-code-image").write_text(f"md5-tree-v2:{DIGEST}")
    write_pool(tree)
    return training_folder(tree)


def write_pool(tree: Path) -> None:
    write_json(tree / "Acme" / f"code-{DIGEST[:8]}" / ".code-hash.json", {"hash": DIGEST})


def checkpoint_stats(ways: Sequence[str], seconds: float, pause_s: float = 5.2) -> Document:
    entries: Document = {}
    start = START
    for way in ways:
        for number in range(1, CHECKPOINTS + 1):
            entries[f"{way}_ckpt{number}"] = {
                "start": start.isoformat(),
                "end": (start + timedelta(seconds=seconds)).isoformat(),
                "duration": seconds,
                "throughput": SIZE_GIB / seconds,
            }
            start += timedelta(seconds=seconds + pause_s)
    return {"1": entries}


def checkpoint_summary(ways: Sequence[str], seconds: float, start: datetime) -> Document:
    metric: Document = {"checkpoint_size_GB": SIZE_GIB}
    for way in ways:
        metric[f"{way}_checkpoint_io_mean_GB_per_second"] = SIZE_GIB / seconds
        metric[f"{way}_checkpoint_duration_mean_seconds"] = seconds
    return {
        "start": start.isoformat(),
        "end": (start + timedelta(seconds=300)).isoformat(),
        "num_accelerators": ACCELERATORS,
        "num_hosts": HOSTS,
        "metric": metric,
        "host_memory_GB": [MEMORY_GIB] * HOSTS,
    }


def write_checkpoint(
    tree: Path,
    *,
    commands: Sequence[Sequence[str]] = (("save",), ("load",)),
    seconds: float = 20.0,
    rank_seconds: Mapping[int, float] | None = None,
    ranks: int = ACCELERATORS,
    pause_s: float = 5.2,
    gap_s: float = 10.0,
    metric: Mapping[str, float] | None = None,
    metadata: Document | None = None,
) -> Path:
    """A folder for each command; ranks with other times by number; the first folder."""
    base = organization(tree) / "results/sys1/checkpointing/llama3-70b"
    folders = []
    for place, ways in enumerate(commands):
        start = START + place * timedelta(seconds=300 + gap_s)
        folder = base / f"{start:%Y%m%d_%H%M%S}"
        folders.append(folder)
        document = checkpoint_summary(ways, seconds, start)
        document["metric"].update(metric or {})
        write_json(folder / "summary.json", document)
        for rank in range(ranks):
            own = (rank_seconds or {}).get(rank, seconds)
            write_json(
                folder / f"{rank}_per_epoch_stats.json", checkpoint_stats(ways, own, pause_s)
            )
        if metadata is not None:
            write_json(folder / "checkpointing_metadata.json", metadata)
    return folders[0]


RANKS: Final = 4
TRIALS: Final = 3
WINDOW_S: Final = 300.0


def kv_rank_result(read: float = 4.0, write: float = 1.0, **stats: float) -> Document:
    return {
        "requests_completed": 500,
        "summary": {
            "cache_stats": {
                "tier_storage_read_bandwidth_gbps": read,
                "tier_storage_write_bandwidth_gbps": write,
                "tier_storage_kv_bytes_read_gb": read * WINDOW_S,
                "storage_write_device_p95_ms": 40.0,
                "storage_write_host_p50_ms": 800.0,
                **stats,
            }
        },
    }


def kv_command(option: int, trial: int, duration: int = int(WINDOW_S), prefix: str = "") -> str:
    return (
        f"{prefix}mpirun -n 4 wrapper.py --rank-output-base /r/option_{option}/trial_{trial} "
        f"--num-users 200 --duration {duration}"
    )


def write_kv_cache(
    tree: Path,
    *,
    option: Mapping[str, Any] | None = None,
    rank_result: Document | None = None,
    left_out: int = 0,
    metadata: Document | None = None,
) -> Path:
    """Three trials of one option; `left_out` ranks' files are not there."""
    folder = organization(tree) / "results/sys1/kv_cache/llama3.1-8b/run/20260807_155647"
    result = rank_result or kv_rank_result()
    stats = result["summary"]["cache_stats"]
    write_json(
        folder / "summary.json",
        {
            "host_count": 2,
            "total_ranks": RANKS,
            "trials_per_option": TRIALS,
            "options": {
                "1": {
                    "aggregated_read_bandwidth_gbps": RANKS
                    * stats["tier_storage_read_bandwidth_gbps"],
                    "aggregated_write_bandwidth_gbps": RANKS
                    * stats["tier_storage_write_bandwidth_gbps"],
                    "aggregated_p95_latency_ms": 20_000.0,
                    "rank_count": RANKS,
                    "partial_failure": False,
                    "missing_files": [],
                    **(option or {}),
                }
            },
        },
    )
    places = [(trial, rank) for trial in range(TRIALS) for rank in range(RANKS)]
    for trial, rank in places[: len(places) - left_out]:
        name = f"option_1/trial_{trial}/rank_{rank}/kvcache_results_20260807_155722.json"
        write_json(folder / name, result)
    write_json(
        folder / "kv_cache_metadata.json",
        metadata
        or {
            "parameters": {"num_users": 200, "duration": 300},
            "command_output_files": [{"command": kv_command(1, trial)} for trial in range(TRIALS)],
        },
    )
    return folder


def write_system(tree: Path, *, speed: float = 400, drives: bool = False, sysctl: str = "") -> None:
    """The description of the system, with two clients of one interface each."""
    lines = [
        "system_under_test:",
        "  clients:",
        "  - quantity: 2",
        "    networking:",
        "    - type: ethernet",
        f"      speed: {speed:g}",
        "      unit_count: 1",
    ]
    if sysctl:
        lines += ["    sysctl:", f"    - name: {sysctl}", "      value: '4294967296'"]
    if drives:
        lines += ["    drives:", "    - vendor_name: Acme"]
    path = organization(tree) / "systems/sys1.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
