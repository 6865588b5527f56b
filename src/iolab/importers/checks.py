"""What can be judged of a run that another tool made: whether its figures can all be true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.check import (
    Check,
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    per_host,
    unchecked_answer,
    valid_answer,
    worst_answer,
)
from iolab.analysis.checks.fleet import SKEW_BAD_S, SKEW_GOOD_S
from iolab.analysis.checks.libraries import preload_answers
from iolab.analysis.checks.time import HEADLINE, LATENCY_HEADLINE, check_startup_transient
from iolab.analysis.evenness import jain_index, max_over_min
from iolab.analysis.metrics import is_percentile_supported
from iolab.core.histogram import Histogram
from iolab.core.libraries import preloads_in_texts
from iolab.importers.foreign_run import EvidenceKind, OperationFigures
from iolab.importers.metrics import PERCENTILES, ImportedView, shortest_client_measured_s
from iolab.study.forecast import RUN_CUT_TEXT, RUN_SHORT_S, RUN_USELESS_S
from iolab.text import percent_text, uncapitalised
from iolab.units import NS_PER_S, format_bytes, format_count, format_ns, format_rate_bytes

ROUNDING: Final = 0.02
"""How far a printed rate may lie from its count over its time: tools round times to whole seconds
of long runs, and print rates with three digits."""

RATE_BAD: Final = 0.10
"""From a tenth on two figures of one file contradict each other."""

IN_FLIGHT_MAX: Final = 1.05
"""More in flight than there can be contradicts itself; a run's edges make up for a few per cent."""

IN_FLIGHT_MIN: Final = 0.5
"""With less than half of the asked operations in flight, rate or latency is of another load."""

RUNTIME_SHARE: Final = 0.95
"""Share of the asked seconds that a run should have measured."""

FILES_QUOTED: Final = 2
"""Of what files beside a figure say, so many sentences stand in a verdict."""

RESOLUTION: Final = 1 / 64
"""What fio's bins tell apart; a percentile may be printed as much above the maximum."""


@check("imported-evidence", "Measured by another tool", needs_load=False)
def check_imported_evidence(view: ImportedView) -> CheckAnswer:
    """That nobody watched the run: what it is worth at best."""
    run = view.imported_run
    name = f"{run.tool} {run.version}".strip()
    return indicative_answer(
        f"Imported: {name} measured this, and nobody watched the target, the clients and their "
        "caches meanwhile.",
        tool=run.tool,
        version=run.version,
        files=", ".join(run.files),
    )


@check("phases-added", "Phases added up", needs_load=False)
def check_phases_added(view: ImportedView) -> CheckAnswer:
    """Whether a sum is of phases that ran at the same time."""
    run = view.imported_run
    if not run.claimed_totals and run.summed_phase_count == 1:
        return not_applicable_answer("The file adds nothing up.")
    if run.summed_phase_count == 1:
        return valid_answer("The sum is of one phase.", phases=1)
    claimed = sum(figure.rate_per_s or 0.0 for figure in run.claimed_totals)
    return invalid_answer(
        f"{run.tool} adds {run.summed_phase_count} phases that ran after each other to "
        f"{format_count(claimed)} operations a second, which were never done at the same time.",
        phases=run.summed_phase_count,
        claimed_per_s=claimed,
    )


@check("files-contradict", "Files beside the figure", needs_load=False)
def check_files_contradict(view: ImportedView) -> CheckAnswer:
    """Whether files that were submitted with a figure agree with it."""
    evidence = view.imported_run.evidence
    if not evidence:
        return not_applicable_answer("The file is no result of a tree of submissions.")
    by_kind = {
        kind: [each for each in evidence if each.kind is kind]
        for kind in (EvidenceKind.CONTRADICTS, EvidenceKind.QUESTIONS, EvidenceKind.SUPPORTS)
    }
    counts = {f"{kind.value}": len(each) for kind, each in by_kind.items()}
    for kind, answer in (
        (EvidenceKind.CONTRADICTS, invalid_answer),
        (EvidenceKind.QUESTIONS, indicative_answer),
        (EvidenceKind.SUPPORTS, valid_answer),
    ):
        if by_kind[kind]:
            text = " ".join(each.message for each in by_kind[kind][:FILES_QUOTED])
            return answer(text, rule=by_kind[kind][0].rule, file=by_kind[kind][0].file, **counts)
    return indicative_answer("No file beside the figure supports it.", **counts)


