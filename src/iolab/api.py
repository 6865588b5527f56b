"""The Python interface: sessions as typed objects and, where pandas, polars or pyarrow are, frames.

docs/reference/python.md explains it; `iolab.API_VERSION` counts what a script would have to follow.
What is read here is what `iolab show`, `report` and `export` read, with the same verdicts.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import copy_context
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
from msgspec.structs import asdict

from iolab.analysis.points import PointSummary, summarise_points
from iolab.analysis.slow_ios import SlowIoContext
from iolab.analysis.stored_results import study_and_results_with_session_checks
from iolab.cli.live import LiveView
from iolab.cli.options import StudyOptions, load_study
from iolab.cli.output import require_directory_or_nothing, require_valid_output_path
from iolab.cli.pods import pod_fleet_identity_overrides
from iolab.cli.run import new_session_directory_and_request
from iolab.cli.session import run_session_with_view
from iolab.core.events import SessionStatus
from iolab.core.histogram import LOWER_NS, UPPER_NS, Histogram, dense_counts
from iolab.core.leftover_texts import collect_leftover_texts
from iolab.core.metric import Metric, RunResult, Verdict, VerdictLevel
from iolab.core.run import RunStatus
from iolab.core.samples import Floats, Ints, Names, SignedInts
from iolab.core.study import Study
from iolab.errors import IolabError, UsageError
from iolab.hosts.rates import derive_counter_series
from iolab.record import Record
from iolab.registry import report_kinds
from iolab.report.gather import read_slow_ios
from iolab.report.results import point_columns, result_columns
from iolab.report.table import ExportValue
from iolab.store.reader import SessionReader
from iolab.store.verify import Damage

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = [
    "Bins",
    "Intervals",
    "IolabError",
    "LeftoverWarning",
    "MeasuredPoint",
    "Metric",
    "Rows",
    "Run",
    "Session",
    "Telemetry",
    "load",
    "run",
]

T = TypeVar("T")


class LeftoverWarning(UserWarning):
    """Something stayed on a host after a session; the text says what, why, and what to do."""


class _DataFrameColumns:
    """Columns of one length, which other libraries take as a frame."""

    __slots__ = ()

    @property
    def columns(self) -> dict[str, Any]:
        """Each column by its name: numpy arrays, or lists with None for what is not known."""
        raise NotImplementedError

    def pandas(self) -> pandas.DataFrame:
        """The columns as a DataFrame; UsageError where pandas is not installed."""
        frame: pandas.DataFrame = _import_library("pandas").DataFrame(self.columns)
        return frame

    def polars(self) -> polars.DataFrame:
        """The columns as a DataFrame of polars; UsageError where it is not installed."""
        frame: polars.DataFrame = _import_library("polars").DataFrame(self.columns)
        return frame

    def arrow(self) -> pyarrow.Table:
        """The columns as a table of Arrow; UsageError where pyarrow is not installed."""
        frame: pyarrow.Table = _import_library("pyarrow").table(self.columns)
        return frame


def _import_library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(
            f"{name} is not installed.", f"Install it: pip install 'iolab[{name}]'."
        ) from error


class Rows(_DataFrameColumns, Sequence[T], Generic[T]):
    """Points or runs in the order in which they are shown; as a frame one row each."""

    __slots__ = ("_columns", "items")

    def __init__(
        self, items: tuple[T, ...], columns: Callable[[], Mapping[str, Sequence[ExportValue]]]
    ) -> None:
        self.items = items
        self._columns = columns

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.items[index]

    @property
    def columns(self) -> dict[str, list[ExportValue]]:
        """The columns of `iolab export --format csv`; one with any text is text as a whole."""
        return {name: _single_type_column(values) for name, values in self._columns().items()}


def _single_type_column(values: Sequence[ExportValue]) -> list[ExportValue]:
    if any(isinstance(value, str) for value in values):
        return [None if value is None else str(value) for value in values]
    return list(values)


class _RunDataTable(_DataFrameColumns, Record):
    """A table of evidence whose fields are its columns."""

    @property
    def columns(self) -> dict[str, Any]:
        """Each column as a numpy array."""
        return asdict(self)


class Intervals(_RunDataTable):
    """What each host completed in each interval, a row for each operation.

    `seq` counts a host's intervals from 0; `end_real_ns` is the host's clock at the end of one,
    `span_ns` its length; `count` operations moved `bytes` and took `lat_sum_ns` together.
    """

    host: Names
    seq: Ints
    end_real_ns: Ints
    span_ns: Ints
    operation: Names
    count: Ints
    bytes: Ints
    lat_sum_ns: Floats


class Bins(_RunDataTable):
    """Latencies: `count` operations of an interval took from `lower_ns` to `upper_ns`."""

    host: Names
    seq: SignedInts
    operation: Names
    lower_ns: Ints
    upper_ns: Ints
    count: SignedInts

    def percentile_ns(self, percent: float, operation: str | None = None) -> float | None:
        """A percentile over all hosts and intervals, of one operation or of all, each counted once.

        Bins are merged, percentiles never averaged. None where nothing was counted. Raises
        ValueError for less than 0 or more than 100 percent.
        """
        if not 0 <= percent <= 100:
            raise ValueError(f"{percent:g} is no percentile: give 0 to 100")
        again = [
            name.startswith("intended_") or name.endswith("_from_submission")
            for name in self.operation
        ]
        of_it = ~np.array(again, dtype=bool) if operation is None else self.operation == operation
        bins = np.searchsorted(LOWER_NS, self.lower_ns[of_it])
        return Histogram(dense_counts(bins, self.count[of_it])).percentile_ns(percent)


class Telemetry(_RunDataTable):
    """What the hosts did over each step, as rates: a row for each device, metric and moment.

    `real_ns` is the host's clock at the end of a step of `span_ns`; the metrics are those of
    docs/reference/telemetry.md, their unit last in the name.
    """

    host: Names
    scope: Names
    name: Names
    metric: Names
    real_ns: Ints
    span_ns: Ints
    value: Floats


class _EvidenceSource:
    """Where a run's evidence is read: no part of what the run is, so it equals any other."""

    __slots__ = ("reader", "result")

    def __init__(self, reader: SessionReader, result: RunResult) -> None:
        self.reader = reader
        self.result = result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _EvidenceSource)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "…"


