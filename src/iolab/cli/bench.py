"""`iolab bench`: one load on one or more directories, without a study, ending in their ratio."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from iolab.cli.options import (
    LOAD,
    IoEngine,
    OutputFormat,
    QuietOption,
    refuse_empty_or_root_path,
    with_output_format,
)
from iolab.cli.output import (
    open_session,
    print_renderables,
    print_result,
    require_directory_or_nothing,
    require_valid_output_path,
)
from iolab.cli.run import OutOption, ReportOption, new_session_directory_and_request
from iolab.cli.show import FailOnOption
from iolab.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from iolab.analysis.points import PointSummary
    from iolab.core.study import Study
    from iolab.store.reader import SessionReader

STUDY_ID: Final = "bench"
PERCENTILES_SHOWN: Final = ("lat_ns_p50", "lat_ns_p99", "lat_ns_p99_9")
"""Latencies that are printed of each point, by their keys without an operation."""

ID_LENGTH_MAX: Final = 32
"""Characters of a configuration's id, which is in every row."""


@with_output_format
def bench(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="DIR", help="Directories to measure; several are compared."),
    ],
    *,
    rw: Annotated[
        str,
        typer.Option(
            "--rw", metavar="NAME", help="Access pattern, as fio's rw.", rich_help_panel=LOAD
        ),
    ] = "randread",
    bs: Annotated[
        str, typer.Option("--bs", metavar="SIZE,...", help="Block size.", rich_help_panel=LOAD)
    ] = "4k",
    rwmixread: Annotated[
        str | None,
        typer.Option(
            "--rwmixread",
            metavar="PERCENT,...",
            help="Reads of a mix (rw, randrw), in per cent; default: 50.",
            rich_help_panel=LOAD,
            show_default=False,
        ),
    ] = None,
    iodepth: Annotated[
        str,
        typer.Option("--iodepth", metavar="N,...", help="Queue depth.", rich_help_panel=LOAD),
    ] = "1",
    numjobs: Annotated[
        str,
        typer.Option("--numjobs", metavar="N,...", help="Jobs at a time.", rich_help_panel=LOAD),
    ] = "1",
    size: Annotated[
        str, typer.Option("--size", metavar="SIZE", help="File of a job.", rich_help_panel=LOAD)
    ] = "1g",
    runtime: Annotated[
        str,
        typer.Option(
            "--runtime", metavar="TIME", help="Measured time of a run.", rich_help_panel=LOAD
        ),
    ] = "20s",
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats", metavar="N", help="Runs of each directory.", rich_help_panel=LOAD
        ),
    ] = 3,
    engine: Annotated[
        IoEngine | None,
        typer.Option(
            "--engine",
            help="fio or iolab's own; default: fio where it is installed.",
            rich_help_panel=LOAD,
            show_default=False,
        ),
    ] = None,
    ioengine: Annotated[
        str | None,
        typer.Option(
            "--ioengine",
            metavar="NAME",
            help="How I/O is submitted, as fio's ioengine; default: libaio, or as the engine does.",
            rich_help_panel=LOAD,
            show_default=False,
        ),
    ] = None,
    direct: Annotated[
        int,
        typer.Option(
            "--direct",
            metavar="0|1",
            min=0,
            max=1,
            help="Past the page cache (O_DIRECT), as fio's direct.",
            rich_help_panel=LOAD,
        ),
    ] = 1,
    out: OutOption = None,
    report: ReportOption = False,
    fail_on: FailOnOption = None,
    quiet: QuietOption = False,
    output_format: OutputFormat,
) -> None:
    """Compare directories under one load, without a study.

    The directories take turns, so that a change of the machine affects all of them.
    """
    from iolab.cli.session import RunOptions, run_session_and_print_results
    from iolab.loads.fileio.engines.fio import local_fio_unusable_reason
    from iolab.registry import read_study
    from iolab.store.reader import is_session
    from iolab.study.parse import StudyOverrides

    for path in paths:
        refuse_empty_or_root_path(path)
    if out is not None:
        require_valid_output_path(out)
        require_directory_or_nothing(out)
    used_engine = engine or (IoEngine.NATIVE if local_fio_unusable_reason() else IoEngine.FIO)
    workload: dict[str, object] = {
        "id": f"{rw}-{bs}".replace(",", "-"),
        "engine": used_engine.value,
        "rw": rw,
        "bs": _parse_option_values(bs),
        "filesize": size,
        "iodepth": _parse_option_values(iodepth),
        "numjobs": _parse_option_values(numjobs),
        "direct": bool(direct),
    }
    if rwmixread is not None:
        workload["rwmixread"] = _parse_option_values(rwmixread)
    if ioengine is not None:
        workload["ioengine"] = ioengine
    text = "\n".join(_study_toml_lines(paths, workload, runtime, repeats))
    study = read_study(text, "bench.toml", StudyOverrides())
    directory, request = new_session_directory_and_request(study, out)
    options = RunOptions(
        directory, quiet=quiet, output_format=output_format, report=report, fail_on=fail_on
    )
    code = run_session_and_print_results(request, options)
    if output_format is OutputFormat.TABLE and is_session(directory):
        _print_percentiles_and_comparisons(open_session(directory))
    raise typer.Exit(code)


