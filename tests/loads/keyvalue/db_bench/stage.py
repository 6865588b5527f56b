"""Sessions of db_bench on fake hosts: a study of it, and what a record of one holds."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.core.events import SessionPhase, SessionPhaseStarted
from iolab.core.run import RunRecord
from iolab.hosts.barrier import StopRequest
from iolab.loads.keyvalue.workload import KeyOperation
from tests.fakes.script import FakeScript
from tests.session.fake_db_bench import KEYS, FakeDbBench
from tests.session.stage import HOST, Notes, Stage

STUDY = """
format = 1
id = "keys"
title = "Keys"
question = "How fast?"
[target]
path = "/mnt/bench"
{hosts}
{workloads}
[method]
warmup = "0s"
runtime = "2s"
settle = "0s"
order = "as-written"
"""
WORKLOAD = """
[[workload]]
id = "{name}"
engine = "db_bench"
benchmark = "{name}"
keys = {keys}
key_size = 16
value_size = 1024
block_size = {blocks}
threads = 4
cache_size = "8m"
{extra}
"""
READ = "readrandom"
MIXED = "readrandomwriterandom"
WRITING = "readwhilewriting"
KEEP = "target.keep_files=true"
RATE = 'write_rate = "4m"'


def workload(name: str = READ, extra: str = "", blocks: str = '"4k"', keys: int = KEYS) -> str:
    return WORKLOAD.format(name=name, extra=extra, blocks=blocks, keys=keys)


def stage(
    bench: FakeDbBench | dict[str, FakeDbBench],
    *workloads: str,
    script: FakeScript = FakeScript(),  # noqa: B008 - it is frozen
    sets: tuple[str, ...] = (),
    stop: StopRequest | None = None,
    notes: Notes | None = None,
    tables: str = "",
    scripts: dict[str, FakeScript] | None = None,
) -> Stage:
    """A session with that db_bench on this machine, or with one on each of several hosts."""
    benches = bench if isinstance(bench, dict) else {"local": bench}
    made = scripts or {
        name: replace(script, programs=script.programs or one.programs())
        for name, one in benches.items()
    }
    hosts = "".join(HOST.format(name=name) for name in benches) if len(benches) > 1 else ""
    text = STUDY.format(hosts=hosts + tables, workloads="".join(workloads or (workload(),)))
    return Stage(made, text=text, sets=sets, stop=stop, notes=notes or Notes()).play()


def phases(played: Stage) -> list[SessionPhase]:
    return [event.phase for event in played.notes.of(SessionPhaseStarted) if event.run is not None]


def done(record: RunRecord, operation: KeyOperation) -> list[int]:
    rows = record.intervals.direction == int(operation)
    return [int(count) for count in record.intervals.ios[rows]]
