"""What commands leave alone until they need it: a check computes nothing, results need no study."""

from __future__ import annotations

import subprocess
import sys

import pytest

CHECK = """import iolab.cli.kinds, iolab.study.load, iolab.report.terminal
iolab.cli.kinds.study_kinds()"""
PLAN = """import iolab.cli.kinds, iolab.cli.planning, iolab.hosts.factory, iolab.session.discovery
iolab.cli.kinds.study_kinds()"""
RESULTS = """import iolab.cli.kinds, iolab.cli.results, iolab.store.reader
iolab.cli.kinds.reported().hosts"""


@pytest.mark.parametrize(
    ("imports", "unneeded"),
    [
        (CHECK, {"numpy", "duckdb", "asyncio"}),
        (PLAN, {"numpy", "duckdb", "iolab.loads.fileio.driver", "iolab.guests.hypervisor"}),
        (RESULTS, {"duckdb", "jinja2", "iolab.study.file", "iolab.loads.keyvalue.db_bench.engine"}),
    ],
)
def test_what_a_command_needs_not_is_not_imported(imports: str, unneeded: set[str]) -> None:
    asks = f"{imports}\nimport sys; print(*({unneeded} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", asks], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
