"""The options that a workload hands on to its engine, held against those that are allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from iolab.core.engine import EngineOption
from iolab.study.document import StudyDocument
from iolab.study.tables import Item, place
from iolab.study.target_tables import StudyTable
from iolab.study.values import option_text
from iolab.study.wording import shown, suggestion


def check_options(
    document: StudyDocument,
    item: Item,
    key: str,
    model: type[StudyTable],
    allowed: Mapping[str, EngineOption],
    *,
    text_of: Callable[[float | str], str] = option_text,
    advice: Callable[[str], str | None] = lambda _: None,
) -> None:
    """Add every fault of the options under `key`, which tables of that model have.

    They are read as written, so that they are told of also where another key is at fault.
    `text_of` gives the text that an engine gets, `advice` what to do about a name of another place.
    """
    written = item.written.get(key)
    if item.table is not None and not isinstance(item.table, model):
        return  # the key itself is told of
    for name, value in written.items() if isinstance(written, dict) else ():
        if not isinstance(value, str | int | float):
            continue  # it is told of where the table is read
        path = (*item.path, key, name)
        if name not in allowed:
            happened = f"{key} option {shown(name)} of {place(document, item.path)} is not allowed."
            do = advice(name) or suggestion(name, allowed, "allowed options")
            if name in model.model_fields:
                do = f"Write {name} as a key of the workload itself."
            document.fault(path, happened, do, about=name)
        elif not allowed[name].fits(text_of(value)):
            happened = f"{key} option {name} of {place(document, item.path)} is {shown(value)}."
            do = f"Write for example {shown(allowed[name].example)}."
            document.fault(path, happened, do, about=name)
