"""What several phases got of the processors, as one."""

from __future__ import annotations

from iolab.core.run import CgroupCpuUse, ProcessorUse
from iolab.session.driver import processor_use_over_phases


def test_phases_add_up_by_their_groups() -> None:
    def phase(wait_ns: int, throttled: int, core: int, pressure_ns: int | None) -> ProcessorUse:
        group = CgroupCpuUse("/x", 0.1, 100, 10, throttled, 5, pressure_ns)
        return ProcessorUse(1000, 2, 2000, 300, wait_ns, (core,), (group,))

    assert processor_use_over_phases([]) is None
    assert processor_use_over_phases([phase(7, 3, 0, None), phase(8, 4, 1, 6)]) == ProcessorUse(
        2000, 2, 4000, 600, 15, (0, 1), (CgroupCpuUse("/x", 0.1, 100, 20, 7, 10, 6),)
    )
