"""Checks of runs in guests, and what analysis asks of guests as a kind of host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolab.analysis.busy import is_rate_limiting_resource_near_full, is_resource_full
from iolab.analysis.check import (
    Check,
    CheckAnswer,
    EvidenceValues,
    HostKindCheckSlot,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    unchecked_answer,
    valid_answer,
    worst_answer,
)
from iolab.analysis.checks.storage_bytes import can_compare_with_storage_nodes
from iolab.analysis.view import RunView
from iolab.core.host import is_emulator
from iolab.core.metric import VerdictLevel
from iolab.guests.guest import Accelerator, booted_guest_settings_of_run
from iolab.guests.metrics import (
    GuestBottleneckEvidence,
    guest_bottleneck_evidence,
    guest_cpu_shares,
    guest_iops_limit_uses,
    guests_that_were_own_bottleneck,
    guests_with_node_counted_cpu,
    hypervisor_results,
)
from iolab.guests.nodes import (
    FleetByteCounts,
    Guest,
    GuestBytes,
    are_disks_modelled,
    fleet_byte_counts,
    guests_of_run,
    hypervisor_runs,
)
from iolab.text import percent_text
from iolab.units import format_bytes, format_count, format_ns

VCPU_WAIT_SHARE_MAX: Final = 0.02
"""Share of the time that a guest's processors may have waited for one of their node's; from about
2 % on the tail of latencies is made of such waits. A guest's own count of stolen time has the same
limit."""

_NO_GUESTS: Final = "No guest of a known node made load."

MISSING_GOOD: Final = 0.99
"""Share of the bytes from above that each layer must have moved: all of them count a byte when it
is done, and are looked at before the first and after the last, so nothing of an honest run is
missing; a hundredth covers what was on its way."""

MISSING_BAD: Final = 0.95
"""With less than this of what guests read or wrote at the devices, more than one byte in twenty
was answered by somebody else: the page cache of a node, or holes in an image."""

EXCESS_SHARE: Final = 0.05
"""Bytes beyond those from above, that journals and metadata of the nodes' file systems add."""

SLACK_BYTES: Final = 1 << 20
"""Of each guest, or device: what a kernel reads and writes of a disk by itself at the edges of a
run, tables of partitions and superblocks."""

BACKGROUND_BYTES_PER_S: Final = 1 << 20
"""What an idle system writes and reads by itself on each device (logs, journals)."""

_DIRECTION_WORDS: Final = (("read", 0), ("written", 1))


@check("emulated-guest", "Guests on emulated processors", needs_load=False)
def check_emulated_guest(view: RunView) -> CheckAnswer:
    """Whether any client's processors were emulated: its result is then of the emulator, too."""
    ours = [
        guest.name
        for guest in guests_of_run(view.record)
        if guest.run.accelerator is Accelerator.TCG
    ]
    emulated_hosts = [
        host.host
        for host in view.hosts
        if (facts := view.facts_of_host(host)) is not None and is_emulator(facts.kernel.hypervisor)
    ]
    emulated = list(dict.fromkeys((*ours, *emulated_hosts)))
    evidence: EvidenceValues = {"emulated": len(emulated), "clients": len(view.hosts)}
    if not emulated:
        return valid_answer("No client tells of emulated processors.", **evidence)
    clients = emulated[0] if len(emulated) == 1 else f"{len(emulated)} of {len(view.hosts)} clients"
    return indicative_answer(
        f"The processors of {clients} were emulated: rates and latencies are the emulator's as "
        "much as the storage's.",
        guest=emulated[0],
        **evidence,
    )


@check("modelled-disk", "Modelled disks", needs_load=False)
def check_modelled_disk(view: RunView) -> CheckAnswer:
    """Whether there was any storage below the guests' disks."""
    settings = booted_guest_settings_of_run(view.record)
    if settings is None:
        return not_applicable_answer("No guest has a disk of this session's making.")
    if not are_disks_modelled(view.record):
        return valid_answer("The guests' disks are images on their nodes.")
    latency_ns = settings.latency_ns or 0
    return indicative_answer(
        f"The guests' disks are a model that takes {format_ns(latency_ns)} for every I/O: no "
        "storage was measured.",
        latency_ns=latency_ns,
    )


