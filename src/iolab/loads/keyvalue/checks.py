"""Checks of load on a key-value store: whether every operation asked for was done, and counted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from iolab.analysis.busy import FULL_PROCESSORS
from iolab.analysis.check import (
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
    worst_answer,
)
from iolab.analysis.checks.fleet import unevenness_answer
from iolab.analysis.checks.run import (
    ACHIEVED_MIN,
    RUNTIME_SHARE,
    check_operations_counted,
    check_operations_failed,
    check_operations_in_flight,
    check_rate_kept,
    engine_process_faults,
    operation_count_answer,
    operation_count_text_and_evidence,
)
from iolab.analysis.metrics import ios_needed_for_percentile, is_percentile_supported
from iolab.analysis.service_time import (
    max_indicative_relative_concurrency_deviation,
    max_valid_relative_concurrency_deviation,
)
from iolab.core.samples import Floats
from iolab.loads.keyvalue.db_bench.engine import LOAD_STREAMS, SeedRange
from iolab.loads.keyvalue.db_bench.evidence import OPERATIONS
from iolab.loads.keyvalue.metrics import (
    KEY_PERCENTILES,
    WHOLE_OPERATION_WEIGHTS,
    KeyValueSums,
    KeyValueView,
)
from iolab.loads.keyvalue.workload import (
    DbBenchJob,
    KeyOperation,
    ServerRunDetails,
    key_value_details_of_host,
    server_details_of_run,
)
from iolab.stats.quantiles import has_few_stalls
from iolab.text import percent_text
from iolab.units import format_count, format_ns, format_rate_bytes

UNEXPLAINED_GOOD: Final = 0.01
"""Share of the engine's operations that may be in no interval beside those of seconds that no
interval covers: the seconds at which a thread tells how far it is are not those of its start."""

UNEXPLAINED_BAD: Final = 0.10
"""From a tenth on one of the two counts is simply wrong."""

ABSENT_ASKED: Final = "readmissing"
"""db_bench's workload that reads absent keys on purpose."""

WIDE_BIN: Final = 0.70
"""How much wider than its lower edge a bin may be: db_bench's are up to 67 %, but for those of one
and two microseconds, within which everything that a cache answers may lie."""

INTENDED_RATIO_MAX: Final = 2.0
"""Intended over service latency at p99 from which waits that the service time does not show are
more than all that it shows."""

INTENDED_PERCENTILE: Final = 99.0

WRITER_MIN: Final = 0.90
"""Share of its rate that a writer beside readers must have kept, for the readers of all
configurations to have had the same beside them; db_bench itself keeps a low rate to a few per cent
only."""

MORE_SHARE: Final = 0.10
"""Operations of a server beyond those claimed that drivers and others may add."""

MORE_OPERATIONS: Final = 1000
"""The same of short runs: what a driver asks of its server by itself."""

_READS: Final = (KeyOperation.READ,)
_WRITES: Final = (KeyOperation.WRITE, KeyOperation.UPDATE, KeyOperation.INSERT)

_BY_SERVER: Final = (("client_reads", _READS), ("client_writes", _WRITES))
"""A server's counters of its clients' requests. A read-modify-write is among reads and updates as
well, and a scan is a request of another kind."""

_BY_ROCKSDB: Final = (
    ("rocksdb.number.keys.read", _READS),
    ("rocksdb.number.keys.written", _WRITES),
)
"""RocksDB's own counters of keys."""


