"""Checks of workloads of I/O by their engine: what each of the two alone can do."""

from __future__ import annotations

from iolab.model.engine import EngineName
from iolab.model.fio_options import FIO_OPTIONS, option_text, value_fits
from iolab.model.native_options import METHODS, NATIVE_OPTIONS, is_native
from iolab.plan.document import Document, Faults
from iolab.plan.study_file import WorkloadTable
from iolab.plan.tables import Item, Tables, place, start
from iolab.plan.wording import shown


def check_native(document: Document, tables: Tables, faults: Faults) -> None:
    """Add every fault of a workload that its engine cannot do as it is written."""
    for item, workload in tables.read("workload", WorkloadTable):
        if workload.engine is EngineName.NATIVE:
            _check_method(document, item, workload, faults)
            _check_options(document, item, workload, faults)
        elif workload.verify:
            happened = f"{start(document, item.path)} has verify, which fio is not asked to do."
            do = "Leave it out, or write engine = 'native'."
            faults.add_once(document.where((*item.path, "verify")), "verify", happened, do)


def _check_method(document: Document, item: Item, workload: WorkloadTable, faults: Faults) -> None:
    if workload.ioengine in METHODS:
        return
    happened = (
        f"{start(document, item.path)} has ioengine = {shown(workload.ioengine)}, which the native "
        "engine has nothing like."
    )
    do = "Leave it out, and the engine takes the best it finds; or write engine = 'fio'."
    faults.add_once(document.where((*item.path, "ioengine")), "ioengine", happened, do)


def _check_options(document: Document, item: Item, workload: WorkloadTable, faults: Faults) -> None:
    for name, value in workload.fio.items():
        text = option_text(value)
        # What fio itself would not take is told where its options are looked at.
        if name not in FIO_OPTIONS or not value_fits(name, text) or is_native(name, text):
            continue
        what = f"fio option {name}"
        if name in NATIVE_OPTIONS:
            what += f" = {shown(value)}"
        happened = f"The native engine of {place(document, item.path)} cannot do {what}."
        do = "Leave it out, or write engine = 'fio'."
        faults.add_once(document.where((*item.path, "fio", name)), f"{name} native", happened, do)
    poisson = option_text(workload.fio.get("rate_process", "")) == "poisson"
    if "thinktime" in workload.fio and (workload.arrivals is not None or poisson):
        happened = f"{start(document, item.path)} has both arrivals and fio option thinktime."
        do = "Leave one of them out: what arrives does not think."
        origin = document.where((*item.path, "fio", "thinktime"))
        faults.add_once(origin, "thinktime native", happened, do)
