"""Packed output: the same bytes back, within a limit that is in memory too."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.core.compressed import BLOCK_BYTES, CompressedBytes, OutputCompressor

LINE = b'            "35584" : 1,\n'


def test_what_was_added_comes_back_whole() -> None:
    packer = OutputCompressor(1 << 30)
    text = b"".join(b"%d: " % number + LINE for number in range(50_000))
    for start in range(0, len(text), 7000):
        packer.add(text[start : start + 7000])
    packed = packer.finish()
    assert packed.decompress() == text
    assert (packed.size_bytes, packed.truncated) == (len(text), False)
    assert len(packed.frames) < len(text) / 5
    assert packer.finish() == packed


def test_memory_is_bounded_whatever_is_printed() -> None:
    limit = 1 << 20
    noise = np.random.default_rng(1).bytes(BLOCK_BYTES)
    packer = OutputCompressor(limit)
    most = 0
    for _ in range(200):
        packer.add(noise)
        most = max(most, packer.buffered_bytes)
    packed = packer.finish()
    assert most <= limit + BLOCK_BYTES
    assert packed.truncated
    assert len(packed.frames) <= limit
    whole = noise * 200
    assert packed.decompress() == whole[: packed.size_bytes]
    assert limit - 2 * BLOCK_BYTES < packed.size_bytes < limit


def test_the_first_block_may_be_of_another_size() -> None:
    noise = np.random.default_rng(1).bytes(BLOCK_BYTES // 4)
    early, late = OutputCompressor(1 << 30, BLOCK_BYTES // 8), OutputCompressor(1 << 30)
    early.add(noise)
    late.add(noise)
    assert early.buffered_bytes != late.buffered_bytes == len(noise)
    assert early.finish().decompress() == late.finish().decompress() == noise


@pytest.mark.parametrize("off", [-1, 1])
def test_another_size_is_damage(off: int) -> None:
    packed = CompressedBytes.compress(LINE * 100)
    with pytest.raises(ValueError, match="bytes that were written"):
        replace(packed, size_bytes=packed.size_bytes + off).require_intact()


def test_damaged_frames_are_told() -> None:
    packed = CompressedBytes.compress(LINE * 100)
    with pytest.raises(ValueError, match=r"."):
        CompressedBytes(b"\0" + packed.frames[1:], packed.size_bytes).decompress()
    with pytest.raises(ValueError, match=r"."):
        CompressedBytes(packed.frames[:-3], packed.size_bytes).decompress()
