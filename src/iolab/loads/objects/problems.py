"""What workloads on objects are refused for, where no single key shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.core.configuration import Objective
from iolab.loads.objects.table import ObjectsTable
from iolab.loads.objects.workload import OPERATION_KINDS, ObjectOrder, ObjectsJob, PutKeys
from iolab.study.document import StudyDocument
from iolab.study.tables import ElementFault, StudyTables, add_element_faults
from iolab.units import format_bytes, parse_size

PARTS_MAX: Final = 10_000
"""Of one object: the most that servers take."""


def add_objects_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add every fault of workloads on objects that no single key shows."""
    for item, table in tables.items_of_table("workload", ObjectsTable):
        add_element_faults(document, item, _workload_element_faults(table))


def _workload_element_faults(table: ObjectsTable) -> Iterator[ElementFault]:
    if not any(getattr(table, kind) for kind in OPERATION_KINDS):
        yield ElementFault((), "no operation", "Write for example get = 70 and put = 30.")
    if table.objective is Objective.MAX_LOAD:
        has = "objective = 'max-load', which searches a rate of I/Os"
        yield ElementFault(("objective",), has, "List the rates: rate = [1000, 2000, 4000].")
    yield from _size_element_faults(table)
    job = table.build_job()
    yield from _part_element_faults(table, job)
    if table.get_range and table.smallest_object_bytes < parse_size(table.range):
        has = f"range = {table.range}, but objects of {format_bytes(table.smallest_object_bytes)}"
        yield ElementFault(("range",), has, "Give a range that lies in every object.")
    if table.rate is None and "arrivals" in table.model_fields_set:
        yield ElementFault(("arrivals",), "arrivals, but no rate", "Give a rate, or leave it out.")
    if table.order is not ObjectOrder.ZIPF and "zipf_theta" in table.model_fields_set:
        hint = "Write order = 'zipf', or leave it out."
        yield ElementFault(("zipf_theta",), f"zipf_theta, but order = '{table.order}'", hint)
    if table.put_keys is PutKeys.OVERWRITE and not table.put:
        yield ElementFault(
            ("put_keys",), "put_keys, but no put", "Give put a share, or leave it out."
        )
    if table.read_back:
        yield from _read_back_element_faults(table)
    if table.delete and not table.put:
        has = "delete, which takes what the same run put, but no put"
        yield ElementFault(("delete",), has, "Give put a share, too: as great a one as delete has.")


def _read_back_element_faults(table: ObjectsTable) -> Iterator[ElementFault]:
    hint = "Leave one of them out."
    if not table.put:
        has = "read_back, which reads what the run put, but no put"
        yield ElementFault(("read_back",), has, "Give put a share, or leave it out.")
    elif table.put_keys is PutKeys.OVERWRITE:
        has = "read_back, which reads new objects, and put_keys = 'overwrite'"
        yield ElementFault(("read_back",), has, hint)
    elif table.delete:
        has = "read_back, which reads what the run put, and delete, which removes it"
        yield ElementFault(("read_back",), has, hint)


def _size_element_faults(table: ObjectsTable) -> Iterator[ElementFault]:
    keys = [key for key in ("size", "sizes", "size_median") if getattr(table, key) is not None]
    if not keys:
        hint = "Write for example size = '64k', or sizes = ['64k:70', '8m:30']."
        yield ElementFault(("size",), "no size of its objects", hint)
    elif len(keys) > 1:
        has = f"{keys[0]} and {keys[1]}"
        yield ElementFault((keys[1],), has, "Leave one of them out.")
    spread = ("size_sigma", "size_min", "size_max")
    unused = [key for key in spread if key in table.model_fields_set]
    if table.size_median is None and unused:
        hint = "Give size_median, or leave it out."
        yield ElementFault((unused[0],), f"{unused[0]}, but no size_median", hint)
    if table.size_median is not None:
        sizes = [parse_size(each) for each in (table.size_min, table.size_median, table.size_max)]
        if sizes != sorted(sizes):
            has = (
                f"size_median = {table.size_median}, not between size_min = {table.size_min} and "
                f"size_max = {table.size_max}"
            )
            yield ElementFault(("size_median",), has, "Give three sizes that ascend.")


def _part_element_faults(table: ObjectsTable, job: ObjectsJob) -> Iterator[ElementFault]:
    largest = table.largest_object_bytes
    if job.part_bytes is None:
        return
    parts = -(-largest // job.part_bytes)
    if parts > PARTS_MAX:
        has = f"part = {table.part}, which makes {parts:,} parts of its largest object"
        yield ElementFault(
            ("part",), has, f"Give at least {format_bytes(-(-largest // PARTS_MAX))}."
        )