@per_host()
def check_key_value_engine_errors(view: KeyValueView, host_index: int) -> Iterator[CheckAnswer]:
    """engine-errors of load on a key-value store: also what the engine was found not to have done.

    db_bench and YCSB end with 0 when no key was found, or no server answered.
    """
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    reply = key_value_details_of_host(host)
    window = view.load.measured_part.whole_run_windows[host_index]
    asked_s = view.record.warmup_s + view.record.runtime_s
    ran_s = 0.0 if window is None else window.seconds
    evidence: EvidenceValues = {
        "host": host.host,
        "exit_code": host.exit_code,
        "exit_signal": host.exit_signal,
        "faults": 0 if reply is None else len(reply.faults),
        "ran_s": ran_s,
        "asked_s": asked_s,
        "stopped_early": host.stopped_early,
    }
    for fault in engine_process_faults(host):
        yield invalid_answer(f"The engine{where} {fault}.", **evidence)
    if reply is None:
        yield unchecked_answer(f"the engine{where} told nothing of its run", **evidence)
    elif reply.faults:
        more = f" ({len(reply.faults) - 1} more faults)" if len(reply.faults) > 1 else ""
        yield invalid_answer(
            f"Not the run that was requested{where}: {reply.faults[0].rstrip('.')}{more}.",
            **evidence,
        )
    if window is not None and not view.key_value_sums.whole_operation_counts_by_host[host_index]:
        yield invalid_answer(
            f"The engine{where} completed no operation in the measured window.", **evidence
        )
    if not host.stopped_early and ran_s < RUNTIME_SHARE * asked_s:
        yield indicative_answer(
            f"The engine{where} ran {ran_s:.1f} s of the {asked_s:.1f} s asked.", **evidence
        )
    yield valid_answer(f"The engine{where} ran {ran_s:.1f} s without error.", **evidence)


@check_operations_failed
def check_key_operations_failed(view: KeyValueView) -> CheckAnswer:
    """operations-failed of load on a key-value store: whatever was not the store's plain yes."""
    counts = [(host, count) for host, reply in view.hosts_with_details for count in reply.counts]
    if not counts:
        return unchecked_answer("the engine did not count its operations")
    failed = sum(count.failed for _, count in counts)
    if not failed:
        return valid_answer("No operation failed.", failed=0)
    host, most = max(counts, key=lambda each: each[1].failed)
    done = sum(count.completed for _, count in counts)
    return invalid_answer(
        f"{format_count(failed)} of {format_count(done + failed)} operations were not OK, most of "
        f"them {most.operation.display_name}{view.on_host_if_several(host)}: engines count them "
        "as throughput.",
        failed=failed,
        most_in=most.operation.display_name,
        host=host.host,
    )


@check("keys-absent", "Reads of keys that are not there")
def check_keys_absent(view: KeyValueView) -> CheckAnswer:
    """Whether every key that was read was there: looking for an absent one costs hardly anything.

    YCSB counts such a read as failed.
    """
    job = view.key_value_job
    if isinstance(job, DbBenchJob) and job.workload == ABSENT_ASKED:
        return not_applicable_answer("The workload reads absent keys on purpose.", asked=True)
    counts = [count for _, reply in view.hosts_with_details for count in reply.counts]
    if not counts:
        return not_applicable_answer("The engine reports no counts of its operations.", reads=0)
    reads = [count for count in counts if count.operation is KeyOperation.READ]
    if not reads:
        return not_applicable_answer("No key was read.", reads=0)
    absences = [count.absent for count in reads if count.absent is not None]
    done, absent = sum(count.completed for count in reads), sum(absences)
    if absent:
        return invalid_answer(
            f"{format_count(absent)} of {format_count(done)} reads were of keys that are not "
            "there, which are cheaper.",
            reads=done,
            absent=absent,
        )
    if len(absences) < len(reads) and isinstance(job, DbBenchJob):
        return unchecked_answer("the engine did not tell how many keys were found")
    return valid_answer("Every key that was read was there.", reads=done, absent=0)


@check("debug-build", "Engine not built for release", needs_load=False)
def check_debug_build(view: KeyValueView) -> CheckAnswer:
    """Whether the engine is one that its makers would publish numbers of."""
    builds = {reply.build: host.host for host, reply in view.hosts_with_details if reply.build}
    if not builds:
        return valid_answer("No engine remarks on its build.", build="")
    names = ", ".join(sorted(builds))
    return indicative_answer(
        f"The engine was built with {names}: a release build may be faster."
        if "assert" in names
        else f"The engine says of its build: {names}.",
        build=names,
        host=next(iter(builds.values())),
    )