class Run(Record, dict=True):
    """One run: its metrics, its verdict, and its evidence, read when it is asked for."""

    configuration: str
    workload: str
    axis: Mapping[str, int | str]
    repeat: int
    digest: str
    status: RunStatus
    failure: str | None
    failure_hint: str | None
    window_s: float
    metrics: Mapping[str, Metric]
    verdict: Verdict
    _evidence: _EvidenceSource

    @cached_property
    def intervals(self) -> Intervals:
        """What was completed each second; StoreError where it is damaged."""
        table = self._evidence.reader.intervals(self.digest, self.repeat)
        return Intervals(
            host=self._host_names[table.host],
            seq=table.seq,
            end_real_ns=table.end_real_ns,
            span_ns=table.span_ns,
            operation=self._operation_names(table.direction),
            count=table.ios,
            bytes=table.bytes,
            lat_sum_ns=table.lat_sum_ns,
        )

    @cached_property
    def bins(self) -> Bins:
        """The latencies of each second; StoreError where they are damaged."""
        table = self._evidence.reader.bins(self.digest, self.repeat)
        return Bins(
            host=self._host_names[table.host],
            seq=table.seq,
            operation=self._operation_names(table.direction),
            lower_ns=LOWER_NS[table.bin],
            upper_ns=UPPER_NS[table.bin],
            count=table.count,
        )

    @cached_property
    def telemetry(self) -> Telemetry:
        """What the hosts did meanwhile; StoreError where it is damaged."""
        table = self._evidence.reader.counters(self.digest, self.repeat)
        series = derive_counter_series(table, self._host_names.tolist())
        sizes = [len(counter.value) for counter in series]

        def repeat_name_per_value(names: Sequence[str]) -> Names:
            return np.repeat(np.array([*names, ""], dtype=np.object_)[:-1], sizes)

        return Telemetry(
            host=repeat_name_per_value([counter.host for counter in series]),
            scope=repeat_name_per_value([counter.scope for counter in series]),
            name=repeat_name_per_value([counter.name for counter in series]),
            metric=repeat_name_per_value([counter.metric for counter in series]),
            real_ns=_concatenated_or_empty([counter.real_ns for counter in series], np.int64),
            span_ns=_concatenated_or_empty([counter.span_ns for counter in series], np.int64),
            value=_concatenated_or_empty([counter.value for counter in series], np.float64),
        )

    @cached_property
    def slow_ios(self) -> tuple[SlowIoContext, ...]:
        """The slowest I/Os, the slowest first, with what their hosts did then; StoreError.

        Empty unless the study has `telemetry.slow_ios`.
        """
        return read_slow_ios(self._evidence.reader, (self.digest, self.repeat))

    def _operation_names(self, operation_codes: SignedInts) -> Names:
        """The operations of a stored column by their names."""
        distinct_codes, places = np.unique(operation_codes, return_inverse=True)
        words = [
            report_kinds().operation_json_key(
                self._evidence.reader.study, self._evidence.result, int(number)
            )
            for number in distinct_codes
        ]
        return np.array([*words, None], dtype=np.object_)[places]

    @cached_property
    def _host_names(self) -> Names:
        """What the tables' host columns index."""
        names = self._evidence.reader.manifest(self.digest, self.repeat).host_names
        return np.array([*names, None], dtype=np.object_)[:-1]


