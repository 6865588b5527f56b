"""Text that an engine printed, kept packed: a limit in memory, and the same bytes back.

Output is packed while it comes, block by block, into zstd frames that stand alone. A thousand hosts
that print 30 kB a second each are 1.8 GB a minute, and less than a tenth of it so.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from typing import Final, Self

import zstandard

from iolab.record import Record

BLOCK_BYTES: Final = 128 << 10
"""Packed at a time. Each host holds one such block unpacked; twice as much would save a tenth."""

ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
"""The first bytes of a frame."""

LEVEL: Final = 1
"""fio's reports shrink tenfold at zstd's quickest level, and no further at the next ones."""

WINDOW_BYTES_MAX: Final = 128 << 20
"""Of memory that a frame of others may ask for: what zstd itself allows by default."""

_READ_BYTES: Final = 1 << 20

_PIECE_BYTES: Final = 1 << 10
"""Unpacked at a time: it may become thirty thousand times as much."""

_COMPRESSOR_OF_THREAD: Final = threading.local()


class CompressedBytes(Record):
    """Bytes as zstd `frames`, one after the other; `size_bytes` is their size unpacked.

    `truncated` says that more was printed than was kept; what is kept is the beginning.
    """

    frames: bytes
    size_bytes: int
    truncated: bool = False

    @classmethod
    def compress(cls, content: bytes) -> Self:
        """That content, whole."""
        return cls(_thread_compressor().compress(content), len(content))

    def decompress(self) -> bytes:
        """The content. ValueError when the frames are damaged or of another size."""
        return b"".join(self._decompressed_blocks())

    def require_intact(self) -> None:
        """ValueError unless the frames are whole and of that size; needs no room for all of it."""
        for _ in self._decompressed_blocks():
            pass

    def _decompressed_blocks(self) -> Iterator[bytes]:
        read_bytes = 0
        unpacker = zstandard.ZstdDecompressor()
        try:
            with unpacker.stream_reader(io.BytesIO(self.frames), read_across_frames=True) as reader:
                while block := reader.read(_READ_BYTES):
                    read_bytes += len(block)
                    if read_bytes > self.size_bytes:
                        break
                    yield block
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from error
        if read_bytes != self.size_bytes:
            raise ValueError(f"it does not hold the {self.size_bytes} bytes that were written")


def decompress_frames(frames: bytes, max_bytes: int) -> bytes:
    """What zstd frames hold. OSError where they are damaged, or hold more than the limit."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES_MAX)
    stream = unpacker.decompressobj()
    content = bytearray()
    try:
        for place in range(0, len(frames), _PIECE_BYTES):
            piece = frames[place : place + _PIECE_BYTES]
            while piece:
                stream = unpacker.decompressobj() if stream.eof else stream
                content += stream.decompress(piece)
                piece = stream.unused_data if stream.eof else b""
                if len(content) > max_bytes:
                    raise OSError(f"it unpacks to more than {max_bytes} bytes")
    except zstandard.ZstdError as error:
        raise OSError(f"its zstd frames are damaged ({error})") from error
    if not stream.eof:
        raise OSError("its last zstd frame is cut off")
    return bytes(content)


class OutputCompressor:
    """Takes output piece by piece and keeps its beginning within `limit_bytes` of packed bytes.

    `first_block_bytes` lets many packers, fed at the same moments, pack at different ones.
    """

    def __init__(self, limit_bytes: int, first_block_bytes: int = BLOCK_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._block_bytes = first_block_bytes
        self._open = bytearray()
        self._frames = bytearray()
        self._size_bytes = 0
        self._truncated = False
        self._packed: CompressedBytes | None = None

    @property
    def buffered_bytes(self) -> int:
        """What it holds in memory now."""
        return len(self._open) + len(self._frames)

    def add(self, piece: bytes) -> None:
        """Take the next bytes; past the limit they are dropped."""
        if self._truncated:
            return
        self._open += piece
        if len(self._open) >= self._block_bytes:
            self._compress_frame()

    def finish(self) -> CompressedBytes:
        """Everything that was kept; whoever asks again gets the same."""
        if self._packed is None:
            if self._open:
                self._compress_frame()
            self._packed = CompressedBytes(bytes(self._frames), self._size_bytes, self._truncated)
            self._frames.clear()  # it may be large, and is held by what was given
        return self._packed

    def _compress_frame(self) -> None:
        frame = _thread_compressor().compress(self._open)
        if len(self._frames) + len(frame) > self._limit_bytes:
            self._truncated = True
        else:
            self._frames += frame
            self._size_bytes += len(self._open)
        self._open.clear()
        self._block_bytes = BLOCK_BYTES


def _thread_compressor() -> zstandard.ZstdCompressor:
    """The one of this thread: its tables are half a MiB, too much to be made for each block."""
    compressor: zstandard.ZstdCompressor | None = getattr(_COMPRESSOR_OF_THREAD, "compressor", None)
    if compressor is None:
        compressor = _COMPRESSOR_OF_THREAD.compressor = zstandard.ZstdCompressor(level=LEVEL)
    return compressor
