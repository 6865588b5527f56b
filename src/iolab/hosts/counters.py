"""Counters of one scope on one host as dense arrays, and the steps between samples.

A block holds, for each metric, an array of shape (devices, samples) and which of its cells were
seen. All rates are made from whole arrays; nothing loops over rows of the table.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from iolab.core.samples import CounterTable, EncodedNames, Ints, SignedInts
from iolab.hosts.counter_names import OF_SERVERS, SCOPES_BY_NAME
from iolab.record import Record

Flags = npt.NDArray[np.bool_]

STEP_LIMIT: Final = 5.0
"""Steps longer than so many usual ones give no rate: the clock was set, or the host slept. Chosen:
a sample that a loaded machine takes late by a few steps still gives one."""


class DeviceMetricCells(Record):
    """One metric of all devices of a block; `is_present` says which of `values` the kernel gave."""

    values: Ints
    is_present: Flags


class CounterBlock(Record):
    """Devices `names` at the moments `real_ns`, by metric."""

    host_index: int
    scope: str
    names: tuple[str, ...]
    real_ns: Ints
    seq: Ints
    metrics: Mapping[str, DeviceMetricCells]

    def cells_of_metric(self, metric_key: str) -> DeviceMetricCells:
        """The metric's cells; all unseen when no device has it."""
        cells = self.metrics.get(metric_key)
        if cells is not None:
            return cells
        shape = (len(self.names), self.real_ns.size)
        return DeviceMetricCells(np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.bool_))

    def step_lengths_ns(self) -> Ints:
        """The length of each step, shape (samples - 1,)."""
        return self.real_ns[1:] - self.real_ns[:-1]

    def usable_step_flags(self) -> Flags:
        """Steps over which a rate may be taken: forward in time and of about the usual length."""
        spans, samples = self.step_lengths_ns(), np.diff(self.seq)
        forward = (spans > 0) & (samples > 0)
        if not forward.any():
            return forward
        by_sample = spans / np.maximum(samples, 1)
        if forward.all() and by_sample.max() <= STEP_LIMIT * by_sample.min():
            return forward  # whichever is the usual one
        return np.asarray(forward & (by_sample <= STEP_LIMIT * np.median(by_sample[forward])))


class CounterDeltas(Record):
    """What counters grew by in each step; `is_usable`, shape (devices, samples - 1), where known.

    `growth` has shape (metrics, devices, samples - 1).
    """

    metrics: Sequence[str]
    growth: Ints
    is_usable: Flags

    @property
    def deltas_by_metric(self) -> Mapping[str, Ints]:
        """The growth of each metric, shape (devices, samples - 1)."""
        return dict(zip(self.metrics, self.growth, strict=True))


def counter_deltas(
    block: CounterBlock, metrics: Sequence[str], may_fall: Collection[str] = ()
) -> CounterDeltas:
    """The growth of each metric.

    A device whose counter fell was reset or replaced, or an old kernel's 32-bit counter wrapped:
    that step is not sound for the whole device. The counters in `may_fall` are known to fall a
    little without either; their fall counts as no growth.
    """
    cells = [block.cells_of_metric(metric) for metric in metrics]
    values = np.stack([metric_cells.values for metric_cells in cells])
    all_seen = np.logical_and.reduce([metric_cells.is_present for metric_cells in cells])
    growth = values[:, :, 1:] - values[:, :, :-1]
    held = [index for index, metric in enumerate(metrics) if metric not in may_fall]
    sound = (
        block.usable_step_flags()
        & all_seen[:, 1:]
        & all_seen[:, :-1]
        & (growth[held] >= 0).all(axis=0)
    )
    return CounterDeltas(metrics, np.maximum(growth, 0), np.asarray(sound))


def counter_blocks(
    counters: CounterTable, wanted_scopes: Container[str] | None = None
) -> Iterator[CounterBlock]:
    """Every host's scopes, ordered by host and scope; devices in the order of their names.

    `wanted_scopes` are the scopes to look at, all by default.
    """
    words, codes, series_id_by_code = _name_columns_row_codes_and_series_ids(counters)
    layouts = _SampleLayouts(words, wanted_scopes)
    for host, of_host in _row_indexes_by_host(counters.host):
        parsed: list[CounterBlock] = []
        parts = _host_row_indexes_by_sample_source(words, series_id_by_code, codes, of_host)
        for part in parts:
            rows = _CounterRows(
                counters.seq[part].astype(np.int64),
                counters.real_ns[part],
                series_id_by_code[codes[part]],
                counters.value[part],
            )
            regular = _blocks_of_regular_samples(host, rows, layouts)
            parsed += (
                _blocks_of_irregular_rows(host, rows, words, wanted_scopes)
                if regular is None
                else regular
            )
        yield from parsed if len(parts) == 1 else sorted(parsed, key=lambda block: block.scope)