@per_host(max_key="failed")
def check_imported_key_operations_failed(view: ImportedView, host_index: int) -> CheckAnswer:
    """Whether operations failed that the tool's summary counts, or leaves out."""
    client, where = view.clients[host_index], view.on_host_if_several(view.hosts[host_index])
    failed = sum(figure.failed for figure in client.figures)
    done = sum(
        (figure.count or 0) - (figure.failed if figure.failed_in_count else 0)
        for figure in client.figures
    )
    evidence: EvidenceValues = {"host": view.hosts[host_index].host, "failed": failed, "done": done}
    if failed:
        share = failed / max(failed + done, 1)
        return invalid_answer(
            f"{format_count(failed)} operations{where} failed, {percent_text(share)} of all: the "
            "figures are of the others, or count them as done.",
            **evidence,
        )
    return valid_answer(f"The file reports no failed operation{where}.", **evidence)


def check_imported_engine_errors(view: ImportedView) -> CheckAnswer:
    """Whether the tool told of an error, or measured less time than it was asked."""
    return worst_answer(_tool_error_answers(view))


def _tool_error_answers(view: ImportedView) -> Iterator[CheckAnswer]:
    for host, client in zip(view.hosts, view.clients, strict=True):
        if client.errors:
            yield invalid_answer(
                f"{view.imported_run.tool}{view.on_host_if_several(host)} reported errors: "
                f"{client.errors[0]}",
                host=host.host,
                errors=len(client.errors),
            )
    # Some tools print a mean latency and nothing else.
    has_latency = any(figure.lat_mean_ns for client in view.clients for figure in client.figures)
    if not view.has_measured_load and not has_latency:
        yield invalid_answer("The file reports no completed operation.")
    yield valid_answer("The file reports no error.")


def check_imported_no_common_window(view: ImportedView) -> CheckAnswer:
    """Whether all clients ran at the same time."""
    if len(view.clients) == 1:
        return not_applicable_answer("One client.")
    overlap = view.overlap_share
    if overlap is None:
        why = "the file does not tell when each client ran; their sum holds only if all ran at once"
        return unchecked_answer(why, overlap=None)
    text = f"All clients ran together in {percent_text(overlap)} of the time from first to last"
    if not overlap:
        return invalid_answer(
            "The clients never ran at the same time: there is no fleet number.", overlap=0.0
        )
    return valid_answer(f"{text}.", overlap=overlap)


def check_imported_start_skew(view: ImportedView) -> CheckAnswer:
    """Whether all clients began at the same time."""
    if len(view.clients) == 1:
        return not_applicable_answer("One client.")
    starts = [span[0] for span in view.client_spans_ns if span is not None]
    if len(starts) < len(view.clients):
        return not_applicable_answer("Not known: the file does not tell when each client began.")
    skew_s = (max(starts) - min(starts)) / NS_PER_S
    text = f"The clients began {skew_s:.3g} s apart"
    if skew_s > SKEW_BAD_S:
        return invalid_answer(f"{text}: they were not started together.", start_skew_s=skew_s)
    verdict = indicative_answer if skew_s > SKEW_GOOD_S else valid_answer
    return verdict(f"{text}.", start_skew_s=skew_s)


def check_imported_uneven_fleet(view: ImportedView) -> CheckAnswer:
    """Whether the clients did about the same."""
    if len(view.clients) == 1:
        return not_applicable_answer("One client.")
    rates = np.array([_total_rate_per_s(client.figures) for client in view.clients])
    index, ratio = jain_index(rates), max_over_min(rates)
    evidence: EvidenceValues = {"jain": index, "max_over_min": ratio}
    if ratio is None or ratio > 2 or index < 0.9:
        return indicative_answer("The total hides how unlike the clients are.", **evidence)
    return valid_answer(f"The fastest client did {ratio:.2f} times the slowest's.", **evidence)


