"""Tells the native engine of the ledger in which it keeps and finds the last write of blocks."""

from __future__ import annotations

import json
from dataclasses import replace

from iolab.run.engines.base import BlockLedger, Command
from iolab.run.engines.native_spec import told


def with_ledger(command: Command, ledger: BlockLedger | None) -> Command:
    """The same command of the native engine, its jobs held against that ledger if there is one.

    EngineError when that is more than it reads.
    """
    if ledger is None:
        return command
    spec = json.loads(command.job_file)
    text = told({**spec, "ledger": ledger.path, "ledger_block": ledger.block_bytes})
    return replace(command, stdin=text.encode("ascii"), job_file=text)
