"""Checkpoints and training reads beside those of torch, on one XFS, with the device's own bytes.

`torch.distributed.checkpoint` saves and loads the state that `checkpoint` has in its layout `dcp`,
with the same ranks and tensors; `DataLoader` reads the files of `training-read` for the same
accelerator. Both run in turn, in an environment that uv makes of bench/peers (some GB of packages,
so only with BENCH_TORCH=1). Prints a table of each: what they report, and what the device moved.

BENCH_PATH is where the XFS's image lies, BENCH_TRIES how many checkpoints each makes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.engine.targets import unmount
from iolab.cli.output import open_session
from iolab.core.workload import Direction
from iolab.loads.checkpoint.layouts import MODEL_BYTES, CheckpointLayout, plan_checkpoint
from iolab.loads.checkpoint.models import MODELS
from iolab.loads.checkpoint.workload import PhaseName, phase_run_of_host
from iolab.store.reader import SessionReader
from iolab.units import format_bytes

PEERS: Final = Path(__file__).with_name("peers")
TRIES: Final = int(os.environ.get("BENCH_TRIES", "3"))
IMAGE_BYTES: Final = 8 << 30
SHRINK: Final = 64
RANKS: Final = 8
FILES: Final = 128
BATCH, COMPUTE_S, LOADERS, AHEAD, EPOCHS = 7, 0.323, 4, 2, 3

METHOD: Final = """
[method]
settle = "1s"
drop_caches = true
generator_limit = false
warmup = "2s"
runtime = "30s"
"""
CHECKPOINT: Final = f"""
format = 1
id = "torch-peers"

[[workload]]
id = "saves"
engine = "checkpoint"
model = "llama3-8b"
layout = "dcp"
shrink = {SHRINK}
saves = {TRIES}
write_size = "8m"
read_size = "16m"
direct = DIRECT
{METHOD}"""
TRAINING: Final = f"""
format = 1
id = "torch-peers"