@check("seed-shared", "Keys drawn in the same order twice", needs_load=False)
def check_seed_shared(view: KeyValueView) -> CheckAnswer:
    """Whether any thread draws the keys of another one, or those of the load in their order.

    Thread n of db_bench draws from the stream seed + n; keys drawn before are in a cache.
    """
    job = view.key_value_job
    if not isinstance(job, DbBenchJob):
        return not_applicable_answer(
            "YCSB draws its keys from a random source of its own.", hosts=len(view.hosts)
        )
    seeds = [
        (host.host, reply, SeedRange(reply.seed, job.seed_stream_count))
        for host, reply in view.hosts_with_details
    ]
    for host, reply, cell in seeds:
        if reply.load_seed is None:
            continue
        if SeedRange(reply.load_seed, LOAD_STREAMS).overlaps(cell):
            return invalid_answer(
                f"The streams of {host} from seed {reply.seed} on hold the load's, "
                f"{reply.load_seed}: a thread replays the order in which the keys were written.",
                host=host,
                seed=reply.seed,
                load_seed=reply.load_seed,
            )
    for (first, _, own), (other, _, theirs) in combinations(seeds, 2):
        if own.overlaps(theirs):
            return invalid_answer(
                f"The streams of {first} from seed {own.first_seed} on and of {other} from "
                f"{theirs.first_seed} on meet: they read the same keys in the same order.",
                host=first,
                other=other,
                seed=own.first_seed,
                other_seed=theirs.first_seed,
            )
    unknown = [host for host, reply, _ in seeds if reply.load_seed is None]
    if unknown or not seeds:
        return unchecked_answer("with which seed the database was loaded is not known")
    return valid_answer("No two threads and no load share a random stream.", hosts=len(seeds))


@per_host(max_key="unexplained", needs_complete_host_run=True)
def check_key_value_totals_disagree(view: KeyValueView, host_index: int) -> CheckAnswer:
    """totals-disagree of load on a key-value store: intervals against the engine's own count.

    What is in no interval is explained by the time that no interval covers.
    """
    host = view.hosts[host_index]
    reply = key_value_details_of_host(host)
    if reply is None or not reply.counts:
        return unchecked_answer(
            f"the engine{view.on_host_if_several(host)} did not count its operations"
        )
    claimed = sum(
        WHOLE_OPERATION_WEIGHTS.get(count.operation, 0) * count.completed for count in reply.counts
    )
    job = view.key_value_job
    if isinstance(job, DbBenchJob):
        # The writer beside readers is not in db_bench's own total.
        beside = KeyOperation.WRITE if job.has_writer else None
        claimed = sum(count.completed for count in reply.counts if count.operation is not beside)
    totals = _whole_run_operation_count_and_peak_rate(view, host_index)
    counted, covered_s = totals.operations, totals.covered_s
    uncovered_s = max((reply.reported_s or covered_s) - covered_s, 0.0)
    lacking = max(claimed - counted - totals.max_operations_per_s * uncovered_s, 0.0)
    unexplained = max(lacking, counted - claimed) / max(claimed, 1)
    ours = float(view.key_value_sums.whole_operation_rates_by_host[host_index])
    evidence: EvidenceValues = {
        "host": host.host,
        "interval_operations": counted,
        "engine_operations": claimed,
        "uncovered_s": uncovered_s,
        "unexplained": unexplained,
        "window_ops_per_s": ours,
        "engine_ops_per_s": reply.reported_ops_per_s,
    }
    if unexplained > UNEXPLAINED_GOOD:
        verdict = invalid_answer if unexplained > UNEXPLAINED_BAD else indicative_answer
        return verdict(
            f"Intervals{view.on_host_if_several(host)} hold {format_count(counted)} operations, "
            "the engine claims "
            f"{format_count(claimed)}: {percent_text(unexplained)} are not explained by time "
            "that no "
            "interval covers.",
            **evidence,
        )
    if reply.reported_ops_per_s is None:
        return valid_answer(
            f"Intervals{view.on_host_if_several(host)} add up to the engine's own count.",
            **evidence,
        )
    return valid_answer(
        f"Intervals{view.on_host_if_several(host)} add up to the engine's own count; it says "
        f"{format_count(reply.reported_ops_per_s)} ops/s of its whole run, the window has "
        f"{format_count(ours)}.",
        **evidence,
    )


class _OperationCountAndPeakRate(NamedTuple):
    """Whole operations in all intervals of a host, the most in a second, the time they cover."""

    operations: int
    max_operations_per_s: float
    covered_s: float


