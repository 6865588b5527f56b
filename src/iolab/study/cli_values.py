"""How a key's value is written on the command line, which knows text alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, get_args, get_origin

from iolab.study import values
from iolab.study.target_tables import StudyTable


@dataclass(frozen=True, slots=True)
class Shape:
    """Whether a value is split at commas, is kept as text, holds keys, and holds free ones."""

    listed: bool
    text: bool
    nested: bool = False
    free: bool = False


def shape_of(table: type[StudyTable], key: str) -> Shape:
    """The shape of a key of `table`; KeyError when the table has none of that name."""
    described = table.model_fields[key]
    marks = [*described.metadata, *_marks(described.annotation)]
    if "dict" in marks or "table" in marks:
        return Shape(listed=False, text=False, nested=True, free="dict" in marks)
    listed = any(isinstance(mark, values.Listed) for mark in marks) or "list" in marks
    return Shape(listed, any(isinstance(mark, values.Read) and mark.is_text for mark in marks))


def _marks(annotation: object) -> Iterator[object]:
    """The metadata of an annotation and of all within it, and what kind of container it is."""
    if get_origin(annotation) is list:
        yield "list"
    if get_origin(annotation) is dict:
        yield "dict"
        return
    if isinstance(annotation, type) and issubclass(annotation, StudyTable):
        yield "table"
    if get_origin(annotation) is Annotated:
        yield from annotation.__metadata__  # type: ignore[attr-defined]
    for inner in get_args(annotation):
        if not isinstance(inner, values.Read | values.Listed):
            yield from _marks(inner)
