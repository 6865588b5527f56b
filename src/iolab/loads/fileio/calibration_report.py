"""What a calibration means, in sentences for people and as one document for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, Final

from iolab.core.engine import EngineName
from iolab.dataclass import dataclass
from iolab.loads.fileio.calibration import CalibrationRow, rows_of
from iolab.loads.fileio.calibration_model import Calibration, HostCalibration
from iolab.loads.fileio.checks import BOUND_SHARE
from iolab.loads.fileio.engine_facts import FIO_ENGINE, NATIVE_ENGINE
from iolab.report.numbers import value_text
from iolab.stats.comparison import SAME_WITHIN
from iolab.text import list_text, percent_text
from iolab.units import format_count, format_ns

WITHIN: Final = {"iops": SAME_WITHIN, "lat_ns_p50": 0.05, "lat_ns_p99": 0.05}
"""How near both engines' figures must be to be called one: rates of a device repeat within 2 %,
percentiles, which depend on the order in which it answers, within 5 %."""

NAMES: Final = {"iops": "IOPS", "lat_ns_p50": "p50", "lat_ns_p99": "p99"}


class Tone(StrEnum):
    """How a sentence is to be taken."""

    GOOD = "good"
    OPEN = "open"
    """The figures do not tell."""
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Meaning:
    """One sentence, what it is about, and its tone."""

    about: str
    tone: Tone
    message: str


@dataclass(frozen=True, slots=True)
class GeneratorShare:
    """How near an engine came to what it makes of nothing, on the host where that was nearest."""

    engine: EngineName
    host: str
    iops: float
    ceiling_iops: float

    @property
    def share(self) -> float:
        """The part of the ceiling, 0 to 1."""
        return self.iops / self.ceiling_iops

    @property
    def bound(self) -> bool:
        """Whether runs here would be called bound by their generator."""
        return self.share >= BOUND_SHARE


def shares_of(calibration: Calibration) -> tuple[GeneratorShare, ...]:
    """How near each engine came to its ceiling, on the host where it came nearest.

    An engine without a ceiling is left out.
    """
    nearest: dict[EngineName, GeneratorShare] = {}
    for host in calibration.hosts:
        for share in host_shares(host):
            previous = nearest.get(share.engine)
            if previous is None or share.share > previous.share:
                nearest[share.engine] = share
    return tuple(nearest.values())


def host_shares(host: HostCalibration) -> Iterator[GeneratorShare]:
    """The same on one host."""
    (iops,) = (row for row in rows_of(host.trials) if row.key == "iops")
    rates = {FIO_ENGINE: iops.fio, NATIVE_ENGINE: iops.native}
    for engine, ceiling in host.ceilings.items():
        if ceiling:
            yield GeneratorShare(engine, host.host, rates[engine], ceiling)


def meanings(
    rows: Sequence[CalibrationRow], shares: Sequence[GeneratorShare], *, pairs: int, hosts: int = 1
) -> tuple[Meaning, ...]:
    """What all figures together mean; `shares` are of the engines whose ceiling is known."""
    by_key = {row.key: row for row in rows}
    bound = [share for share in shares if share.bound]
    return (
        _overlay("IOPS", [by_key["iops"]], pairs, bound),
        _overlay("latency", [by_key["lat_ns_p50"], by_key["lat_ns_p99"]], pairs, bound),
        _cost(by_key["cpu_ns_per_io"]),
        *_ceiling(shares, hosts, apart=_state(by_key["iops"]) is Tone.WARNING),
    )


def _overlay(
    about: str, rows: Sequence[CalibrationRow], pairs: int, bound: Sequence[GeneratorShare]
) -> Meaning:
    """Whether results of both engines can be set beside each other."""
    states = [_state(row) for row in rows]
    message = "; ".join(_row_text(row, state) for row, state in zip(rows, states, strict=True))
    tone = max(states, key=list(Tone).index)
    if tone is Tone.WARNING:
        why = " What differs is the engines', which are their own limit here." if bound else ""
        return Meaning(
            about, tone, f"{message}: do not set results of both beside each other.{why}"
        )
    if tone is Tone.OPEN:
        return Meaning(
            about,
            tone,
            f"{message}, as far as {pairs} pairs tell: more --pairs or --seconds tell more.",
        )
    return Meaning(about, tone, f"{message}: results of both can be set beside each other.")


def _state(row: CalibrationRow) -> Tone:
    limit, comparison = WITHIN[row.key], row.comparison
    if comparison.low is None or comparison.high is None:
        return Tone.OPEN
    if comparison.low >= 1 / (1 + limit) and comparison.high <= 1 + limit:
        return Tone.GOOD
    beyond = comparison.ratio > 1 + limit or comparison.ratio < 1 / (1 + limit)
    return Tone.WARNING if beyond and not comparison.low <= 1 <= comparison.high else Tone.OPEN


def _row_text(row: CalibrationRow, state: Tone) -> str:
    name, limit, comparison = NAMES[row.key], WITHIN[row.key], row.comparison
    verb = "agree" if name == "IOPS" else "agrees"
    if state is Tone.GOOD:
        return f"{name} of both {verb} within {percent_text(limit)}"
    if state is Tone.WARNING:
        higher = "more" if name == "IOPS" else "higher"
        lower = "less" if name == "IOPS" else "lower"
        return f"native has {_changed(comparison.ratio, higher, lower)} {name} than fio"
    message = f"{name} of both may differ"
    if comparison.low is None or comparison.high is None:
        return message
    return f"{message} by up to {percent_text(max(comparison.high - 1, 1 / comparison.low - 1))}"


def _changed(ratio: float, higher: str = "more", lower: str = "less") -> str:
    """`12 % more`; of a ratio below one `12 % less`."""
    return (
        f"{percent_text(ratio - 1)} {higher}" if ratio > 1 else f"{percent_text(1 - ratio)} {lower}"
    )


def _cost(row: CalibrationRow) -> Meaning:
    """What each engine takes of the client's processors."""
    comparison = row.comparison
    fio, native = format_ns(row.fio), format_ns(row.native)
    text = f"an I/O costs the client {fio} of a processor by fio and {native} by native"
    if comparison.low is None or comparison.high is None or comparison.low <= 1 <= comparison.high:
        return Meaning("CPU", Tone.OPEN, f"{text}: no difference that is sure.")
    return Meaning("CPU", Tone.GOOD, f"{text}, {_changed(comparison.ratio)}.")


