"""The result of `iolab calibrate`: tables and sentences for people, one document for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from iolab.analyse.calibration import Row, rows_of
from iolab.analyse.calibration_words import Meaning, Tone, host_shares, meanings, shares_of
from iolab.analyse.checks.registry import percent
from iolab.cli.screen import QUIET_STYLE, Heading, plain, table, title
from iolab.model.calibration import Calibration, HostCalibration, Trial
from iolab.model.engine import EngineName
from iolab.report.wording import count, listing, show_value

HEADINGS: Final = {
    "iops": "IOPS",
    "lat_ns_mean": "latency, mean",
    "lat_ns_p50": "latency, p50",
    "lat_ns_p99": "latency, p99",
    "cpu_ns_per_io": "CPU an I/O",
}
"""What each figure is called."""

STYLES: Final = {Tone.GOOD: "green", Tone.OPEN: "yellow", Tone.WARNING: "bold red"}
ENGINES: Final = (EngineName.FIO, EngineName.NATIVE)
HOSTS_SHOWN: Final = 4
NONE: Final = "–"


def calibration_screen(found: Calibration) -> tuple[RenderableType, ...]:
    """All hosts together, each of several hosts, and what it means."""
    rows = rows_of(found.trials)
    pairs = len(found.trials) // 2
    many = len(found.hosts) > 1
    shares = shares_of(found)
    said = meanings(rows, shares, pairs=pairs, hosts=len(found.hosts))
    return (
        *((title(f"{len(found.hosts)} hosts together"),) if many else ()),
        _figures(found, rows),
        *(("", title("Each host"), _hosts(found)) if many else ()),
        "",
        title("What this means"),
        _meanings(said),
        "",
        plain(
            f"{count(pairs, 'pair')}, order swapped from one to the next: {_versions(found)}.",
            QUIET_STYLE,
        ),
    )


def calibration_document(found: Calibration) -> dict[str, Any]:
    """The same for programs, with every run; `hosts` have their own, the rest is all together.

    Versions and methods that differ between hosts are None there.
    """
    rows, shares = rows_of(found.trials), shares_of(found)
    said = meanings(rows, shares, pairs=len(found.trials) // 2, hosts=len(found.hosts))
    nearest = {one.engine: one.share for one in shares}
    return {
        "format": 1,
        "engines": [
            {
                "engine": name.value,
                "version": _shared(host.versions[name] for host in found.hosts),
                "method": _shared(host.methods[name] for host in found.hosts),
                "ceiling_iops": found.ceilings[name],
                "ceiling_share": nearest.get(name),
            }
            for name in ENGINES
        ],
        "rows": [_row(row) for row in rows],
        "trials": [_trial(one) for one in found.trials],
        "hosts": [_host(host) for host in found.hosts],
        "means": [{"about": one.about, "tone": one.tone.value, "says": one.says} for one in said],
    }


def _figures(found: Calibration, rows: Sequence[Row]) -> RenderableType:
    headings = [Heading(""), *(Heading(name.value, number=True) for name in ENGINES)]
    headings += [Heading("native / fio", number=True), Heading("", main=True)]
    lines: list[list[Text | str]] = [
        [
            HEADINGS[row.key],
            show_value(row.fio, row.unit),
            show_value(row.native, row.unit),
            _ratio(row),
            row.comparison.verdict.value,
        ]
        for row in rows
    ]
    ceilings = [found.ceilings[name] for name in ENGINES]
    lines.append(["ceiling, on /dev/null", *map(_rate, ceilings), "", ""])
    nearest = {one.engine: percent(one.share) for one in shares_of(found)}
    lines.append(["share of the ceiling", *(nearest.get(name, NONE) for name in ENGINES), "", ""])
    return table(headings, lines)


def _hosts(found: Calibration) -> RenderableType:
    """A row a host: rates, how both compare, what each costs, and how near its end each is."""
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
                _ratio(iops),
                *(show_value(value, cpu.unit) for value in (cpu.fio, cpu.native)),
                *(_rate(host.ceilings[name]) for name in ENGINES),
                *(shares.get(name, NONE) for name in ENGINES),
            ]
        )
    return table(headings, lines)


def _meanings(said: Sequence[Meaning]) -> RenderableType:
    lines = [[plain(one.about, STYLES[one.tone]), plain(one.says)] for one in said]
    return table([Heading(""), Heading("", main=True)], lines)


def _versions(found: Calibration) -> str:
    """Each engine's version and way to the kernel, once for hosts that have them alike."""
    parts = []
    for name in ENGINES:
        told: dict[str, list[str]] = {}
        for host in found.hosts:
            version, method = host.versions[name], host.methods[name]
            one = version if f"({method})" in version else f"{version} ({method})"
            told.setdefault(one, []).append(host.host)
        if len(told) == 1:
            parts.append(next(iter(told)))
        else:
            parts += [f"{one} on {listing(hosts, HOSTS_SHOWN)}" for one, hosts in told.items()]
    return ", ".join(parts)


def _shared(told: Iterable[str]) -> str | None:
    """What all hosts say; None where they differ."""
    different = set(told)
    return different.pop() if len(different) == 1 else None


def _rate(value: float | None) -> str:
    return NONE if value is None else show_value(value, "1/s")


def _ratio(row: Row) -> str:
    one = row.comparison
    if one.low is None or one.high is None:
        return f"{one.ratio:.3f}"
    return f"{one.ratio:.3f} [{one.low:.3f}, {one.high:.3f}]"


def _row(row: Row) -> dict[str, Any]:
    one = row.comparison
    return {
        "key": row.key,
        "unit": row.unit,
        "fio": row.fio,
        "native": row.native,
        "ratio": one.ratio,
        "low": one.low,
        "high": one.high,
        "verdict": one.verdict.value,
    }


def _trial(one: Trial) -> dict[str, Any]:
    return {**asdict(one), "engine": one.engine.value}


def _host(host: HostCalibration) -> dict[str, Any]:
    shares = {one.engine: one.share for one in host_shares(host)}
    return {
        "host": host.host,
        "numjobs": host.job.numjobs,
        "engines": [
            {
                "engine": name.value,
                "version": host.versions[name],
                "method": host.methods[name],
                "ceiling_iops": host.ceilings[name],
                "ceiling_share": shares.get(name),
            }
            for name in ENGINES
        ],
        "rows": [_row(row) for row in rows_of(host.trials)],
        "trials": [_trial(one) for one in host.trials],
    }