def _total_rate_per_s(figures: Sequence[OperationFigures]) -> float:
    return sum(figure.rate_per_s or figure.bw_bytes_per_s or 0.0 for figure in figures)


def check_imported_totals_disagree(view: ImportedView) -> CheckAnswer:
    """Whether what the tool says of all clients is what they did, and bins hold every operation."""
    return worst_answer(_reported_total_answers(view), max_key="off")


def _reported_total_answers(view: ImportedView) -> Iterator[CheckAnswer]:
    for claim in (
        view.imported_run.claimed_totals if view.imported_run.summed_phase_count == 1 else ()
    ):
        parts = [
            figures
            for client in view.clients
            for figures in client.figures
            if figures.operation == claim.operation
        ]
        for quantity, claimed, each in (
            ("operations", claim.count, [part.count for part in parts]),
            ("bytes", claim.bytes, [part.bytes for part in parts]),
            ("bytes a second", *_claimed_and_client_bandwidths(claim, parts)),
            (
                "operations a second",
                *_claimed_and_client_rates(claim, view, parts),
            ),
        ):
            if claimed is not None and each and None not in each:
                total = sum(value for value in each if value is not None)
                own = "" if claim.operation == "all" else f"{claim.operation} "
                yield _claimed_total_answer(f"{own}{quantity} of all clients", claimed, total)
    for (index, operation), histogram in view.histograms.items():
        count = next(
            figure.count for figure in view.clients[index].figures if figure.operation == operation
        )
        if count is not None:
            where = view.on_host_if_several(view.hosts[index])
            yield _claimed_total_answer(
                f"{operation} latencies in the bins{where}", count, histogram.total
            )
    yield not_applicable_answer("The file tells nothing twice that could be compared.")


def _claimed_and_client_bandwidths(
    claim: OperationFigures, client_figures: Sequence[OperationFigures]
) -> tuple[float | None, list[float | None]]:
    """A bandwidth that is told without the bytes that it is of."""
    printed = claim.bw_bytes_per_s if claim.bytes is None else None
    return printed, [part.bw_bytes_per_s for part in client_figures]


def _claimed_and_client_rates(
    claim: OperationFigures, view: ImportedView, client_figures: Sequence[OperationFigures]
) -> tuple[float | None, list[float | None]]:
    """A rate that is told without its count: of that operation, or of all of them together."""
    every = [figures for client in view.clients for figures in client.figures]
    printed = claim.rate_per_s if claim.count is None else None
    every = [replace(part, rate_per_s=part.weight * (part.rate_per_s or 0.0)) for part in every]
    return printed, [part.rate_per_s for part in (client_figures or every)]


def _claimed_total_answer(subject: str, claimed: float, counted: float) -> CheckAnswer:
    deviation = abs(claimed - counted) / max(abs(claimed), abs(counted), 1)
    evidence: EvidenceValues = {
        "what": subject,
        "reported": claimed,
        "counted": counted,
        "off": deviation,
    }
    if deviation > ROUNDING / 2:
        return invalid_answer(
            f"The file tells {format_count(claimed)} {subject}, "
            f"and counts {format_count(counted)}.",
            **evidence,
        )
    return valid_answer(
        f"{format_count(claimed)} {subject} are reported twice, and alike.", **evidence
    )


def check_imported_reported_rates(view: ImportedView) -> CheckAnswer:
    """Whether each rate is its count, or its bytes, over its time."""
    return worst_answer(_reported_rate_answers(view), max_key="off")


def _reported_rate_answers(view: ImportedView) -> Iterator[CheckAnswer]:
    for host, client in zip(view.hosts, view.clients, strict=True):
        for figure in client.figures:
            yield from _figure_rate_answers(figure, host.host, view.on_host_if_several(host))
    for claim in (
        view.imported_run.claimed_totals if view.imported_run.summed_phase_count == 1 else ()
    ):
        yield from _figure_rate_answers(claim, "", " of all clients")
    yield not_applicable_answer("Not known: the file does not tell counts and times of its rates.")


