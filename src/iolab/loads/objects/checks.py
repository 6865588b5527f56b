"""Checks of load on objects: failures, connections, contents, caches, clocks, socket options."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import numpy as np

from iolab.analysis.check import (
    ACKNOWLEDGED,
    ON_DEVICES,
    CheckAnswer,
    EvidenceValues,
    HostAnswer,
    answer_to_grade,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    per_host,
    unchecked_answer,
    valid_answer,
)
from iolab.analysis.checks.run import check_generator_bound, check_rate_kept
from iolab.analysis.storage_bytes import storage_byte_balance
from iolab.core.histogram import bin_index_of_ns
from iolab.core.workload import Direction, OperationEnum
from iolab.loads.objects.metrics import THROTTLES, ObjectsView, all_operations_per_s
from iolab.loads.objects.workload import ContentlessObjectOperation, ObjectOperation, ObjectOrder
from iolab.text import percent_text
from iolab.units import NS_PER_S, format_bytes, format_count, format_ns

FAILED_GOOD: Final = 0.001
FAILED_BAD: Final = 0.01
"""Of all operations: what fails is quick, or waits for a time-out, and is in no latency."""

REPEATED_GOOD: Final = 0.01
"""Requests that were repeated, of all: their waits are in the operations' latencies."""

OPENED_GOOD: Final = 0.01
"""Connections that were opened in the run, of its requests: kept ones need none."""

DELAYED_FROM_NS: Final = 38e6
DELAYED_TO_NS: Final = 48e6
"""Where the answers of a server lie whose small writes wait for a delayed acknowledgement."""

DELAYED_SHARE: Final = 0.4
"""Of all answers: where a server is only busy they spread far beyond."""

NEAR_NS: Final = 10e6
"""Servers to which a connection is set up in less are not 40 ms away."""

HOT_SHARE: Final = 0.1
"""Of all requests to one object: it is in one place, and soon in a cache."""

MEMORY_FACTOR: Final = 2.0
"""Data sets of less than so many times the servers' memory may be read from it."""

CLOCK_GOOD_S: Final = 60.0
"""From fifteen minutes on servers refuse requests."""

GENERATOR_LIMIT_SHARE: Final = 0.5
"""Of what the generator makes on a null target: from there on it may be the limit."""

WRITTEN_GOOD: Final = 0.9
"""Of what was put, that disks must have written by the run's end, as for `storage-bytes`."""

COMPARED_GOOD: Final = 0.5
"""Of the contents that are to be compared: every n-th of unlike sizes is not the same bytes."""

CARRIED_GOOD: Final = 0.98
CARRIED_BAD: Final = 0.9
"""Of the bytes of contents, that ports must have carried: headers come on top of them."""

_NO_DETAILS: Final = "did not tell what it did with its requests"

SMALL_ANSWERS: Final[tuple[OperationEnum, ...]] = (
    ContentlessObjectOperation.OBJECT_HEAD,
    ObjectOperation.OBJECT_GET_FIRST_BYTE,
    ObjectOperation.OBJECT_GET_RANGE_FIRST_BYTE,
    ObjectOperation.OBJECT_PUT_COMMIT,
)

RANKS_MAX: Final = 10_000_000
"""Objects beyond these add next to nothing to the sum of a Zipf distribution."""


