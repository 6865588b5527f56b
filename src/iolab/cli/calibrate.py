"""`iolab calibrate`: compare the native engine with fio on a target."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from iolab.cli.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from iolab.core.host import HostSpec
    from iolab.loads.fileio.calibration import CalibrationRow
    from iolab.loads.fileio.calibration_model import Calibration
    from iolab.loads.fileio.calibration_report import Meaning
    from iolab.loads.fileio.workload import Job

PAIRS_MAX: Final = 100
SECONDS_MAX: Final = 3600.0
"""Longer is a study."""


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
            help="All these hosts in step instead of this machine: an inventory file, slurm, "
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
        float, typer.Option("--seconds", min=1, max=SECONDS_MAX, help="Length of a run.")
    ] = 3.0,
    as_json: AsJson = False,
) -> None:
    """Compare the native engine with fio on a target."""
    import asyncio

    from iolab.cli.output import result_json, result_screen, say
    from iolab.loads.fileio.calibration import Wish
    from iolab.loads.fileio.calibration import calibrate as run_all
    from iolab.loads.fileio.calibration_report import calibration_document

    wish = Wish(_job(rw, bs, iodepth, numjobs, ioengine, size), pairs, seconds)
    made = asyncio.run(run_all(_specs(path, hosts), wish, say))
    if as_json:
        result_json(calibration_document(made.found))
    else:
        result_screen(*calibration_screen(made.found))
    if made.left:
        raise made.left


def _specs(path: str | None, hosts: str | None) -> tuple[HostSpec, ...]:
    """This machine, or all clients of an inventory, each with its path; UsageError with faults."""
    from dataclasses import replace

    from iolab.core.host import HostKind, HostSpec, Role
    from iolab.errors import Fault, UsageError

    if hosts is None:
        if path is None:
            happened = "Nothing is said to be calibrated."
            raise UsageError(happened, "Give --path DIR, and --hosts HOSTS for a fleet.")
        return (HostSpec("local", HostKind.LOCAL, path=str(Path(path).absolute())),)

    from iolab.cli.options import read_hosts

    clients = [spec for spec in read_hosts(hosts) if spec.role is Role.CLIENT]
    faults = []
    if path is not None and not PurePosixPath(path).is_absolute():
        happened = f"--path is {path!r}, which hosts would take from different places."
        faults.append(Fault(happened, "Give a path that begins with /."))
    for spec in clients:
        if spec.serial is not None:
            happened = f"The target of host '{spec.name}' is a whole device."
            faults.append(Fault(happened, "Give a directory: scratch files are laid out there."))
        elif spec.path is None and path is None:
            faults.append(Fault(f"Host '{spec.name}' has no path.", "Write one, or give --path."))
    if not clients:
        faults.append(Fault("The inventory has no client.", "Describe hosts that make load."))
    if faults:
        raise UsageError("These hosts cannot be calibrated.", "Correct them.", tuple(faults))
    return tuple(replace(spec, path=spec.path or path) for spec in clients)


def _job(rw: str, bs: str, iodepth: int, numjobs: int, ioengine: str, size: str) -> Job:
    """The job that both do; UsageError with every fault."""
    from iolab.errors import Fault, UsageError
    from iolab.loads.fileio.engine_facts import FIO_ENGINE
    from iolab.loads.fileio.workload import IOENGINES, SYNC_IOENGINES, Access, Job

    faults: list[Fault] = []
    patterns = [access.value for access in Access if access.reads or access.writes]
    if rw not in patterns:
        faults.append(Fault(f"--rw is {rw!r}.", f"Give one of {', '.join(patterns)}."))
    if ioengine not in IOENGINES:
        faults.append(Fault(f"--ioengine is {ioengine!r}.", f"Give one of {', '.join(IOENGINES)}."))
    if ioengine in SYNC_IOENGINES and iodepth > 1:
        faults.append(
            Fault(
                f"--ioengine {ioengine} keeps one I/O in flight, and --iodepth is {iodepth}.",
                "Give --iodepth 1, or an --ioengine that keeps more.",
            )
        )
    block, whole = _size("--bs", bs, faults), _size("--size", size, faults)
    if block and whole and whole % block:
        happened = f"--size {size} is not a multiple of --bs {bs}."
        near = " or ".join(str(one * block) for one in (whole // block, whole // block + 1) if one)
        faults.append(Fault(happened, f"Give --size {near}, or another --bs."))
    if faults:
        happened = "The calibration cannot be done as asked."
        raise UsageError(happened, "Correct the options.", tuple(faults))
    access = Access(rw)
    return Job(
        engine=FIO_ENGINE,
        access=access,
        block_bytes=block,
        iodepth=iodepth,
        numjobs=numjobs,
        file_bytes=whole,
        read_percent=50 if access.mixed else None,
        ioengine=ioengine,
    )


def _size(option: str, text: str, faults: list[Any]) -> int:
    """The bytes of an option; 0, with a fault, for what is no size in sectors."""
    from iolab.errors import Fault
    from iolab.units import parse_size

    try:
        found = parse_size(text)
    except ValueError:
        found = 0
    if found < 1 or found % 512:
        faults.append(Fault(f"{option} is {text!r}.", "Give a multiple of 512 bytes, as 4k or 1g."))
        return 0
    return found


_STYLES: Final = {"good": "green", "open": "yellow", "warning": "bold red"}


def calibration_screen(found: Calibration) -> tuple[RenderableType, ...]:
    """All hosts together, each of several hosts, and what it means."""
    from iolab.loads.fileio.calibration import rows_of
    from iolab.loads.fileio.calibration_report import meanings, shares_of, versions_text
    from iolab.report.numbers import count
    from iolab.report.terminal import QUIET_STYLE, plain, title

    rows = rows_of(found.trials)
    pairs = len(found.trials) // 2
    many = len(found.hosts) > 1
    shares = shares_of(found)
    found_meanings = meanings(rows, shares, pairs=pairs, hosts=len(found.hosts))
    return (
        *((title(f"{len(found.hosts)} hosts together"),) if many else ()),
        _figures(found, rows),
        *(("", title("Each host"), _hosts(found)) if many else ()),
        "",
        title("What this means"),
        _meanings(found_meanings),
        "",
        plain(
            f"{count(pairs, 'pair')}, order swapped from one to the next: {versions_text(found)}.",
            QUIET_STYLE,
        ),
    )


def _figures(found: Calibration, rows: Sequence[CalibrationRow]) -> RenderableType:
    from iolab.analysis.check import percent
    from iolab.loads.fileio.calibration_report import (
        ENGINES,
        HEADINGS,
        NONE,
        rate_text,
        ratio_text,
        shares_of,
    )
    from iolab.report.numbers import show_value
    from iolab.report.terminal import Heading, table

    headings = [Heading(""), *(Heading(name, number=True) for name in ENGINES)]
    headings += [Heading("native / fio", number=True), Heading("", main=True)]
    lines: list[list[Text | str]] = [
        [
            HEADINGS[row.key],
            show_value(row.fio, row.unit),
            show_value(row.native, row.unit),
            ratio_text(row),
            row.comparison.verdict.value,
        ]
        for row in rows
    ]
    ceilings = [found.ceilings[name] for name in ENGINES]
    lines.append(["ceiling, on /dev/null", *map(rate_text, ceilings), "", ""])
    nearest = {one.engine: percent(one.share) for one in shares_of(found)}
    lines.append(["share of the ceiling", *(nearest.get(name, NONE) for name in ENGINES), "", ""])
    return table(headings, lines)


def _hosts(found: Calibration) -> RenderableType:
    """A row a host: rates, how both compare, what each costs, and how near its end each is."""
    from iolab.analysis.check import percent
    from iolab.loads.fileio.calibration import rows_of
    from iolab.loads.fileio.calibration_report import (
        ENGINES,
        NONE,
        host_shares,
        rate_text,
        ratio_text,
    )
    from iolab.report.numbers import show_value
    from iolab.report.terminal import Heading, plain, table

    headings = [
        Heading("host", main=True),
        *(Heading(f"IOPS, {name}", number=True) for name in ENGINES),
        Heading("native / fio", number=True),
        *(Heading(f"CPU, {name}", number=True) for name in ENGINES),
        *(Heading(f"ceiling, {name}", number=True) for name in ENGINES),
        *(Heading(f"share, {name}", number=True) for name in ENGINES),
    ]
    lines: list[list[Text | str]] = []
    for host in found.hosts:
        rows = {row.key: row for row in rows_of(host.trials)}
        iops, cpu = rows["iops"], rows["cpu_ns_per_io"]
        shares = {one.engine: percent(one.share) for one in host_shares(host)}
        lines.append(
            [
                plain(host.host),
                *(show_value(value, iops.unit) for value in (iops.fio, iops.native)),
                ratio_text(iops),
                *(show_value(value, cpu.unit) for value in (cpu.fio, cpu.native)),
                *(rate_text(host.ceilings[name]) for name in ENGINES),
                *(shares.get(name, NONE) for name in ENGINES),
            ]
        )
    return table(headings, lines)


def _meanings(found_meanings: Sequence[Meaning]) -> RenderableType:
    from iolab.report.terminal import Heading, plain, table

    lines = [[plain(one.about, _STYLES[one.tone.value]), plain(one.says)] for one in found_meanings]
    return table([Heading(""), Heading("", main=True)], lines)
