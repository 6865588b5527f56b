"""Which processors guests may use."""

from __future__ import annotations

from itertools import chain

import pytest

from iolab.core.host import CpuFacts, NumaNode
from iolab.guests.guest import Pinning
from iolab.guests.hosts import (
    CpuPin,
    assign_cpu_pins,
    guest_pins_of_machine,
    parse_cpu_list,
    unpinned_guest_count,
)


def machine(*lists: str, threads: int = 8) -> CpuFacts:
    nodes = tuple(NumaNode(number, cpus, 1 << 30) for number, cpus in enumerate(lists))
    return CpuFacts("x", 1, threads, threads, None, None, nodes)


TWO = machine("0-3", "4-7")


def test_nothing_is_pinned_unless_asked() -> None:
    assert assign_cpu_pins(TWO, 3, 2, Pinning.NONE) == (CpuPin(), CpuPin(), CpuPin())


def test_numa_nodes_take_turns() -> None:
    even, odd = CpuPin((0, 1, 2, 3), 0), CpuPin((4, 5, 6, 7), 1)
    assert assign_cpu_pins(TWO, 3, 2, Pinning.NUMA) == (even, odd, even)


def test_a_numa_node_without_processors_has_no_guests() -> None:
    (pin, _) = assign_cpu_pins(machine("", "0-7"), 2, 1, Pinning.NUMA)
    assert pin == CpuPin(tuple(range(8)), 1)


@pytest.mark.parametrize("facts", [machine(), machine(""), machine("0-x")])
def test_where_no_numa_node_is_told_there_is_nothing_to_choose(facts: CpuFacts) -> None:
    assert assign_cpu_pins(facts, 2, 1, Pinning.NUMA) == (CpuPin(), CpuPin())


def test_cores_are_their_own_while_they_last() -> None:
    given = assign_cpu_pins(TWO, 5, 2, Pinning.CORES)
    assert [pin.cpus for pin in given] == [(0, 1), (2, 3), (4, 5), (6, 7), ()]
    assert unpinned_guest_count(given) == 1


def test_a_guest_stays_on_one_numa_node_where_it_can() -> None:
    given = assign_cpu_pins(TWO, 3, 3, Pinning.CORES)
    assert [pin.cpus for pin in given] == [(0, 1, 2), (4, 5, 6), ()]


def test_a_guest_larger_than_a_numa_node_spans_two() -> None:
    given = assign_cpu_pins(TWO, 2, 6, Pinning.CORES)
    assert [pin.cpus for pin in given] == [(0, 1, 2, 3, 4, 5), ()]


def test_too_few_for_one_leave_the_rest_to_a_smaller_one() -> None:
    assert unpinned_guest_count(assign_cpu_pins(machine("0-1"), 1, 3, Pinning.CORES)) == 1


def test_cores_without_numa_nodes_are_the_threads() -> None:
    given = assign_cpu_pins(machine(threads=3), 2, 2, Pinning.CORES)
    assert [pin.cpus for pin in given] == [(0, 1), ()]


def test_nodes_that_are_one_machine_have_processors_for_their_first_guests() -> None:
    nodes = (("a-1", "a-2", "a-3"), ("b-1",), ("c-1", "c-2"))
    given = guest_pins_of_machine(machine("0-3"), nodes, 1, Pinning.CORES)
    assert {name: pin.cpus for name, pin in given.items()} == {
        "a-1": (0,),
        "b-1": (1,),
        "c-1": (2,),
        "a-2": (3,),
        "c-2": (),
        "a-3": (),
    }


@pytest.mark.parametrize("vcpus", [1, 2, 3, 5])
def test_no_processor_is_given_twice(vcpus: int) -> None:
    given = assign_cpu_pins(machine("0-6,14", "7-13"), 20, vcpus, Pinning.CORES)
    taken = list(chain.from_iterable(pin.cpus for pin in given))
    assert len(taken) == len(set(taken))
    assert {len(pin.cpus) for pin in given} == {0, vcpus}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-3,8\n", (0, 1, 2, 3, 8)), ("5", (5,)), ("", ()), ("8,0-1", (0, 1, 8)), ("3-1", ())],
)
def test_lists_of_the_kernel(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == numbers


@pytest.mark.parametrize("text", ["x", "0-", "-1", "1,,2", "0-99999999", "0x3", "٣", "1-2-3"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no list of processors"):
        parse_cpu_list(text)