@check("object-requests-failed", "Requests to the object store that failed", needs_load=False)
@per_host(max_key="failed_share")
def check_object_requests_failed(view: ObjectsView, host_index: int) -> CheckAnswer:
    """Whether operations failed, or had to be repeated: both are in no single latency."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    run = view.details_of_host(host_index)
    if run is None:
        return unchecked_answer(f"{host.host} {_NO_DETAILS}")
    every = run.done_count + run.failed_count
    share = run.failed_count / every if every else 0.0
    errors = run.errors
    repeated = max(run.attempt_count - every, 0)
    evidence: EvidenceValues = {
        "host": host.host,
        "failed_share": share,
        "failed": run.failed_count,
        "done": run.done_count,
        "repeated": repeated,
        "throttled": sum(errors.get(name, 0) for name in THROTTLES),
        "classes": ", ".join(f"{name} {count}" for name, count in errors.items()),
    }
    named = ", ".join(
        f"{format_count(count)} {name}"
        for name, count in sorted(errors.items(), key=lambda error: -error[1])[:3]
    )
    if wrong := errors.get("wrong-content", 0):
        return invalid_answer(
            f"{format_count(wrong)} objects{where} had other contents than were put.", **evidence
        )
    text = f"{format_count(run.failed_count)} of {format_count(every)} operations{where} failed"
    text += f" ({named})" if named else ""
    if share > FAILED_GOOD:
        verdict = invalid_answer if share > FAILED_BAD else indicative_answer
        return verdict(f"{text}: rates and latencies are of the others.", **evidence)
    if repeated > REPEATED_GOOD * max(run.attempt_count, 1):
        return indicative_answer(
            f"{text}, {format_count(repeated)} requests were repeated: operations waited for "
            "them, attempts have latencies of their own.",
            **evidence,
        )
    return valid_answer(f"{text}.", **evidence)


@check("connections-opened", "Connections set up during the run")
@per_host(max_key="opened_share")
def check_connections_opened(view: ObjectsView, host_index: int) -> CheckAnswer:
    """Whether requests used connections that were there, as they were to."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    run = view.details_of_host(host_index)
    if run is None or not run.attempt_count:
        return unchecked_answer(f"{host.host} {_NO_DETAILS}")
    share = run.opened / run.attempt_count
    evidence: EvidenceValues = {
        "host": host.host,
        "opened_share": share,
        "opened": run.opened,
        "requests": run.attempt_count,
        "closed_by_server": run.closed_by_server,
    }
    text = (
        f"{format_count(run.opened)} connections{where} for "
        f"{format_count(run.attempt_count)} requests"
    )
    if not view.objects_job.keep_alive:
        return not_applicable_answer(f"{text}: none was to be kept.", **evidence)
    if share > OPENED_GOOD:
        return indicative_answer(
            f"{text}: the server closed {format_count(run.closed_by_server)}, so that setting up "
            "connections is measured with it.",
            **evidence,
        )
    return valid_answer(f"{text}.", **evidence)


@check("delayed-acknowledgement", "Answers that wait for a socket option")
@per_host(max_key="median_ns")
def check_delayed_acknowledgement(view: ObjectsView, host_index: int) -> CheckAnswer:
    """Whether answers take the 40 ms of delayed acknowledgements: then no storage is measured."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    medians = {
        operation: view.operation_histogram([host_index], operation).percentile_ns(50.0)
        for operation in SMALL_ANSWERS
        if view.operation_count([host_index], operation)
    }
    known = {operation: ns for operation, ns in medians.items() if ns is not None}
    if not known:
        return not_applicable_answer("No answer was timed that could wait for one.")
    connect_ns = view.operation_histogram(
        [host_index], ObjectOperation.OBJECT_CONNECT
    ).percentile_ns(50.0)
    delayed = {operation: _delayed_ack_share(view, host_index, operation) for operation in known}
    operation, median_ns = max(known.items(), key=lambda item: (delayed[item[0]], item[1]))
    evidence: EvidenceValues = {
        "host": host.host,
        "median_ns": median_ns,
        "operation": operation.key,
        "connect_ns": connect_ns,
        "delayed_share": delayed[operation],
    }
    text = f"Half of all {operation.display_name}{where} take {format_ns(median_ns)} at most"
    is_far = connect_ns is not None and connect_ns > NEAR_NS
    if delayed[operation] >= DELAYED_SHARE and not is_far:
        return indicative_answer(
            f"{text}: that is the 40 ms of a delayed acknowledgement, a socket option "
            "(TCP_NODELAY) of the server, and not its storage.",
            **evidence,
        )
    return valid_answer(f"{text}, which is no delayed acknowledgement.", **evidence)


def _delayed_ack_share(view: ObjectsView, host_index: int, operation: OperationEnum) -> float:
    """The part of a host's answers that took as long as a delayed acknowledgement."""
    counts = view.operation_histogram([host_index], operation).counts
    first, last = bin_index_of_ns([DELAYED_FROM_NS, DELAYED_TO_NS])
    return float(counts[first : last + 1].sum() / counts.sum())


