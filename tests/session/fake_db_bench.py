"""db_bench and sst_dump on fake hosts: they replay real outputs (tests/golden/db_bench) in time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from tests.fakes.programs import FakeCall, FakeKill, FakeProgram, coreutils
from tests.recorded import is_recorded, recorded

KEYS: Final = 60_000
SECONDS: Final = 3
"""How long every recorded cell ran."""

LOAD_S: Final = 12.0
_LINE: Final = re.compile(rb"\S+(  \.\.\. thread \d+: .* in \(\S+,(\d+\.\d+)\) seconds)")
_NAMES: Final = {"readrandom": "readrandom-{}"}


def raw(name: str) -> bytes:
    """A recorded file."""
    return recorded(f"db_bench/{name}")


@dataclass
class FakeDbBench:
    """How both programs behave. `cells` replaces the recorded output of a workload by another.

    `killed_at_s` ends the first measured cell from outside. `load` is the recorded load.
    `lost_report` leaves no report file. `started` are the flags of every start.
    """

    cells: Mapping[str, str] = field(default_factory=dict)
    load: str = ""
    load_code: int = 0
    killed_at_s: float | None = None
    lost_report: bool = False
    tail: bytes = b""
    started: list[dict[str, str]] = field(default_factory=list)

    @property
    def loads(self) -> list[dict[str, str]]:
        """The flags of every load."""
        return [flags for flags in self.started if "filluniquerandom" in flags["benchmarks"]]

    @property
    def measured(self) -> list[dict[str, str]]:
        """The flags of every cell."""
        return [flags for flags in self.started if "duration" in flags]

    def programs(self, *, reflinks: bool = True) -> dict[str, FakeProgram]:
        """All programs of such a host."""
        ours: dict[str, FakeProgram] = {"db_bench": self.db_bench, "sst_dump": sst_dump}
        return {**coreutils(reflinks=reflinks), **ours}

    async def db_bench(self, call: FakeCall) -> int:
        """A load, a cell, or an answer."""
        flags = call.flags
        if "version" in flags:
            call.say(b"db_bench version 7.8.3\n")
            return 0
        self.started.append(flags)
        if "filluniquerandom" in flags["benchmarks"]:
            return await self._load(call)
        if flags["benchmarks"].startswith("levelstats"):
            call.say(raw(f"load-{flags['block_size']}.txt"))
            return 0
        return await self._cell(call)

    async def _load(self, call: FakeCall) -> int:
        flags = call.flags
        name = self.load or f"load-{flags['block_size']}"
        call.files[f"{flags['db']}/000009.sst"] = flags["block_size"].encode()
        await asyncio.sleep(LOAD_S)
        call.say(raw(f"{name}.txt"))
        call.say(raw(f"{name}.err"), "stderr")
        return self.load_code

    async def _cell(self, call: FakeCall) -> int:
        flags = call.flags
        workload = flags["benchmarks"].partition(",")[0]
        usual = _NAMES.get(workload, workload).format(flags["block_size"])
        name = self.cells.get(workload, usual)
        call.files[f"{flags['db']}/000010.log"] = b"changed"
        killed_at_s, self.killed_at_s = self.killed_at_s, None
        report = f"db_bench/{name}.csv"
        start_ns = call.machine.real_ns()
        for line in raw(f"{name}.err").split(b"\n"):
            match = _LINE.fullmatch(line)
            if match:
                at_s = float(match[2])
                if killed_at_s is not None and at_s > killed_at_s:
                    break
                await asyncio.sleep(at_s - (call.machine.real_ns() - start_ns) / 1e9)
                now = datetime.fromtimestamp(call.machine.real_ns() // 10**9, UTC)
                line = now.strftime("%Y/%m/%d-%H:%M:%S").encode() + match[1]
            call.say(line + b"\n", "stderr")
        if not self.lost_report:
            rows = recorded(report) if is_recorded(report) else b"secs_elapsed,interval_qps\n"
            call.files[flags["report_file"]] = rows
        if killed_at_s is not None:
            raise FakeKill("KILL")
        await asyncio.sleep(SECONDS - (call.machine.real_ns() - start_ns) / 1e9)
        call.say(raw(f"{name}.txt") + self.tail)
        return 0


async def sst_dump(call: FakeCall) -> int:
    """What the files of the database were loaded as, which is their content."""
    if "version" in call.flags:
        call.say(b"sst_dump (RocksDB) 7.8.3\n")
        return 0
    tables = [
        content for name, content in call.inside(call.flags["file"]).items() if ".sst" in name
    ]
    if not tables:
        call.say(b"NotFound: No such file or directory\n", "stderr")
        return 1
    call.say(raw(f"sst-{tables[0].decode()}.txt"))
    return 0