def _figure_rate_answers(
    figure: OperationFigures, host_name: str, host_suffix: str
) -> Iterator[CheckAnswer]:
    count = None if figure.count_is_derived else figure.count
    for quantity, rate, amount, shown in (
        ("operations", figure.rate_per_s, count, format_count),
        ("bytes", figure.bw_bytes_per_s, figure.bytes, format_rate_bytes),
    ):
        seconds = figure.seconds if figure.rate_weighted_s is None else figure.rate_weighted_s
        if not rate or not amount or not seconds:
            continue
        deviation = rate * seconds / amount - 1
        evidence: EvidenceValues = {
            "host": host_name,
            "operation": figure.operation,
            "reported": rate,
            "computed": amount / seconds,
            "off": abs(deviation),
        }
        text = (
            f"{figure.operation}{host_suffix}: {shown(rate)} reported, "
            f"{quantity} over time give {shown(amount / seconds)}"
        )
        if abs(deviation) > RATE_BAD:
            yield invalid_answer(f"{text}: one of them is wrong.", **evidence)
        elif abs(deviation) > ROUNDING:
            yield indicative_answer(f"{text}.", **evidence)
        else:
            yield valid_answer(f"{text}.", **evidence)


@per_host(max_key="off")
def check_imported_littles_law(view: ImportedView, host_index: int) -> CheckAnswer:
    """Whether rate times latency gives what can have been in flight."""
    asked, host = view.job.in_flight, view.hosts[host_index]
    figures = [
        figure
        for figure in view.clients[host_index].figures
        if figure.rate_per_s and figure.count != 0
    ]
    if not asked:
        return not_applicable_answer("Not known: the file does not tell how many may be in flight.")
    waits = [
        figure.lat_mean_ns if figure.in_flight_mean_ns is None else figure.in_flight_mean_ns
        for figure in figures
    ]
    if not figures or None in waits:
        return not_applicable_answer("Not known: the file tells no rate or no mean latency.")
    pairs = zip(figures, waits, strict=True)
    computed = sum((figure.rate_per_s or 0.0) * (wait or 0.0) for figure, wait in pairs) / NS_PER_S
    ratio = computed / asked
    evidence: EvidenceValues = {
        "host": host.host,
        "in_flight": computed,
        "asked": asked,
        "off": abs(ratio - 1),
    }
    text = (
        f"Rate x latency gives {computed:.3g} in flight{view.on_host_if_several(host)}, at "
        f"most {asked} can be"
    )
    if ratio > IN_FLIGHT_MAX and view.imported_run.is_phase_of_group:
        return indicative_answer(
            f"{text} of the job whose options are known: the group had more jobs, or the rates or "
            "latencies are wrong.",
            **evidence,
        )
    if ratio > IN_FLIGHT_MAX:
        return invalid_answer(f"{text}: rates or latencies are wrong.", **evidence)
    if view.imported_run.paced:
        return not_applicable_answer(f"{text}; the load is paced.", **evidence)
    if ratio < IN_FLIGHT_MIN:
        return indicative_answer(f"{text}: the load is not what its options say.", **evidence)
    return valid_answer(f"{text}.", **evidence)


def check_imported_startup_transient(view: ImportedView) -> CheckAnswer:
    """Whether the run was steady, by its tool's own rule or by its seconds."""
    if view.imported_run.missed_steady_state:
        return indicative_answer(
            f"{view.imported_run.tool} was to wait for a steady state "
            f"({view.imported_run.missed_steady_state}), and ended without it.",
            attained=False,
        )
    return check_startup_transient.judge(view)


