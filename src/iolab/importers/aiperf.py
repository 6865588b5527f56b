"""AIPerf's export: requests to a language model, whose time to the first token storage decides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from iolab.importers.files import ForeignFile, ForeignFileError, ImportFileSet
from iolab.importers.foreign_run import ForeignRun, ImportedRunDetails, OperationFigures
from iolab.importers.summaries import summary_row_run
from iolab.record import DECODE_ERRORS
from iolab.text import excerpt
from iolab.units import NS_PER_MS, NS_PER_S, NS_PER_US

_UNITS: Final = {"ns": 1.0, "us": float(NS_PER_US), "ms": float(NS_PER_MS), "sec": float(NS_PER_S)}
_READ: Final = (
    *("request_latency", "time_to_first_token", "request_throughput", "request_count"),
    *("error_request_count", "benchmark_duration", "input_config", "start_time", "end_time"),
    *(
        "was_cancelled",
        "is_complete",
        "error_summary",
        "aiperf_version",
        "schema_version",
        "benchmark_id",
    ),
)
_NOT_READ: Final = "This metric is of tokens or of another part of a request: it is not read."

SETTINGS_MAX: Final = 100
"""Options of a load that are kept; its configuration has some fifty."""

_SETTINGS: Final = re.compile(
    r"^(?:endpoint\.(?:model_names|type|streaming)|loadgen\.|input\.(?!file|public)"
    r"|models?\b|phases\.|datasets?\.(?!.*(?:file|path))).*"
)
"""Options of the load: of the command's configuration, and of that with phases (schema 2.0)."""

_MODEL: Final = re.compile(r"(?:endpoint\.model_names|models?)(?:\.items)?(?:\.0)?(?:\.name)?")
_IGNORED: Final = {
    re.compile(
        r"loadgen\.(?:request_count|benchmark_duration)|phases\.\d+\.(?:requests|duration)"
    ): "how long it lasts, not what it does",
    re.compile(r"(?:.*\.)?random_seed"): "a seed",
}


class AiperfImporter:
    """`profile_export_aiperf.json`: one run."""

    tool: Final = "AIPerf"

    def recognises(self, file: ForeignFile) -> bool:
        """By its metrics of requests."""
        head = file.utf8_bytes
        return (
            head.lstrip().startswith(b"{")
            and b'"request_throughput"' in head
            and b'"request_latency"' in head
        )

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """Requests and times to the first token; its CSV holds the same."""
        try:
            document: Any = msgspec.json.decode(file.utf8_bytes)
        except DECODE_ERRORS as error:
            raise ForeignFileError("it is no JSON object: it was cut short.") from error
        for other in file_set.files:
            if other.path == file.path.with_suffix(".csv"):
                file_set.mark_left_out(other, f"It holds the results of {file.name} once more.")
        if _metric_number(document, "request_latency", "avg") is None:
            raise ForeignFileError("it has no latency of requests.")
        _mark_lines_of_unread_metrics(file, document)
        return [_run_of_document(file, document)]


def _mark_lines_of_unread_metrics(file: ForeignFile, document: Mapping[str, Any]) -> None:
    """Metrics of tokens are named as left out, at the line of their name."""
    for name, value in document.items():
        if name not in _READ and isinstance(value, dict) and "unit" in value:
            place = file.text.find(f'"{name}"')
            line = file.line_number_at(place) if place >= 0 else 1
            file.line_coverage.mark_left_out(line, line, _NOT_READ)
    file.line_coverage.mark_all_read()