@check("limited-disk", "Disks held at a limit")
def check_limited_disk(view: RunView) -> CheckAnswer:
    """Whether the limit that the study puts on each guest's disk shaped the result."""
    settings = booted_guest_settings_of_run(view.record)
    limit = settings.iops_limit if settings else None
    uses = list(guest_iops_limit_uses(view))
    if limit is None or not uses:
        return not_applicable_answer("No limit on any guest's disk.")
    fastest = max(uses, key=lambda use: use.busiest_sort_key)
    held = sum(is_resource_full(use.resource, use.share) for use in uses)
    near = sum(is_rate_limiting_resource_near_full(use.resource, use.share) for use in uses)
    evidence: EvidenceValues = {
        "limit_iops": limit,
        "guests_at_limit": held,
        "guests_near_limit": near,
        "guest": fastest.host,
        "guest_iops": fastest.rate,
        "used_share": fastest.share,
    }
    text = f"The study holds each guest's disk at {format_count(limit)} IOPS"
    share = percent_text(fastest.share or 0.0)
    if held:
        return indicative_answer(
            f"{text}, and {held} of {len(uses)} guests reached it: their rate is the limit's.",
            **evidence,
        )
    if near:
        return indicative_answer(
            f"{text}, and {fastest.host} used {share} of it: near the limit, which may have cut "
            "off its bursts.",
            **evidence,
        )
    return valid_answer(f"{text}; none came nearer than {share} of it.", **evidence)


@check("guest-starved", "Guests without processors")
def check_guest_starved(view: RunView) -> CheckAnswer:
    """Whether guests, and their nodes, had the processors that they asked for."""
    guests = guests_of_run(view.record)
    if not guests:
        return not_applicable_answer(_NO_GUESTS)
    answers = [
        *(_vcpu_wait_answer(view, guest) for guest in guests),
        *_node_steal_time_answers(view),
    ]
    return worst_answer(answers, max_key="wait_share")


def _vcpu_wait_answer(view: RunView, guest: Guest) -> CheckAnswer:
    use = guest_cpu_shares(view, guest)
    if use is None:
        return not_applicable_answer(
            f"What {guest.name} had of its node's processors is not counted there; what was stolen "
            "from it, it tells itself.",
            guest=guest.name,
            wait_share=None,
        )
    evidence: EvidenceValues = {
        "guest": guest.name,
        "wait_share": use.wait_share,
        "run_share": use.run_share,
    }
    text = (
        f"The processors of {guest.name} waited {percent_text(use.wait_share)} of the time for "
        "a free "
        "one of "
        f"{guest.run.node}"
    )
    if use.wait_share >= VCPU_WAIT_SHARE_MAX:
        return indicative_answer(f"{text}: its latencies include those pauses.", **evidence)
    return valid_answer(f"{text}.", **evidence)


def _node_steal_time_answers(view: RunView) -> Iterator[CheckAnswer]:
    """A node that is a guest itself passes on what its own hypervisor takes."""
    window = view.load.measured_part.common_window
    for node in hypervisor_runs(view.record):
        share = view.mean_telemetry_of_named_host(node.name, "cpu", "all", "steal_share", window)
        if share is not None and share >= VCPU_WAIT_SHARE_MAX:
            yield indicative_answer(
                f"The hypervisor below {node.name} took {percent_text(share)} of the processors "
                "that "
                "its guests ran on.",
                node=node.name,
                wait_share=share,
            )


@check("guest-bound", "Guests bound by their processors")
def check_guest_bound(view: RunView) -> CheckAnswer:
    """Whether guests could have submitted more, and spent their latency below themselves."""
    guests = guests_of_run(view.record)
    if not guests:
        return not_applicable_answer(_NO_GUESTS)
    return worst_answer(
        (
            _guest_bottleneck_answer(guest, guest_bottleneck_evidence(view, guest))
            for guest in guests
        ),
        max_key="off",
    )


