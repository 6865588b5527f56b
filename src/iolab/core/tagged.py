"""Parts of a study or of a run's record that a kind of load or of host owns.

Common code has a base class for each such place and asks it what every kind can answer. A stored
part names its kind, and is found again among those that are declared: whoever reads a session
imports `iolab.registry` first, which declares those of all kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, Union

from msgspec import ValidationError, convert

from iolab.record import field_names
from iolab.units import parse_size

if TYPE_CHECKING:
    from iolab.record import Record as _Base
else:
    _Base = object  # a field of this type is then left to `decode_tagged_record`

TYPE_KEY: Final = "type"
"""The key in a stored document that names the kind of a part."""

_DECLARED: Final[dict[str, str]] = {}


class TaggedRecord(_Base):
    """A place for parts that kinds own; its direct subclasses are the places.

    A part is a `Record` that derives from a place too, and its `tag` is its name in documents.
    `field_by_study_key` has the fields that study files call otherwise, by their keys there.
    """

    __slots__ = ()

    field_by_study_key: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @classmethod
    def require_type(cls, value: object) -> Self:
        """The part, which is one of these; TypeError for any other."""
        if not isinstance(value, cls):
            raise TypeError(f"{type(value).__name__} is no {cls.__name__}")
        return value

    @classmethod
    def fields_from_keys(cls, written: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """Its fields as keys of a study file have them, a size of bytes as a number.

        Other keys, as those that name it, are left out.
        """
        own = frozenset(field_names(cls))
        named = ((cls.field_by_study_key.get(key, key), value) for key, value in written)
        return {
            name: parse_size(value) if "_bytes" in name else value
            for name, value in named
            if name in own
        }


def type_tag_of(record: TaggedRecord | type[TaggedRecord]) -> str:
    """The name of the kind of a part, as stored documents have it."""
    return str(record.__struct_config__.tag)


def declare_tagged_classes(reference_by_tag: Mapping[str, str]) -> None:
    """Say what else is known: the names of parts, each with its "module:attribute".

    They are imported when a document has such a part: most sessions are of one kind of load.
    """
    _DECLARED.update(reference_by_tag)


def tagged_classes(base: type[TaggedRecord]) -> tuple[type[TaggedRecord], ...]:
    """All parts that a base class can hold; imports whatever was declared."""
    for reference in _DECLARED.values():
        import_attribute(reference)
    return tuple(base.__subclasses__())


def find_tagged_class(base: type[TaggedRecord], tag: object) -> type[TaggedRecord] | None:
    """The part of that name which a base class can hold; None where there is none."""
    found = _imported_class(base, tag)
    if found is None and isinstance(tag, str) and tag in _DECLARED:
        import_attribute(_DECLARED[tag])
        found = _imported_class(base, tag)
    if found is None:  # the parts of a kind need not be called as its jobs are
        tagged_classes(base)
        found = _imported_class(base, tag)
    return found


def _imported_class(base: type[TaggedRecord], tag: object) -> type[TaggedRecord] | None:
    return next((part for part in base.__subclasses__() if type_tag_of(part) == tag), None)


def decode_tagged_record(base: type, document: object) -> object:
    """The part in a document, as a `dec_hook` of msgspec reads it; ValueError where it is none."""
    if not issubclass(base, TaggedRecord):
        raise NotImplementedError(f"{base.__name__} is not stored")
    tag = document.get(TYPE_KEY) if isinstance(document, dict) else None
    part: Any = find_tagged_class(base, tag)
    if part is None:
        part = Union[tagged_classes(base)]  # noqa: UP007 - of a tuple
    try:
        return convert(document, part, dec_hook=decode_tagged_record, str_keys=True)
    except ValidationError as error:
        raise ValueError(str(error)) from error


def import_attribute(reference: str) -> Any:  # noqa: ANN401 - whatever stands there
    """What "module:attribute" names; ImportError or AttributeError where it is not there."""
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)
