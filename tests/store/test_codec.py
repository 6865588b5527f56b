"""JSON that returns as it was: sorted, UTF-8, exact numbers, nothing that is not JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import replace

from iolab.core.run import HostLoadDetails, RunStatus
from iolab.errors import StoreError
from iolab.importers.foreign_run import ImportedClientDetails
from iolab.record import Record
from iolab.store import layout
from iolab.store.codec import encode, encode_with_digest, read_digested_document


class Inner(Record):
    rate: float
    bound: float | None = None


class WithDetails(Record):
    format: int
    details: HostLoadDetails | None


class Document(Record):
    format: int
    text: str
    status: RunStatus
    axis: tuple[tuple[str, int | str], ...]
    parts: tuple[Inner, ...]


def document(*parts: Inner, text: str = "") -> Document:
    return Document(layout.FORMAT, text, RunStatus.DONE, (("iodepth", 8), ("bs", "4k")), parts)


def returned(path: Path, value: Document) -> Document:
    path.write_bytes(encode_with_digest(value))
    return read_digested_document(Document, path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "document.json"


def test_keys_are_sorted_and_text_is_utf8(path: Path) -> None:
    path.write_bytes(encode(document(text="µs ✓")))
    text = path.read_text(encoding="utf-8")
    assert text == (
        f'{{"axis":[["iodepth",8],["bs","4k"]],"format":{layout.FORMAT},'
        '"parts":[],"status":"done","text":"µs ✓"}\n'
    )


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_return_bit_for_bit(value: float) -> None:
    assert json.loads(encode({"value": value}))["value"].hex() == value.hex()


def test_integers_stay_integers_and_text_stays_text(path: Path) -> None:
    found = returned(path, document(Inner(2.0, 3.0)))
    assert [type(value) for _, value in found.axis] == [int, str]
    assert b'"rate":2.0' in path.read_bytes()
    assert type(found.parts[0].rate) is float


def test_what_is_not_finite_is_null_and_reads_as_unknown(path: Path) -> None:
    found = returned(path, document(Inner(1.5, 2.5), Inner(math.nan, math.nan), Inner(math.inf)))
    assert b"NaN" not in path.read_bytes()
    assert b"Infinity" not in path.read_bytes()
    assert found.parts[0] == Inner(1.5, 2.5)
    assert math.isnan(found.parts[1].rate)
    assert found.parts[1].bound is None
    assert math.isnan(found.parts[2].rate)
    assert found.axis == document().axis


def test_undecodable_bytes_are_written_as_escapes(path: Path) -> None:
    said = b"fio: \xff!".decode("utf-8", "surrogateescape")
    assert returned(path, document(text=said)).text == "fio: \\udcff!"


OTHERS = [(layout.FORMAT_OLDEST - 1, "older iolab"), (layout.FORMAT + 1, "newer iolab")]


@pytest.mark.parametrize(("other", "hint"), OTHERS)
def test_another_format_is_told_whether_or_not_it_can_be_read(
    path: Path, other: int, hint: str
) -> None:
    for content in (
        encode({"format": other, "new": "shape"}),
        encode_with_digest({"format": other, "new": "shape"}),
        encode_with_digest(replace(document(), format=other)),
        encode(replace(document(), format=other)),
    ):
        path.write_bytes(content)
        with pytest.raises(StoreError, match=rf"format {other}, .* {layout.FORMAT}\.") as caught:
            read_digested_document(Document, path)
        assert hint in caught.value.hint


def test_an_older_document_is_read_if_it_has_todays_shape(path: Path) -> None:
    older = layout.FORMAT - 1
    same = replace(document(), format=older)
    assert returned(path, same) == same
    path.write_bytes(encode_with_digest({"format": older, "old": "shape"}))
    with pytest.raises(StoreError, match=f"has format {older}") as caught:
        read_digested_document(Document, path)
    assert "older iolab" in caught.value.hint


def test_fields_of_a_later_version_are_passed_over(path: Path) -> None:
    path.write_bytes(encode_with_digest({**to_builtins(document()), "later": [1]}))
    assert read_digested_document(Document, path) == document()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the document: Input data was truncated"),
        (b'{"format":1', "the document: Input data was truncated"),
        (b"\xff\xfe", "the document: JSON is malformed"),
        (b"[]", "the document: "),
        (
            encode(document()).replace(b'"done"', b'"perfect"'),
            "status: Invalid enum value 'perfect'",
        ),
        (
            encode(document(Inner(1.0))).replace(b"1.0", b'"x"'),
            "parts[0].rate: Expected `float`, got `str`",
        ),
        (
            encode(document(Inner(math.nan))).replace(b'"text":""', b'"text":7'),
            "text: Expected `str`, got `int`",
        ),
    ],
)
def test_a_damaged_document_is_told_with_its_place(
    path: Path, content: bytes, message: str
) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError) as caught:
        read_digested_document(Document, path)
    assert caught.value.message.startswith(f"'{path}' is damaged: {message}")


@pytest.mark.parametrize(
    "hostile",
    [
        b"[" * 200_000,
        b'{"format":' * 200_000,
        b'{"later":' + b"[" * 200_000,
        b'{"format":' + b"9" * 5000 + b"}",
        b'{"format":1e999}',
        b'{"text":"\\ud800"}',
    ],
)
def test_hostile_json_is_a_damaged_document(path: Path, hostile: bytes) -> None:
    path.write_bytes(hostile)
    with pytest.raises(StoreError, match="is damaged"):
        read_digested_document(Document, path)


def test_null_is_nan_in_a_part_of_a_kind_too(path: Path) -> None:
    host = ImportedClientDetails("fio.json:1", (), latency_resolution=math.nan)
    path.write_bytes(encode_with_digest(WithDetails(layout.FORMAT, host)))
    assert b'"latency_resolution":null' in path.read_bytes()
    found = read_digested_document(WithDetails, path).details
    assert isinstance(found, ImportedClientDetails)
    assert math.isnan(found.latency_resolution)


def test_a_fault_in_a_part_of_a_kind_is_told_with_its_place(path: Path) -> None:
    content = encode(WithDetails(layout.FORMAT, ImportedClientDetails("fio.json:1", ())))
    for old, new, message in (
        (
            b'"source_location":"fio.json:1"',
            b'"source_location":7',
            "details.source_location: Expected `str`, got `int`",
        ),
        (b'"type":"imported"', b'"type":"unknown"', "details.type: Invalid value 'unknown'"),
    ):
        path.write_bytes(content.replace(old, new))
        with pytest.raises(StoreError) as caught:
            read_digested_document(WithDetails, path)
        assert message in caught.value.message
