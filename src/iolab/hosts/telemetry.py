"""Sample messages of the agents turned into the columns of a counter table.

The lists of a sample are positional; here each position gets its name (`counter_names`). A
value that the kernel does not have (null) gives no row.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from iolab.core.samples import (
    CounterTable,
    EncodedNames,
    Ints,
    SignedInts,
    empty_counter_table,
    with_narrowest_type,
)
from iolab.hosts.counter_names import CPU, DISK, GUEST, GUESTS, METERS, NIC, POWER, WHOLE_HOST
from iolab.hosts.intervals import trim_malloc_heap

_Key = tuple[str, str, str]
_Layout = tuple[tuple[object, ...], tuple[int, ...]]

_NAMING: Final = {int, str, type(None)}
"""What can name a row: a core's number, its node or none, a device's name."""

_LISTS: Final = (
    ("cpu", "cpu", 2, CPU),
    ("disks", "disk", 1, DISK),
    ("nics", "nic", 1, NIC),
    ("guests", GUESTS, 1, GUEST),
    ("power", METERS, 1, POWER),
)
"""Lists of a sample: the scope of each, how many places of a row name it, and what follows."""


class _HostSamples:
    """One host's samples: of each its seq and real_ns, and which counters it has; their values.

    Values lie one after the other in one place: as an array a sample, those of a thousand hosts
    would leave the memory in pieces.
    """

    __slots__ = ("codes", "first_seq", "heads", "values")

    def __init__(self) -> None:
        self.heads = array("q")
        self.first_seq = 0
        self.codes: list[SignedInts] = []
        self.values = bytearray()


class CounterCollector:
    """Takes every host's `sample` messages as they come; gives the table when the run is over."""

    def __init__(self) -> None:
        self._codes: dict[_Key, int] = {}
        self._hosts: dict[int, _HostSamples] = {}
        self._known: dict[_Layout, SignedInts] = {}

    def add(self, host_index: int, sample: Mapping[str, object]) -> None:
        """Take one sample message (the header as parsed JSON) of the host with that index.

        ValueError with a sentence when it is not a sample as the wire describes it; nothing of it
        is taken then.
        """
        codes, values = self._key_codes_and_values(sample)
        seq, real_ns = (_require_integer(sample.get(name), name) for name in ("seq", "real_ns"))
        samples = self._hosts.get(host_index)
        if samples is None:
            samples = self._hosts[host_index] = _HostSamples()
        if samples.heads and samples.first_seq + seq <= samples.heads[-2]:
            # A host that is watched once more within a run, as for each half of it, begins again.
            samples.first_seq = samples.heads[-2] + 1 - seq
        samples.heads.extend((samples.first_seq + seq, real_ns))
        samples.codes.append(codes)
        samples.values += values.data

    def pop_table(self) -> CounterTable:
        """All counters taken so far, ordered by host and then by arrival; they are let go of."""
        if not self._hosts:
            return empty_counter_table()
        ordered, self._hosts = sorted(self._hosts.items()), {}
        sizes = np.array([len(codes) for _, samples in ordered for codes in samples.codes])
        counts = [len(samples.codes) for _, samples in ordered]
        hosts = np.repeat(np.array([host for host, _ in ordered], dtype=np.int64), counts)
        heads = np.concatenate(
            [np.frombuffer(samples.heads, dtype=np.int64) for _, samples in ordered]
        )
        codes = with_narrowest_type(
            np.concatenate([codes for _, samples in ordered for codes in samples.codes])
        )
        value = np.concatenate(
            [np.frombuffer(samples.values, dtype=np.int64) for _, samples in ordered]
        )
        # The samples are gone before their heads are repeated: these take as much room again.
        del ordered
        trim_malloc_heap()
        host, seq = (
            np.repeat(with_narrowest_type(column), sizes) for column in (hosts, heads[::2])
        )
        real_ns = np.repeat(heads[1::2], sizes)
        scope, name, metric = (
            EncodedNames(codes, [key[part] for key in self._codes]) for part in range(3)
        )
        return CounterTable(host, seq, real_ns, scope, name, metric, value)

    def _key_codes_and_values(self, sample: Mapping[str, object]) -> tuple[SignedInts, Ints]:
        usual = _parse_usual_layout(sample)
        if usual is None:
            return self._key_codes_and_values_row_by_row(sample)
        layout, values = usual
        codes = self._known.get(layout)
        if codes is None:
            codes, _ = self._key_codes_and_values_row_by_row(sample)
            self._known[layout] = codes
        return codes, values

    def _key_codes_and_values_row_by_row(
        self, sample: Mapping[str, object]
    ) -> tuple[SignedInts, Ints]:
        codes: list[int] = []
        values: list[int] = []
        for key, value in _counter_keys_and_values(sample):
            if value is not None:
                codes.append(self._codes.setdefault(key, len(self._codes)))
                values.append(_require_integer(value, ".".join(key)))
        return with_narrowest_type(np.array(codes, dtype=np.int32)), np.array(
            values, dtype=np.int64
        )


def _parse_usual_layout(sample: Mapping[str, object]) -> tuple[_Layout, Ints] | None:
    """What rows a sample has, and their values, without a look at each; None if it is odd.

    An odd one is read row by row, which finds its fault. A fleet's samples are 200,000 values a
    second: what is the same from one to the next is not to be named anew each time.
    """
    heads: list[object] = []
    values: list[object] = []
    try:
        for key, _, head, metrics in _LISTS:
            for row in _sample_rows(sample, key, head + len(metrics)):
                heads += row[:head]
                values += row[head:]
            heads.append(key)
        for scope in WHOLE_HOST:
            block = sample.get(scope) or {}
            if not isinstance(block, dict):
                return None
            heads += block
            heads.append(scope)
            values += block.values()
        missing = tuple(at for at, value in enumerate(values) if value is None)
        if missing:
            values = [value for value in values if value is not None]
        if not (set(map(type, values)) <= {int} and set(map(type, heads)) <= _NAMING):
            return None
        return (tuple(heads), missing), np.array(values, dtype=np.int64)
    except (ValueError, OverflowError):
        return None


def _counter_keys_and_values(sample: Mapping[str, object]) -> Iterator[tuple[_Key, object]]:
    for key, scope, head, metrics in _LISTS:
        for row in _sample_rows(sample, key, head + len(metrics)):
            # A core is named with its node, the first where the host has none.
            name = str(row[0]) if head == 1 else f"{row[0]}@{0 if row[1] is None else row[1]}"
            for metric, value in zip(metrics, row[head:], strict=True):
                yield (scope, name, metric), value
    for scope in WHOLE_HOST:
        block = sample.get(scope) or {}
        if not isinstance(block, Mapping):
            raise _wrong_type_error(scope, "an object")
        for metric, value in block.items():
            yield (scope, "", str(metric)), value


def _sample_rows(
    sample: Mapping[str, object], key: str, column_count: int
) -> Iterator[list[object]]:
    rows = sample.get(key) or []
    if not isinstance(rows, list):
        raise _wrong_type_error(key, "a list")
    for row in rows:
        if not isinstance(row, list) or len(row) != column_count:
            raise _wrong_type_error(key, f"rows of {column_count}")
        yield row


def _require_integer(value: object, description: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63:
        return value
    raise _wrong_type_error(description, "a number of 64 bits")


def _wrong_type_error(description: str, expected: str) -> ValueError:
    return ValueError(f"a sample's '{description}' is not {expected}")