def _whole_run_operation_count_and_peak_rate(
    view: KeyValueView, host_index: int
) -> _OperationCountAndPeakRate:
    table = view.record.intervals
    own_rows = table.host == host_index
    total, busiest = 0, 0.0
    for operation, weight in WHOLE_OPERATION_WEIGHTS.items():
        rows = np.flatnonzero(own_rows & (table.direction == int(operation)))
        total += weight * int(table.ios[rows].sum())
        if weight > 0 and rows.size:
            busiest += float((table.ios[rows] / np.maximum(table.span_ns[rows] / 1e9, 0.1)).max())
    window = view.load.measured_part.whole_run_windows[host_index]
    return _OperationCountAndPeakRate(total, busiest, 0.0 if window is None else window.seconds)


def check_key_value_percentile_support(view: KeyValueView) -> CheckAnswer:
    """percentile-support of load on a key-value store: the operation of which there were fewest."""
    load = view.key_value_sums
    hosts = range(len(view.hosts))
    shown = [operation for operation in load.operations if operation is not KeyOperation.ALL]
    counts = {
        operation: samples
        for operation in shown
        if (samples := load.latency_sample_count(operation, hosts))
    }
    if not counts:
        return indicative_answer("No latency is known: rates only.", operations=0)
    fewest = min(counts, key=lambda operation: counts[operation])
    total = counts[fewest]
    source = "in the window" if load.histogram(fewest, hosts) else "of the whole run, warm-up too"
    evidence: EvidenceValues = {
        "operation": fewest.display_name,
        "operations": total,
        "source": source,
    }
    count = f"{format_count(total)} latencies of {fewest.display_name} ({source})"
    lacking = [(name, at) for name, at in KEY_PERCENTILES if not is_percentile_supported(total, at)]
    stalls = view.steadiness_view.stall_count if view.steadiness_view else 0
    if not lacking and has_few_stalls(stalls):
        return valid_answer(
            f"{stalls} stalls decide the percentiles from p99.9 on: told as more than p99.",
            **evidence,
            stalls=stalls,
        )
    if not lacking:
        return valid_answer(f"{count}, the fewest, support every percentile.", **evidence)
    needs = ", ".join(
        f"p{at:g} ({format_count(ios_needed_for_percentile(at))})" for _, at in lacking
    )
    verdict = indicative_answer if lacking[0][0] == KEY_PERCENTILES[0][0] else valid_answer
    return verdict(f"{count} are too few for {needs}: not printed.", **evidence)


@check("wide-percentile-bins", "Percentiles known to wide bins only")
def check_wide_percentile_bins(view: KeyValueView) -> CheckAnswer:
    """Whether the engine's own bins tell where a percentile lies."""
    widths = list(_bin_width_answers(view.key_value_sums))
    if not widths:
        return valid_answer("Latencies are in bins of at most 1.6 %.", width=1 / 64)
    return worst_answer(widths, max_key="width")


def _bin_width_answers(key_value_sums: KeyValueSums) -> Iterator[CheckAnswer]:
    """The widest bin of a percentile that is printed, of each operation that has wide bins."""
    hosts = range(len(key_value_sums.seconds))
    for operation in key_value_sums.operations:
        if key_value_sums.histogram(operation, hosts) is not None:
            continue
        binned = key_value_sums.engine_latency_bins_of_run(operation, hosts)
        if binned is None:
            continue
        printed = [at for _, at in KEY_PERCENTILES if is_percentile_supported(binned.count, at)]
        for at in printed:
            low, high = binned.quantile_bounds_ns(at / 100)
            width = binned.relative_bin_width(at / 100)
            evidence: EvidenceValues = {
                "operation": operation.display_name,
                "percentile": at,
                "low_ns": low,
                "high_ns": high,
                "width": width if np.isfinite(width) else None,
                "resolution_ns": binned.resolution_ns,
            }
            text = (
                f"p{at:g} of {operation.display_name} lies between {format_ns(low)} and "
                f"{format_ns(high)}"
            )
            verdict = indicative_answer if width > WIDE_BIN else valid_answer
            yield verdict(f"The engine's own bins tell no more than that {text}.", **evidence)


