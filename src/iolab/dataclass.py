"""The `dataclass` of the standard library, made in a quarter of the time.

A command makes hundreds of dataclasses before it does anything, and for each that is frozen the
library compiles six functions. Here it compiles `__init__` alone; the others are shared. So type
checkers hold what `frozen` says, and Python does not (docs/decisions/0026-dataclasses.md).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        *, frozen: bool = False, eq: bool = True, **options: bool
    ) -> Callable[[type], type]:
        """As the library's, but for `order` and `unsafe_hash`, which nothing here uses."""

        def make(shape: type) -> type:
            made = dataclasses.dataclass(eq=False, repr=False, **options)(shape)
            if "__repr__" not in made.__dict__:
                made.__repr__ = _build_repr
            if eq:
                _add_field_equality(made, hashable=frozen)
            return made

        return make


def _add_field_equality(made: Any, *, hashable: bool) -> None:  # noqa: ANN401 - a class
    """Give a dataclass `__eq__`, and `__hash__` or None for it, where it has none of its own."""
    fields = dataclasses.fields(made)
    compared = _field_values_getter([field.name for field in fields if field.compare])
    hashed = _field_values_getter(
        [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
    )

    def eq_by_fields(self: object, other: object) -> object:
        if other.__class__ is self.__class__:
            return compared(self) == compared(other)
        return NotImplemented

    if "__eq__" not in made.__dict__:
        made.__eq__ = eq_by_fields
    if made.__dict__.get("__hash__") is None:
        made.__hash__ = (lambda self: hash(hashed(self))) if hashable else None


def _field_values_getter(names: list[str]) -> Callable[[object], object]:
    """What reads these attributes as a tuple; of one alone `attrgetter` makes none."""
    if len(names) > 1:
        return attrgetter(*names)
    return attrgetter(*names, *names) if names else lambda _: ()


def _build_repr(self: Any) -> str:  # noqa: ANN401 - any dataclass
    shown = [
        f"{field.name}={getattr(self, field.name)!r}"
        for field in dataclasses.fields(self)
        if field.repr
    ]
    return f"{type(self).__qualname__}({', '.join(shown)})"
