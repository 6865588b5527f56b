"""Whether the load stood still for a reason that is not the storage: stopped, traced or frozen."""

from __future__ import annotations

from typing import Final

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
from iolab.analysis.view import RunView
from iolab.core.run import LoadHalt, LoadHaltCause
from iolab.record import Record
from iolab.text import percent_text
from iolab.units import format_count

STOPPED_BAD: Final = 0.05
"""Share of the measured time that the load's threads may stand still: beyond it the rate is off by
more than repeats of a steady run differ. Any halt makes the longest latencies its own."""

_CAUSES: Final = {
    LoadHaltCause.STOPPED: "a signal stopped its threads",
    LoadHaltCause.TRACED: "a debugger or tracer stopped its threads",
    LoadHaltCause.FROZEN: "its control group was frozen",
    LoadHaltCause.SUSPENDED: "the host was suspended",
    LoadHaltCause.HOST_STOOD: "the host stood still, or all that the agent started",
}


class LoadHaltSums(Record):
    """What a host's load lost within the measured time, as a mean over its threads.

    `first_start_s` is when the first began, in seconds after the load.
    """

    halt_count: int
    stopped_thread_s: float
    stopped_thread_share: float
    first_start_s: float
    cause: LoadHaltCause


@check("engine-stopped", "The engine stood still")
@per_host(max_key="stopped_share")
def check_engine_stopped(view: RunView, host_index: int) -> CheckAnswer:
    """Whether the engine worked through the measured time, or was kept from working."""
    host = view.hosts[host_index]
    use = host.processor
    if use is None or use.load_halts is None:
        return not_applicable_answer(f"{host.host} does not show whether its load was stopped.")
    sums = sum_load_halts(view, host_index)
    if sums is None:
        return valid_answer(
            f"The engine{view.on_host_if_several(host)} was never stopped.", host=host.host
        )
    evidence: EvidenceValues = {
        "host": host.host,
        "cause": sums.cause.value,
        "load_halts": sums.halt_count,
        "stopped_s": sums.stopped_thread_s,
        "stopped_share": sums.stopped_thread_share,
        "first_s": sums.first_start_s,
    }
    often = "once" if sums.halt_count == 1 else f"{format_count(sums.halt_count)} times"
    text = (
        f"The engine{view.on_host_if_several(host)} stood still {often}, "
        f"for {sums.stopped_thread_s:.1f} s "
        f"({percent_text(sums.stopped_thread_share)} of the measured time), "
        f"first {sums.first_start_s:.1f} s after its start: {_CAUSES[sums.cause]}."
    )
    if sums.stopped_thread_share >= STOPPED_BAD:
        return invalid_answer(f"{text} The result is not the storage's.", **evidence)
    return indicative_answer(f"{text} The longest latencies are not the storage's.", **evidence)


def has_load_halts(view: RunView) -> bool:
    """Whether any host's engine stood still: what its seconds show then needs no other reason."""
    return any(sum_load_halts(view, index) for index in range(len(view.hosts)))


def sum_load_halts(view: RunView, host_index: int) -> LoadHaltSums | None:
    """The halts of a host's load within its measured time; None without any."""
    host, window = view.hosts[host_index], view.measured_window(host_index)
    use = host.processor
    if use is None or not use.load_halts or window is None or window.seconds <= 0:
        return None
    shifted = [
        (
            load_halt,
            load_halt.from_real_ns - host.clock_offset_ns,
            load_halt.to_real_ns - host.clock_offset_ns,
        )
        for load_halt in use.load_halts
    ]
    inside = [
        (load_halt, begin, min(end, window.end_ns) - max(begin, window.start_ns))
        for load_halt, begin, end in shifted
        if min(end, window.end_ns) > max(begin, window.start_ns)
    ]
    if not inside:
        return None
    lost = [
        (load_halt, _mean_stopped_thread_count(load_halt) * step_overlap_ns)
        for load_halt, _, step_overlap_ns in inside
    ]
    share = min(sum(ns for _, ns in lost) / max(use.threads, 1) / (window.seconds * 1e9), 1.0)
    start_ns = window.start_ns if host.start_real_ns is None else host.start_real_ns
    start_ns -= 0 if host.start_real_ns is None else host.clock_offset_ns
    return LoadHaltSums(
        halt_count=len(inside),
        stopped_thread_s=share * window.seconds,
        stopped_thread_share=share,
        first_start_s=max(min(begin for _, begin, _ in inside) - start_ns, 0) / 1e9,
        cause=max(lost, key=lambda pair: pair[1])[0].cause,
    )


def _mean_stopped_thread_count(load_halt: LoadHalt) -> float:
    return load_halt.thread_ns / max(load_halt.to_real_ns - load_halt.from_real_ns, 1)