def _guest_bottleneck_answer(
    guest: Guest, guest_bottleneck: GuestBottleneckEvidence
) -> CheckAnswer:
    engine, below = guest_bottleneck.engine_latency_ns, guest_bottleneck.hypervisor_latency_ns
    times = engine / below if engine is not None and below else None
    evidence: EvidenceValues = {
        "guest": guest.name,
        "rho": guest_bottleneck.reached_depth_share,
        "engine_lat_ns": engine,
        "hypervisor_lat_ns": below,
        "times": times,
        "run_share": guest_bottleneck.cpu_shares.run_share if guest_bottleneck.cpu_shares else None,
        "wait_share": guest_bottleneck.cpu_shares.wait_share
        if guest_bottleneck.cpu_shares
        else None,
        "off": max(
            1 - guest_bottleneck.reached_depth_share
            if guest_bottleneck.reached_depth_share is not None
            else 0.0,
            1 - 1 / max(times or 1, 1),
        ),
    }
    if (
        guest_bottleneck.is_below_requested_depth
        and guest_bottleneck.reached_depth_share is not None
    ):
        return invalid_answer(
            f"Of the requested I/Os, {percent_text(guest_bottleneck.reached_depth_share)} "
            f"were in flight in {guest.name}"
            f"{_vcpu_use_text(guest_bottleneck)}: the guest was the limit, not what it measured.",
            **evidence,
        )
    if guest_bottleneck.is_latency_inside_guest and engine is not None and below is not None:
        text = (
            f"The generator in {guest.name} saw {format_ns(engine)} where its hypervisor "
            f"took {format_ns(below)}{_vcpu_use_text(guest_bottleneck)}"
        )
        if guest_bottleneck.verdict_level is VerdictLevel.INVALID:
            return invalid_answer(f"{text}: most of the latency is its processors'.", **evidence)
        where = "in the guest, or on the way between the two"
        return indicative_answer(f"{text}: most of the latency was spent {where}.", **evidence)
    if guest_bottleneck.reached_depth_share is None and below is None:
        return unchecked_answer(
            f"{guest.name} has no queue that should be full, and its node does not count its I/Os",
            **evidence,
        )
    return valid_answer(
        f"The guest {guest.name} kept up{_in_flight_share_clause(guest_bottleneck)}.", **evidence
    )


def _vcpu_use_text(guest_bottleneck: GuestBottleneckEvidence) -> str:
    """What its processors did meanwhile, for a sentence."""
    if guest_bottleneck.cpu_shares is None:
        return ""
    return (
        f", its processors ran {percent_text(guest_bottleneck.cpu_shares.run_share)} and waited "
        f"{percent_text(guest_bottleneck.cpu_shares.wait_share)}"
    )


def _in_flight_share_clause(guest_bottleneck: GuestBottleneckEvidence) -> str:
    if guest_bottleneck.reached_depth_share is None:
        return ", under a pace"
    share = percent_text(guest_bottleneck.reached_depth_share)
    return f" with {share} of the I/Os asked for in flight"


@check("guest-bytes", "Bytes of guests and of their nodes")
def check_guest_bytes(view: RunView) -> CheckAnswer:
    """Whether what guests moved is what their hypervisor served and their nodes' devices moved."""
    account = fleet_byte_counts(view)
    if account is None:
        return not_applicable_answer("No guest of a known node made load.")
    evidence = _fleet_byte_evidence(account)
    answers = [
        answer
        for guest in account.guests
        for answer in _guest_against_hypervisor_byte_answers(guest, evidence)
    ]
    return worst_answer([*answers, *_guests_against_devices_byte_answers(view, account, evidence)])


def _guest_against_hypervisor_byte_answers(
    guest: GuestBytes, evidence: EvidenceValues
) -> Iterator[CheckAnswer]:
    """One guest's own block device against what its hypervisor counted."""
    if guest.hypervisor_read_and_write_bytes is None:
        return
    numbers = {
        **evidence,
        "guest": guest.name,
        "guest_asked_bytes": sum(guest.guest_read_and_write_bytes),
        "guest_served_bytes": sum(guest.hypervisor_read_and_write_bytes),
    }
    for way, place in _DIRECTION_WORDS:
        asked, served = (
            guest.guest_read_and_write_bytes[place],
            guest.hypervisor_read_and_write_bytes[place],
        )
        text = (
            f"The hypervisor of {guest.name} counted {format_bytes(served)} {way} where the guest "
            f"counted {format_bytes(asked)}"
        )
        if served < MISSING_GOOD * asked - SLACK_BYTES:
            yield invalid_answer(f"{text}: the counts or the disk are others.", **numbers)
        elif served > (1 + EXCESS_SHARE) * asked + SLACK_BYTES:
            yield indicative_answer(f"{text}: more than the load passed.", **numbers)