[[workload]]
id = "reads"
engine = "training-read"
dataset = "unet3d"
sample_share = 0.0625
files = {FILES}
accelerators = [1]
{METHOD}"""


def main() -> int:
    """Print both tables."""
    if not os.environ.get("BENCH_TORCH"):
        print("torch_peers: set BENCH_TORCH=1 to install torch in an environment of its own")
        return 0
    with _xfs() as (folder, device):
        print("| save and load | reported s | slowest rank s | device wrote, read |")
        print("|---|---|---|---|")
        for drop in (False, True):
            _print_torch_checkpoints(folder, device, drop=drop)
        for direct in (False, True):
            _print_own_checkpoints(folder, direct=direct)
        print("\n| training | utilisation by epoch | device read, claimed | CPU s/GB |")
        print("|---|---|---|---|")
        _print_torch_training(folder, device)
        _print_own_training(folder)
    return 0


@contextmanager
def _xfs() -> Iterator[tuple[Path, str]]:
    """A folder on an XFS of our own, and the device whose counters see it."""
    with tempfile.TemporaryDirectory(
        prefix="iolab-bench-", dir=os.environ.get("BENCH_PATH", "/var/tmp")
    ) as base:
        image, folder = Path(base) / "image", Path(base) / "target"
        with image.open("wb") as file:
            os.truncate(file.fileno(), IMAGE_BYTES)
        folder.mkdir()
        subprocess.run(["mkfs.xfs", "-q", image], check=True)
        attach = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
        device = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
        try:
            subprocess.run(["mount", "-o", "noatime", device, folder], check=True)
            try:
                yield folder, Path(device).name
            finally:
                unmount(str(folder))
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


def _peer(script: str, spec: dict[str, Any]) -> Any:  # noqa: ANN401 - each prints its own
    """What a program of bench/peers prints, in an environment with what it needs."""
    program = str(PEERS / script)
    argv = ["uv", "run", "--quiet", "--no-project", "--script", program]
    done = subprocess.run(
        argv, check=True, stdout=subprocess.PIPE, text=True, input=json.dumps(spec)
    )
    return json.loads(done.stdout)


def _print_torch_checkpoints(folder: Path, device: str, *, drop: bool) -> None:
    items = plan_checkpoint(MODELS["llama3-8b"], CheckpointLayout.DCP, RANKS, SHRINK).tensor_groups
    elements = [item.size_bytes // MODEL_BYTES for item in items if item.count == 1]
    states = [item.size_bytes // 4 for item in items if item.count > 1 for _ in range(item.count)]
    with tempfile.TemporaryDirectory(dir=folder) as own:
        ranks = _peer(
            "torch_checkpoint.py",
            {
                "folder": own,
                "device": device,
                "model": elements,
                "optimizer": states,
                "ranks": RANKS,
                "tries": TRIES,
                "drop": drop,
            },
        )
    name = "torch.distributed.checkpoint" + (", caches dropped before the load" if drop else "")
    first = ranks["0"]
    assert all(times["same"] for own in ranks.values() for times in own)
    slowest = [
        [max(own[number][key] for own in ranks.values()) for number in range(TRIES)]
        for key in ("save_s", "load_s")
    ]
    reported = [[times[key] for times in first] for key in ("save_s", "load_s")]
    moved = [[times[key] for times in first] for key in ("written", "read")]
    claimed = format_bytes(first[0]["bytes"])
    print(f"| {name}: {claimed} | {_pair(reported)} | {_pair(slowest)} | {_moved(moved)} |")


def _print_own_checkpoints(folder: Path, *, direct: bool) -> None:
    text = CHECKPOINT.replace("DIRECT", str(direct).lower())
    with _session(text, folder) as reader:
        runs = [reader.record(*key) for key in reader.committed_folder_by_run()]
        results = reader.results()
        levels = sorted({result.verdict.level.value for result in results})
        times = [
            [(result.metrics[key].value or 0.0) / 1e9 for result in results]
            for key in ("save_ns", "restore_ns")
        ]
        moved: list[list[int]] = [[], []]
        claimed = 0
        for run in runs:
            for place, phase in enumerate(PhaseName):
                found = phase_run_of_host(run.hosts[0], phase)
                assert found is not None
                claimed = sum(rank.bytes for rank in found.ranks) if not place else claimed
                device = found.devices[0]
                moved[place].append(device.read_bytes if place else device.write_bytes)
        name = f"`checkpoint`, direct = {str(direct).lower()} ({', '.join(levels)})"
        print(f"| {name}: {format_bytes(claimed)} | {_pair(times)} | the same | {_moved(moved)} |")


def _print_torch_training(folder: Path, device: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as own:
        size = 146_600_628 // 16
        for number in range(FILES):
            (Path(own) / f"{number:04}").write_bytes(os.urandom(size))
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
        epochs = _peer(
            "torch_loader.py",
            {
                "folder": own,
                "device": device,
                "batch": BATCH,
                "compute_s": COMPUTE_S,
                "workers": LOADERS,
                "prefetch": AHEAD,
                "epochs": EPOCHS,
            },
        )
    shares = ", ".join(f"{100 * epoch['utilisation']:.1f} %" for epoch in epochs)
    moved = ", ".join(
        f"{format_bytes(epoch['read'])} of {format_bytes(epoch['claimed'])}" for epoch in epochs
    )
    claimed = sum(epoch["claimed"] for epoch in epochs)
    each = sum(epoch["processor_s"] for epoch in epochs) / claimed * 1e9
    print(f"| torch DataLoader | {shares} | {moved} | {each:.2f} |")


def _print_own_training(folder: Path) -> None:
    with _session(TRAINING, folder) as reader:
        (result,) = reader.results()
        record = reader.record(*next(iter(reader.committed_folder_by_run())))
        metrics = result.metrics
        names = ("first_epoch_utilisation", "accelerator_utilisation")
        shares = ", ".join(f"{100 * (metrics[name].value or 0):.1f} %" for name in names)
        claimed = int(record.intervals.bytes[record.intervals.direction == Direction.READ].sum())
        moved = record.hosts[0].devices[0].read_bytes
        name = f"`training-read` ({result.verdict.level.value})"
        each = metrics["cpu_s_per_gb"].value or 0.0
        counted = f"{format_bytes(moved)} of {format_bytes(claimed)}"
        print(f"| {name} | first {shares} in the window | {counted} | {each:.2f} |")


@contextmanager
def _session(text: str, folder: Path) -> Iterator[SessionReader]:
    """A session of that study on the folder, made by the command line."""
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as own:
        study, out = Path(own) / "study.toml", Path(own) / "session"
        study.write_text(text, encoding="utf-8")
        words = ["run", study, "--path", folder, "--out", out]
        program = [sys.executable, "-m", "iolab", *map(str, words)]
        done = subprocess.run(program, check=False, capture_output=True, text=True)
        # 1 is a verdict, which the table tells.
        if done.returncode not in {0, 1}:
            raise SystemExit(done.stderr)
        yield open_session(out)


def _pair(times: Sequence[Sequence[float]]) -> str:
    return "; ".join(", ".join(f"{value:.2f}" for value in own) for own in times)


def _moved(moved: Sequence[Sequence[int]]) -> str:
    return "; ".join(", ".join(map(format_bytes, own)) for own in moved)


if __name__ == "__main__":
    raise SystemExit(main())
