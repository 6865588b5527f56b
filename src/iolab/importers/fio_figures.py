"""The figures of fio's entries that ran side by side, as each version prints them.

Which rule holds is seen in the report itself, not in its version:

- before 2.99 `io_bytes` are KiB, and latencies (`clat`, `lat`) microseconds;
- before 2.2 there is no `total_ios`: a count is the rate times the time;
- with `unified_rw_reporting` all directions are `mixed`, and beside them with `both`;
- from 3.4 on `sync` has what fsync, fdatasync and sync_file_range took;
- up to 3.3 a percentile that was not asked for is `"0.00": 0`;
- from 3.4 to 3.17 percentiles of `lat_percentiles` stand in `clat_ns`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from iolab.core.histogram import (
    MIDDLE_NS,
    Histogram,
    bin_index_of_midpoint,
    bin_index_of_ns,
    dense_counts,
)
from iolab.core.metric import SYNC
from iolab.importers.files import (
    NAME_CHARACTERS,
    ForeignFileError,
    dict_or_empty,
    finite_number,
    rounded_number,
)
from iolab.importers.fio_documents import JsonDict
from iolab.importers.fio_units import is_option_on
from iolab.importers.foreign_run import MIXED, OperationFigures
from iolab.record import Record
from iolab.text import excerpt
from iolab.units import NS_PER_US

KIB: Final = 1024

DIRECTIONS: Final = ("read", "write", "trim")

_RANK: Final = re.compile(r"(?!0\.00$)\d{1,3}\.\d+")
"""A percentile that was requested; fio fills its list up with `0.00`."""

KIND_NAMES: Final = {"lat": "from submission (lat)", "clat": "completion latencies (clat)"}


class DirectionSums(NamedTuple):
    """Operations of one direction, their bytes, and the sum of their latencies."""

    operation_count: int
    bytes: int
    lat_sum_ns: float


class ConcurrentFioEntries(Record):
    """Entries of a report that ran side by side, with the options of their job."""

    entries: tuple[JsonDict, ...]
    options: Mapping[str, str]

    @property
    def directions_with_ios(self) -> tuple[str, ...]:
        """The ways in which anything was done; reads where nothing was."""
        busy = tuple(way for way in DIRECTIONS if self._has_ios(way))
        return busy or ((MIXED,) if self._has_ios(MIXED) else ("read",))

    @property
    def operations_with_ios(self) -> tuple[str, ...]:
        """The directions, and sync where anything was synced."""
        return (*self.directions_with_ios, *((SYNC,) if self._has_ios(SYNC) else ()))

    @property
    def all_directions_rate_figures(self) -> OperationFigures | None:
        """What fio says of all directions together, where it says that beside each of them."""
        if MIXED in self.directions_with_ios or not self._has_ios(MIXED):
            return None
        rates = [
            finite_number(direction_dict.get("iops"))
            for direction_dict in self._direction_dicts(MIXED)
        ]
        return OperationFigures("all", rate_per_s=sum(rate or 0.0 for rate in rates))

    @property
    def runtime_s(self) -> float | None:
        """How long any of them ran; None where no report tells it."""
        direction_dicts = [
            direction_dict
            for way in (*DIRECTIONS, MIXED)
            for direction_dict in self._direction_dicts(way)
        ]
        times = [finite_number(direction_dict.get("runtime")) for direction_dict in direction_dicts]
        known = [time for time in times if time is not None]
        return max(known) / 1000 if known else None

    @property
    def latency_unit_ns(self) -> int:
        """In what latencies are printed: microseconds before 2.99."""
        direction_dicts = (
            direction_dict
            for way in self.directions_with_ios
            for direction_dict in self._direction_dicts(way)
        )
        return (
            NS_PER_US
            if any(_has_kib_and_us_units(direction_dict) for direction_dict in direction_dicts)
            else 1
        )

    @property
    def moved_bytes(self) -> int:
        """What was moved in all directions."""
        return sum(
            _moved_bytes(direction_dict)
            for way in self.directions_with_ios
            for direction_dict in self._direction_dicts(way)
        )

    @property
    def job_count(self) -> int:
        """How many jobs ran: fio adds their times up where it reports a group as one entry."""
        return sum(_job_count_of_entry(entry) for entry in self.entries)

    def figures(self) -> tuple[OperationFigures, ...]:
        """Each operation as fio prints it; of several entries rates and counts are added."""
        return tuple(
            self._sync_figures() if operation == SYNC else self._direction_figures(operation)
            for operation in self.operations_with_ios
        )

    def merged_latency_bins(self, operation: str) -> dict[int, int]:
        """The latency bins of json+ by our numbers; empty where an entry has none."""
        merged: dict[int, int] = {}
        for direction_dict in self._direction_dicts(operation):
            table = self._latency_dict_with_percentiles(direction_dict, operation).get("bins")
            bins = dict_or_empty(table) or dict_or_empty(
                self._latency_dict(direction_dict, operation).get("bins")
            )
            if not bins and _operation_count(direction_dict) != 0:
                return {}
            factor = _latency_unit_ns(direction_dict, self.percentile_latency_kind(operation))
            for place, count in _iolab_bins_from_fio(bins, factor):
                merged[place] = merged.get(place, 0) + count
        return {place: count for place, count in merged.items() if count}

    def direction_sums(self, direction: str) -> DirectionSums:
        """What all jobs did in a direction until the report."""
        direction_dicts = self._direction_dicts(direction)
        waited = sum(
            (finite_number(_latency_dict_of_kind(direction_dict, "lat").get("mean")) or 0.0)
            * _latency_unit_ns(direction_dict, "lat")
            * (_operation_count(direction_dict) or 0)
            for direction_dict in direction_dicts
        )
        return DirectionSums(
            _sum_if_all_known(map(_operation_count, direction_dicts)) or 0,
            sum(map(_moved_bytes, direction_dicts)),
            waited,
        )

    def percentile_latency_kind(self, operation: str) -> str:
        """Which latency its percentiles are of: `lat` where that was requested, else `clat`."""
        if operation == SYNC:
            return "lat"
        direction_dicts = [
            direction_dict
            for direction_dict in self._direction_dicts(operation)
            if _operation_count(direction_dict) != 0
        ]
        lat, clat = (
            [
                bool(
                    _values_by_percentile(
                        dict_or_empty(_latency_dict_of_kind(direction_dict, kind).get("percentile"))
                    )
                )
                for direction_dict in direction_dicts
            ]
            for kind in ("lat", "clat")
        )
        misplaced = is_option_on(self.options.get("lat_percentiles")) and not any(lat)
        # With disable_clat, and in what others made of a report, there may only be `lat`.
        only_lat = not any(clat) and not any(
            finite_number(_latency_dict_of_kind(direction_dict, "clat").get("mean"))
            for direction_dict in direction_dicts
        )
        return "lat" if direction_dicts and (all(lat) or misplaced or only_lat) else "clat"

    def note_texts(self) -> Iterator[str]:
        """What was made of the report, by which rule."""
        for operation in self.operations_with_ios:
            yield f"{operation} latencies are {KIND_NAMES[self.percentile_latency_kind(operation)]}"
        direction_dicts = [
            direction_dict
            for way in self.directions_with_ios
            for direction_dict in self._direction_dicts(way)
        ]
        if any(_has_kib_and_us_units(direction_dict) for direction_dict in direction_dicts):
            yield "io_bytes are KiB and latencies microseconds, as fio prints them before 2.99"
        if any(
            "total_ios" not in direction_dict
            for direction_dict in direction_dicts
            if direction_dict
        ):
            yield "counts are IOPS times the run time: there is no total_ios, as before fio 2.2"
        if MIXED in self.directions_with_ios:
            yield "reads, writes and trims stand in one figure (unified_rw_reporting)"

    def _direction_dicts(self, operation: str) -> list[JsonDict]:
        return [dict_or_empty(entry.get(operation)) for entry in self.entries]

    def _has_ios(self, operation: str) -> bool:
        return any(
            _operation_count(direction_dict) or finite_number(direction_dict.get("iops"))
            for direction_dict in self._direction_dicts(operation)
        )

    def _latency_dict(self, direction_dict: JsonDict, operation: str) -> JsonDict:
        return _latency_dict_of_kind(direction_dict, self.percentile_latency_kind(operation))

    def _latency_dict_with_percentiles(self, direction_dict: JsonDict, operation: str) -> JsonDict:
        """The latency under which its percentiles stand."""
        own = self._latency_dict(direction_dict, operation)
        if self.percentile_latency_kind(operation) == "lat" and not _values_by_percentile(
            dict_or_empty(own.get("percentile"))
        ):
            return _latency_dict_of_kind(direction_dict, "clat")
        return own

    def _direction_figures(self, direction: str) -> OperationFigures:
        direction_dicts = self._direction_dicts(direction)
        kind = self.percentile_latency_kind(direction)
        counts = [_operation_count(direction_dict) for direction_dict in direction_dicts]
        runtimes = [
            finite_number(direction_dict.get("runtime")) for direction_dict in direction_dicts
        ]
        known = [runtime for runtime in runtimes if runtime is not None]
        low, mean, high = _latency_min_mean_max_ns(direction_dicts, kind, counts)
        rates = [
            finite_number(direction_dict.get("iops")) or 0.0 for direction_dict in direction_dicts
        ]
        failed = sum(rounded_number(entry.get("total_err")) or 0 for entry in self.entries)
        return OperationFigures(
            operation=direction,
            count=_sum_if_all_known(counts),
            count_is_derived=any(
                "total_ios" not in direction_dict for direction_dict in direction_dicts
            ),
            bytes=sum(map(_moved_bytes, direction_dicts))
            if any("io_bytes" in direction_dict for direction_dict in direction_dicts)
            else None,
            seconds=max(known) / 1000 if known else None,
            rate_weighted_s=_rate_weighted_time_s(rates, runtimes),
            rate_per_s=sum(rates),
            bw_bytes_per_s=sum(_bytes_per_s(direction_dict) for direction_dict in direction_dicts),
            lat_min_ns=low,
            lat_mean_ns=mean,
            lat_max_ns=high,
            in_flight_mean_ns=_latency_min_mean_max_ns(direction_dicts, "lat", counts)[1],
            percentiles=self._merged_percentiles_ns(direction),
            failed=failed if direction == self.directions_with_ios[0] else 0,
            printed=_printed_names_and_values(direction_dicts[0], kind)
            if len(direction_dicts) == 1
            else (),
        )

    def _sync_figures(self) -> OperationFigures:
        """What fsync and its kin took; they move nothing, and are no part of the total."""
        direction_dicts = self._direction_dicts(SYNC)
        counts = [_operation_count(direction_dict) for direction_dict in direction_dicts]
        seconds, count = self.runtime_s, _sum_if_all_known(counts) or 0
        low, mean, high = _latency_min_mean_max_ns(direction_dicts, "lat", counts)
        return OperationFigures(
            operation=SYNC,
            count=count,
            seconds=seconds,
            rate_per_s=count / seconds if seconds else None,
            lat_min_ns=low,
            lat_mean_ns=mean,
            lat_max_ns=high,
            percentiles=self._merged_percentiles_ns(SYNC),
            weight=0,
            printed=_printed_names_and_values(direction_dicts[0], "lat")
            if len(direction_dicts) == 1
            else (),
        )

    def _merged_percentiles_ns(self, operation: str) -> tuple[tuple[float, float], ...]:
        """Fio's own of one entry; of several those of their bins, none where one has none."""
        kind = self.percentile_latency_kind(operation)
        own = [
            {
                rank: value * _latency_unit_ns(direction_dict, kind)
                for rank, value in _values_by_percentile(
                    dict_or_empty(
                        self._latency_dict_with_percentiles(direction_dict, operation).get(
                            "percentile"
                        )
                    )
                ).items()
            }
            for direction_dict in self._direction_dicts(operation)
        ]
        if len(own) == 1:
            return tuple(sorted(own[0].items()))
        bins = self.merged_latency_bins(operation)
        if not bins:
            return ()
        merged = Histogram(dense_counts(list(bins), list(bins.values())))
        ranks = sorted({rank for percentiles in own for rank in percentiles})
        values = ((rank, merged.percentile_ns(rank)) for rank in ranks)
        return tuple((rank, value) for rank, value in values if value is not None)


