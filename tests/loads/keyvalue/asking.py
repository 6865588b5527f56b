"""Ask one check about a run on a key-value store, and change one thing about a healthy one."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from iolab.core.host import HostFacts
from iolab.core.metric import CheckResult
from iolab.core.run import HostRun, RunRecord
from iolab.hosts.rates import CounterSeries
from iolab.loads.keyvalue.workload import OperationCount, key_value_details_of_host
from tests.judging import KEY_VALUE_CHECKS
from tests.loads.keyvalue.records import CALM, key_view


def ask(
    code: str,
    record: RunRecord,
    facts: dict[str, HostFacts] | None = None,
    telemetry: tuple[CounterSeries, ...] = CALM,
) -> CheckResult:
    """The check's answer: a sentence, with plain evidence."""
    check = next(one for one in KEY_VALUE_CHECKS if one.code == code)
    result = check(key_view(record, facts, telemetry))
    assert result.message.endswith(".")
    assert ".." not in result.message
    assert all(isinstance(v, int | float | str | None) for v in result.evidence.values())
    return result


def on_host(record: RunRecord, index: int, **changes: Any) -> RunRecord:
    """The record with another host in that place."""
    return _with_host(record, index, replace(record.hosts[index], **changes))


def told(record: RunRecord, index: int = 0, **changes: Any) -> RunRecord:
    """The record whose engine told something else."""
    run = key_value_details_of_host(record.hosts[index])
    assert run is not None
    return on_host(record, index, details=replace(run, **changes))


def counted(record: RunRecord, place: int = 0, **changes: Any) -> RunRecord:
    """The record whose first engine counted one operation otherwise."""
    run = key_value_details_of_host(record.hosts[0])
    assert run is not None
    counts: list[OperationCount] = list(run.counts)
    counts[place] = replace(counts[place], **changes)
    return told(record, counts=tuple(counts))


def _with_host(record: RunRecord, index: int, host: HostRun) -> RunRecord:
    hosts = list(record.hosts)
    hosts[index] = host
    return replace(record, hosts=tuple(hosts))
