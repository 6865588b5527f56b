"""What judging a long run takes grows with what it counted, not with all that it could have."""

from __future__ import annotations

import tracemalloc

from bench.synthetic import Shape, make_facts, make_plan, make_record

from iolab.analysis.kinds import judge_run
from iolab.core.bins import BIN_COUNT
from iolab.registry import analysis_kinds

LONG = Shape(points=1, seconds=2000, hosts=1, cores=1, disks=1, nics=1)
SHORT = Shape(points=1, seconds=30, hosts=1, cores=1, disks=1, nics=1)


def test_judging_takes_no_table_of_all_seconds_and_bins() -> None:
    judge_run(make_record(make_plan(SHORT).runs[0], SHORT), make_facts(SHORT), analysis_kinds())
    record = make_record(make_plan(LONG).runs[0], LONG)
    tracemalloc.start()
    try:
        judge_run(record, make_facts(LONG), analysis_kinds())
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < LONG.seconds * BIN_COUNT * 8
