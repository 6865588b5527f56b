"""The base of everything that is stored, sent or printed: typed, frozen, and cheap to make."""

from __future__ import annotations

import re
from typing import Any, Final, dataclass_transform

from msgspec import DecodeError, Struct, field

DECODE_ERRORS: Final = (DecodeError, UnicodeDecodeError, RecursionError)
"""What JSON that is none, or not of the expected shape, is refused with."""

_PLACE: Final = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record(Struct, frozen=True):
    """A frozen `msgspec.Struct`, whose fields are named as those of a dataclass.

    Who assigns to a field gets an AttributeError; `msgspec.structs.replace` makes a changed one.
    """


def field_names(record: Struct | type[Struct]) -> tuple[str, ...]:
    """The names of its fields, those of its base classes first."""
    return record.__struct_fields__


def default_values(record_type: type[Struct]) -> dict[str, Any]:
    """The defaults of its fields by name; one that is made anew each time equals no value."""
    defaults = record_type.__struct_defaults__
    return dict(zip(record_type.__struct_fields__[-len(defaults) :], defaults, strict=False))


def nested_field_values(record: Struct) -> list[Any]:
    """The values of its fields in their order, a list for each record among them."""
    values = (getattr(record, name) for name in record.__struct_fields__)
    return [nested_field_values(value) if isinstance(value, Struct) else value for value in values]


def fault_place_and_text(error: Exception) -> tuple[str, str]:
    """Which field a document's fault is in (`hosts[0].error`), "" for none, and what it is."""
    text = str(error)
    places = [place for place in reversed(_PLACE.findall(text)) if place]
    return ".".join(places), _PLACE.sub("", text)
