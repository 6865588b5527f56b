"""Checks of several hosts as one: started together, on clocks that agree, alike in their work."""

from __future__ import annotations

from typing import Final

import numpy as np

from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    per_host,
    valid_answer,
)
from iolab.analysis.evenness import (
    host_clock_drift_ns,
    host_io_windows,
    host_rates,
    jain_index,
    max_over_min,
)
from iolab.analysis.view import RunView
from iolab.analysis.window import EDGE_SLACK_NS
from iolab.core.samples import Floats
from iolab.core.shared_storage import shared_pod_storage
from iolab.text import list_text
from iolab.units import format_ns

SKEW_GOOD_S: Final = 0.25
"""A quarter of the usual interval: engines that start many jobs need some of it, and the window
that is common to all is shorter by no more."""

SKEW_BAD_S: Final = 1.0
"""Hosts that begin a whole interval apart were not started together: what the first found, the
others did not."""

DRIFT_GOOD_NS: Final = EDGE_SLACK_NS
"""What the cut of the window allows an interval to stick out: as much may a clock move."""

DRIFT_BAD_NS: Final = 500_000_000
"""Half the usual interval: the seconds of such a host are other seconds at the end than at the
start."""

JAIN_GOOD: Final = 0.90
"""Jain's index of the hosts' rates below which the total is the work of some of them: it is what
nine of ten hosts give when the tenth does nothing."""

MAX_OVER_MIN_GOOD: Final = 2.0
"""The fastest host over the slowest. In a large fleet Jain's index hardly sees a single host that
has half of what the others have; this does."""

HOSTS_NAMED: Final = 8
"""In the evidence; of more the others are counted."""

_ONE_HOST_TEXT: Final = "One host: there is nothing to compare."


@check("start-skew", "Hosts that did not start together")
def check_start_skew(view: RunView) -> CheckAnswer:
    """Whether the first I/Os of all hosts came at about the same time."""
    if len(view.hosts) == 1:
        return not_applicable_answer(_ONE_HOST_TEXT)
    spans = zip(view.hosts, host_io_windows(view.record, view.load.measured_part), strict=True)
    starts = [(span.start_ns, host.host) for host, span in spans if span is not None]
    (first_ns, first), (last_ns, last) = min(starts), max(starts)
    skew_s = (last_ns - first_ns) / 1e9
    evidence: EvidenceValues = {
        "start_skew_s": skew_s,
        "first": first,
        "last": last,
    }
    text = f"The first I/Os of the hosts came {format_ns(skew_s * 1e9)} apart"
    if skew_s > SKEW_BAD_S:
        return invalid_answer(
            f"{text}, {last} last, {SKEW_BAD_S:g} s at most is accepted: they were not started "
            "together.",
            **evidence,
        )
    verdict = indicative_answer if skew_s > SKEW_GOOD_S else valid_answer
    return verdict(f"{text}.", **evidence)


@check("clock-drift", "Clocks that moved during the run")
@per_host(max_key="drift_s")
def check_clock_drift(view: RunView, host_index: int) -> CheckAnswer:
    """Whether every host's clock kept its distance from the controller's.

    A guest's seconds are its hypervisor's work, and are held against others even where it is alone.
    """
    if len(view.hosts) == 1 and view.record.fleet is None:
        return not_applicable_answer("One host: its own clock is enough.")
    host = view.hosts[host_index]
    drift = host_clock_drift_ns(host)
    if drift is None:
        return indicative_answer(
            f"The clock of {host.host} was not read again after the run, so whether it moved is "
            "not known.",
            host=host.host,
            drift_s=None,
        )
    error_ns = host.clock_error_ns + (host.clock_error_after_ns or 0)
    certain_ns = max(abs(drift) - error_ns, 0)
    evidence: EvidenceValues = {
        "host": host.host,
        "drift_s": abs(drift) / 1e9,
        "clock_error_s": error_ns / 1e9,
    }
    text = f"The clock of {host.host} moved by {drift / 1e6:+.1f} ms during the run"
    if certain_ns > DRIFT_BAD_NS:
        return invalid_answer(f"{text}: its seconds are not those of other clocks.", **evidence)
    if certain_ns > DRIFT_GOOD_NS:
        return indicative_answer(f"{text}.", **evidence)
    return valid_answer(f"{text}, no more than can be told.", **evidence)


