"""The values of a plain YAML file, by path: mappings and lists of scalars, as programs write them.

Anchors are passed over; flow collections, tags and text over several lines stay unread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from iolab.core import limits

_LINE: Final = re.compile(r"^( *)((?:- )*)([\w./-]+):(?: +(.*?))?\s*$")
_ITEM: Final = re.compile(r"^( *)- +(.*?)\s*$")


def yaml_scalar_key_paths_and_texts(text: str) -> Iterator[tuple[str, str]]:
    """Each value as `clients.0.networking.1.speed` and its text without quotes."""
    keys: list[tuple[int, str]] = []
    counts: dict[str, int] = {}
    for line in islice(text.splitlines(), limits.LINES_MAX):
        match = _LINE.match(line)
        if match is None:
            item = _ITEM.match(line)
            if item:
                path = _push_item_and_return_key_path(keys, len(item[1]), counts, is_item=True)
                yield path, _text_without_quotes(item[2])
            continue
        indent = len(match[1])
        for _ in range(match[2].count("-")):
            _push_item_and_return_key_path(keys, indent, counts, is_item=True)
            indent += 2
        while keys and keys[-1][0] >= indent:
            keys.pop()
        keys.append((indent, match[3]))
        if len(keys) > limits.NESTED_MAX:
            return
        value = _text_without_quotes(match[4] or "")
        if value and not value.startswith(("&", "*")):
            yield ".".join(key for _, key in keys), value


def _push_item_and_return_key_path(
    keys: list[tuple[int, str]], indent: int, last_index_by_list: dict[str, int], *, is_item: bool
) -> str:
    """Make the item at that indent the last of the keys; returns its path."""
    while keys and (keys[-1][0] > indent or (keys[-1][0] == indent and keys[-1][1].isdigit())):
        keys.pop()
    parent = ".".join(key for _, key in keys)
    last_index_by_list[parent] = last_index_by_list.get(parent, -1) + is_item
    # Lists may stand at the indent of their key: an item lies half a step within it.
    keys.append((indent, str(last_index_by_list[parent])))
    return f"{parent}.{last_index_by_list[parent]}"


def _text_without_quotes(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text.split(" #", 1)[0].strip()