class _SeriesIdCodec(Record):
    """The distinct words of the columns of names; a `series_id` is one of each as one number."""

    scopes: Sequence[str]
    names: Sequence[str]
    metrics: Sequence[str]

    def encode_series_ids(self, scopes: SignedInts, names: SignedInts, metrics: SignedInts) -> Ints:
        """The series of each row; ordered as scope, name, metric are."""
        wide = scopes.astype(np.int64) * len(self.names) + names
        return np.asarray(wide * len(self.metrics) + metrics)

    def decode_series_ids(self, series_ids: Ints) -> tuple[Ints, Ints, Ints]:
        """Scope, name and metric of each series."""
        wide, metric = np.divmod(series_ids, len(self.metrics))
        scope, name = np.divmod(wide, len(self.names))
        return scope, name, metric


class _CounterRows(Record):
    """One host's rows, in any order."""

    seq: Ints
    real_ns: Ints
    series_id: Ints
    value: Ints


class _SampleLayouts:
    """Where things stand in a sample, found once for all samples of rows of the same series."""

    def __init__(self, columns: _SeriesIdCodec, wanted_scopes: Container[str] | None) -> None:
        self._words = columns
        self._wanted = wanted_scopes
        self._known: dict[bytes, tuple[_SampleLayout, ...] | None] = {}

    def cached_layouts_of_sample(self, series_ids: Ints) -> tuple[_SampleLayout, ...] | None:
        """The wanted scopes of a sample with these rows; None if a series stands there twice."""
        key = series_ids.tobytes()
        if key not in self._known:
            twice = np.unique(series_ids).size < series_ids.size
            self._known[key] = None if twice else tuple(self._find_layouts(series_ids))
        return self._known[key]

    def _find_layouts(self, series_ids: Ints) -> Iterator[_SampleLayout]:
        words = self._words
        scope, name, metric = words.decode_series_ids(series_ids)
        for code, word in enumerate(words.scopes):
            inside = np.flatnonzero(scope == code)
            if not inside.size or (self._wanted is not None and word not in self._wanted):
                continue
            present, device = np.unique(name[inside], return_inverse=True)
            places: dict[str, tuple[Ints, Ints]] = {}
            for which in np.unique(metric[inside]):
                hit = np.flatnonzero(metric[inside] == which)
                hit = hit[np.argsort(device[hit])]
                places[words.metrics[which]] = (device[hit], inside[hit])
            yield _SampleLayout(word, tuple(words.names[index] for index in present), places)


class _SampleLayout(Record):
    """One scope of a sample: of each metric the devices that have it, in order, and their rows."""

    scope: str
    devices: tuple[str, ...]
    device_and_row_indexes: Mapping[str, tuple[Ints, Ints]]


def _blocks_of_regular_samples(
    host_index: int, rows: _CounterRows, layouts: _SampleLayouts
) -> list[CounterBlock] | None:
    """The blocks of a host whose samples follow in order, all with the same rows; else None.

    Nearly every host is one: nothing appears or goes while load runs.
    """
    seq, real_ns = rows.seq, rows.real_ns
    size = _first_sample_row_count(seq, real_ns)
    if seq.size % size:
        return None
    series_ids = rows.series_id.reshape(-1, size)
    at_seq, at_ns = seq[::size], real_ns[::size]
    later = np.diff(at_seq) > 0
    later |= (np.diff(at_seq) == 0) & (np.diff(at_ns) > 0)
    same = (
        bool(later.all())
        and bool((series_ids == series_ids[0]).all())
        and bool((seq == np.repeat(at_seq, size)).all())
        and bool((real_ns == np.repeat(at_ns, size)).all())
    )
    scopes = layouts.cached_layouts_of_sample(series_ids[0]) if same else None
    if scopes is None:
        return None
    values = rows.value.reshape(-1, size)
    return [
        CounterBlock(
            host_index,
            layout.scope,
            layout.devices,
            at_ns,
            at_seq,
            _cells_by_metric(layout, values),
        )
        for layout in scopes
    ]


def _first_sample_row_count(seq: Ints, real_ns: Ints) -> int:
    """How many rows the first sample has."""
    other = (seq != seq[0]) | (real_ns != real_ns[0])
    return int(np.argmax(other)) if other.any() else seq.size


def _cells_by_metric(layout: _SampleLayout, values: Ints) -> dict[str, DeviceMetricCells]:
    metrics: dict[str, DeviceMetricCells] = {}
    size = (len(layout.devices), len(values))
    every = np.ones(size, dtype=np.bool_)
    for metric, (device, columns) in layout.device_and_row_indexes.items():
        if device.size == len(layout.devices):
            metrics[metric] = DeviceMetricCells(values[:, columns].T, every)
            continue
        cells = DeviceMetricCells(np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_))
        cells.values[device] = values[:, columns].T
        cells.is_present[device] = True
        metrics[metric] = cells
    return metrics