@check_operations_in_flight
@per_host(max_key="in_flight")
def check_key_operations_in_flight(view: KeyValueView, host_index: int) -> CheckAnswer:
    """littles-law of load on a key-value store: no thread has two operations at a time.

    Where an engine tells latencies of its whole run alone, first that run is held against them, and
    then the rate of the measured seconds, beside which they are shown.
    """
    host, load, threads = view.hosts[host_index], view.key_value_sums, view.key_value_job.threads
    operations = _operations_done_in_turn_by_threads(view)
    counts = [load.latency_sample_count(operation, (host_index,)) for operation in operations]
    means_ns = [load.mean_latency_ns(operation, (host_index,)) or 0.0 for operation in operations]
    seconds = float(load.seconds[host_index])
    if not sum(counts) or seconds <= 0:
        return unchecked_answer(f"no latency was measured on {host.host}")
    waited_s = sum(n * mean for n, mean in zip(counts, means_ns, strict=True)) / 1e9
    mean_s = waited_s / sum(counts)
    is_of_window = any(load.histogram(operation, (host_index,)) for operation in operations)
    whole_s = None if is_of_window else _reported_run_seconds(view, host_index)
    rate = (
        sum(counts) / seconds
        if is_of_window
        else float(load.whole_operation_rates_by_host[host_index])
    )
    in_flight = rate * mean_s
    evidence: EvidenceValues = {
        "host": host.host,
        "in_flight": in_flight,
        "in_flight_whole_run": None if whole_s is None else waited_s / whole_s,
        "threads": threads,
        "mean_ns": 1e9 * mean_s,
        "rate": rate,
    }
    if whole_s is not None and _in_flight_excess_ratio(waited_s / whole_s, threads) > (
        max_indicative_relative_concurrency_deviation(threads)
    ):
        return invalid_answer(
            f"By their latencies {waited_s / whole_s:.3g} "
            f"operations{view.on_host_if_several(host)} "
            f"were in flight over the whole run, of at most {threads}: the counts or times are "
            "wrong.",
            **evidence,
        )
    text = (
        f"Rate × mean latency{view.on_host_if_several(host)} is {in_flight:.3g} operations in "
        f"flight, of at most {threads}"
    )
    if _in_flight_excess_ratio(in_flight, threads) <= max_valid_relative_concurrency_deviation(
        threads
    ):
        return valid_answer(f"{text}.", **evidence)
    if not is_of_window:
        return indicative_answer(
            f"{text}: the latencies are of the whole run, in which the store was slower than in "
            "the measured seconds.",
            **evidence,
        )
    if _in_flight_excess_ratio(in_flight, threads) <= max_indicative_relative_concurrency_deviation(
        threads
    ):
        return indicative_answer(f"{text}: slightly more than can be.", **evidence)
    return invalid_answer(f"{text}: the counts or times are wrong.", **evidence)


def _in_flight_excess_ratio(in_flight: float, threads: int) -> float:
    """The share by which there are more in flight than threads."""
    return in_flight / max(threads, 1) - 1


def _operations_done_in_turn_by_threads(view: KeyValueView) -> list[KeyOperation]:
    """What a job's threads do one after the other; a writer beside readers is none of them.

    A read-modify-write is the read and the update that it is made of.
    """
    job = view.key_value_job
    has_writer = isinstance(job, DbBenchJob) and job.has_writer
    return [
        operation
        for operation in view.key_value_sums.operations
        if operation is not KeyOperation.ALL
        and not operation.is_intended
        and operation is not KeyOperation.READ_MODIFY_WRITE
        and not (has_writer and operation is KeyOperation.WRITE)
    ]


def _reported_run_seconds(view: KeyValueView, host_index: int) -> float | None:
    """The seconds that a host's engine tells of its whole run; None where it tells none."""
    reply = key_value_details_of_host(view.hosts[host_index])
    return reply.reported_s if reply is not None and reply.reported_s else None


@check_rate_kept
def check_key_value_coordinated_omission(view: KeyValueView) -> CheckAnswer:
    """coordinated-omission of load on a key-value store: service against intended latency."""
    job = view.key_value_job
    rate = None if isinstance(job, DbBenchJob) else job.rate_ops_per_s
    if rate is None:
        return not_applicable_answer(
            f"Closed loop of {job.threads} threads a client: latencies are service times at that "
            "concurrency.",
            open_loop=False,
            threads=job.threads,
        )
    kept = [_achieved_rate_answer(view, index, rate) for index in range(len(view.hosts))]
    return worst_answer(
        [*kept, *_intended_latency_answers(view.key_value_sums)], min_key="achieved"
    )