def _study_toml_lines(
    paths: Sequence[str], workload: dict[str, object], runtime: str, repeats: int
) -> Iterator[str]:
    """The study as TOML: a configuration for each directory."""
    yield f'format = 1\nid = "{STUDY_ID}"\ntitle = "Bench"'
    yield f"[method]\nruntime = {_toml_text(runtime)}\nrepeats = {repeats}"
    yield "[[workload]]"
    yield from (f"{key} = {_toml_text(value)}" for key, value in workload.items())
    for name, path in _target_directories_by_configuration_id(paths).items():
        yield f"[[configuration]]\nid = {_toml_text(name)}\npath = {_toml_text(path)}"


def _target_directories_by_configuration_id(paths: Sequence[str]) -> dict[str, str]:
    """The absolute directories by their ids: the shortest ends of their paths that differ."""
    absolute = list(dict.fromkeys(str(Path(path).absolute()) for path in paths))
    for depth in range(1, max(len(Path(path).parts) for path in absolute) + 1):
        names = [_configuration_id_from_path_parts(Path(path).parts[-depth:]) for path in absolute]
        if len(set(names)) == len(names):
            return dict(zip(names, absolute, strict=True))
    return {f"target-{number}": path for number, path in enumerate(absolute, start=1)}


def _configuration_id_from_path_parts(path_parts: Sequence[str]) -> str:
    """The last parts of a path as the id of a configuration."""
    text = "-".join(part.strip("/") for part in path_parts)
    dashed = "".join(char if char.isascii() and char.isalnum() else "-" for char in text)
    return dashed.strip("-")[-ID_LENGTH_MAX:].strip("-") or "target"


def _parse_option_values(option_text: str) -> object:
    """The value of an option, or a list of several; whole numbers become int."""
    values = [int(part) if part.isdecimal() else part for part in option_text.split(",")]
    return values if len(values) > 1 else values[0]


def _toml_text(value: object) -> str:
    """A text, number or list of them as TOML, whose basic strings are JSON's but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _print_percentiles_and_comparisons(reader: SessionReader) -> None:
    """Print the latency of each point by percentile, then how the directories compare."""
    from iolab.analysis.points import summarise_points
    from iolab.analysis.stored_results import study_and_results_with_session_checks
    from iolab.core.bins import PERCENTILE_LABELS
    from iolab.report.numbers import DASH
    from iolab.report.table import Column
    from iolab.report.terminal import literal_text, terminal_table

    study, results = study_and_results_with_session_checks(reader)
    rows = list(_latency_percentile_rows(study, summarise_points(results, study)))
    if rows:
        labels = (PERCENTILE_LABELS[key] for key in PERCENTILES_SHOWN)
        heads = (Column("latency"), *(Column(label, is_number=True) for label in labels))
        print_renderables("", terminal_table(heads, rows))
        if any(DASH in cells for cells in rows):
            print_result(f"{DASH}: too few I/Os for that percentile; run longer.")
    if len(study.configurations) > 1:
        print_renderables(*map(literal_text, _directory_comparison_sentences(reader)))


def _latency_percentile_rows(study: Study, points: Sequence[PointSummary]) -> Iterator[list[str]]:
    """The latencies of a point by percentile; of a mix of each operation."""
    from iolab.core.metric import direction_keys_with_latency
    from iolab.report.numbers import axis_values_text, metric_value_text

    for point in points:
        operations = direction_keys_with_latency(point.metrics)
        for operation in operations if len(operations) > 1 else ("",):
            prefix = f"{operation}_" if operation else ""
            values = [point.metrics.get(f"{prefix}{key}") for key in PERCENTILES_SHOWN]
            if all(value is None or value.value is None for value in values):
                continue
            place = axis_values_text(point.key.axis_values)
            whose = point.key.configuration if len(study.configurations) > 1 else ""
            name = ", ".join(filter(None, (whose, place, operation))) or point.key.workload
            yield [name, *(metric_value_text(value) for value in values)]


def _directory_comparison_sentences(reader: SessionReader) -> Iterator[str]:
    """How each further directory compares with the first."""
    from iolab.analysis.comparison import compare_sides
    from iolab.analysis.differences import read_comparison_side
    from iolab.report.comparison import comparison_sentences
    from iolab.report.numbers import point_text

    first, *others = (
        read_comparison_side(configuration.id, reader, configuration.id)
        for configuration in reader.study.configurations
    )
    for other in others:
        compared = compare_sides(first, other)
        yield from map(one_line, comparison_sentences(compared))
        yield from (
            one_line(
                f"{other.name} is not compared with {first.name} "
                f"({point_text(point.workload, point.axis_values)}): {point.reason}."
            )
            for point in compared.skipped
        )
