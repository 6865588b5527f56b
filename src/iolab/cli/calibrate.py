"""`iolab calibrate`: hold the native engine against fio on a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from iolab.cli.options import AsJson

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.analyse.calibration import Row
    from iolab.model.calibration import Calibration
    from iolab.model.workload import Job

PAIRS_MAX: Final = 100
SECONDS_MAX: Final = 3600.0
"""Longer is a study."""

HEADINGS: Final = {
    "iops": "IOPS",
    "lat_ns_mean": "latency, mean",
    "lat_ns_p50": "latency, p50",
    "lat_ns_p99": "latency, p99",
    "cpu_ns_per_io": "CPU an I/O",
}
"""What each figure is called."""


def calibrate(
    *,
    path: Annotated[
        str,
        typer.Option(
            "--path", metavar="DIR", help="A directory on the target.", show_default=False
        ),
    ],
    rw: Annotated[str, typer.Option("--rw", help="Access pattern, in fio's words.")] = "randread",
    bs: Annotated[str, typer.Option("--bs", metavar="SIZE", help="Block size.")] = "4k",
    iodepth: Annotated[int, typer.Option("--iodepth", min=1, max=65536, help="Depth a job.")] = 32,
    numjobs: Annotated[int, typer.Option("--numjobs", min=1, max=4096, help="Jobs.")] = 1,
    ioengine: Annotated[
        str, typer.Option("--ioengine", help="How fio asks the kernel.")
    ] = "libaio",
    size: Annotated[
        str, typer.Option("--size", metavar="SIZE", help="Size of each job's scratch file.")
    ] = "256m",
    pairs: Annotated[
        int, typer.Option("--pairs", min=2, max=PAIRS_MAX, help="How often both engines run.")
    ] = 7,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, max=SECONDS_MAX, help="How long each run lasts.")
    ] = 3.0,
    as_json: AsJson = False,
) -> None:
    """Hold the native engine against fio on a target."""
    import asyncio

    from iolab.analyse.calibration import rows_of
    from iolab.cli.talk import result_json, result_screen, say
    from iolab.run.calibrate import Wish
    from iolab.run.calibrate import calibrate as run_all

    wish = Wish(_job(rw, bs, iodepth, numjobs, ioengine, size), pairs, seconds)
    found = asyncio.run(run_all(str(Path(path).absolute()), wish, say))
    rows = rows_of(found.trials)
    if as_json:
        result_json(_document(found, rows))
    else:
        result_screen(*_screen(found, rows))


def _job(rw: str, bs: str, iodepth: int, numjobs: int, ioengine: str, size: str) -> Job:
    """The job that both do; UsageError with every fault."""
    from iolab.errors import Fault, UsageError
    from iolab.model.engine import EngineName
    from iolab.model.fio_options import IOENGINES, SYNC_IOENGINES
    from iolab.model.workload import Access, Job

    faults: list[Fault] = []
    patterns = [access.value for access in Access]
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
        faults.append(Fault(f"--size {size} is not a multiple of --bs {bs}.", "Give one."))
    if faults:
        happened = "The calibration cannot be done as asked."
        raise UsageError(happened, "Correct the options.", tuple(faults))
    access = Access(rw)
    return Job(
        engine=EngineName.FIO,
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


def _screen(found: Calibration, rows: tuple[Row, ...]) -> tuple[RenderableType, ...]:
    from iolab.cli.screen import Heading, plain, table
    from iolab.model.engine import EngineName
    from iolab.report.wording import show_value

    headings = [Heading(""), *(Heading(name, number=True) for name in ("fio", "native"))]
    headings += [Heading("native / fio", number=True), Heading("", main=True)]
    lines = [
        [
            HEADINGS[row.key],
            show_value(row.fio, row.unit),
            show_value(row.native, row.unit),
            _ratio(row),
            row.comparison.verdict.value,
        ]
        for row in rows
    ]
    ceilings = dict(found.ceilings)
    shown = ["-" if value is None else show_value(value, "1/s") for value in ceilings.values()]
    lines.append(["ceiling, on /dev/null", *shown, "", ""])
    versions, methods = dict(found.versions), dict(found.methods)
    fio = methods[EngineName.FIO]
    said = f"{versions[EngineName.FIO]} ({fio}), {versions[EngineName.NATIVE]}"
    count = len(found.trials) // 2
    return (table(headings, lines), "", plain(f"{count} pairs, order swapped: {said}."))


def _ratio(row: Row) -> str:
    one = row.comparison
    if one.low is None or one.high is None:
        return f"{one.ratio:.3f}"
    return f"{one.ratio:.3f} [{one.low:.3f}, {one.high:.3f}]"


def _document(found: Calibration, rows: tuple[Row, ...]) -> dict[str, Any]:
    """The same for programs, with every run."""
    from dataclasses import asdict

    return {
        "format": 1,
        "engines": [
            {
                "engine": name.value,
                "version": version,
                "method": dict(found.methods)[name],
                "ceiling_iops": dict(found.ceilings)[name],
            }
            for name, version in found.versions
        ],
        "rows": [
            {
                "key": row.key,
                "unit": row.unit,
                "fio": row.fio,
                "native": row.native,
                "ratio": row.comparison.ratio,
                "low": row.comparison.low,
                "high": row.comparison.high,
                "verdict": row.comparison.verdict.value,
            }
            for row in rows
        ],
        "trials": [{**asdict(one), "engine": one.engine.value} for one in found.trials],
    }