@check("hot-object", "One object that most requests go to")
def check_hot_object(view: ObjectsView) -> CheckAnswer:
    """Whether one object has so many requests that its place and its cache are measured."""
    job = view.objects_job
    if not (job.get or job.get_range or job.head):
        return not_applicable_answer("No object was read.")
    share = 1 / job.object_count
    if job.order is ObjectOrder.ZIPF:
        ranks = np.arange(1, min(job.object_count, RANKS_MAX) + 1, dtype=np.float64)
        share = 1 / float((ranks**-job.zipf_theta).sum())
    evidence: EvidenceValues = {"share": share, "objects": job.object_count}
    text = f"{percent_text(share)} of the reads are of the most popular object"
    if share > HOT_SHARE:
        return indicative_answer(f"{text}: it lies in one place, and in caches.", **evidence)
    return valid_answer(f"{text}.", **evidence)


@check("data-set-in-server-memory", "Objects that fit into the servers' memory")
def check_data_set_in_server_memory(view: ObjectsView) -> CheckAnswer:
    """Whether the objects that were read may have come from the servers' memory."""
    job = view.objects_job
    if not (job.get or job.get_range):
        return not_applicable_answer("No contents were read.")
    runs = [run for index in range(len(view.hosts)) if (run := view.details_of_host(index))]
    size = max((run.data_set_bytes for run in runs), default=0)
    nodes = [
        facts
        for node in view.record.monitored_hosts
        if (facts := view.facts.get(node.host)) is not None
    ]
    text = f"{format_bytes(size)} of objects"
    if not nodes or not size:
        return not_applicable_answer(
            f"{text}; the servers are not watched, their memory is not known.", data_set_bytes=size
        )
    memory = sum(facts.memory.total_bytes for facts in nodes)
    evidence: EvidenceValues = {"data_set_bytes": size, "memory_bytes": memory}
    text += f", {format_bytes(memory)} of memory on {len(nodes)} servers"
    if size < MEMORY_FACTOR * memory:
        return indicative_answer(f"{text}: reads may have come from it.", **evidence)
    return valid_answer(f"{text}.", **evidence)


@check("puts-in-memory", "PUTs acknowledged before they are on a device")
def check_puts_in_memory(view: ObjectsView) -> CheckAnswer:
    """Whether storage nodes had written what they acknowledged.

    Latencies of memory and of devices do not compare: a comparison says what the evidence says.
    """
    if not view.objects_job.put:
        return not_applicable_answer("Nothing was put.")
    account = storage_byte_balance(view.record, view.facts)
    if account is None or account.moved_write_bytes is None or not account.claimed_write_bytes:
        return not_applicable_answer(
            "No disks of storage nodes are watched: whether PUTs were on a device when they were "
            "acknowledged is not known.",
            **{ACKNOWLEDGED: "not known"},
        )
    share = account.moved_write_bytes / account.claimed_write_bytes
    evidence: EvidenceValues = {
        "written_share": share,
        "put_bytes": account.claimed_write_bytes,
        "written_bytes": account.moved_write_bytes,
    }
    text = (
        f"The storage nodes' disks wrote {percent_text(share)} of the "
        f"{format_bytes(account.claimed_write_bytes)} that were put, by the end of the run"
    )
    if share < WRITTEN_GOOD:
        evidence |= {ACKNOWLEDGED: "in memory"}
        return indicative_answer(
            f"{text}: the others were acknowledged in memory, which is what PUT latencies are of.",
            **evidence,
        )
    return valid_answer(f"{text}.", **evidence, **{ACKNOWLEDGED: ON_DEVICES})


