"""How load on key-value stores is made in a session."""

from __future__ import annotations

from typing import Final

from iolab.core.study import Study
from iolab.loads.keyvalue.db_bench_driver import DbBenchDriver
from iolab.loads.keyvalue.problems import wanted_tools
from iolab.loads.keyvalue.workload import DB_BENCH_ENGINE, YCSB_ENGINE
from iolab.loads.keyvalue.ycsb_driver import YcsbDriver
from iolab.session.kinds import LoadSession, Programs


def programs_of(study: Study) -> Programs:
    """What a study's key-value load needs on clients."""
    return {program: argv for program, (_, argv) in wanted_tools(study).items()}


KEY_VALUE: Final = LoadSession(
    drivers={DB_BENCH_ENGINE: DbBenchDriver, YCSB_ENGINE: YcsbDriver},
    programs=programs_of,
)
