"""`iolab calibrate`: a session of both engines in turn on one target, and their comparison."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from iolab.cli.options import (
    OutputFormat,
    QuietOption,
    read_inventory,
    refuse_empty_or_root_path,
    require_absolute,
    with_output_format,
)
from iolab.cli.output import (
    open_session,
    print_json,
    print_renderables,
    require_directory_or_nothing,
    require_valid_output_path,
)
from iolab.cli.run import OutOption, new_session_directory_and_request
from iolab.errors import ExitCode, UsageError
from iolab.record import Record
from iolab.text import percent_text
from iolab.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from iolab.core.run import HostRun
    from iolab.store.reader import SessionReader

PAIRS_MAX: Final = 100
SECONDS_MIN: Final = 4.0
"""Results of shorter runs are invalid, and are not compared."""

SECONDS_MAX: Final = 3600.0
"""Longer is a study."""

ENGINES: Final = ("fio", "native")
"""The workloads of the study, called after their engines: the reference first."""

METRICS: Final = ("iops", "lat_ns_mean", "lat_ns_p50", "lat_ns_p99")

STUDY: Final = """\
format = 1
id = "calibrate"
title = "fio and the native engine"
question = "Do fio and the native engine measure the same here?"
[method]
repeats = {pairs}
runtime = {seconds}
warmup = 1
settle = 0
order = "randomised"
"""

WORKLOAD: Final = """\
[[workload]]
id = "{engine}"
engine = "{engine}"
rw = {rw}
bs = {bs}
iodepth = {iodepth}
numjobs = {numjobs}
filesize = {size}
"""


@with_output_format
def calibrate(
    *,
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="DIR",
            help="A directory on the target; with --hosts, of hosts that name none.",
            show_default=False,
        ),
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            "--hosts",
            metavar="HOSTS",
            help="These hosts at the same time instead of this machine: an inventory file, slurm, "
            "mpi:FILE or k8s:NAMESPACE/SELECTOR.",
        ),
    ] = None,
    rw: Annotated[str, typer.Option("--rw", help="Access pattern, as fio's rw.")] = "randread",
    bs: Annotated[str, typer.Option("--bs", metavar="SIZE", help="Block size.")] = "4k",
    iodepth: Annotated[
        int, typer.Option("--iodepth", min=1, max=65536, help="I/Os in flight per job.")
    ] = 32,
    numjobs: Annotated[int, typer.Option("--numjobs", min=1, max=4096, help="Jobs per host.")] = 1,
    ioengine: Annotated[str, typer.Option("--ioengine", help="fio's ioengine.")] = "libaio",
    size: Annotated[
        str, typer.Option("--size", metavar="SIZE", help="Size of each job's scratch file.")
    ] = "256m",
    pairs: Annotated[
        int, typer.Option("--pairs", min=2, max=PAIRS_MAX, help="Runs of each engine.")
    ] = 7,
    seconds: Annotated[
        float,
        typer.Option("--seconds", min=SECONDS_MIN, max=SECONDS_MAX, help="Length of a run."),
    ] = 5.0,
    out: OutOption = None,
    quiet: QuietOption = False,
    output_format: OutputFormat,
) -> None:
    """Compare the native engine with fio on a target."""
    from iolab.cli.session import (
        RunOptions,
        print_partial_results_and_resume_hint,
        run_session_showing_progress,
        session_exit_code,
    )
    from iolab.registry import read_study
    from iolab.study.parse import StudyOverrides

    if path is None and hosts is None:
        raise UsageError(
            "There is no target to calibrate on.", "Give --path DIR, and --hosts HOSTS for a fleet."
        )
    if path is not None:
        refuse_empty_or_root_path(path)
    if hosts is not None:
        require_absolute(path)
    if out is not None:
        require_valid_output_path(out)
        require_directory_or_nothing(out)
    values = {"rw": rw, "bs": bs, "size": size}
    load = {key: json.dumps(value) for key, value in values.items()}
    text = STUDY.format(pairs=pairs, seconds=seconds)
    for engine in ENGINES:
        text += WORKLOAD.format(engine=engine, iodepth=iodepth, numjobs=numjobs, **load)
        text += f"ioengine = {json.dumps(ioengine)}\n" if engine == "fio" else ""
    overrides = StudyOverrides(
        path=None if path is None else str(Path(path).absolute()),
        inventory=None if hosts is None else read_inventory(hosts),
    )
    study = read_study(text, "calibrate", overrides)
    directory, request = new_session_directory_and_request(study, out)
    options = RunOptions(
        directory, quiet=quiet, output_format=output_format, report=False, fail_on=None
    )
    status = run_session_showing_progress(request, options)
    code = session_exit_code(status, open_session(directory).results(), None)
    if code is not ExitCode.OK:
        print_partial_results_and_resume_hint(options)
        raise typer.Exit(code)
    raise typer.Exit(print_calibration(directory, output_format))


def print_calibration(directory: Path, output_format: OutputFormat) -> ExitCode:
    """The engines compared as `iolab compare` does, and what each takes of the clients.

    The exit code is a verdict where no run of an engine may be compared.
    """
    from iolab.analysis.comparison import compare_sides
    from iolab.analysis.differences import read_comparison_side
    from iolab.cli.compare import CompareFormat, comparison_lines, print_comparison
    from iolab.report.comparison import comparison_document
    from iolab.report.terminal import literal_text

    reader = open_session(directory)
    fio, native = (read_comparison_side(engine, reader, engine) for engine in ENGINES)
    comparison = compare_sides(fio, native, metrics=METRICS)
    costs = [_measured_engine_cost(reader, engine) for engine in ENGINES]
    if output_format is OutputFormat.JSON:
        engines = [cost.document for cost in costs]
        print_json({**comparison_document(comparison), "engines": engines})
    elif output_format is OutputFormat.TABLE:
        lines = (literal_text(cost.engine_version_and_cost_text) for cost in costs)
        session = literal_text(f"Session: {directory}")
        print_renderables(*comparison_lines(comparison), "", *lines, session)
    else:
        print_comparison(comparison, CompareFormat(output_format.value))
    return ExitCode.OK if comparison.compared_metrics else ExitCode.VERDICT


class EngineCpuCost(Record):
    """What an engine takes of its clients: CPU time of an I/O, and the share of its limit.

    The share is that of the host and run where it is largest; None where no limit is known.
    """

    engine: str
    version: str
    cpu_ns_per_io: float | None
    generator_limit_share: float | None

    @property
    def document(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "engine": self.engine,
            "version": self.version,
            "cpu_ns_per_io": self.cpu_ns_per_io,
            "generator_limit_share": self.generator_limit_share,
        }

    @property
    def engine_version_and_cost_text(self) -> str:
        """The same in a line."""
        parts = [self.version]
        if self.cpu_ns_per_io is not None:
            parts.append(f"{format_ns(self.cpu_ns_per_io)} of CPU an I/O")
        if self.generator_limit_share is not None:
            share = percent_text(self.generator_limit_share)
            parts.append(f"{share} of the IOPS that it makes without a target")
        return f"{self.engine}: {', '.join(parts)}"


def _measured_engine_cost(reader: SessionReader, engine: str) -> EngineCpuCost:
    results = [result for result in reader.results() if result.workload == engine]
    runs = [reader.manifest(result.digest, result.repeat).hosts for result in results]
    shares = (
        check.evidence.get("share")
        for result in results
        for check in result.verdict.checks
        if check.code == "generator-bound"
    )
    known = [float(share) for share in shares if isinstance(share, int | float)]
    costs = [cost for hosts in runs for cost in _cpu_ns_per_io_of_runs_where_known(hosts)]
    return EngineCpuCost(
        engine=engine,
        version=next((host.engine_version for hosts in runs for host in hosts), ""),
        cpu_ns_per_io=geometric_mean(costs) if costs else None,
        generator_limit_share=max(known, default=None),
    )


def _cpu_ns_per_io_of_runs_where_known(host_runs: Iterable[HostRun]) -> Iterator[float]:
    """The CPU time of all hosts' engines over their I/Os, where both are known."""
    cpu_s, ios = 0.0, 0
    for host in host_runs:
        if host.process is None or host.totals is None:
            return
        cpu_s += host.process.user_s + host.process.system_s
        ios += sum(part.ios for part in (host.totals.read, host.totals.write) if part)
    if ios and cpu_s:
        yield cpu_s * NS_PER_S / ios
