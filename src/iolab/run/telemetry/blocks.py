"""Counters of one scope on one host as dense arrays, and the steps between samples.

A block holds, for each metric, an array of shape (devices, samples) and which of its cells were
seen. All rates are made from whole arrays; nothing loops over rows of the table.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from iolab.model.sample import CodedNames, CounterTable, Ints, Names, Whole, narrow

Flags = npt.NDArray[np.bool_]

STEP_LIMIT: Final = 5.0
"""Steps longer than so many usual ones give no rate: the clock was set, or the host slept."""


@dataclass(frozen=True, slots=True)
class Cells:
    """One metric of all devices of a block; `seen` says which of `values` the kernel gave."""

    values: Ints
    seen: Flags


@dataclass(frozen=True, slots=True)
class Block:
    """Devices `names` at the moments `real_ns`, by metric."""

    host: int
    scope: str
    names: tuple[str, ...]
    real_ns: Ints
    seq: Ints
    metrics: Mapping[str, Cells]

    def cells(self, metric: str) -> Cells:
        """The metric's cells; all unseen when no device has it."""
        shape = (len(self.names), self.real_ns.size)
        none = Cells(np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.bool_))
        return self.metrics.get(metric, none)

    def span_ns(self) -> Ints:
        """The length of each step, shape (samples - 1,)."""
        return np.diff(self.real_ns)

    def sound_steps(self) -> Flags:
        """Steps over which a rate may be taken: forward in time and of about the usual length."""
        spans = self.span_ns()
        forward = (spans > 0) & (np.diff(self.seq) > 0)
        if not forward.any():
            return forward
        by_sample = spans / np.maximum(np.diff(self.seq), 1)
        return np.asarray(forward & (by_sample <= STEP_LIMIT * np.median(by_sample[forward])))


@dataclass(frozen=True, slots=True)
class Deltas:
    """What counters grew by in each step, shape (devices, samples - 1); `sound` where known."""

    values: Mapping[str, Ints]
    sound: Flags


def deltas(block: Block, metrics: Sequence[str], may_fall: Collection[str] = ()) -> Deltas:
    """The growth of each metric.

    A device whose counter fell was reset or replaced, or an old kernel's 32-bit counter wrapped:
    that step is not sound for the whole device. The counters in `may_fall` are known to fall a
    little without either; their fall counts as no growth.
    """
    sound = np.broadcast_to(block.sound_steps(), (len(block.names), block.real_ns.size - 1)).copy()
    grown: dict[str, Ints] = {}
    for metric in metrics:
        cells = block.cells(metric)
        growth = np.diff(cells.values, axis=1)
        sound &= cells.seen[:, 1:] & cells.seen[:, :-1]
        if metric not in may_fall:
            sound &= growth >= 0
        grown[metric] = np.maximum(growth, 0)
    return Deltas(grown, sound)


def blocks(counters: CounterTable, wanted: Container[str] | None = None) -> Iterator[Block]:
    """Every host's scopes, ordered by host and scope; devices in the order of their names.

    `wanted` are the scopes to look at, all by default.
    """
    columns = (_coded(names) for names in (counters.scope, counters.name, counters.metric))
    (scope_words, scopes), (name_words, names), (metric_words, metrics) = columns
    for host, of_host in _by_host(counters.host):
        at_seq = counters.seq[of_host].astype(np.int64)
        sample, seq, real_ns = _samples(at_seq, counters.real_ns[of_host])
        scope = scopes[of_host]
        for code, word in enumerate(scope_words):
            if wanted is not None and word not in wanted:
                continue
            inside = np.flatnonzero(scope == code)
            if not inside.size:
                continue
            rows = of_host[inside]
            present, device = np.unique(names[rows], return_inverse=True)
            shape = (present.size, seq.size)
            found: dict[str, Cells] = {}
            metric = metrics[rows]
            for which in np.unique(metric):
                hit = np.flatnonzero(metric == which)
                cells = Cells(np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.bool_))
                at = (device[hit], sample[inside[hit]])
                cells.values[at] = counters.value[rows[hit]]
                cells.seen[at] = True
                found[metric_words[which]] = cells
            devices = tuple(name_words[index] for index in present)
            yield Block(host, word, devices, real_ns, seq, found)


def _by_host(hosts: Whole) -> Iterator[tuple[int, Ints]]:
    """Each host that has rows, in order, and the rows that it has."""
    order = np.argsort(hosts, kind="stable")
    present, first = np.unique(hosts[order], return_index=True)
    yield from zip(present.tolist(), np.split(order, first[1:]), strict=False)


def _samples(seq: Ints, real_ns: Ints) -> tuple[Ints, Ints, Ints]:
    """The sample that each row belongs to, and each sample's number and time, in order."""
    order = np.lexsort((real_ns, seq))
    changed = np.diff(seq[order], prepend=seq[order[:1]]) != 0
    changed |= np.diff(real_ns[order], prepend=real_ns[order[:1]]) != 0
    rank = np.cumsum(changed)
    sample = np.empty(seq.size, dtype=np.int64)
    sample[order] = rank
    first = order[np.searchsorted(rank, np.arange(rank[-1] + 1))]
    return sample, seq[first], real_ns[first]


def _coded(column: Names | CodedNames) -> tuple[list[str], Whole]:
    """The distinct words in order, and each row's place among them."""
    if isinstance(column, CodedNames):
        words: list[str] = column.words.tolist()
        used = np.zeros(len(words), dtype=np.bool_)
        used[column.codes] = True
        distinct = sorted({word for word, seen in zip(words, used, strict=True) if seen})
        place = {word: index for index, word in enumerate(distinct)}
        places = narrow(np.array([place.get(word, -1) for word in words], dtype=np.int64))
        return distinct, places[column.codes]
    rows = column.tolist()
    distinct = sorted(set(rows))
    place = {word: index for index, word in enumerate(distinct)}
    return distinct, np.fromiter((place[word] for word in rows), np.int64, len(rows))