def _rate_weighted_time_s(
    rates: Sequence[float], runtimes_ms: Sequence[float | None]
) -> float | None:
    """The time of rates that are added: of a job that ended early its own."""
    total = sum(rates)
    if not total or None in runtimes_ms:
        return None
    pairs = zip(rates, runtimes_ms, strict=True)
    return sum(rate * (runtime or 0.0) for rate, runtime in pairs) / total / 1000


def _job_count_of_entry(entry: JsonDict) -> int:
    times = (
        finite_number(dict_or_empty(entry.get(way)).get("runtime")) for way in (*DIRECTIONS, MIXED)
    )
    longest = max((time for time in times if time), default=0.0)
    return (
        max(round((finite_number(entry.get("job_runtime")) or 0.0) / longest), 1) if longest else 1
    )


def _has_kib_and_us_units(direction_dict: JsonDict) -> bool:
    """Whether fio printed KiB and microseconds, as before 2.99."""
    return "io_kbytes" not in direction_dict and (
        "clat" in direction_dict or "lat" in direction_dict
    )


def _operation_count(direction_dict: JsonDict) -> int | None:
    """Operations; where none are printed the rate times the time, None where that is not told."""
    total = rounded_number(direction_dict.get("total_ios"))
    iops, runtime = (
        finite_number(direction_dict.get("iops")),
        finite_number(direction_dict.get("runtime")),
    )
    if total is not None:
        return total
    if not iops:
        return 0
    return None if runtime is None else round(iops * runtime / 1000)


