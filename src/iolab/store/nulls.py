"""NaN for each null of a document that stands where a plain float belongs."""

from __future__ import annotations

import math
from typing import Any

from msgspec import inspect

from iolab.core.tagged import TYPE_KEY, TaggedRecord, tagged_classes, type_tag_of


def with_nan_for_nulls(document: object, shape: type) -> object:
    """The document as `shape` can be made of it; what does not fit stays as it is."""
    return _nulls_filled(document, inspect.type_info(shape))


def _nulls_filled(value: Any, kind: inspect.Type) -> object:  # noqa: ANN401 - any JSON
    match kind, value:
        case inspect.FloatType(), None:
            return math.nan
        case inspect.UnionType(), _:
            return _nulls_filled_for_union(value, kind.types)
        case inspect.StructType(), dict():
            fields = {field.encode_name: field.type for field in kind.fields}
            return {
                key: _nulls_filled(item, fields[key]) if key in fields else item
                for key, item in value.items()
            }
        case inspect.DictType(), dict():
            return {key: _nulls_filled(item, kind.value_type) for key, item in value.items()}
        case inspect.VarTupleType() | inspect.ListType(), list():
            return [_nulls_filled(item, kind.item_type) for item in value]
        case inspect.TupleType(), list():
            items = (*kind.item_types, *[inspect.AnyType()] * len(value))
            return [_nulls_filled(item, own) for item, own in zip(value, items, strict=False)]
        case inspect.CustomType(), dict() if issubclass(kind.cls, TaggedRecord):
            for part in tagged_classes(kind.cls):
                if type_tag_of(part) == value.get(TYPE_KEY):
                    return with_nan_for_nulls(value, part)
    return value


def _nulls_filled_for_union(value: object, kinds: tuple[inspect.Type, ...]) -> object:
    """The same of the first of several types that it fits; null is one of them where it may be."""
    if value is None and any(isinstance(kind, inspect.NoneType) for kind in kinds):
        return None
    filled = (_nulls_filled(value, kind) for kind in kinds)
    return next((item for item in filled if item is not value), value)