def check_imported_run_too_short(view: ImportedView) -> CheckAnswer:
    """Whether the run is long enough to stand for more than itself, and longer than its ramp."""
    seconds, run = shortest_client_measured_s(view), view.imported_run
    if seconds is None:
        return not_applicable_answer("Not known: the file does not tell how long was measured.")
    times = {"ramp_s": run.ramp_s, "asked_s": run.requested_runtime_s}
    evidence: EvidenceValues = {
        "seconds": seconds,
        **{name: value for name, value in times.items() if value is not None},
    }
    text = f"{seconds:.1f} s were measured"
    if run.ramp_s is not None and seconds < run.ramp_s:
        return invalid_answer(
            f"Only {text} after a ramp of {run.ramp_s:.1f} s: the ramp is the longer part.",
            **evidence,
        )
    if seconds < RUN_USELESS_S:
        return invalid_answer(f"Only {text}; {RUN_USELESS_S:.0f} s are the least.", **evidence)
    if seconds < RUN_SHORT_S:
        return indicative_answer(f"Only {text}; {RUN_CUT_TEXT}.", **evidence)
    if run.requested_runtime_s is not None and seconds < RUNTIME_SHARE * run.requested_runtime_s:
        return indicative_answer(f"{text} of {run.requested_runtime_s:.1f} s asked.", **evidence)
    return valid_answer(f"{text}.", **evidence)


def check_imported_percentile_support(view: ImportedView) -> CheckAnswer:
    """Whether enough operations were measured for each percentile; the others are not shown."""
    every = [figure for client in view.clients for figure in client.figures if figure.count]
    percents = {at for figure in every for at, _ in figure.percentiles}
    if not percents:
        return not_applicable_answer("The file tells no percentile of all clients together.")
    total = sum(figure.count or 0 for figure in every)
    lacking = {
        name: at
        for name, at in PERCENTILES
        if at in percents and not is_percentile_supported(total, at)
    }
    evidence: EvidenceValues = {"operations": total}
    if lacking:
        names = ", ".join(f"p{at:g}" for at in lacking.values())
        text = f"{format_count(total)} operations are too few for {names}: not shown."
        # As of runs of our own: the others are not what such a run is made for.
        headline = LATENCY_HEADLINE if view.job.in_flight == 1 else HEADLINE
        verdict = indicative_answer if lacking.keys() & set(headline) else valid_answer
        return verdict(text, **evidence)
    return valid_answer(
        f"{format_count(total)} operations support every percentile told.", **evidence
    )


@check("percentiles-contradicted", "Impossible percentiles")
def check_percentiles_contradicted(view: ImportedView) -> CheckAnswer:
    """Whether percentiles ascend, none is beyond the extremes, and bins give the same."""
    return worst_answer(_percentile_contradiction_answers(view))


def _percentile_contradiction_answers(view: ImportedView) -> Iterator[CheckAnswer]:
    looked = False
    for index, (host, client) in enumerate(zip(view.hosts, view.clients, strict=True)):
        for figure in client.figures:
            name = f"{figure.operation}{view.on_host_if_several(host)}"
            looked = looked or bool(figure.percentiles)
            own = view.histograms.get((index, figure.operation))
            yield from _statistic_contradiction_answers(
                figure, name, own, client.latency_resolution, client.latency_step_ns
            )
    for claim in view.imported_run.claimed_totals:
        looked = looked or bool(claim.percentiles)
        merged = _histogram_of_all_clients(view, claim.operation)
        yield from _statistic_contradiction_answers(
            claim, f"{claim.operation} of all clients", merged, RESOLUTION, 1.0
        )
    if looked:
        yield valid_answer(
            "Percentiles ascend to the maximum, and bins give the same where there are any."
        )
    else:
        yield not_applicable_answer("The file tells no percentile of all clients together.")


def _histogram_of_all_clients(view: ImportedView, operation: str) -> Histogram | None:
    """The bins of all clients together; None where one has none."""
    merged: Histogram | None = None
    for index in range(len(view.clients)):
        part = view.histograms.get((index, operation))
        if part is None:
            return None
        merged = part if merged is None else merged.merged_with(part)
    return merged