def _sum_if_all_known(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count or 0 for count in known)


def _moved_bytes(direction_dict: JsonDict) -> int:
    return (rounded_number(direction_dict.get("io_bytes")) or 0) * (
        KIB if _has_kib_and_us_units(direction_dict) else 1
    )


def _bytes_per_s(direction_dict: JsonDict) -> float:
    """Bytes a second: exact where fio prints them, else its KiB."""
    exact = finite_number(direction_dict.get("bw_bytes"))
    return exact if exact is not None else (finite_number(direction_dict.get("bw")) or 0.0) * KIB


def _latency_dict_of_kind(direction_dict: JsonDict, latency_kind: str) -> JsonDict:
    return dict_or_empty(direction_dict.get(f"{latency_kind}_ns", direction_dict.get(latency_kind)))


def _latency_unit_ns(direction_dict: JsonDict, latency_kind: str) -> int:
    return 1 if f"{latency_kind}_ns" in direction_dict else NS_PER_US


def _latency_min_mean_max_ns(
    direction_dicts: Sequence[JsonDict], latency_kind: str, counts: Sequence[int | None]
) -> tuple[float | None, float | None, float | None]:
    """Least, mean and greatest latency in ns; None where none was counted."""
    rows = [
        (
            _latency_dict_of_kind(direction_dict, latency_kind),
            _latency_unit_ns(direction_dict, latency_kind),
            count,
        )
        for direction_dict, count in zip(direction_dicts, counts, strict=True)
        if count != 0
    ]
    # Some versions count no latency of a run that ended soon after its ramp, and print zeros.
    timed = [
        row
        for row, _, _ in rows
        if finite_number(row.get("N", 1))
        and (finite_number(row.get("max")) or finite_number(row.get("mean")))
    ]
    if not timed or len(timed) < len(rows):
        return None, None, None
    lows = [
        value * factor
        for row, factor, _ in rows
        if (value := finite_number(row.get("min"))) is not None
    ]
    highs = [
        value * factor
        for row, factor, _ in rows
        if (value := finite_number(row.get("max"))) is not None
    ]
    means = [(finite_number(row.get("mean")) or 0.0) * factor for row, factor, _ in rows]
    if len(rows) == 1:
        return min(lows, default=None), means[0], max(highs, default=None)
    total = _sum_if_all_known(count for *_, count in rows)
    waited = sum(mean * (count or 0) for mean, (_, _, count) in zip(means, rows, strict=True))
    return min(lows, default=None), waited / total if total else None, max(highs, default=None)