def _achieved_rate_answer(
    view: KeyValueView, host_index: int, target_ops_per_s: int
) -> CheckAnswer:
    host, load = view.hosts[host_index], view.key_value_sums
    if load.seconds[host_index] <= 0:
        return unchecked_answer(f"no operation was measured on {host.host}")
    achieved = float(load.whole_operation_rates_by_host[host_index]) / target_ops_per_s
    evidence: EvidenceValues = {
        "host": host.host,
        "open_loop": True,
        "target_ops_per_s": target_ops_per_s,
        "achieved": achieved,
    }
    text = (
        f"{percent_text(achieved)} of {format_count(target_ops_per_s)} ops/s were "
        f"kept{view.on_host_if_several(host)}"
    )
    if achieved < ACHIEVED_MIN:
        return indicative_answer(
            f"{text}: intended latencies grow as long as the run is, and service times are those "
            "of a closed loop.",
            **evidence,
        )
    return valid_answer(f"{text}.", **evidence)


def _intended_latency_answers(key_value_sums: KeyValueSums) -> Iterator[CheckAnswer]:
    """Each operation's intended latency against its service time."""
    hosts = range(len(key_value_sums.seconds))
    for operation in key_value_sums.operations:
        if operation.is_intended or operation.intended_variant is None:
            continue
        service = key_value_sums.histogram(operation, hosts)
        intended = key_value_sums.histogram(operation.intended_variant, hosts)
        if service is None or not is_percentile_supported(service.total, INTENDED_PERCENTILE):
            continue
        if intended is None:
            yield indicative_answer(
                f"Only service times of {operation.display_name} are known: waits are not in them.",
                operation=operation.display_name,
            )
            continue
        short = service.percentile_ns(INTENDED_PERCENTILE) or 1.0
        long = intended.percentile_ns(INTENDED_PERCENTILE) or 0.0
        evidence: EvidenceValues = {
            "operation": operation.display_name,
            "service_p99_ns": short,
            "intended_p99_ns": long,
            "ratio": long / short,
        }
        text = (
            f"The p99 of {operation.display_name} is {format_ns(short)} from its start and "
            f"{format_ns(long)} from when it was due"
        )
        if long > INTENDED_RATIO_MAX * short:
            yield indicative_answer(f"{text}: only the latter is latency at that rate.", **evidence)
        else:
            yield valid_answer(f"{text}.", **evidence)


@check("writer-rate", "Concurrent writer without its rate")
@per_host(min_key="achieved", valid_threshold=WRITER_MIN)
def check_writer_rate(view: KeyValueView, host_index: int) -> HostAnswer:
    """Whether the readers of every configuration have the same writes beside them."""
    job, where = view.key_value_job, view.on_host_if_several(view.hosts[host_index])
    if not isinstance(job, DbBenchJob) or not job.has_writer:
        return not_applicable_answer("No writer beside readers.", writer=False)
    asked = job.write_bytes_per_s
    rates = view.key_value_sums.operation_rates_by_host(KeyOperation.WRITE) * job.loaded.entry_bytes
    if asked is None:
        return indicative_answer(
            "The writer beside the readers has no limit: a faster device has another load.",
            writer=True,
            written_bytes_per_s=float(rates.sum()),
        )
    written = float(rates[host_index])
    if not written:
        return unchecked_answer(f"what the writer{where} did in the window is not known")
    return answer_to_grade(
        f"The writer{where} wrote {format_rate_bytes(written)} of {format_rate_bytes(asked)}",
        ": the readers had fewer writes beside them",
        host=view.hosts[host_index].host,
        written_bytes_per_s=written,
        asked_bytes_per_s=asked,
        achieved=written / asked,
    )


