"""The standard output of fio cut into JSON documents and the text between them.

With `--status-interval` fio prints one whole document after another; each begins with a line `{`
and ends with a line `}`, and every line between is indented. Whatever else stands at the left
margin is text of fio or of a library, before, between or even inside documents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

import numpy as np

DOCUMENT_LIMIT_BYTES: Final = 8 << 20
"""A document with every bin of three directions has 0.3 MB; a larger one is not ours."""

TEXT_LINES_LIMIT: Final = 20
"""Lines of text kept: the first ones name the cause, later ones repeat it for each job."""

TEXT_LINE_BYTES: Final = 1000
"""Of a longer line of text only the beginning is kept."""

_OPEN: Final = re.compile(rb"^\{[ \t\r]*\n", re.MULTILINE)
_CLOSE: Final = re.compile(rb"^\}[ \t\r]*\n", re.MULTILINE)
_AT_MARGIN: Final = re.compile(rb"^[^\s{}].*\n", re.MULTILINE)


@dataclass(slots=True)
class DocumentCutter:
    """Takes output in pieces of any size; gives the documents that they complete.

    `text` holds the first lines that belong to no document. `broken` counts documents that began
    and never ended (another began, the output ended, or they outgrew the limit).
    """

    text: list[str] = field(default_factory=list)
    broken: int = 0
    _buffer: bytearray = field(default_factory=bytearray)
    _searched: int = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The documents that end in this piece, each as its JSON text."""
        if not self._buffer and _is_plain(piece):
            return [piece]
        self._buffer += piece
        found: list[bytes] = []
        while close := self._close():
            block = bytes(self._buffer[: close.end()])
            del self._buffer[: close.end()]
            self._searched = 0
            document = self._document(block)
            if document:
                found.append(document)
        self._searched = self._buffer.rfind(b"\n") + 1
        if len(self._buffer) > DOCUMENT_LIMIT_BYTES:
            self._give_up()
        return found

    def _close(self) -> re.Match[bytes] | None:
        """The next line that ends a document; a plain search tells first whether there can be one.

        Nearly all output is inside documents, and expressions are slow where nothing matches.
        """
        if self._searched == 0 and self._buffer.startswith(b"}"):
            return _CLOSE.search(self._buffer)
        near = self._buffer.find(b"\n}", max(self._searched - 1, 0))
        return None if near < 0 else _CLOSE.search(self._buffer, near + 1)

    def finish(self) -> list[bytes]:
        """The output has ended: a last document whose line end is missing, if there is one."""
        found = self.feed(b"\n") if self._buffer else []
        self._give_up()
        return found

    def _document(self, block: bytes) -> bytes:
        """The document that `block` ends with; empty when it ends none."""
        if _is_plain(block):
            return block
        opened = list(_OPEN.finditer(block))
        if not opened:
            self._keep(block)
            return b""
        self.broken += len(opened) - 1
        self._keep(block[: opened[0].start()])
        document = block[opened[-1].start() :]
        foreign = _AT_MARGIN.findall(document)
        if foreign:
            self._keep(b"".join(foreign))
            document = _AT_MARGIN.sub(b"", document)
        return document

    def _give_up(self) -> None:
        """What is in the buffer will never be a document."""
        opened = list(_OPEN.finditer(self._buffer))
        self.broken += len(opened)
        self._keep(bytes(self._buffer[: opened[0].start()] if opened else self._buffer))
        self._buffer.clear()
        self._searched = 0

    def _keep(self, text: bytes) -> None:
        for line in text.split(b"\n", TEXT_LINES_LIMIT)[:TEXT_LINES_LIMIT]:
            words = line[:TEXT_LINE_BYTES].decode("utf-8", "replace").strip()
            if words not in ("", "{", "}") and len(self.text) < TEXT_LINES_LIMIT:
                self.text.append(words)


def _is_plain(block: bytes) -> bool:
    """Whether a block that ends with a closing line is one document and nothing else."""
    if not (block.startswith(b"{\n") and block.endswith(b"\n}\n")):
        return False
    # Every line but the first and the last is indented: one line's end has no blank after it. Bytes
    # are compared as arrays, since a search for two of them takes longer than to parse them all.
    text = np.frombuffer(block, dtype=np.uint8)
    at_margin = (text[:-1] == _LINE_END) & (text[1:] != _BLANK)
    return int(np.count_nonzero(at_margin)) == 1


_LINE_END, _BLANK = b"\n "
