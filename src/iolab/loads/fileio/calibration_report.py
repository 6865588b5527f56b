"""What a calibration means, in sentences for people and as one document for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import to_builtins

from iolab.core.engine import EngineName
from iolab.loads.fileio.calibration import CalibrationRow, calibration_rows
from iolab.loads.fileio.calibration_model import Calibration, HostCalibration
from iolab.loads.fileio.checks import CEILING_SHARE
from iolab.loads.fileio.engine_facts import FIO_ENGINE, NATIVE_ENGINE
from iolab.record import Record
from iolab.report.numbers import value_text
from iolab.stats.comparison import SAME_WITHIN
from iolab.text import list_text, percent_text
from iolab.units import format_count, format_ns

TOLERANCES: Final = {"iops": SAME_WITHIN, "lat_ns_p50": 0.05, "lat_ns_p99": 0.05}
"""How near both engines' figures must be to be called one: rates of a device repeat within 2 %,
percentiles, which depend on the order in which it answers, within 5 %."""

NAMES: Final = {"iops": "IOPS", "lat_ns_p50": "p50", "lat_ns_p99": "p99"}

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


class ConclusionTone(StrEnum):
    """How a sentence is to be taken."""

    GOOD = "good"
    OPEN = "open"
    """The figures do not tell."""
    WARNING = "warning"


class Conclusion(Record):
    """One sentence, what it is about, and its tone."""

    about: str
    tone: ConclusionTone
    message: str


class GeneratorCeilingShare(Record):
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
    def is_generator_bound(self) -> bool:
        """Whether runs here would be called bound by their generator."""
        return self.share >= CEILING_SHARE


def nearest_ceiling_shares(calibration: Calibration) -> tuple[GeneratorCeilingShare, ...]:
    """How near each engine came to its ceiling, on the host where it came nearest.

    An engine without a ceiling is left out.
    """
    nearest: dict[EngineName, GeneratorCeilingShare] = {}
    for host in calibration.hosts:
        for share in ceiling_shares_of_host(host):
            previous = nearest.get(share.engine)
            if previous is None or share.share > previous.share:
                nearest[share.engine] = share
    return tuple(nearest.values())


def ceiling_shares_of_host(host: HostCalibration) -> Iterator[GeneratorCeilingShare]:
    """The same on one host."""
    (iops,) = (row for row in calibration_rows(host.trials) if row.key == "iops")
    rates = {FIO_ENGINE: iops.fio, NATIVE_ENGINE: iops.native}
    for engine, ceiling in host.ceilings.items():
        if ceiling:
            yield GeneratorCeilingShare(engine, host.host, rates[engine], ceiling)


def calibration_conclusions(
    rows: Sequence[CalibrationRow],
    shares: Sequence[GeneratorCeilingShare],
    *,
    pairs: int,
    hosts: int = 1,
) -> tuple[Conclusion, ...]:
    """What all figures together mean; `shares` are of the engines whose ceiling is known."""
    by_key = {row.key: row for row in rows}
    bound = [share for share in shares if share.is_generator_bound]
    return (
        _comparability_conclusion("IOPS", [by_key["iops"]], pairs, bound),
        _comparability_conclusion(
            "latency", [by_key["lat_ns_p50"], by_key["lat_ns_p99"]], pairs, bound
        ),
        _cpu_cost_conclusion(by_key["cpu_ns_per_io"]),
        *_ceiling_conclusions(
            shares, hosts, iops_differ=_row_tone(by_key["iops"]) is ConclusionTone.WARNING
        ),
    )


def _comparability_conclusion(
    about: str, rows: Sequence[CalibrationRow], pairs: int, bound: Sequence[GeneratorCeilingShare]
) -> Conclusion:
    """Whether results of both engines can be set beside each other."""
    states = [_row_tone(row) for row in rows]
    message = "; ".join(_row_text(row, state) for row, state in zip(rows, states, strict=True))
    tone = max(states, key=list(ConclusionTone).index)
    if tone is ConclusionTone.WARNING:
        why = " What differs is the engines', which are their own limit here." if bound else ""
        return Conclusion(
            about, tone, f"{message}: do not set results of both beside each other.{why}"
        )
    if tone is ConclusionTone.OPEN:
        return Conclusion(
            about,
            tone,
            f"{message}, as far as {pairs} pairs tell: more --pairs or --seconds tell more.",
        )
    return Conclusion(about, tone, f"{message}: results of both can be set beside each other.")


def _row_tone(row: CalibrationRow) -> ConclusionTone:
    limit, comparison = TOLERANCES[row.key], row.comparison
    if comparison.low is None or comparison.high is None:
        return ConclusionTone.OPEN
    if comparison.low >= 1 / (1 + limit) and comparison.high <= 1 + limit:
        return ConclusionTone.GOOD
    beyond = comparison.ratio > 1 + limit or comparison.ratio < 1 / (1 + limit)
    return (
        ConclusionTone.WARNING
        if beyond and not comparison.low <= 1 <= comparison.high
        else ConclusionTone.OPEN
    )


def _row_text(row: CalibrationRow, state: ConclusionTone) -> str:
    name, limit, comparison = NAMES[row.key], TOLERANCES[row.key], row.comparison
    verb = "agree" if name == "IOPS" else "agrees"
    if state is ConclusionTone.GOOD:
        return f"{name} of both {verb} within {percent_text(limit)}"
    if state is ConclusionTone.WARNING:
        higher = "more" if name == "IOPS" else "higher"
        lower = "less" if name == "IOPS" else "lower"
        return f"native has {_percent_change_text(comparison.ratio, higher, lower)} {name} than fio"
    message = f"{name} of both may differ"
    if comparison.low is None or comparison.high is None:
        return message
    return f"{message} by up to {percent_text(max(comparison.high - 1, 1 / comparison.low - 1))}"


def _percent_change_text(ratio: float, higher: str = "more", lower: str = "less") -> str:
    """`12 % more`; of a ratio below one `12 % less`."""
    return (
        f"{percent_text(ratio - 1)} {higher}" if ratio > 1 else f"{percent_text(1 - ratio)} {lower}"
    )


def _cpu_cost_conclusion(row: CalibrationRow) -> Conclusion:
    """What each engine takes of the client's processors."""
    comparison = row.comparison
    fio, native = format_ns(row.fio), format_ns(row.native)
    text = f"an I/O costs the client {fio} of a processor by fio and {native} by native"
    if comparison.low is None or comparison.high is None or comparison.low <= 1 <= comparison.high:
        return Conclusion("CPU", ConclusionTone.OPEN, f"{text}: no difference that is sure.")
    return Conclusion(
        "CPU", ConclusionTone.GOOD, f"{text}, {_percent_change_text(comparison.ratio)}."
    )


