"""Both engines as processes on one pinned core, and what each says that it did and took."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from iolab.hosts.push import agent_binary

AGENT: Final = Path(os.environ.get("BENCH_AGENT") or agent_binary())
CORE: Final = os.environ.get("BENCH_CORE", str((os.cpu_count() or 1) - 1))
RUNTIME_S: Final = float(os.environ.get("BENCH_RUNTIME_S", "2"))
BLOCK_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of either engine: fio's `rw` with 4 KiB blocks on one file, one job."""

    path: Path
    rw: str
    depth: int
    bytes: int
    direct: bool = True


@dataclass(frozen=True, slots=True)
class Did:
    """What a run did: I/Os, seconds of processor time, seconds by the wall."""

    ios: int
    cpu_s: float
    wall_s: float
    user_s: float = 0.0
    """Of the processor time, that of our own code; of others it is not told."""

    @property
    def per_core_s(self) -> float:
        """I/Os for a second of processor time, user and system."""
        return self.ios / self.cpu_s

    @property
    def user_ns(self) -> float:
        """Nanoseconds of our own code an I/O."""
        return self.user_s / self.ios * 1e9

    @property
    def iops(self) -> float:
        """I/Os a second by the wall."""
        return self.ios / self.wall_s


Side = Callable[[Load], Did]


def native(load: Load) -> Did:
    """The agent's engine."""
    return _did(native_end(spec_of(load)))


def native_untimed(load: Load) -> Did:
    """The agent's engine without stamps and bins: what it costs to time every I/O."""
    return _did(native_end(spec_of(load) | {"timed": False}))


def _did(end: Mapping[str, Any]) -> Did:
    did = sum(end[way]["ios"] for way in ("read", "write") if way in end) - end["drained_ios"]
    cpu = end["cpu"]
    user_s, system_s = cpu["user_s"], cpu["system_s"]
    return Did(did, user_s + system_s, end["measured_ns"] / 1e9, user_s)


def spec_of(load: Load, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON of any shape
    """The load as the engine is told of it; `more` are further keys of its job."""
    return {
        "format": 1,
        "jobs": [
            {
                "files": [{"path": str(load.path), "bytes": load.bytes}],
                "rw": load.rw,
                "blocks": [{"bytes": BLOCK_BYTES, "share": 100}],
                "depth": load.depth,
                "contents": {"kind": "zeros"},
                "seed": 1,
                **more,
            }
        ],
        "direct": load.direct,
        "runtime_s": RUNTIME_S,
    }


def native_end(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The last words of the engine's run."""
    done = subprocess.run(
        ["taskset", "-c", CORE, str(AGENT), "engine"],
        input=json.dumps(spec),
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or not lines or "end" not in lines[-1]:
        raise RuntimeError(f"the native engine failed: {done.stdout} {done.stderr}")
    end: dict[str, Any] = lines[-1]["end"]
    return end


def fio(*options: str) -> Side:
    """fio with these options beside the load's own."""

    def run(load: Load) -> Did:
        done = subprocess.run(
            [
                *("taskset", "-c", CORE, "fio", "--output-format=json", "--eta=never"),
                *(f"--filename={load.path}", f"--size={load.bytes}", "--name=bench"),
                *(f"--rw={load.rw}", f"--bs={BLOCK_BYTES}", f"--iodepth={load.depth}"),
                *("--time_based", f"--runtime={RUNTIME_S:g}", f"--direct={int(load.direct)}"),
                *("--allow_file_create=0", "--overwrite=1", "--zero_buffers"),
                *(option.replace("DEPTH", str(load.depth)) for option in options),
            ],
            capture_output=True,
            text=True,
            check=True,
            start_new_session=True,
        )
        (job,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
        ios = job["read"]["total_ios"] + job["write"]["total_ios"]
        wall_s = job["job_runtime"] / 1e3
        # By the job alone: what fio takes to start is left out, which flatters it.
        return Did(ios, (job["usr_cpu"] + job["sys_cpu"]) / 100 * wall_s, wall_s)

    return run


FIO_BEST: Final = fio(
    "--ioengine=io_uring",
    "--registerfiles",
    "--fixedbufs",
    "--nonvectored=1",
    "--norandommap",
    "--iodepth_batch_submit=DEPTH",
    "--iodepth_batch_complete_min=1",
    "--iodepth_batch_complete_max=DEPTH",
    "--disable_slat=1",
    "--thread",
)
"""The fastest of all options tried: batches, registered files and buffers; latencies are kept."""

FIO_IO_URING: Final = fio("--ioengine=io_uring")
FIO_LIBAIO: Final = fio("--ioengine=libaio")
FIO_PSYNC: Final = fio("--ioengine=psync")


def t_io_uring(program: str) -> Side:
    """fio's own `t/io_uring`, the limit of the kernel's path; it reads only, at random.

    Its processor time is that of the whole process, its IOPS the mean of its seconds: the best one
    is what it calls its maximum, and on a machine that others use too it would flatter it.
    """
    runtime_s = max(round(RUNTIME_S), 2)  # shorter, it tells no second at all

    def run(load: Load) -> Did:
        argv = [program, "-d", str(load.depth), "-s", str(max(load.depth // 4, 1))]
        argv += ["-c", str(max(load.depth // 4, 1)), "-b", str(BLOCK_BYTES), "-p0", "-B1", "-F1"]
        argv += ["-n1", "-r", str(runtime_s), str(load.path)]
        before = os.times()
        done = subprocess.run(
            ["taskset", "-c", CORE, *argv], capture_output=True, text=True, check=True
        )
        after = os.times()
        seconds = [_si(text) for text in _SECOND.findall(done.stdout)]
        iops = sum(seconds) / len(seconds)
        wall_s = float(runtime_s)
        cpu_s = after.children_user + after.children_system
        cpu_s -= before.children_user + before.children_system
        return Did(round(iops * wall_s), cpu_s, wall_s)

    return run


_SECOND: Final = re.compile(r"^IOPS=([^,]+),", re.MULTILINE)


def _si(text: str) -> float:
    """`1.23M` or `987K` as a number."""
    text = text.strip()
    scale = {"K": 1e3, "M": 1e6}.get(text[-1].upper(), 1.0)
    return float(text.rstrip("kKmM")) * scale
