"""Records to JSON and back: sorted keys, UTF-8, floats that return bit for bit, never NaN.

Text that is not Unicode (a lone surrogate from undecodable bytes) is written as its escape, and a
number that is not finite as null; a null where a plain float belongs reads as NaN.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from iolab.core.regular_file import read_regular_file
from iolab.core.tagged import decode_tagged_record
from iolab.errors import StoreError
from iolab.record import DECODE_ERRORS, fault_place_and_text
from iolab.store import layout
from iolab.store.durable import disk_errors_as_store_errors
from iolab.store.nulls import with_nan_for_nulls

T = TypeVar("T")

_NULL_FLOAT: Final = "Expected `float`, got `null`"

_SEAL: Final = b'{"sha256":"'
_SEALED: Final = b'",'
_SEAL_BYTES: Final = len(_SEAL) + 2 * hashlib.sha256().digest_size + len(_SEALED)
_COPY: Final = "Restore it from a copy, or set the session aside and measure again."


def encode(document: object, *, indent: int | None = None) -> bytes:
    """The JSON text of a record; one line unless indented."""
    try:
        text = _compact_json(document)
    except UnicodeEncodeError:
        text = _compact_json(
            _with_escaped_surrogates(msgspec.to_builtins(document, enc_hook=_scalar_to_json))
        )
    return (msgspec.json.format(text, indent=indent) if indent else text) + b"\n"


def _compact_json(document: object) -> bytes:
    return msgspec.json.encode(document, enc_hook=_scalar_to_json, order="sorted")


def _scalar_to_json(value: Any) -> object:  # noqa: ANN401
    """Read-only mappings as the library knows them, and numpy's scalars as Python's own."""
    return dict(value) if isinstance(value, Mapping) else value.item()


def _with_escaped_surrogates(value: object) -> object:
    """JSON's own types with what is not Unicode written as its escape."""
    match value:
        case str():
            return escape_surrogates(value)
        case dict():
            return {
                escape_surrogates(str(key)): _with_escaped_surrogates(item)
                for key, item in value.items()
            }
        case list() | tuple():
            return [_with_escaped_surrogates(item) for item in value]
        case _:
            return value


def encode_with_digest(document: object, *, indent: int | None = None) -> bytes:
    """The same with the sha256 of all that follows as its first member.

    One file, put in place at once, cannot come apart from its digest when the power fails.
    """
    body = encode(document, indent=indent)
    return b"".join((_SEAL, hashlib.sha256(body).hexdigest().encode(), _SEALED, body[1:]))


def read_digested_document(shape: type[T], path: Path) -> T:
    """The document at `path`; StoreError also if its digest is missing or not its own."""
    with disk_errors_as_store_errors(path, "read"):
        content = read_regular_file(path)
    if content.startswith(_SEAL):
        body = b"{" + content[_SEAL_BYTES:]
        if content[:_SEAL_BYTES] != _SEAL + hashlib.sha256(body).hexdigest().encode() + _SEALED:
            require_readable_claimed_format(path, content)
            raise damaged_file_error(path, "it is not what was written")
        return parse_document(shape, body, path)
    parse_document(shape, content, path)
    raise damaged_file_error(path, "its digest is missing")


def damaged_file_error(path: Path, why: str, hint: str = _COPY) -> StoreError:
    """The StoreError of a file that is not what was written."""
    return StoreError(f"'{path}' is damaged: {why}.", hint)


def parse_document(shape: type[T], content: bytes, path: Path) -> T:
    """The document in `content` of `path`; StoreError if not of its shape or of another format."""
    try:
        document = _decode_document(shape, content)
    except DECODE_ERRORS as error:
        version = _format_number_or_none(content)
        if isinstance(version, int) and version != layout.FORMAT:
            raise _other_format_error(path, version) from error
        where, why = fault_place_and_text(error)
        raise damaged_file_error(path, f"{where or 'the document'}: {why}") from error
    require_readable_format(path, getattr(document, "format", None))
    return document


def _decode_document(shape: type[T], content: bytes) -> T:
    """The document in `content`, with NaN for each null in the place of a plain float."""
    try:
        return msgspec.json.decode(content, type=shape, dec_hook=decode_tagged_record)
    except msgspec.ValidationError as error:
        if _NULL_FLOAT not in str(error):
            raise
    tree = msgspec.json.decode(content)
    return msgspec.convert(
        with_nan_for_nulls(tree, shape), shape, dec_hook=decode_tagged_record, str_keys=True
    )


def require_readable_format(path: Path, version: object) -> None:
    """StoreError if a document was written by a layout that is newer, or older than we read."""
    if not isinstance(version, int) or layout.FORMAT_OLDEST <= version <= layout.FORMAT:
        return
    raise _other_format_error(path, version)


def require_readable_claimed_format(path: Path, content: bytes) -> None:
    """The same of a document that could not be read as it is."""
    require_readable_format(path, _format_number_or_none(content))


def _other_format_error(path: Path, version: int) -> StoreError:
    age = "newer" if version > layout.FORMAT else "older"
    return StoreError(
        f"'{path}' has format {version}, and cannot be read by an iolab of format {layout.FORMAT}.",
        f"Read it with the {age} iolab that wrote it, or measure again.",
    )


def escape_surrogates(text: str) -> str:
    """`text` as UTF-8 can carry it."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def _format_number_or_none(content: bytes) -> object:
    """The format that a document claims, None if it claims none that can be read."""
    try:
        document = msgspec.json.decode(content)
    except DECODE_ERRORS:
        return None
    return document.get("format") if isinstance(document, dict) else None