def _concatenated_or_empty(parts: Sequence[Any], dtype: type) -> Any:  # noqa: ANN401 - an array of that type
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)


class MeasuredPoint(Record):
    """All repeats of a point together: published values with their 95 % intervals.

    `runs` are those that entered, `left_out` those that did not; where none may enter, `trusted` is
    False and the values are those of all runs that have any.
    """

    configuration: str
    workload: str
    axis: Mapping[str, int | str]
    metrics: Mapping[str, Metric]
    verdict: VerdictLevel
    trusted: bool
    notes: tuple[str, ...]
    runs: tuple[Run, ...]
    left_out: tuple[Run, ...]


class Session:
    """A session on disk, finished or still running: what was committed whole when it was loaded."""

    def __init__(self, directory: Path) -> None:
        self._reader = SessionReader(directory, _warn_of_damage)
        self._reader.damage_of_documents_except_plan()
        self._study, self._results = study_and_results_with_session_checks(self._reader)
        self._summaries = summarise_points(self._results, self._study)
        runs = {id(result): self._to_run(result) for result in self._results}
        self._runs = tuple(runs.values())
        self._points = tuple(_to_measured_point(summary, runs) for summary in self._summaries)
        self.directory = directory

    def __repr__(self) -> str:
        return f"<iolab session {self.id}: {self.status.value}, {len(self._runs)} runs>"

    @property
    def id(self) -> str:
        """The name that no second session has."""
        return self._reader.session.id

    @property
    def status(self) -> SessionStatus:
        """How the session stands now."""
        return self._reader.session.status

    @property
    def leftover_texts(self) -> tuple[str, ...]:
        """Sentences on what stayed on hosts when it ended last, with what to do."""
        return self._reader.session.leftover_texts

    @property
    def study(self) -> Study:
        """The study with every default and override."""
        return self._study

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What was left out because it is not what was committed."""
        return self._reader.damage_of_documents_and_manifests()

    @property
    def points(self) -> Rows[MeasuredPoint]:
        """What all repeats of each point give together."""
        return Rows(self._points, lambda: point_columns(self._summaries))

    @property
    def runs(self) -> Rows[Run]:
        """Every committed run in the plan's order, whichever way it ended."""
        return Rows(self._runs, lambda: result_columns(self._results))

    def _to_run(self, result: RunResult) -> Run:
        return Run(
            configuration=result.configuration,
            workload=result.workload,
            axis=dict(result.axis_values),
            repeat=result.repeat,
            digest=result.digest,
            status=result.status,
            failure=result.failure,
            failure_hint=result.failure_hint,
            window_s=result.window_s,
            metrics=result.metrics,
            verdict=result.verdict,
            _evidence=_EvidenceSource(self._reader, result),
        )


