"""Whatever a run leaves behind, it reads back the same."""

from __future__ import annotations

import math
import tempfile
import types
import typing
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pytest
from bench.synthetic import make_result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.core.compressed import CompressedBytes
from iolab.core.metric import RunResult
from iolab.core.run import (
    COUNT_MAX,
    Count,
    EngineOutput,
    HostRun,
    PlannedRun,
    Quota,
    RunRecord,
    RunStatus,
)
from iolab.core.samples import BinTable, CounterTable, IntervalTable
from iolab.core.tagged import TaggedRecord, tagged_classes
from iolab.errors import StoreError
from iolab.loads.keyvalue.workload import ServerRunDetails
from iolab.record import Record, field_names
from iolab.store.codec import encode
from iolab.store.documents import Manifest, ManifestHead, RunOrigin, StoredAnalysis
from iolab.store.parquet import write_parquet
from iolab.store.runs import read_run, read_table, write_run
from iolab.store.verify import read_manifest
from tests.store.sessions import assert_same, record_of

SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**63 - 1),
    Count: st.integers(0, COUNT_MAX),
    float: st.floats(allow_nan=False, allow_infinity=False),
    Quota: st.floats(0, allow_infinity=False),
    str: st.text(max_size=8),
    bool: st.booleans(),
    type(None): st.none(),
}


def anything(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type hint as the model uses them."""
    if isinstance(hint, typing.NewType):
        return anything(hint.__supertype__)
    if hint in SCALARS:
        return SCALARS[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    if isinstance(hint, type) and issubclass(hint, Record):
        hints = typing.get_type_hints(hint, include_extras=True)
        return st.builds(hint, **{name: anything(hints[name]) for name in field_names(hint)})
    if isinstance(hint, type) and TaggedRecord in hint.__bases__:
        parts: tuple[Any, ...] = tagged_classes(hint)
        return st.one_of(*(anything(part) for part in parts))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return bounded(*arguments[:2])
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*(anything(argument) for argument in arguments))
    if origin is Mapping:
        return st.dictionaries(*(anything(argument) for argument in arguments), max_size=3)
    if arguments[-1] is Ellipsis:
        return st.lists(anything(arguments[0]), max_size=2).map(tuple)
    return st.tuples(*(anything(argument) for argument in arguments))


def bounded(kind: Any, bounds: Any) -> st.SearchStrategy[Any]:
    """Values of an annotated type; a greatest length is one that none of these reaches."""
    if kind is int:
        return st.integers(bounds.ge or 0, bounds.le or COUNT_MAX)
    if kind is str and bounds.min_length:
        return st.text(min_size=bounds.min_length, max_size=bounds.min_length + 20)
    return anything(kind)


@st.composite
def tables(draw: st.DrawFn, shape: type[Any]) -> Any:
    """A table of up to a dozen rows of any values."""
    rows = draw(st.integers(0, 12))
    return shape(*(draw(columns(name, rows)) for name in field_names(shape)))


def columns(name: str, rows: int) -> st.SearchStrategy[npt.NDArray[Any]]:
    """A column as the model declares it."""
    kind: type[np.generic] = np.int64
    values: st.SearchStrategy[Any] = SCALARS[int]
    if name == "lat_sum_ns":
        kind, values = np.float64, st.floats()
    if name in {"scope", "name", "metric"}:
        kind, values = np.object_, SCALARS[str]
    return st.lists(values, min_size=rows, max_size=rows).map(lambda cells: np.array(cells, kind))


RUNS = st.builds(
    lambda run, digest, repeat: replace(
        run, repeat=repeat, point=replace(run.point, digest=digest)
    ),
    anything(PlannedRun),
    st.from_regex(r"[0-9a-f]{16}", fullmatch=True),
    st.integers(1, 9),
)
CONTENTS = st.builds(
    replace, st.binary(max_size=99).map(CompressedBytes.compress), truncated=st.booleans()
)
RECORDS = st.builds(
    lambda **parts: RunRecord(**parts),  # whose own signature names types of type checkers alone
    run=RUNS,
    status=st.sampled_from(RunStatus),
    failure=st.none() | st.text(max_size=8),
    failure_hint=st.none() | st.text(max_size=8),
    started_real_ns=SCALARS[int],
    ended_real_ns=SCALARS[int],
    warmup_s=SCALARS[float],
    runtime_s=SCALARS[float],
    telemetry_interval_ms=SCALARS[int],
    hosts=st.lists(anything(HostRun), max_size=2).map(tuple),
    intervals=tables(IntervalTable),
    bins=tables(BinTable),
    counters=tables(CounterTable),
    outputs=st.lists(
        st.tuples(st.text(max_size=8), st.text(max_size=8), CONTENTS).map(
            lambda parts: EngineOutput(*parts)
        ),
        max_size=3,
    ).map(tuple),
    details=st.none() | anything(ServerRunDetails),
)


@settings(
    max_examples=max(10, settings().max_examples // 5),  # each makes a whole run on disk
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(RECORDS, anything(RunResult))
def test_a_run_reads_back_equal(record: RunRecord, result: RunResult) -> None:
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run-1"
        write_run(run, record, StoredAnalysis(3, result), RunOrigin("s", "0.1.0", None))
        found = read_run(run)
        assert_same(found, record)
        # Equality alone would let True pass for 1, and 1 for 1.0.
        assert encode(found.hosts) == encode(record.hosts)
        analysis = read_manifest(ManifestHead, run).analysis
        assert analysis == StoredAnalysis(3, result)
        assert encode(analysis.result) == encode(result)
        assert read_manifest(Manifest, run).analysis == analysis


def test_a_float_that_is_no_number_stays_unknown(tmp_path: Path) -> None:
    record = record_of(0)
    sums = record.intervals.lat_sum_ns.copy()
    sums[:3] = (math.nan, math.inf, -0.0)
    record = replace(record, intervals=replace(record.intervals, lat_sum_ns=sums))
    write_run(
        tmp_path / "run-1",
        record,
        StoredAnalysis(3, make_result(record)),
        RunOrigin("s", "0", None),
    )
    assert_same(read_run(tmp_path / "run-1"), record)


def test_a_table_with_missing_integers_is_damaged(tmp_path: Path) -> None:
    columns = {name: np.array([1]) for name in field_names(BinTable)}
    missing = np.ma.masked_array([1], mask=[True])
    write_parquet({**columns, "count": missing}, tmp_path / "bins.parquet")
    with pytest.raises(StoreError, match=r"bins.parquet' is damaged: values are missing"):
        read_table(tmp_path / "bins.parquet", BinTable)