def _guests_against_devices_byte_answers(
    view: RunView, byte_counts: FleetByteCounts, evidence: EvidenceValues
) -> Iterator[CheckAnswer]:
    """What left all guests against what the devices of all nodes moved."""
    below = format_bytes(sum(byte_counts.hypervisor_read_and_write_bytes))
    if are_disks_modelled(view.record):
        yield not_applicable_answer(
            f"The {below} of the guests went to modelled disks.", **evidence
        )
    elif can_compare_with_storage_nodes(view):
        yield not_applicable_answer(
            f"The {below} of the guests are compared with the storage nodes' disks.", **evidence
        )
    elif byte_counts.expected_device_read_and_write_bytes is None:
        yield not_applicable_answer(
            f"The guests moved {below}; no redundancy is declared, so it is compared with nothing.",
            **evidence,
        )
    elif byte_counts.moved_device_read_and_write_bytes is None:
        yield unchecked_answer(
            f"the devices of {byte_counts.unmonitored_node} were not counted", **evidence
        )
    else:
        yield from _node_byte_comparison_answers(
            view,
            byte_counts,
            byte_counts.expected_device_read_and_write_bytes,
            byte_counts.moved_device_read_and_write_bytes,
            evidence,
        )


def _node_byte_comparison_answers(
    view: RunView,
    byte_counts: FleetByteCounts,
    expected_read_and_write_bytes: tuple[float, float],
    moved_read_and_write_bytes: tuple[int, int],
    evidence: EvidenceValues,
) -> Iterator[CheckAnswer]:
    spans = [span.seconds for span in view.load.measured_part.whole_run_windows if span is not None]
    slack = byte_counts.device_count * (
        SLACK_BYTES + BACKGROUND_BYTES_PER_S * max(spans, default=0.0)
    )
    for way, place in _DIRECTION_WORDS:
        wanted, counted = expected_read_and_write_bytes[place], moved_read_and_write_bytes[place]
        text = (
            f"The nodes' devices counted {format_bytes(counted)} {way} where "
            f"{format_bytes(wanted)} were expected for the guests"
        )
        if wanted and counted < MISSING_GOOD * wanted:
            share = counted / wanted
            verdict = invalid_answer if share < MISSING_BAD else indicative_answer
            yield verdict(f"{text}: {percent_text(1 - share)} never reached them.", **evidence)
        elif counted > (1 + EXCESS_SHARE) * wanted + slack:
            yield indicative_answer(f"{text}: amplification, or others' work.", **evidence)
    yield valid_answer(
        f"The nodes' devices moved {format_bytes(sum(moved_read_and_write_bytes))} where "
        f"{format_bytes(sum(expected_read_and_write_bytes))} "
        f"were expected for the {format_bytes(sum(byte_counts.hypervisor_read_and_write_bytes))} "
        "of the guests.",
        **evidence,
    )


def _fleet_byte_evidence(byte_counts: FleetByteCounts) -> EvidenceValues:
    served = [
        guest.hypervisor_read_and_write_bytes
        for guest in byte_counts.guests
        if guest.hypervisor_read_and_write_bytes is not None
    ]
    asked = [guest.guest_read_and_write_bytes for guest in byte_counts.guests]
    expected, moved = (
        byte_counts.expected_device_read_and_write_bytes,
        byte_counts.moved_device_read_and_write_bytes,
    )
    return {
        "guests": len(byte_counts.guests),
        "asked_read_bytes": sum(read for read, _ in asked),
        "asked_write_bytes": sum(written for _, written in asked),
        "served_read_bytes": sum(read for read, _ in served) if served else None,
        "served_write_bytes": sum(written for _, written in served) if served else None,
        "expected_read_bytes": expected[0] if expected else None,
        "expected_write_bytes": expected[1] if expected else None,
        "devices_read_bytes": moved[0] if moved else None,
        "devices_write_bytes": moved[1] if moved else None,
        "devices": byte_counts.device_count,
    }


class GuestAnalysis:
    """Hosts that live on a node which is looked at from inside, too."""

    checks: Final[Mapping[HostKindCheckSlot, tuple[Check[RunView], ...]]] = {
        HostKindCheckSlot.PROCESSORS_REAL: (check_emulated_guest, check_modelled_disk),
        HostKindCheckSlot.LIMITS: (check_limited_disk,),
        HostKindCheckSlot.BYTES: (check_guest_bytes,),
        HostKindCheckSlot.LATENCY: (check_guest_bound,),
        HostKindCheckSlot.PROCESSORS_FREE: (check_guest_starved,),
    }
    hosts_that_were_own_bottleneck = staticmethod(guests_that_were_own_bottleneck)
    hosts_with_externally_counted_cpu_use = staticmethod(guests_with_node_counted_cpu)
    hypervisor_results = staticmethod(hypervisor_results)
    kind_specific_resource_uses = staticmethod(guest_iops_limit_uses)