def _run_of_document(file: ForeignFile, document: Mapping[str, Any]) -> ForeignRun:
    count = _metric_number(document, "request_count", "avg")
    failed = _metric_number(document, "error_request_count", "avg")
    seconds = _metric_number(document, "benchmark_duration", "avg")
    requests = OperationFigures(
        operation="request",
        count=None if count is None else round(count),
        seconds=seconds,
        rate_per_s=_metric_number(document, "request_throughput", "avg"),
        failed=round(failed or 0),
        **_latency_figure_fields(document, "request_latency"),
    )
    figures = [requests]
    if _metric_number(document, "time_to_first_token", "avg") is not None:
        figures.append(
            OperationFigures(
                operation="first_token",
                weight=0,
                **_latency_figure_fields(document, "time_to_first_token"),
            )
        )
    settings = dict(_flattened_load_options(document.get("input_config"), ""))
    is_whole = not document.get("was_cancelled") and document.get("is_complete") is not False
    errors = () if is_whole else ("AIPerf was cancelled before its end",)
    details = ImportedRunDetails(
        tool="AIPerf",
        version=excerpt(str(document.get("aiperf_version", "")), 40),
        files=(file.name,),
        notes=("latencies are of requests to the model, of which storage is a part",),
    )
    concurrency = settings.get("loadgen.concurrency") or _last_phase_concurrency(settings)
    model = next((value for name, value in settings.items() if _MODEL.fullmatch(name)), "")
    return summary_row_run(
        details,
        f"AIPerf {model}".strip(),
        (file, 1),
        tuple(figures),
        settings,
        ignored_setting_reasons={
            name: reason
            for name in settings
            for pattern, reason in _IGNORED.items()
            if pattern.fullmatch(name)
        },
        errors=errors,
        in_flight=int(concurrency) if concurrency.isdigit() else None,
        indicator="ops_per_s",
        client="all requests",
        ended_real_ns=_end_ns(document),
    )


def _last_phase_concurrency(settings: Mapping[str, str]) -> str:
    """Of the last phase, which is measured: those before it warm up."""
    phases = [name for name in settings if re.fullmatch(r"phases\.\d+\.concurrency", name)]
    return settings[max(phases, key=lambda name: int(name.split(".")[1]))] if phases else ""


def _latency_figure_fields(document: Mapping[str, Any], metric_name: str) -> dict[str, Any]:
    """What a metric of time tells, in ns."""
    metric = document.get(metric_name)
    unit = str(metric.get("unit", "ms")) if isinstance(metric, dict) else "ms"
    factor = _UNITS.get(unit, 1.0 if unit.startswith("nano") else float(NS_PER_MS))

    def metric_figure_in_ns(key: str) -> float | None:
        value = _metric_number(document, metric_name, key)
        return None if value is None else value * factor

    percentiles = tuple(
        (float(at), value)
        for at in (1, 5, 10, 25, 50, 75, 90, 95, 99)
        if (value := metric_figure_in_ns(f"p{at}")) is not None
    )
    printed = tuple(
        (f"{metric_name} {key}", f"{value:g} {unit}")
        for key in ("avg", "p50", "p99")
        if (value := _metric_number(document, metric_name, key)) is not None
    )
    return {
        "lat_min_ns": metric_figure_in_ns("min"),
        "lat_mean_ns": metric_figure_in_ns("avg"),
        "lat_max_ns": metric_figure_in_ns("max"),
        "percentiles": percentiles,
        "printed": printed,
    }


def _metric_number(document: Mapping[str, Any], metric_name: str, key: str) -> float | None:
    metric = document.get(metric_name)
    value = metric.get(key) if isinstance(metric, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) >= 1e18:
        return None
    return float(value)


def _flattened_load_options(configuration: object, path_prefix: str) -> Iterator[tuple[str, str]]:
    """The options of its load by path."""
    waiting: list[tuple[object, str]] = [(configuration, path_prefix)]
    found = 0
    while waiting and found < SETTINGS_MAX:
        own, name = waiting.pop()
        if isinstance(own, dict):
            waiting += [(each, f"{name}.{key}".lstrip(".")) for key, each in own.items()]
        elif isinstance(own, list):
            waiting += [(each, f"{name}.{place}") for place, each in enumerate(own[:3])]
        elif own is not None and _SETTINGS.match(name):
            found += 1
            yield name, str(own)


def _end_ns(document: Mapping[str, Any]) -> int | None:
    try:
        moment = datetime.fromisoformat(str(document.get("end_time")))
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * NS_PER_S)
