"""Parts of a study or of a run's record that a kind of load or of host owns.

Common code has a base class for each such place and asks it what every kind can answer. The store
writes which class it was, and finds it again among those that are imported: whoever reads a session
imports all kinds first (`iolab.registry`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from iolab.units import parse_size

TYPE_KEY: Final = "type"
"""The key in a stored document that says which class it was."""


class TaggedRecord:
    """A place for parts that kinds own; its direct subclasses are the places.

    A part is a frozen dataclass derived from a place, and `type_tag` is its name in documents.
    `keys` are the fields that study files call otherwise, by their keys there.
    """

    __slots__ = ()

    type_tag: ClassVar[str]
    keys: ClassVar[Mapping[str, str]] = MappingProxyType({})

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Any]]

    @classmethod
    def require_type(cls, part: object) -> Self:
        """The part, which is one of these; TypeError for any other."""
        if not isinstance(part, cls):
            raise TypeError(f"{type(part).__name__} is no {cls.__name__}")
        return part

    @classmethod
    def fields_from_keys(cls, written: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """Its fields as keys of a study file have them, a size of bytes as a number.

        Other keys, as those that name it, are left out.
        """
        own = {field.name for field in fields(cls)}
        named = ((cls.keys.get(key, key), value) for key, value in written)
        return {
            name: parse_size(value) if "_bytes" in name else value
            for name, value in named
            if name in own
        }

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:  # noqa: ANN401
        """The schema of a part; that of a place is one of all its parts, told apart by name."""
        if TaggedRecord not in cls.__bases__:
            return handler(source)
        from pydantic_core import core_schema

        parts = {part.type_tag: handler.generate_schema(part) for part in tagged_classes(cls)}
        return core_schema.tagged_union_schema(parts, _type_tag_of)

    def __init_subclass__(cls) -> None:
        """Remember the part; a dataclass with slots is made twice, and the second one stays."""
        super().__init_subclass__()
        if name := cls.__dict__.get("type_tag"):
            _PARTS[cls.__bases__[0], name] = cls


_PARTS: Final[dict[tuple[type, str], type[TaggedRecord]]] = {}


def tagged_classes(place: type[TaggedRecord]) -> tuple[type[TaggedRecord], ...]:
    """All parts that a place can hold, of the kinds that are imported."""
    return tuple(part for (base, _), part in _PARTS.items() if base is place)


def _type_tag_of(value: Any) -> Any:  # noqa: ANN401 - a document is any JSON
    return value.get(TYPE_KEY) if isinstance(value, dict) else getattr(value, "type_tag", None)
