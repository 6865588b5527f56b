"""What a guest used between two looks."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import asdict, replace

from iolab.errors import HostError
from iolab.guests.blocks import guest_cpu_time_between
from iolab.guests.guest import GuestCpuTime
from iolab.hosts.answers import ProcessCpuUseAnswer, read_answer
from iolab.hosts.message import Message
from iolab.record import Record, field_names

BEFORE: Final = ProcessCpuUseAnswer(
    real_ns=1_795_000_000_000_000_000,
    run_ns=3_000_000_000,
    wait_ns=200_000_000,
    vcpu_run_ns=2_000_000_000,
    vcpu_wait_ns=100_000_000,
    user_ns=2_500_000_000,
    system_ns=500_000_000,
)


class Later(Record):
    """By how much a look is later."""

    real_ns: int = 10_000_000_000
    vcpu_run_ns: int = 4_000_000_000
    vcpu_wait_ns: int = 1_500_000_000
    user_ns: int = 4_250_000_000
    system_ns: int = 750_000_000


def after(later: Later) -> ProcessCpuUseAnswer:
    changes = {name: getattr(BEFORE, name) + getattr(later, name) for name in field_names(Later)}
    return replace(BEFORE, **changes)


def test_the_times_between_two_looks_in_seconds() -> None:
    used = guest_cpu_time_between("g0", BEFORE, after(Later()))
    assert used == GuestCpuTime(wall_s=10.0, vcpu_run_s=4.0, vcpu_wait_s=1.5, cpu_s=5.0)


@pytest.mark.parametrize("name", ["vcpu_run_ns", "vcpu_wait_ns", "user_ns", "system_ns"])
def test_what_the_kernel_does_not_count_is_nothing(name: str) -> None:
    unknown = {name: None}
    late = after(Later())
    assert guest_cpu_time_between("g0", BEFORE, replace(late, **unknown)) is None
    assert guest_cpu_time_between("g0", replace(BEFORE, **unknown), late) is None


def test_a_time_that_fell_is_a_fault() -> None:
    with pytest.raises(HostError, match="Guest 'g0' had used less time"):
        guest_cpu_time_between("g0", BEFORE, after(Later(vcpu_run_ns=-1)))


def header(**changes: object) -> dict[str, Any]:
    return {"is": "use", **asdict(BEFORE), **changes}


def test_an_answer_of_the_agent() -> None:
    assert read_answer("n1", ProcessCpuUseAnswer, Message("use", header(more=1))) == BEFORE
    assert (
        read_answer("n1", ProcessCpuUseAnswer, Message("use", header(run_ns=None))).run_ns is None
    )


@pytest.mark.parametrize("changes", [{"user_ns": -1}, {"real_ns": None}, {"wait_ns": 2**63}])
def test_an_answer_that_makes_no_sense_is_a_fault(changes: dict[str, object]) -> None:
    with pytest.raises(HostError):
        read_answer("n1", ProcessCpuUseAnswer, Message("use", header(**changes)))