@check("objects-lost", "Acknowledged objects that were not there afterwards")
@per_host(max_key="lost_share")
def check_objects_lost(view: ObjectsView, host_index: int) -> CheckAnswer:
    """Whether what a run put could be read after it with its contents, where that was asked for."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    run = view.details_of_host(host_index)
    if not view.objects_job.read_back:
        return not_applicable_answer("What was put was not read back: read_back = false.")
    if run is None or run.read_back is None:
        return unchecked_answer(f"What was put{where} was not read back.", host=host.host)
    count, acknowledged, failed = run.read_back, run.put_objects, run.failed_put_count
    if not acknowledged:
        return not_applicable_answer(f"No PUT{where} was acknowledged.", host=host.host)
    # Of those whose PUT failed none need be there.
    lost = max(count.missing - failed, 0)
    evidence: EvidenceValues = {
        "host": host.host,
        "lost_share": (lost + count.differing) / acknowledged,
        "lost": lost,
        "missing": count.missing,
        "differing": count.differing,
        "unread": count.unread,
        "compared": count.compared,
        "acknowledged": acknowledged,
        "failed_puts": failed,
    }
    of_all = f"of {acknowledged:,} acknowledged objects{where}"
    if lost or count.differing:
        return invalid_answer(
            f"The store lost {lost:,} {of_all}; {count.differing:,} have other contents.",
            **evidence,
        )
    if count.unread:
        reason = f" ({count.fault.rstrip('.')})" if count.fault else ""
        return indicative_answer(
            f"{count.unread:,} of {count.objects:,} objects{where} could not be read back{reason}.",
            **evidence,
        )
    if count.missing:
        return indicative_answer(
            f"{count.missing:,} of {count.objects:,} objects{where} are "
            f"not in the store, and {failed:,} PUTs failed: whether an acknowledged "
            "object is among them is not known.",
            **evidence,
        )
    return valid_answer(
        f"All {of_all.removeprefix('of ')} were read back with their contents.", **evidence
    )


@check("contents-not-compared", "Contents that were not compared with what was put")
@per_host(max_key="missing_share")
def check_contents_not_compared(view: ObjectsView, host_index: int) -> CheckAnswer:
    """Whether as much of what was read was compared as the study asks for."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    job, run = view.objects_job, view.details_of_host(host_index)
    if not (job.get or job.get_range):
        return not_applicable_answer("No contents were read.")
    if not job.verify_every:
        return not_applicable_answer("Of what was read lengths alone were compared: verify = 0.")
    read = sum(each.bytes for each in run.endpoints) - run.put_bytes if run else 0
    if run is None or read <= 0:
        return unchecked_answer(f"{host.host} {_NO_DETAILS}")
    share = run.verified_bytes / read
    evidence: EvidenceValues = {
        "host": host.host,
        "verified_share": share,
        "missing_share": max(1 - share * job.verify_every, 0.0),
        "verified_bytes": run.verified_bytes,
    }
    text = f"{percent_text(share)} of the contents that were read{where} were compared"
    if share * job.verify_every < COMPARED_GOOD:
        wanted = percent_text(1 / job.verify_every)
        return indicative_answer(f"{text}, where {wanted} were to be.", **evidence)
    return valid_answer(f"{text} with what was put.", **evidence)


@check("server-clock", "A server's clock that is off")
@per_host(max_key="off_s", valid_threshold=CLOCK_GOOD_S)
def check_server_clock(view: ObjectsView, host_index: int) -> HostAnswer:
    """Whether server and client agree on the time, within what signatures allow."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    run = view.details_of_host(host_index)
    if run is None or run.ahead_min_ms is None or run.ahead_max_ms is None:
        return not_applicable_answer("No answer had a date.")
    # A date has whole seconds: up to one less than the time is the same.
    off_ms = max(run.ahead_max_ms, -run.ahead_min_ms - 1000.0, 0.0)
    return answer_to_grade(
        f"The server's clock{where} is up to {off_ms / 1000:.3g} s off",
        ": from 15 minutes on it refuses requests",
        host=host.host,
        off_s=off_ms / 1000,
    )


@check_generator_bound
@per_host(max_key="share", valid_threshold=GENERATOR_LIMIT_SHARE)
def check_near_generator_limit(view: ObjectsView, host_index: int) -> HostAnswer:
    """Whether the engine could have made many more operations than it did."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    if host.generator_limit_fault:
        why = f"s3 did not make its load on the null target{where} ({host.generator_limit_fault})"
        return unchecked_answer(why, host=host.host)
    rate = (
        all_operations_per_s(view, [host_index])
        if view.were_all_hosts_measured([host_index])
        else None
    )
    if host.generator_limit_iops is None or rate is None:
        return not_applicable_answer(f"No limit of s3 is known{where}.", host=host.host)
    share = rate / host.generator_limit_iops
    run = view.details_of_host(host_index)
    encrypted = (
        ", with the processor time of encryption" if run and run.generator_limit_has_tls else ""
    )
    return answer_to_grade(
        f"The load{where} was {percent_text(share)} of the "
        f"{format_count(host.generator_limit_iops)} operations per second that s3 makes there "
        f"on a null target{encrypted}",
        ": s3 may be the limit",
        host=host.host,
        ops_per_s=rate,
        limit_ops_per_s=host.generator_limit_iops,
        share=share,
    )


