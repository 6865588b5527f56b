# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy", "torch>=2.9"]
# ///
"""Feed an emulated accelerator from files by torch's DataLoader; prints JSON of each epoch.

Standard input is JSON: the folder and its device, the batch, the seconds of a computation, how
many workers and epochs, and how many batches each is ahead.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader


class Files:
    """One sample a file, as its bytes."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.iterdir())

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.frombuffer(bytearray(self.paths[index].read_bytes()), dtype=torch.uint8)


def main() -> None:
    spec: dict[str, Any] = json.load(sys.stdin)
    torch.set_num_threads(1)
    loader = DataLoader(
        Files(Path(spec["folder"])),
        batch_size=spec["batch"],
        shuffle=True,
        drop_last=True,
        num_workers=spec["workers"],
        prefetch_factor=spec["prefetch"],
        persistent_workers=False,
    )
    print(json.dumps([_epoch(loader, spec) for _ in range(spec["epochs"])]))


def _epoch(loader: DataLoader[torch.Tensor], spec: dict[str, Any]) -> dict[str, Any]:
    """Utilisation without the first step, as the published formula has it."""
    before, processors = _read_bytes(spec["device"]), _processor_s()
    steps_s: list[float] = []
    moved = 0
    begin = time.perf_counter()
    for batch in loader:
        time.sleep(spec["compute_s"])
        now = time.perf_counter()
        steps_s.append(now - begin)
        moved += batch.numel()
        begin = now
    counted = steps_s[1:]
    return {
        "utilisation": len(counted) * spec["compute_s"] / sum(counted),
        "first_step_s": steps_s[0],
        "steps": len(steps_s),
        "claimed": moved,
        "read": _read_bytes(spec["device"]) - before,
        "processor_s": _processor_s() - processors,
    }


def _read_bytes(device: str) -> int:
    return 512 * int(Path(f"/sys/block/{device}/stat").read_text(encoding="ascii").split()[2])


def _processor_s() -> float:
    """Of this process and of its workers that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