def _to_measured_point(summary: PointSummary, run_by_order: Mapping[int, Run]) -> MeasuredPoint:
    return MeasuredPoint(
        configuration=summary.key.configuration,
        workload=summary.key.workload,
        axis=dict(summary.key.axis_values),
        metrics=summary.metrics,
        verdict=summary.verdict_level,
        trusted=summary.is_trusted,
        notes=summary.interval_note_texts,
        runs=tuple(run_by_order[id(result)] for result in summary.results),
        left_out=tuple(run_by_order[id(result)] for result in summary.left_out_results),
    )


def _warn_of_damage(damage: Damage) -> None:
    warnings.warn(f"damaged, left out: {damage}", stacklevel=2)


def load(directory: str | Path) -> Session:
    """A session by its directory, also one that runs.

    StoreError if it is none, or of another format. What is damaged is left out with a warning.
    """
    return Session(Path(directory))


def run(
    study: str | Path,
    *,
    path: str | Path | None = None,
    out: str | Path | None = None,
    scale: str = "full",
    settings: Mapping[str, object] | None = None,
    hosts: str | None = None,
    device: str | None = None,
    serial: str | None = None,
) -> Session:
    """Measure a study as `iolab run` does, and load the session; nothing is printed.

    `study` is a bundled study's name or a file, `settings` any of its values, as
    `{"method.repeats": 3}` or `{"kubernetes.storage_class": "fast"}`; the others are the command's
    options. Raises what the command would end with: UsageError or StudyError before anything is
    written, HostError where hosts are not as they must be. A session that ends badly says so by its
    `status`. KeyboardInterrupt stops it cleanly. What stays on a host is a LeftoverWarning, also
    beside an error, and in `Session.leftover_texts`.
    """
    out_directory = None if out is None else Path(out)
    if out_directory is not None:
        require_valid_output_path(out_directory)
        require_directory_or_nothing(out_directory)
    sets = [f"{name}={_set_value_text(value)}" for name, value in (settings or {}).items()]
    options = StudyOptions(
        str(study), None if path is None else str(path), device, serial, hosts, scale, sets
    )
    with collect_leftover_texts() as leftovers:
        try:
            directory = _run_coroutine(lambda: _measure_to_directory(options, out_directory))
        finally:
            for sentence in leftovers:
                warnings.warn(sentence, LeftoverWarning, stacklevel=2)
    return load(directory)


async def _measure_to_directory(options: StudyOptions, out: Path | None) -> Path:
    """The directory of the session, which ran to its end, in pods where the study has such."""
    study = load_study(options)
    if study.kubernetes is not None:
        study = load_study(
            options, assignments=await pod_fleet_identity_overrides(study.kubernetes)
        )
    directory, request = new_session_directory_and_request(study, out)
    await run_session_with_view(request, LiveView())
    return directory


def _set_value_text(value: object) -> str:
    """A value as `--set` takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(_set_value_text, value))
    return str(value)


def _run_coroutine(create_coroutine: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run it to its end; beside a loop that runs already, as in a notebook, in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(create_coroutine())
    return _CoroutineThread(create_coroutine).result()


class _CoroutineThread(Generic[T]):
    """Work in a thread with a loop of its own; an interrupt of this one cancels it."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._begun = threading.Event()
        self._outcome: list[T] = []
        self._error: BaseException | None = None
        context = copy_context()
        self._thread = threading.Thread(
            target=context.run, args=[self._run_loop], name="iolab session"
        )

    def result(self) -> T:
        """What came of it, or what it raised."""
        self._thread.start()
        self._begun.wait()
        try:
            self._thread.join()
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join()
            raise
        if self._error is not None:
            raise self._error
        return self._outcome[0]

    def _run_loop(self) -> None:
        try:
            asyncio.run(self._run_work())
        except BaseException as error:  # raised where the work was requested
            self._error = error
        finally:
            self._begun.set()

    async def _run_work(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.ensure_future(self._work())
        self._begun.set()
        self._outcome.append(await self._task)
