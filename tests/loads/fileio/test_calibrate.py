"""What `iolab calibrate` asks of a machine before it writes anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iolab.core.host import HostFacts, TargetFacts, ToolFacts
from iolab.errors import EngineError, HostError
from iolab.loads.fileio.calibration import refuse_unready
from iolab.loads.fileio.engine_facts import FIO_ENGINE
from iolab.loads.fileio.workload import Access, Job
from tests.analysis.records import facts_of

JOB = Job(FIO_ENGINE, Access.RANDREAD, 4096, 32, 2, 1 << 28)
FIO = ToolFacts("fio", "/usr/bin/fio", "fio-3.33")


def machine(*tools: ToolFacts, free_bytes: int = 1 << 40) -> HostFacts:
    facts = facts_of()
    assert isinstance(facts.target, TargetFacts)
    return replace(facts, tools=tools, target=replace(facts.target, free_bytes=free_bytes))


@pytest.mark.parametrize(
    "tools",
    [(), (ToolFacts("fio", None, None),), (replace(FIO, version="fio-2.1"),)],
)
def test_without_a_fio_that_serves_nothing_begins(tools: tuple[ToolFacts, ...]) -> None:
    with pytest.raises(EngineError, match="fio"):
        refuse_unready(machine(*tools), "/mnt/t", JOB)


def test_files_that_do_not_fit_are_not_begun() -> None:
    with pytest.raises(HostError, match=r"/mnt/t has 512 MiB free, .* need 512 MiB") as caught:
        refuse_unready(machine(FIO, free_bytes=(1 << 29) - 1), "/mnt/t", JOB)
    assert "--size" in caught.value.do
    refuse_unready(machine(FIO, free_bytes=1 << 29), "/mnt/t", JOB)