@per_host(max_key="cores_busy_share", valid_threshold=FULL_PROCESSORS)
def check_key_value_cpu_bound_client(view: KeyValueView, host_index: int) -> HostAnswer:
    """cpu-bound-client of load on a key-value store."""
    host = view.hosts[host_index]
    share = view.mean_telemetry(host_index, "cpu", "all", "busy_share")
    facts = view.facts_of_host(host)
    evidence: EvidenceValues = {
        "host": host.host,
        "cores_busy_share": share,
        "threads": view.key_value_job.threads,
        "cores": facts.cpu.threads if facts else None,
    }
    if share is None:
        return unchecked_answer(f"{host.host} has no telemetry of its cores", **evidence)
    text = f"All cores{view.on_host_if_several(host)} were {percent_text(share)} busy"
    return answer_to_grade(text, ": the client may be the limit", **evidence)


def check_key_value_uneven_fleet(view: KeyValueView) -> CheckAnswer:
    """uneven-fleet of load on a key-value store: whole operations a second of each client."""
    rates: Floats = view.key_value_sums.whole_operation_rates_by_host
    return unevenness_answer(view, rates, rates, "ops_per_s")


@check_operations_counted
def check_key_operations_counted_by_store(view: KeyValueView) -> CheckAnswer:
    """Whether the server, or RocksDB itself, counted the operations that the engines claim."""
    job, server = view.key_value_job, server_details_of_run(view.record)
    if isinstance(job, DbBenchJob):
        if job.workload not in OPERATIONS:
            return not_applicable_answer(
                f"RocksDB counts keys, and {job.workload} may take several for an operation."
            )
        return worst_answer(
            (
                answer
                for index in range(len(view.hosts))
                for answer in _rocksdb_count_answers(view, index)
            ),
            min_key="counted_share",
        )
    if server is None:
        return not_applicable_answer("YCSB has the store in its own process: nobody else counts.")
    return worst_answer(_server_count_answers(view, server), min_key="counted_share")


def _rocksdb_count_answers(view: KeyValueView, host_index: int) -> Iterator[CheckAnswer]:
    host = view.hosts[host_index]
    reply = key_value_details_of_host(host)
    statistics = {s.name: s.value for s in reply.statistics} if reply else {}
    counted = claimed_all = 0
    for name, operations in _BY_ROCKSDB:
        claimed = _claimed_operation_count(view, (host_index,), operations)
        claimed_all += claimed
        if claimed and name in statistics:
            counted += 1
            text, evidence = operation_count_text_and_evidence(
                f"RocksDB{view.on_host_if_several(host)}",
                operations[0].display_name,
                claimed,
                statistics[name],
            )
            yield operation_count_answer(
                claimed, statistics[name], text, {"host": host.host, **evidence}
            )
    if not claimed_all:
        yield not_applicable_answer(
            f"No key was read or written{view.on_host_if_several(host)}.", host=host.host
        )
    elif not counted:
        yield not_applicable_answer(
            f"RocksDB{view.on_host_if_several(host)} gives no counters of keys.", host=host.host
        )


def _server_count_answers(view: KeyValueView, server: ServerRunDetails) -> Iterator[CheckAnswer]:
    before, after = server.statistics_before_by_name, server.statistics_after_by_name
    everybody = tuple(range(len(view.hosts)))
    looked = claimed_all = 0
    for name, operations in _BY_SERVER:
        claimed = _claimed_operation_count(view, everybody, operations)
        claimed_all += claimed
        if not claimed or name not in before or name not in after:
            continue
        looked += 1
        counted = after[name] - before[name]
        text, evidence = operation_count_text_and_evidence(
            "The server", operations[0].display_name, claimed, counted
        )
        if counted > (1 + MORE_SHARE) * claimed + MORE_OPERATIONS:
            yield indicative_answer(f"{text}: others used the server, too.", **evidence)
        yield operation_count_answer(claimed, counted, text, evidence)
    if not claimed_all:
        yield not_applicable_answer(
            f"{server.product} counts reads and writes; the workload has neither."
        )
    elif not looked:
        yield not_applicable_answer(f"{server.product} gives no counts of its requests.")


def _claimed_operation_count(
    view: KeyValueView, host_indexes: tuple[int, ...], operations: tuple[KeyOperation, ...]
) -> int:
    """What the engines of those hosts say they did in the whole run."""
    replies = [
        run
        for index in host_indexes
        if (run := key_value_details_of_host(view.hosts[index])) is not None
    ]
    counts = [count for run in replies for count in run.counts]
    return sum(count.completed for count in counts if count.operation in operations)