def _values_by_percentile(fio_percentiles: JsonDict) -> dict[float, float]:
    return {
        float(key): value
        for key, text in fio_percentiles.items()
        if _RANK.fullmatch(key) and (value := finite_number(text)) is not None
    }


def _iolab_bins_from_fio(bins: JsonDict, unit_ns: int) -> Iterator[tuple[int, int]]:
    """Each bin by our number with its count; before 2.99 fio numbers its own, in microseconds."""
    for text, counted in bins.items():
        count = max(rounded_number(counted) or 0, 0)
        if text.startswith("FIO_IO_U_PLAT"):
            continue
        try:
            if unit_ns == 1:
                place = bin_index_of_midpoint(int(text))
            else:
                place = int(bin_index_of_ns(MIDDLE_NS[int(text)] * unit_ns)) if count else 0
        except (KeyError, ValueError, IndexError):
            raise ForeignFileError(
                f"there is no latency bin {excerpt(str(text), NAME_CHARACTERS)} in fio."
            ) from None
        if count:
            yield place, count


def _printed_names_and_values(
    direction_dict: JsonDict, latency_kind: str
) -> tuple[tuple[str, str], ...]:
    """The figures as they stand in the file."""
    latency = _latency_dict_of_kind(direction_dict, latency_kind)
    percentiles = _values_by_percentile(dict_or_empty(latency.get("percentile")))
    name = (
        f"{latency_kind}_ns"
        if _latency_unit_ns(direction_dict, latency_kind) == 1
        else f"{latency_kind} (us)"
    )
    every = {
        **{
            key: direction_dict.get(key)
            for key in ("iops", "bw_bytes", "bw", "total_ios", "runtime")
        },
        **{f"{name} {key}": latency.get(key) for key in ("min", "mean", "max")},
        **{f"{name} p{key:g}": value for key, value in sorted(percentiles.items())},
    }
    return tuple(
        (excerpt(label, NAME_CHARACTERS), excerpt(str(value), NAME_CHARACTERS))
        for label, value in every.items()
        if value
    )