def _statistic_contradiction_answers(
    operation_figures: OperationFigures,
    operation_name: str,
    bins: Histogram | None,
    resolution: float,
    step_ns: float,
) -> Iterator[CheckAnswer]:
    for at, value in operation_figures.percentiles:
        evidence: EvidenceValues = {
            "operation": operation_name,
            "percent": at,
            "reported_ns": value,
        }
        text = f"p{at:g} of {operation_name} is given as {format_ns(value)}"
        slack = resolution * value + step_ns
        if (
            operation_figures.lat_max_ns is not None
            and value > operation_figures.lat_max_ns + slack
        ):
            yield invalid_answer(
                f"{text}, beyond the maximum of {format_ns(operation_figures.lat_max_ns)}.",
                **evidence,
                max_ns=operation_figures.lat_max_ns,
            )
        if (
            operation_figures.lat_min_ns is not None
            and value < operation_figures.lat_min_ns - slack
        ):
            yield invalid_answer(
                f"{text}, below the minimum of {format_ns(operation_figures.lat_min_ns)}.",
                **evidence,
                min_ns=operation_figures.lat_min_ns,
            )
        from_bins = bins.percentile_ns(at) if bins is not None and at > 0 else None
        if from_bins is not None and abs(value - from_bins) > 2 * resolution * from_bins + step_ns:
            yield invalid_answer(
                f"{text}, and its bins give {format_ns(from_bins)}.", **evidence, bins_ns=from_bins
            )
    for (low, a), (high, b) in pairwise(sorted(operation_figures.percentiles)):
        if a > b + step_ns:
            yield invalid_answer(
                f"p{low:g} of {operation_name} is {format_ns(a)}, "
                f"above p{high:g} with {format_ns(b)}.",
                operation=operation_name,
                percent=low,
                reported_ns=a,
            )
    if (
        operation_figures.lat_mean_ns is not None
        and operation_figures.lat_max_ns is not None
        and operation_figures.lat_mean_ns
        > operation_figures.lat_max_ns * (1 + resolution) + step_ns
    ):
        yield invalid_answer(
            f"The mean of {operation_name} is {format_ns(operation_figures.lat_mean_ns)}, beyond "
            "the maximum of "
            f"{format_ns(operation_figures.lat_max_ns)}.",
            operation=operation_name,
            reported_ns=operation_figures.lat_mean_ns,
        )


def check_imported_buffered_io(view: ImportedView) -> CheckAnswer:
    """Whether I/O went to the storage, or through a page cache."""
    if view.imported_run.buffered is None:
        return not_applicable_answer("Not known: the file does not tell whether I/O was buffered.")
    if view.imported_run.buffered:
        return indicative_answer(
            "The job's options say buffered I/O: the page cache is measured too.", direct=False
        )
    return valid_answer("The job's options say O_DIRECT.", direct=True)


def check_imported_preloaded_library(view: ImportedView) -> CheckAnswer:
    """Whether the command or the environment that the file holds preloads a library."""
    texts = [f"{name}={value}" for name, value in view.job.settings]
    answers = list(preload_answers(preloads_in_texts(texts), "The stored command"))
    if not answers:
        return not_applicable_answer("The file names no preloaded library.")
    return worst_answer(answers, max_key="rank")


def check_imported_reads_from_memory(view: ImportedView) -> CheckAnswer:
    """Whether what was read fits into the memory that the file tells of."""
    run = view.imported_run
    if run.data_bytes is None or run.memory_bytes is None:
        missing = "data" if run.data_bytes is None else "memory"
        return not_applicable_answer(f"Not known: the file does not tell the clients' {missing}.")
    evidence: EvidenceValues = {"data_bytes": run.data_bytes, "memory_bytes": run.memory_bytes}
    text = (
        f"{format_bytes(run.data_bytes)} of data, {format_bytes(run.memory_bytes)} of memory "
        "on each client"
    )
    if run.buffered is False:
        return not_applicable_answer(f"{text}; I/O was direct.", **evidence)
    if run.data_bytes <= run.memory_bytes:
        return indicative_answer(f"{text}: all of it may have come from memory.", **evidence)
    return valid_answer(f"{text}.", **evidence)


def unanswerable_check(base: Check[ImportedView]) -> Check[ImportedView]:
    """The same check where nothing in a file can answer it."""
    title = uncapitalised(base.title)
    return base.override(
        lambda _: not_applicable_answer(f"Not known ({title}): the file does not tell.")
    )
