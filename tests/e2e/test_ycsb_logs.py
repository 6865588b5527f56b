"""YCSB opens each latency log once, however many threads come to need it at the same moment.

The logs are named pipes here: whoever opens one more often is seen by a further title.
"""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from iolab.hosts.engine import Command
from iolab.hosts.host import Host
from iolab.loads.keyvalue.java import YCSB_VERSION, JavaKitName, install_java_kit_jars
from iolab.loads.keyvalue.workload import KeyOperation, ServerKind, YcsbJob
from iolab.loads.keyvalue.ycsb.engine import (
    JavaKit,
    YcsbStore,
    build_measurement_command,
    database_fill_command,
    latency_log_names,
)
from tests.loads.keyvalue.local import on_this_machine

pytestmark = [pytest.mark.e2e, pytest.mark.long]

LIMIT_S = 120
JOB = YcsbJob(
    mix=((KeyOperation.READ, 0.5), (KeyOperation.READ_MODIFY_WRITE, 0.5)),
    records=100,
    threads=128,
    rate_ops_per_s=1000,
)


def run(command: Command) -> None:
    subprocess.run(command.argv, cwd=command.cwd, check=True, timeout=LIMIT_S, capture_output=True)


def jars(folder: Path) -> tuple[str, ...]:
    async def work(host: Host) -> tuple[str, ...]:
        return await install_java_kit_jars(host, JavaKitName.YCSB, YCSB_VERSION, str(folder), print)

    return on_this_machine(work)


def test_each_log_is_opened_once(tmp_path: Path) -> None:
    kit = JavaKit("java", jars(tmp_path))
    store = YcsbStore(ServerKind.EMBEDDED, database=str(tmp_path / "database"))
    here = str(tmp_path)
    run(
        database_fill_command(
            JOB, store, kit, here, first=0, count=JOB.records, thread_count=4, seconds=60
        )
    )
    pipes = [tmp_path / name for name in latency_log_names(JOB, "latency.")]
    assert len(pipes) == 6
    titles: dict[str, int] = {}

    def read(pipe: Path) -> None:
        with pipe.open("rb") as source:
            titles[pipe.name] = source.read().count(b"#[Logging for: ")

    readers = [threading.Thread(target=read, args=(pipe,), daemon=True) for pipe in pipes]
    for pipe in pipes:
        os.mkfifo(pipe)
    for reader in readers:
        reader.start()
    run(build_measurement_command(JOB, store, kit, here, seconds=2, log_prefix="latency."))
    for reader in readers:
        reader.join(LIMIT_S)
    assert titles == {pipe.name: 1 for pipe in pipes}
