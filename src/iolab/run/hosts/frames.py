"""Frames of the wire (docs/reference/wire.md): two lengths, a JSON header, a payload."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Mapping
from typing import Any, Final

import orjson

from iolab.run.hosts.text import printable_bytes

MAX_HEADER_BYTES: Final = 4 << 20
"""The wire's limit: facts of a host with a thousand disks are under 1 MiB."""

MAX_PAYLOAD_BYTES: Final = 1 << 20
"""The wire's limit: larger things are sent in several frames."""

_LENGTHS: Final = struct.Struct("<II")
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


class ProtocolFault(Exception):
    """The other side does not speak the wire; one sentence says what came instead."""


def encode_frame(header: Mapping[str, object], payload: bytes = b"") -> bytes:
    """A whole frame; ValueError when it would break a limit of the wire."""
    text = _ENCODER.encode(header).encode()
    if len(text) > MAX_HEADER_BYTES or len(payload) > MAX_PAYLOAD_BYTES:
        sizes = f"{len(text)} bytes of header and {len(payload)} of payload"
        raise ValueError(f"{sizes} do not fit a frame")
    return _LENGTHS.pack(len(text), len(payload)) + text + payload


async def read_frame(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes] | None:
    """The next frame; None at a clean end between two frames. Raises ProtocolFault."""
    try:
        lengths = await reader.readexactly(_LENGTHS.size)
    except asyncio.IncompleteReadError as cut:
        if not cut.partial:
            return None
        shown = printable_bytes(cut.partial)
        raise ProtocolFault(f"it ended in the middle of a frame: '{shown}'") from None
    header_bytes, payload_bytes = _LENGTHS.unpack(lengths)
    if header_bytes > MAX_HEADER_BYTES or payload_bytes > MAX_PAYLOAD_BYTES:
        raise ProtocolFault(await _strange_start(reader, lengths, header_bytes, payload_bytes))
    try:
        text = await reader.readexactly(header_bytes)
        payload = await reader.readexactly(payload_bytes)
    except asyncio.IncompleteReadError:
        raise ProtocolFault("it ended in the middle of a frame") from None
    return _parse_header(text), payload


STRANGE_BYTES: Final = 200
STRANGE_WAIT_S: Final = 0.2
"""How much of something that is no frame is shown, and how long it may take to come."""


async def _strange_start(
    reader: asyncio.StreamReader, lengths: bytes, header_bytes: int, payload_bytes: int
) -> str:
    """A sentence that shows text where a frame should be (a login banner, a shell's error)."""
    try:
        async with asyncio.timeout(STRANGE_WAIT_S):
            more = await reader.read(STRANGE_BYTES)
    except TimeoutError:
        more = b""
    if all(32 <= byte < 127 or byte in b"\r\n\t\x1b" for byte in lengths):
        return f"it printed text where frames should be: '{printable_bytes(lengths + more)}'"
    return (
        f"it announced a frame of {header_bytes} bytes of header and {payload_bytes} of payload, "
        f"above the limits of {MAX_HEADER_BYTES} and {MAX_PAYLOAD_BYTES}"
    )


def _parse_header(text: bytes) -> dict[str, Any]:
    # No function is called for each number: a fleet's samples are 200,000 of them a second. What is
    # beyond 64 bits comes as a float, and each is checked where it is used.
    try:
        header = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise ProtocolFault(f"a header is not JSON: '{printable_bytes(text, 100)}'") from None
    if not isinstance(header, dict):
        raise ProtocolFault(f"a header is not an object: '{printable_bytes(text, 100)}'")
    return header
