"""NaN for each null of a document that stands where a plain float belongs."""

from __future__ import annotations

import math
from typing import Any

from msgspec import inspect

from iolab.core.tagged import TYPE_KEY, TaggedRecord, find_tagged_class


def with_nan_for_nulls(document: object, shape: type) -> object:
    """The document as `shape` can be made of it; what does not fit stays as it is."""
    return _value_with_nan_for_nulls(document, inspect.type_info(shape))


def _value_with_nan_for_nulls(value: Any, kind: inspect.Type) -> object:  # noqa: ANN401 - any JSON
    match kind, value:
        case inspect.FloatType(), None:
            return math.nan
        case inspect.UnionType(), _:
            return _union_value_with_nan_for_nulls(value, kind.types)
        case inspect.StructType(), dict():
            fields = {field.encode_name: field.type for field in kind.fields}
            return {
                key: _value_with_nan_for_nulls(item, fields[key]) if key in fields else item
                for key, item in value.items()
            }
        case inspect.DictType(), dict():
            return {
                key: _value_with_nan_for_nulls(item, kind.value_type) for key, item in value.items()
            }
        case inspect.VarTupleType() | inspect.ListType(), list():
            return [_value_with_nan_for_nulls(item, kind.item_type) for item in value]
        case inspect.TupleType(), list():
            items = (*kind.item_types, *[inspect.AnyType()] * len(value))
            return [
                _value_with_nan_for_nulls(item, own)
                for item, own in zip(value, items, strict=False)
            ]
        case inspect.CustomType(), dict() if issubclass(kind.cls, TaggedRecord):
            part = find_tagged_class(kind.cls, value.get(TYPE_KEY))
            if part is not None:
                return with_nan_for_nulls(value, part)
    return value


def _union_value_with_nan_for_nulls(value: object, kinds: tuple[inspect.Type, ...]) -> object:
    """The same of the first of several types that it fits; null is one of them where it may be."""
    if value is None and any(isinstance(kind, inspect.NoneType) for kind in kinds):
        return None
    filled = (_value_with_nan_for_nulls(value, kind) for kind in kinds)
    return next((item for item in filled if item is not value), value)
