"""Frames: whole, cut, too large, and anything at all."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.core.limits import PAYLOAD_BYTES_MAX
from iolab.hosts.channel import ProtocolError, encode_frame, read_frame
from iolab.text import excerpt
from tests.fakes.virtual_time import run_virtually

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.text(max_size=20)


def read_all(content: bytes) -> list[tuple[dict[str, Any], bytes]]:
    async def body() -> list[tuple[dict[str, Any], bytes]]:
        reader = asyncio.StreamReader()
        reader.feed_data(content)
        reader.feed_eof()
        frames = []
        while (frame := await read_frame(reader)) is not None:
            frames.append(frame)
        return frames

    return run_virtually(body())


@given(st.lists(st.tuples(st.dictionaries(st.text(max_size=9), SCALARS), st.binary(max_size=99))))
def test_frames_come_back_as_they_were(frames: list[tuple[dict[str, Any], bytes]]) -> None:
    assert read_all(b"".join(encode_frame(*frame) for frame in frames)) == frames


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_a_fault_with_a_clean_sentence(content: bytes) -> None:
    fault = ""
    try:
        assert all(isinstance(header, dict) for header, _ in read_all(content))
    except ProtocolError as raised:
        fault = str(raised)
    assert len(fault) < 1000
    assert fault == "" or fault.isprintable()


@given(st.text())
def test_printable_text_is_one_bounded_line(text: str) -> None:
    shown = excerpt(text, 50)
    assert len(shown) <= 50
    assert shown.isprintable()


@pytest.mark.parametrize(
    "header", [b"[1]", b"7", b"{", b'{"a":NaN}', b'{"a":' + b"9" * 5000 + b"}", b"[" * 100_000]
)
def test_headers_that_are_no_plain_objects_are_faults(header: bytes) -> None:
    frame = len(header).to_bytes(4, "little") + bytes(4) + header
    with pytest.raises(ProtocolError):
        read_all(frame)


def test_a_payload_at_the_limit_fits_and_one_above_does_not() -> None:
    header = {"id": 1}
    payload = b"x" * PAYLOAD_BYTES_MAX
    assert read_all(encode_frame(header, payload)) == [(header, payload)]
    with pytest.raises(ValueError, match="do not fit"):
        encode_frame(header, payload + b"x")
    text = json.dumps(header).encode()
    lengths = len(text).to_bytes(4, "little") + (PAYLOAD_BYTES_MAX + 1).to_bytes(4, "little")
    with pytest.raises(ProtocolError, match="above the limits"):
        read_all(lengths + text)