def _ceiling_conclusions(
    shares: Sequence[GeneratorCeilingShare], hosts: int, *, iops_differ: bool
) -> Iterator[Conclusion]:
    """Whose limit the figures are; `iops_differ` where the engines' IOPS surely differ."""
    if not shares:
        return
    parts = [
        f"{share.engine} makes {percent_text(share.share)} of the "
        f"{format_count(share.ceiling_iops)} "
        f"IOPS that it makes without a target{f' on {share.host}' if hosts > 1 else ''}"
        for share in shares
    ]
    text = "; ".join(parts)
    bound = [share.engine for share in shares if share.is_generator_bound]
    below = f"{text}: below {percent_text(CEILING_SHARE)} of that"
    if not bound and iops_differ:
        message = (
            f"{below}, but IOPS that depend on the engine are partly its own, as where a target "
        )
        yield Conclusion(
            "limit", ConclusionTone.WARNING, f"{message}answers within the submitting call."
        )
    elif not bound:
        yield Conclusion("limit", ConclusionTone.GOOD, f"{below}, results here are the target's.")
    else:
        free = [share.engine for share in shares if not share.is_generator_bound]
        hint = f"use {free[0]}, or more clients" if free else "use more clients, or larger blocks"
        message = (
            f"{text}: from {percent_text(CEILING_SHARE)} on, results of "
            f"{list_text(bound)} here are "
        )
        yield Conclusion(
            "limit", ConclusionTone.WARNING, f"{message}bound by the generator; {hint}."
        )


def calibration_document(calibration: Calibration) -> dict[str, Any]:
    """The same for programs, with every run; `hosts` have their own, the rest is all together.

    Versions and methods that differ between hosts are None there.
    """
    rows, shares = calibration_rows(calibration.trials), nearest_ceiling_shares(calibration)
    sentences = calibration_conclusions(
        rows, shares, pairs=len(calibration.trials) // 2, hosts=len(calibration.hosts)
    )
    return {
        "format": 1,
        "engines": [
            _engine_document(
                name,
                _common_text(host.versions[name] for host in calibration.hosts),
                _common_text(host.methods[name] for host in calibration.hosts),
                calibration.ceilings[name],
                shares,
            )
            for name in ENGINES
        ],
        "rows": [_row_document(row) for row in rows],
        "trials": [to_builtins(trial) for trial in calibration.trials],
        "hosts": [_host_document(host) for host in calibration.hosts],
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


def _common_text(texts: Iterable[str]) -> str | None:
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


def _row_document(row: CalibrationRow) -> dict[str, Any]:
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


def _host_document(host: HostCalibration) -> dict[str, Any]:
    shares = tuple(ceiling_shares_of_host(host))
    return {
        "host": host.host,
        "numjobs": host.job.numjobs,
        "engines": [
            _engine_document(
                name, host.versions[name], host.methods[name], host.ceilings[name], shares
            )
            for name in ENGINES
        ],
        "rows": [_row_document(row) for row in calibration_rows(host.trials)],
        "trials": [to_builtins(trial) for trial in host.trials],
    }


def _engine_document(
    name: EngineName,
    version: str | None,
    method: str | None,
    ceiling: float | None,
    shares: Sequence[GeneratorCeilingShare],
) -> dict[str, Any]:
    return {
        "engine": name,
        "version": version,
        "method": method,
        "ceiling_iops": ceiling,
        "ceiling_share": next((share.share for share in shares if share.engine == name), None),
    }