def _ceiling(shares: Sequence[GeneratorShare], hosts: int, *, apart: bool) -> Iterator[Meaning]:
    """Whose limit the figures are; `apart` where the engines' IOPS surely differ."""
    if not shares:
        return
    parts = [
        f"{share.engine} makes {percent_text(share.share)} of the "
        f"{format_count(share.ceiling_iops)} "
        f"IOPS that it makes without a target{f' on {share.host}' if hosts > 1 else ''}"
        for share in shares
    ]
    text = "; ".join(parts)
    bound = [share.engine for share in shares if share.bound]
    below = f"{text}: below {percent_text(BOUND_SHARE)} of that"
    if not bound and apart:
        message = (
            f"{below}, but IOPS that depend on the engine are partly its own, as where a target "
        )
        yield Meaning("limit", Tone.WARNING, f"{message}answers within the submitting call.")
    elif not bound:
        yield Meaning("limit", Tone.GOOD, f"{below}, results here are the target's.")
    else:
        free = [share.engine for share in shares if not share.bound]
        hint = f"use {free[0]}, or more clients" if free else "use more clients, or larger blocks"
        message = (
            f"{text}: from {percent_text(BOUND_SHARE)} on, results of {list_text(bound)} here are "
        )
        yield Meaning("limit", Tone.WARNING, f"{message}bound by the generator; {hint}.")