@check_rate_kept
@per_host(max_key="unsubmitted_share")
def check_operations_unsubmitted(view: ObjectsView, host_index: int) -> CheckAnswer:
    """Whether operations of a rate were begun at all; their latency is from when they were due."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    generator = host.totals.generator if host.totals else None
    if view.objects_job.rate is None:
        return not_applicable_answer("No operation was due at a set time.", open_loop=False)
    if generator is None:
        return unchecked_answer(f"the engine{where} left no totals", host=host.host)
    run = view.details_of_host(host_index)
    done = run.done_count + run.failed_count if run else 0
    share = generator.unsubmitted / max(done + generator.unsubmitted, 1)
    evidence: EvidenceValues = {
        "host": host.host,
        "unsubmitted_share": share,
        "unsubmitted": generator.unsubmitted,
        "unreached": generator.unreached,
        "oldest_ns": generator.oldest_unsubmitted_ns,
    }
    text = f"{format_count(generator.unsubmitted)} operations{where} were due and never begun"
    if generator.unreached or share > FAILED_BAD:
        return invalid_answer(
            f"{text}: the rate was not reached, and latencies say how long the run was.", **evidence
        )
    return valid_answer(f"{text}.", **evidence)


def check_objects_bytes_moved(view: ObjectsView) -> CheckAnswer:
    """Whether the ports of the clients carried the contents that are claimed."""
    return _network_bytes_answer(view)


@per_host(min_key="carried_share", valid_threshold=CARRIED_GOOD, invalid_threshold=CARRIED_BAD)
def _network_bytes_answer(view: ObjectsView, host_index: int) -> HostAnswer:
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    claimed = {
        way: view.claimed_run_bytes(host_index, way) for way in view.objects_job.data_directions
    }
    total = sum(claimed.values())
    if not total:
        return not_applicable_answer("No contents were moved.")
    run = view.details_of_host(host_index)
    if run is None or any(_is_loopback(each.endpoint) for each in run.endpoints):
        return not_applicable_answer(f"Contents{where} went over no port that is counted.")
    counters = {Direction.READ: "rx_bytes_per_s", Direction.WRITE: "tx_bytes_per_s"}
    carried = {way: _network_port_bytes(view, host.host, counters[way]) for way in claimed}
    if None in carried.values():
        return not_applicable_answer(f"The ports{where} are not counted.")
    worst = min(claimed, key=lambda way: (carried[way] or 0.0) / max(claimed[way], 1))
    share = (carried[worst] or 0.0) / max(claimed[worst], 1)
    return answer_to_grade(
        f"The ports{where} carried {format_bytes(round(carried[worst] or 0))}, of which "
        f"{format_bytes(claimed[worst])} are contents of {worst.key}s",
        ": so much cannot have come over them",
        host=host.host,
        carried_share=min(share, 1.0),
        claimed_bytes=claimed[worst],
        carried_bytes=carried[worst],
    )


def _network_port_bytes(view: ObjectsView, host_name: str, counter_name: str) -> float | None:
    """What all ports of a host carried in the run; None where none is counted."""
    every = view.counter_series(host_name, "nic", counter_name)
    if not every:
        return None
    return float(sum((series.value * series.span_ns).sum() for series in every)) / NS_PER_S


def _is_loopback(endpoint: str) -> bool:
    """Whether requests never leave the host: no port of it counts them."""
    name = urlsplit(endpoint).hostname or ""
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
