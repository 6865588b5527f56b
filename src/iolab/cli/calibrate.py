"""`iolab calibrate`: compare the native engine with fio on a target."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec.structs import replace

from iolab.cli.options import OutputFormat, read_hosts, with_output_format
from iolab.cli.output import print_document, print_message, print_renderables
from iolab.errors import Fault, UsageError

if TYPE_CHECKING:
    from iolab.core.host import HostSpec

PAIRS_MAX: Final = 100
SECONDS_MAX: Final = 3600.0
"""Longer is a study."""


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
        float, typer.Option("--seconds", min=1, max=SECONDS_MAX, help="Length of a run.")
    ] = 3.0,
    output: OutputFormat,
) -> None:
    """Compare the native engine with fio on a target."""
    import asyncio

    from iolab.loads.fileio.calibration import CalibrationRequest
    from iolab.loads.fileio.calibration import calibrate as run_all
    from iolab.loads.fileio.calibration_model import job_from_options
    from iolab.loads.fileio.calibration_report import calibration_document
    from iolab.loads.fileio.terminal import calibration_lines

    wish = CalibrationRequest(
        job_from_options(rw, bs, iodepth, numjobs, ioengine, size), pairs, seconds
    )
    calibration = asyncio.run(run_all(_host_specs(path, hosts), wish, print_message))
    if output is not OutputFormat.TABLE:
        document = calibration_document(calibration)
        print_document(output, document, document["rows"])
    else:
        print_renderables(*calibration_lines(calibration))


def _host_specs(path: str | None, hosts: str | None) -> tuple[HostSpec, ...]:
    """This machine, or all clients of an inventory, each with its path; UsageError with faults."""
    from iolab.core.host import HostKind, HostSpec, Role

    if hosts is None:
        if path is None:
            message = "Nothing is said to be calibrated."
            raise UsageError(message, "Give --path DIR, and --hosts HOSTS for a fleet.")
        return (HostSpec("local", HostKind.LOCAL, path=str(Path(path).absolute())),)

    clients = [spec for spec in read_hosts(hosts) if spec.role is Role.CLIENT]
    faults = []
    if path is not None and not PurePosixPath(path).is_absolute():
        message = f"--path is {path!r}, which hosts would take from different places."
        faults.append(Fault(message, "Give a path that begins with /."))
    for spec in clients:
        if spec.serial is not None:
            message = f"The target of host '{spec.name}' is a whole device."
            faults.append(Fault(message, "Give a directory: scratch files are laid out there."))
        elif spec.path is None and path is None:
            faults.append(Fault(f"Host '{spec.name}' has no path.", "Write one, or give --path."))
    if not clients:
        faults.append(Fault("The inventory has no client.", "Describe hosts that make load."))
    if faults:
        raise UsageError("These hosts cannot be calibrated.", "Correct them.", tuple(faults))
    return tuple(replace(spec, path=spec.path or path) for spec in clients)