@check("clock-step", "Clock stepped during the run", needs_load=False)
@per_host(max_key="step_s")
def check_clock_step(view: RunView, host_index: int) -> CheckAnswer:
    """Whether somebody set a host's clock while it was watched: slewing it is no step."""
    host = view.hosts[host_index]
    step_ns = host.clock_step_ns
    if step_ns is None:
        return not_applicable_answer(
            f"The clocks of {host.host} were not compared with each other."
        )
    evidence: EvidenceValues = {
        "host": host.host,
        "step_s": abs(step_ns) / 1e9,
        "direction": "forward" if step_ns > 0 else "back" if step_ns < 0 else "",
    }
    if not step_ns:
        return valid_answer(f"Nobody set the clock of {host.host} during the run.", **evidence)
    text = (
        f"The clock of {host.host} was set {evidence['direction']} by {abs(step_ns) / 1e6:.1f} ms"
    )
    if abs(step_ns) > DRIFT_BAD_NS:
        return invalid_answer(f"{text} during the run: its seconds are no seconds.", **evidence)
    verdict = indicative_answer if abs(step_ns) > DRIFT_GOOD_NS else valid_answer
    return verdict(f"{text} during the run.", **evidence)


@check("uneven-fleet", "Hosts with unequal rates")
def check_uneven_fleet(view: RunView) -> CheckAnswer:
    """Whether the total speaks of every host: rates for each I/O that a host keeps in flight."""
    point = view.record.run.point
    depths = np.array([point.job_on_host(host.host).iodepth_per_client for host in view.hosts])
    rates = host_rates(view.load)
    return unevenness_answer(view, rates, np.asarray(rates / depths, dtype=np.float64), "iops")


def unevenness_answer(
    view: RunView, rates: Floats, rates_per_io_in_flight: Floats, unit: str
) -> CheckAnswer:
    """How unlike the hosts' shares are; `rates` in that unit are told of the slowest and fastest.

    Shapes (H,), in the order of the run's hosts.
    """
    if len(view.hosts) == 1:
        return not_applicable_answer(_ONE_HOST_TEXT)
    slow, fast = int(np.argmin(rates_per_io_in_flight)), int(np.argmax(rates_per_io_in_flight))
    index, ratio = jain_index(rates_per_io_in_flight), max_over_min(rates_per_io_in_flight)
    evidence: EvidenceValues = {
        "jain": index,
        "max_over_min": ratio,
        "slowest": view.hosts[slow].host,
        f"slowest_{unit}": float(rates[slow]),
        "fastest": view.hosts[fast].host,
        f"fastest_{unit}": float(rates[fast]),
    }
    if ratio is None:
        return indicative_answer(
            f"{view.hosts[slow].host} did nothing while {view.hosts[fast].host} did the most.",
            **evidence,
        )
    text = (
        f"{view.hosts[fast].host} did {ratio:.2f} times as much as {view.hosts[slow].host}, "
        f"Jain's index is {index:.3f}"
    )
    if ratio > MAX_OVER_MIN_GOOD or index < JAIN_GOOD:
        return indicative_answer(f"{text}: the total hides how unlike the hosts are.", **evidence)
    return valid_answer(f"{text}.", **evidence)


@check("shared-target", "Volumes on one disk", needs_load=False)
def check_shared_target(view: RunView) -> CheckAnswer:
    """Whether pods with volumes of their own have a disk of their own, too."""
    every = {host.host: view.facts_of_host(host) for host in view.hosts}
    facts = {name: of for name, of in every.items() if of is not None and of.pod is not None}
    if len(facts) < 2:
        return not_applicable_answer("No two pods made load.", pods=len(facts))
    groups = shared_pod_storage(facts)
    evidence: EvidenceValues = {"pods": len(facts)}
    for group in groups:
        if not group.is_one_claim:
            return indicative_answer(
                f"{group.hosts_and_shared_storage_text}: each has what the others leave of it.",
                **evidence,
                hosts=list_text(group.hosts, HOSTS_NAMED),
                storage=group.storage,
            )
    if groups:
        return valid_answer(f"{groups[0].hosts_and_shared_storage_text}, as is meant.", **evidence)
    return valid_answer("No two pods are known to be on one disk.", **evidence)


@check("monitored-node-lost", "Monitored node lost", needs_load=False)
def check_monitored_node_lost(view: RunView) -> CheckAnswer:
    """Whether every storage node and hypervisor of the study was watched through the run."""
    watched = view.record.monitored_hosts
    lost = [host for host in watched if host.error]
    evidence: EvidenceValues = {
        "watched": len(watched),
        "lost": " ".join(host.host for host in lost),
    }
    if not watched:
        return not_applicable_answer(
            "No storage node and no hypervisor is to be watched.", **evidence
        )
    if lost:
        why = (lost[0].error or "").rstrip(".")
        return indicative_answer(
            f"{len(lost)} of {len(watched)} watched hosts could not be watched to the end: {why}.",
            **evidence,
        )
    hosts = (
        "The watched host was" if len(watched) == 1 else f"All {len(watched)} watched hosts were"
    )
    return valid_answer(f"{hosts} there to the end.", **evidence)
