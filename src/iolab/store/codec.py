"""Dataclasses to JSON and back: sorted keys, UTF-8, floats that return bit for bit, never NaN.

Text that is not Unicode (a lone surrogate from undecodable bytes) is written as its escape, and a
number that is not finite as null; a null where a plain float belongs reads as NaN.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from iolab.core.owned import TYPE_KEY, TaggedRecord
from iolab.core.toml import read_regular
from iolab.errors import StoreError
from iolab.store import layout
from iolab.store.durable import disk_errors

T = TypeVar("T")

_ADAPTERS: Final[dict[type, TypeAdapter[Any]]] = {}
_NULL_FLOAT: Final = "float_type"


def encode(document: object, *, indent: int | None = None) -> bytes:
    """The JSON text of a dataclass; one line unless indented."""
    text = json.dumps(
        to_json_value(document),
        sort_keys=True,
        ensure_ascii=False,
        allow_nan=False,
        indent=indent,
        separators=(",", ": ") if indent else (",", ":"),
    )
    return text.encode() + b"\n"


def encode_sealed(document: object, *, indent: int | None = None) -> bytes:
    """The same with the sha256 of all that follows as its first member.

    One file, put in place at once, cannot come apart from its digest when the power fails.
    """
    body = encode(document, indent=indent)
    return b"".join((_SEAL, hashlib.sha256(body).hexdigest().encode(), _SEALED, body[1:]))


def decode_sealed(shape: type[T], path: Path) -> T:
    """The document at `path`; StoreError also if its digest is missing or not its own."""
    with disk_errors(path, "read"):
        content = read_regular(path)
    if content.startswith(_SEAL):
        body = b"{" + content[_SEAL_BYTES:]
        if content[:_SEAL_BYTES] != _SEAL + hashlib.sha256(body).hexdigest().encode() + _SEALED:
            require_readable_content(path, content)
            raise damaged_file_error(path, "it is not what was written")
        return parse_document(shape, body, path)
    parse_document(shape, content, path)
    raise damaged_file_error(path, "its digest is missing")


_SEAL: Final = b'{"sha256":"'
_SEALED: Final = b'",'
_SEAL_BYTES: Final = len(_SEAL) + 2 * hashlib.sha256().digest_size + len(_SEALED)

_COPY: Final = "Restore it from a copy, or set the session aside and measure again."


def damaged_file_error(path: Path, why: str, hint: str = _COPY) -> StoreError:
    """The StoreError of a file that is not what was written."""
    return StoreError(f"'{path}' is damaged: {why}.", hint)


def parse_document(shape: type[T], content: bytes, path: Path) -> T:
    """The document in `content` of `path`; StoreError if not of its shape or of another format."""
    try:
        document = _validate_document(shape, content)
    except ValidationError as error:
        version = _claimed_format(content)
        if isinstance(version, int) and version != layout.FORMAT:
            raise _other_format_error(path, version) from error
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise damaged_file_error(path, f"{where}: {first['msg']}") from error
    require_readable_format(path, getattr(document, "format", None))
    return document


def require_readable_format(path: Path, version: object) -> None:
    """StoreError if a document was written by a layout that is newer, or older than we read."""
    if not isinstance(version, int) or layout.FORMAT_OLDEST <= version <= layout.FORMAT:
        return
    raise _other_format_error(path, version)


def require_readable_content(path: Path, content: bytes) -> None:
    """The same of a document that could not be read as it is."""
    require_readable_format(path, _claimed_format(content))


def _other_format_error(path: Path, version: int) -> StoreError:
    age = "newer" if version > layout.FORMAT else "older"
    return StoreError(
        f"'{path}' has format {version}, and cannot be read by an iolab of format {layout.FORMAT}.",
        f"Read it with the {age} iolab that wrote it, or measure again.",
    )


def to_json_value(value: Any) -> Any:  # noqa: ANN401 - JSON is what it is
    """`value` as JSON has it: objects, lists, text, numbers, true, false and null."""
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is str:
        return to_valid_utf8(value)
    names = _dataclass_fields(kind)
    if names is not None:
        fields = {name: to_json_value(getattr(value, name)) for name in names}
        return {TYPE_KEY: value.type_tag, **fields} if isinstance(value, TaggedRecord) else fields
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {to_valid_utf8(str(key)): to_json_value(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json_value(item) for item in value]
    return _scalar_to_json(value)


_AS_IT_IS: Final = {int, bool, type(None)}


_FIELDS: Final[dict[type, tuple[str, ...] | None]] = {}


def _dataclass_fields(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass; None for any other type. A fleet's documents ask 100,000 times."""
    if kind not in _FIELDS:
        has_fields = dataclasses.is_dataclass(kind) and not issubclass(kind, Enum)
        _FIELDS[kind] = (
            tuple(field.name for field in dataclasses.fields(kind)) if has_fields else None
        )
    return _FIELDS[kind]


def _scalar_to_json(value: Any) -> Any:  # noqa: ANN401
    """The same for further kinds of text and numbers, and for numpy's scalars."""
    if isinstance(value, str):
        return to_valid_utf8(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int):
        return value
    return to_json_value(value.item())


def to_valid_utf8(text: str) -> str:
    """`text` as UTF-8 can carry it."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def type_adapter(shape: type[T]) -> TypeAdapter[T]:
    """The validator of a dataclass, built once."""
    if shape not in _ADAPTERS:
        _ADAPTERS[shape] = TypeAdapter(shape)
    return _ADAPTERS[shape]


def _validate_document(shape: type[T], content: bytes) -> T:
    """The document in `content`, with NaN for each null in the place of a plain float."""
    try:
        return type_adapter(shape).validate_json(content)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        if any(fault["type"] != _NULL_FLOAT or fault["input"] is not None for fault in faults):
            raise
        tree = json.loads(content)
        for fault in faults:
            _set_at_path(tree, fault["loc"], math.nan)
        return type_adapter(shape).validate_python(tree)


def _set_at_path(tree: Any, place: tuple[int | str, ...], value: float) -> None:  # noqa: ANN401
    """Set the value at a place of nested objects and lists."""
    for step in place[:-1]:
        tree = tree[step]
    tree[place[-1]] = value


def _claimed_format(content: bytes) -> object:
    """The format that a document claims, None if it claims none that can be read."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return document.get("format") if isinstance(document, dict) else None
