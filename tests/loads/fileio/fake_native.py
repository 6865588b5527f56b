"""The native engine on fake hosts: it takes the time that it is given, and tells a flat load."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests.fakes.programs import FakeCall, FakeProgram

BIN: Final = 500
LAYOUT_S: Final = 2.0


@dataclass(frozen=True)
class FakeNative:
    """I/Os a second on files and on nothing; with `fails` it says so instead of any load on files.

    A layout always does what it is told. `verified` is what each read-back of all blocks tells of
    them, in order.
    """

    iops: int = 2000
    null_iops: int = 4_000_000
    lat_ns: int = 100_000
    fails: bool = False
    verified: Iterator[dict[str, Any] | None] = field(default_factory=lambda: iter(()))

    @property
    def programs(self) -> dict[str, FakeProgram]:
        """All programs of such a host beside fio."""
        return {"iolab-agent": self._run}

    async def _run(self, call: FakeCall) -> int:
        spec = json.loads(call.stdin)
        seconds = spec["runtime_s"]
        if self.fails and seconds is not None and not _on_nothing(spec):
            _say(call, {"fault": ["It has no more memory."]})
            return 2
        start_ns = call.machine.real_ns()
        _say(call, _HEAD, {"started_real_ns": start_ns, "late_ns": 0})
        await asyncio.sleep(seconds or LAYOUT_S)
        whole = self._whole(spec)
        end_ns = call.machine.real_ns()
        way = "read" if spec["jobs"][0]["rw"] in ("read", "randread") else "write"
        span_ns = end_ns - start_ns
        is_readback = seconds is None and way == "read"
        verify = next(self.verified, None) if is_readback else None
        _say(
            call,
            {"seq": 0, "end_real_ns": end_ns, "span_ns": span_ns, way: whole},
            {
                "end": {**_END, "start_real_ns": start_ns, "end_real_ns": end_ns, way: whole}
                | {"measured_ns": span_ns, "verify": verify}
            },
        )
        return 0

    def _whole(self, spec: dict[str, Any]) -> dict[str, Any]:
        """All I/Os of the run."""
        block = spec["jobs"][0]["blocks"][0]["bytes"]
        rate = self.null_iops if _on_nothing(spec) else self.iops
        if spec["runtime_s"] is None:
            ios = sum(job["io_bytes"] for job in spec["jobs"]) // block
        else:
            ios = round(rate * spec["runtime_s"])
        return {
            "ios": ios,
            "bytes": ios * block,
            "lat_sum_ns": ios * self.lat_ns,
            "min_ns": self.lat_ns,
            "max_ns": self.lat_ns,
            "bins": [[BIN, ios]],
        }


def _on_nothing(spec: dict[str, Any]) -> bool:
    return bool(spec["jobs"][0]["files"][0]["path"] == "/dev/null")


def _say(call: FakeCall, *said: object) -> None:
    call.say(b"".join(json.dumps(one).encode() + b"\n" for one in said))


_HEAD: Final = {
    "native": 1,
    "version": "0.1.0",
    "method": "io_uring",
    "direct": True,
    "clock": "tsc",
    "threads": 2,
    "cpus": 2,
    "probes": {},
    "notes": [],
}
_END: Final = {
    "errors": {},
    "broken": {},
    "retries": {},
    "cpu": {"user_s": 0.1, "system_s": 0.1},
    "drain_ns": 0,
    "drained_ios": 0,
    "end_fsync_ns": None,
    "lateness": None,
    "unreached": False,
    "verify": None,
    "depth": {"asked": 32, "used": 32},
    "context_switches": {"voluntary": 1, "involuntary": 1},
    "steal_ticks": 0,
}