HEADINGS: Final = {
    "iops": "IOPS",
    "lat_ns_mean": "latency, mean",
    "lat_ns_p50": "latency, p50",
    "lat_ns_p99": "latency, p99",
    "cpu_ns_per_io": "CPU an I/O",
}
"""What each figure is called."""

ENGINES: Final = (FIO_ENGINE, NATIVE_ENGINE)
HOSTS_SHOWN: Final = 4
NONE: Final = "–"


def calibration_document(calibration: Calibration) -> dict[str, Any]:
    """The same for programs, with every run; `hosts` have their own, the rest is all together.

    Versions and methods that differ between hosts are None there.
    """
    rows, shares = rows_of(calibration.trials), shares_of(calibration)
    sentences = meanings(
        rows, shares, pairs=len(calibration.trials) // 2, hosts=len(calibration.hosts)
    )
    return {
        "format": 1,
        "engines": [
            _engine(
                name,
                _shared(host.versions[name] for host in calibration.hosts),
                _shared(host.methods[name] for host in calibration.hosts),
                calibration.ceilings[name],
                shares,
            )
            for name in ENGINES
        ],
        "rows": [_row(row) for row in rows],
        "trials": [asdict(trial) for trial in calibration.trials],
        "hosts": [_host(host) for host in calibration.hosts],
        "means": [
            {"about": meaning.about, "tone": meaning.tone.value, "message": meaning.message}
            for meaning in sentences
        ],
    }


def versions_text(calibration: Calibration) -> str:
    """Each engine's version and way to the kernel, once for hosts that have them alike."""
    parts = []
    for name in ENGINES:
        hosts_by_version: dict[str, list[str]] = {}
        for host in calibration.hosts:
            version, method = host.versions[name], host.methods[name]
            text = version if f"({method})" in version else f"{version} ({method})"
            hosts_by_version.setdefault(text, []).append(host.host)
        if len(hosts_by_version) == 1:
            parts.append(next(iter(hosts_by_version)))
        else:
            parts += [
                f"{text} on {list_text(hosts, HOSTS_SHOWN)}"
                for text, hosts in hosts_by_version.items()
            ]
    return ", ".join(parts)


def _shared(texts: Iterable[str]) -> str | None:
    """What all hosts say; None where they differ."""
    different = set(texts)
    return different.pop() if len(different) == 1 else None


def rate_text(value: float | None) -> str:
    """A rate; a dash where there is none."""
    return NONE if value is None else value_text(value, "1/s")


def ratio_text(row: CalibrationRow) -> str:
    """The ratio of both engines, with its interval where there is one."""
    comparison = row.comparison
    if comparison.low is None or comparison.high is None:
        return f"{comparison.ratio:.3f}"
    return f"{comparison.ratio:.3f} [{comparison.low:.3f}, {comparison.high:.3f}]"


def _row(row: CalibrationRow) -> dict[str, Any]:
    comparison = row.comparison
    return {
        "key": row.key,
        "unit": row.unit,
        "fio": row.fio,
        "native": row.native,
        "ratio": comparison.ratio,
        "low": comparison.low,
        "high": comparison.high,
        "verdict": comparison.verdict.value,
    }


def _host(host: HostCalibration) -> dict[str, Any]:
    shares = tuple(host_shares(host))
    return {
        "host": host.host,
        "numjobs": host.job.numjobs,
        "engines": [
            _engine(name, host.versions[name], host.methods[name], host.ceilings[name], shares)
            for name in ENGINES
        ],
        "rows": [_row(row) for row in rows_of(host.trials)],
        "trials": [asdict(trial) for trial in host.trials],
    }


def _engine(
    name: EngineName,
    version: str | None,
    method: str | None,
    ceiling: float | None,
    shares: Sequence[GeneratorShare],
) -> dict[str, Any]:
    return {
        "engine": name,
        "version": version,
        "method": method,
        "ceiling_iops": ceiling,
        "ceiling_share": next((share.share for share in shares if share.engine == name), None),
    }
