"""Checks over the keys of a workload that say what it is after, and the study's sentinel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.model.objective import AxisMode, Objective
from iolab.model.workload import Indicator
from iolab.plan.document import Document, Faults
from iolab.plan.guest_tables import PER_NODE
from iolab.plan.method_table import MethodTable
from iolab.plan.searches import SEARCHED, axes_of_load
from iolab.plan.study_file import RATES, WorkloadTable
from iolab.plan.sweep import RATE
from iolab.plan.tables import Item, Tables, start
from iolab.plan.wording import shown, suggestion

_LOADS_MIN: Final = 4
"""Of fewer values none can be foretold from the others."""

_Fault = tuple[str, str, str]
"""The key at which it is told, what happened (after the workload's name), and what to do."""


def check_aims(document: Document, tables: Tables, faults: Faults) -> None:
    """Add every fault of objectives, adaptive axes, limits and the sentinel."""
    for item, workload in tables.read("workload", WorkloadTable):
        for key, happened, do in _aim_faults(item, workload):
            where = document.where((*item.path, key))
            faults.add_once(where, key, f"{start(document, item.path)} {happened}.", do)
    _check_sentinel(document, tables.method, tables, faults)


def _aim_faults(item: Item, workload: WorkloadTable) -> Iterator[_Fault]:
    adaptive = workload.axis is AxisMode.ADAPTIVE
    objective = workload.objective
    varied = list(axes_of_load(n for n in SEARCHED if len(getattr(workload, n) or ()) > 1))
    if adaptive and objective is not Objective.GRID:
        happened = f"has axis = 'adaptive' and objective = {shown(objective.value)}"
        yield "axis", happened, "Leave axis out: the objective chooses its points itself."
    elif adaptive and (workload.vms_per_node is not None or PER_NODE not in item.written):
        yield from _axis_faults(workload, varied)
    if workload.headline and not adaptive:
        yield "headline", "has headline but no adaptive axis", "Leave headline out."
    if objective is Objective.PEAK:
        yield from _peak_faults(workload, varied)
    if objective is Objective.MAX_LOAD:
        yield from _load_faults(item, workload)
    elif workload.limit is not None:
        do = "Write objective = 'max-load', or leave limit out."
        yield "limit", f"has a limit but objective = {shown(objective.value)}", do


def _axis_faults(workload: WorkloadTable, varied: list[str]) -> Iterator[_Fault]:
    fleet = workload.vms_per_node
    if len(varied) != 1:
        happened = f"has axis = 'adaptive' and {_several(varied)}"
        do = f"Give several values to iodepth or to numjobs, not to both; or to {PER_NODE}."
        yield "axis", happened, do
        return
    loads = getattr(workload, varied[0])
    if len(loads) < _LOADS_MIN:
        # Where the fleet has one size, the axis meant is still that of its sizes.
        name, few = (varied[0], loads) if fleet is None else (PER_NODE, fleet)
        values = "1 value" if len(few) == 1 else f"{len(few)} values"
        do = f"Give at least {_LOADS_MIN}, or write axis = 'listed': fewer are all measured anyway."
        yield "axis", f"has axis = 'adaptive' but {values} of {name}", do
    for load in workload.headline:
        if load not in loads:
            happened = f"has headline = {load}, which {varied[0]} does not list"
            yield "headline", happened, f"Add it to {varied[0]}, or leave it out."


def _peak_faults(workload: WorkloadTable, varied: list[str]) -> Iterator[_Fault]:
    if not varied:
        do = f"Give several values to iodepth, to numjobs, to both, or to {PER_NODE}."
        yield "objective", "has objective = 'peak' and no axis to search", do
    if workload.indicator is Indicator.LATENCY:
        do = "Write indicator = 'iops' or 'bandwidth'."
        yield "indicator", "has objective = 'peak' and indicator = 'latency'", do


def _load_faults(item: Item, workload: WorkloadTable) -> Iterator[_Fault]:
    if workload.limit is None and "limit" not in item.written:
        do = "Write for example limit = 'p99 <= 2ms'."
        yield "objective", "has objective = 'max-load' but no limit", do
    for key in RATES:
        if getattr(workload, key) is not None:
            do = f"Leave {key} out: the search sets {RATE}."
            yield key, f"has objective = 'max-load' and {key}", do
    way = (workload.limit or "").split()[:1]
    wrong = {
        "read": workload.rw.reads,
        "write": workload.rw.writes,
        "trim": workload.rw.trims,
    }
    if way and not wrong.get(way[0], True):
        happened = f"limits {way[0]} latency, but rw = {shown(workload.rw.value)}"
        yield "limit", happened, "Limit a latency that the workload has."


def _several(varied: list[str]) -> str:
    return f"several values of {' and '.join(varied)}" if varied else "no axis of load"


def _check_sentinel(
    document: Document, method: MethodTable, tables: Tables, faults: Faults
) -> None:
    known = [table.id for _, table in tables.read("workload", WorkloadTable)]
    if method.sentinel is not None and method.sentinel not in known:
        happened = f"sentinel is {shown(method.sentinel)}, which is no workload of I/O."
        do = suggestion(method.sentinel, known, "workloads")
        faults.add(document.where(("method", "sentinel")), happened, do)
