# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy", "torch>=2.9"]
# ///
"""Save and load a state by ranks with torch.distributed.checkpoint; prints JSON of each try.

Standard input is JSON: the folder, the elements of each rank's tensors in 16 and 32 bits, how
many ranks and tries, and whether caches are dropped before a load.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Callable
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

Spec = dict[str, Any]


def main() -> None:
    spec: Spec = json.load(sys.stdin)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    ranks = [context.Process(target=_rank, args=(spec, r, results)) for r in range(spec["ranks"])]
    for process in ranks:
        process.start()
    told = [results.get() for _ in ranks]
    for process in ranks:
        process.join()
    print(json.dumps(dict(sorted(told))))


def _rank(spec: Spec, rank: int, results: SimpleQueue[tuple[int, list[dict[str, Any]]]]) -> None:
    store = f"file://{spec['folder']}/rendezvous"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=spec["ranks"])
    generator = torch.Generator().manual_seed(rank)
    state = {
        f"rank{rank}.{name}.{number}": _random_tensor(elements, kind, generator)
        for name, kind in (("model", torch.bfloat16), ("optimizer", torch.float32))
        for number, elements in enumerate(spec[name])
    }
    times = [_save_and_load(spec, rank, state, number) for number in range(spec["tries"])]
    results.put((rank, times))
    dist.destroy_process_group()


def _random_tensor(elements: int, kind: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    size = elements * torch.empty((), dtype=kind).element_size()
    noise = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=generator)
    return noise.view(kind)


def _save_and_load(
    spec: Spec, rank: int, state: dict[str, torch.Tensor], number: int
) -> dict[str, Any]:
    folder = Path(spec["folder"]) / f"checkpoint{number}"
    before = _device_bytes(spec["device"])
    save_s = _timed(lambda: dcp.save(state, checkpoint_id=folder))
    saved = _device_bytes(spec["device"])
    if rank == 0 and spec["drop"]:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
    empty = {name: torch.empty_like(tensor) for name, tensor in state.items()}
    dist.barrier()
    before_load = _device_bytes(spec["device"])
    load_s = _timed(lambda: dcp.load(empty, checkpoint_id=folder))
    loaded = _device_bytes(spec["device"])
    same = all(
        torch.equal(empty[name].view(torch.uint8), tensor.view(torch.uint8))
        for name, tensor in state.items()
    )
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder)
    dist.barrier()
    return {
        "save_s": save_s,
        "load_s": load_s,
        "written": saved[1] - before[1],
        "read": loaded[0] - before_load[0],
        "bytes": size,
        "same": same,
    }


def _timed(work: Callable[[], object]) -> float:
    """From when all ranks begin to when this one's call returns."""
    dist.barrier()
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _device_bytes(device: str) -> tuple[int, int]:
    """Read and written, after all ranks came here."""
    dist.barrier()
    fields = Path(f"/sys/block/{device}/stat").read_text(encoding="ascii").split()
    dist.barrier()
    return 512 * int(fields[2]), 512 * int(fields[6])


if __name__ == "__main__":
    main()
