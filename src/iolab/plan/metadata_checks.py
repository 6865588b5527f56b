"""Checks over several keys of metadata workloads, and over them and their hosts."""

from __future__ import annotations

from typing import Final

from iolab.model.engine import EngineName
from iolab.model.fio_options import option_text
from iolab.model.mdtest_options import MDTEST_OPTIONS, mdtest_value_fits
from iolab.plan.document import Document, Faults
from iolab.plan.guest_members import with_paths
from iolab.plan.study_file import ConfigurationTable, MetadataTable
from iolab.plan.tables import Item, Tables, place, start
from iolab.plan.wording import shown, suggestion
from iolab.units import format_bytes, parse_size

TOTAL_RANKS_MAX: Final = 1 << 20
"""Ranks of a fleet, as many as the wire can number."""

BUFFERS_MAX: Final = 1 << 30
"""Contents that the ranks of one host hold in memory, as the wire has it."""


def check_metadata(document: Document, tables: Tables, faults: Faults) -> None:
    """Add every fault of metadata workloads that no single key shows."""
    clients = _most_clients(tables)
    for item, workload in tables.read("workload", MetadataTable):
        _check_ranks(document, item, workload, clients, faults)
        _check_shift(document, item, workload, faults)
        _check_bytes(document, item, workload, faults)
        if workload.mdtest and workload.engine is not EngineName.MDTEST:
            happened = (
                f"mdtest of {place(document, item.path)} does not go with "
                f"engine = {shown(workload.engine.value)}."
            )
            do = "Leave it out, or write engine = 'mdtest'."
            faults.add_once(document.where((*item.path, "mdtest")), "mdtest", happened, do)
        _check_options(document, item, workload, faults)


def _check_options(document: Document, item: Item, workload: MetadataTable, faults: Faults) -> None:
    for name, value in workload.mdtest.items():
        origin = document.where((*item.path, "mdtest", name))
        if name not in MDTEST_OPTIONS:
            happened = (
                f"mdtest option {shown(name)} of {place(document, item.path)} is not allowed."
            )
            do = suggestion(name, MDTEST_OPTIONS, "allowed options")
            faults.add_once(origin, name, happened, do)
        elif not mdtest_value_fits(name, option_text(value)):
            happened = f"mdtest option {name} of {place(document, item.path)} is {shown(value)}."
            do = f"Write for example {shown(MDTEST_OPTIONS[name].example)}."
            faults.add_once(origin, name, happened, do)


def _most_clients(tables: Tables) -> int:
    """Hosts of the configuration that has most of them."""
    written = tables.read("configuration", ConfigurationTable)
    return max((len(with_paths(tables, table)) for _, table in written), default=1)


def _check_ranks(
    document: Document, item: Item, workload: MetadataTable, clients: int, faults: Faults
) -> None:
    total = max(workload.ranks) * clients
    if total > TOTAL_RANKS_MAX:
        happened = (
            f"ranks of {place(document, item.path)} is {max(workload.ranks)}, which makes {total} "
            f"on {clients} clients."
        )
        do = f"Keep ranks x clients at most {TOTAL_RANKS_MAX}."
        faults.add_once(document.where((*item.path, "ranks")), "ranks", happened, do)


def _check_shift(document: Document, item: Item, workload: MetadataTable, faults: Faults) -> None:
    """With several ranks one shift fits one point; left out, it is each point's own."""
    if workload.rank_shift and len(workload.ranks) > 1:
        happened = (
            f"{start(document, item.path)} has rank_shift = {workload.rank_shift} for several "
            f"ranks, {shown(workload.ranks)}."
        )
        do = "Leave rank_shift out, and it follows ranks; or write 0."
        faults.add_once(document.where((*item.path, "rank_shift")), "rank_shift", happened, do)


def _check_bytes(document: Document, item: Item, workload: MetadataTable, faults: Faults) -> None:
    buffers = max(workload.ranks) * parse_size(workload.file_bytes)
    if buffers > BUFFERS_MAX:
        happened = (
            f"file_bytes of {place(document, item.path)} is {shown(workload.file_bytes)}, "
            f"which takes {format_bytes(buffers)} of memory for {max(workload.ranks)} ranks."
        )
        do = f"Keep file_bytes x ranks at most {format_bytes(BUFFERS_MAX)}."
        faults.add_once(document.where((*item.path, "file_bytes")), "file_bytes", happened, do)
