"""The native engine told of its ledger: the same jobs, and where their writes are kept."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from iolab.errors import EngineError
from iolab.hosts.engine import BlockLedger
from iolab.loads.fileio.engines.native import SPEC_BYTES_MAX, NativeEngine
from tests.loads.fileio.test_engines_native import FILES, JOB

LEDGER = BlockLedger("/proc/7/fd/9", 4096)


def test_a_ledger_is_told_beside_the_jobs() -> None:
    command = NativeEngine().build_measurement_command(JOB, FILES, "/t", seconds=2.5, seed=7)
    told = NativeEngine().command_that_verifies_blocks(command, LEDGER)
    spec = json.loads(told.stdin)
    assert (spec.pop("ledger"), spec.pop("ledger_block")) == ("/proc/7/fd/9", 4096)
    assert spec == json.loads(command.stdin)
    assert told.stdin.decode() == told.job_file
    assert replace(told, stdin=command.stdin, job_file=command.job_file) == command


def test_what_is_too_long_with_a_ledger_is_refused() -> None:
    command = NativeEngine().build_measurement_command(JOB, FILES, "/t", seconds=2.5, seed=7)
    long = replace(LEDGER, path="x" * SPEC_BYTES_MAX)
    with pytest.raises(EngineError, match="1 MiB"):
        NativeEngine().command_that_verifies_blocks(command, long)