def _blocks_of_irregular_rows(
    host_index: int,
    rows: _CounterRows,
    columns: _SeriesIdCodec,
    wanted_scopes: Container[str] | None,
) -> Iterator[CounterBlock]:
    """The blocks of a host whose rows come in any order."""
    sample, seq, real_ns = _sample_index_and_times(rows.seq, rows.real_ns)
    scopes, names, metrics = columns.decode_series_ids(rows.series_id)
    for code, word in enumerate(columns.scopes):
        inside = np.flatnonzero(scopes == code)
        if not inside.size or (wanted_scopes is not None and word not in wanted_scopes):
            continue
        present, device = np.unique(names[inside], return_inverse=True)
        shape = (present.size, seq.size)
        cells_of: dict[str, DeviceMetricCells] = {}
        metric = metrics[inside]
        for which in np.unique(metric):
            hit = np.flatnonzero(metric == which)
            cells = DeviceMetricCells(
                np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
            )
            at = (device[hit], sample[inside[hit]])
            cells.values[at] = rows.value[inside[hit]]
            cells.is_present[at] = True
            cells_of[columns.metrics[which]] = cells
        devices = tuple(columns.names[index] for index in present)
        yield CounterBlock(host_index, word, devices, real_ns, seq, cells_of)


def _row_indexes_by_host(hosts: SignedInts) -> Iterator[tuple[int, Ints | slice]]:
    """Each host that has rows, in order, and the rows that it has."""
    if hosts.size and (hosts[1:] >= hosts[:-1]).all():
        starts = [0, *(np.flatnonzero(hosts[1:] != hosts[:-1]) + 1).tolist()]
        ends = [*starts[1:], hosts.size]
        yield from zip(hosts[starts].tolist(), map(slice, starts, ends), strict=True)
        return
    order = np.argsort(hosts, kind="stable")
    present, first = np.unique(hosts[order], return_index=True)
    yield from zip(present.tolist(), np.split(order, first[1:]), strict=False)


def _host_row_indexes_by_sample_source(
    columns: _SeriesIdCodec, series_id_by_code: Ints, codes: SignedInts, host_rows: Ints | slice
) -> Sequence[Ints | slice]:
    """A host's rows, those of a server on it and of each of its guests and meters apart.

    They were asked at other moments.
    """
    separate_codes = [
        code
        for code, word in enumerate(columns.scopes)
        if word in OF_SERVERS or word in SCOPES_BY_NAME
    ]
    if not separate_codes:
        return (host_rows,)
    rows = np.arange(*host_rows.indices(codes.size)) if isinstance(host_rows, slice) else host_rows
    scopes, names, _ = columns.decode_series_ids(series_id_by_code[codes[rows]])
    parts = [rows[~np.isin(scopes, separate_codes)]]
    servers = [code for code in separate_codes if columns.scopes[code] in OF_SERVERS]
    parts.append(rows[np.isin(scopes, servers)])
    for code in separate_codes:
        if code not in servers:
            inside = scopes == code
            own_rows, name = rows[inside], names[inside]
            parts += [own_rows[name == each] for each in np.unique(name)]
    return [part for part in parts if part.size]


def _sample_index_and_times(seq: Ints, real_ns: Ints) -> tuple[Ints, Ints, Ints]:
    """The sample that each row belongs to, and each sample's number and time, in order."""
    order = np.lexsort((real_ns, seq))
    changed = np.diff(seq[order], prepend=seq[order[:1]]) != 0
    changed |= np.diff(real_ns[order], prepend=real_ns[order[:1]]) != 0
    rank = np.cumsum(changed)
    sample = np.empty(seq.size, dtype=np.int64)
    sample[order] = rank
    first = order[np.searchsorted(rank, np.arange(rank[-1] + 1))]
    return sample, seq[first], real_ns[first]


def _name_columns_row_codes_and_series_ids(
    counters: CounterTable,
) -> tuple[_SeriesIdCodec, SignedInts, Ints]:
    """The distinct words, a code for each row, and the series that each code stands for."""
    columns = (counters.scope, counters.name, counters.metric)
    coded = [column for column in columns if isinstance(column, EncodedNames)]
    if len(coded) == len(columns) and len({id(column.codes) for column in coded}) == 1:
        # The words of a code are looked up once, not once for each row.
        codes, texts = coded[0].codes, [column.words.tolist() for column in coded]
    else:
        codes, texts = np.arange(len(counters)), [column.tolist() for column in columns]
    placed = [_distinct_words_and_codes(text) for text in texts]
    words = _SeriesIdCodec(*(distinct for distinct, _ in placed))
    return words, codes, words.encode_series_ids(*(places for _, places in placed))


def _distinct_words_and_codes(column: Sequence[str]) -> tuple[list[str], Ints]:
    """The distinct words in order, and the place of each among them."""
    distinct = sorted(set(column))
    place = {word: index for index, word in enumerate(distinct)}
    return distinct, np.fromiter((place[word] for word in column), np.int64, len(column))
