"""Ask one check about a run."""

from __future__ import annotations

from typing import Any

from iolab.analysis.check import Check
from iolab.analysis.view import RunView
from iolab.core.host import HostFacts
from iolab.core.metric import CheckResult, VerdictLevel
from iolab.core.run import RunRecord
from iolab.hosts.rates import CounterSeries
from tests.analysis.records import QUIET, view_of

VALID, INDICATIVE, INVALID = VerdictLevel


def ask(
    check: Check[RunView],
    record: RunRecord,
    facts: dict[str, HostFacts] | None = None,
    telemetry: tuple[CounterSeries, ...] = QUIET,
) -> CheckResult:
    """The check's answer; every answer is a sentence with plain evidence under the check's code."""
    result = check(view_of(record, facts, telemetry))
    assert result.code == check.code
    assert result.message.endswith(".")
    first = result.message.split()[0]
    assert first[0].isupper() or first[0].isdigit() or first.split("+")[0] in known_names(record)
    assert all(isinstance(v, int | float | str | None) for v in result.evidence.values())
    return result


def known_names(record: RunRecord) -> set[str]:
    """Names that may begin a sentence as they are written: hosts and devices."""
    devices = {delta.device for host in record.hosts for delta in host.devices}
    return {host.host for host in record.hosts} | devices


def level(*arguments: Any, **named: Any) -> VerdictLevel | None:
    """Only the level of the answer."""
    return ask(*arguments, **named).level
