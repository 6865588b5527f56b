"""What the record of a run says of a run that failed."""

from __future__ import annotations

from iolab.errors import Fault, HostError
from iolab.run.barrier import joined
from iolab.run.execute import FAULTS_TOLD, sentence


def lost(count: int) -> HostError:
    fault = joined(tuple(HostError(f"Host {n} broke off.", "Go on.") for n in range(count)))
    assert isinstance(fault, HostError)
    return fault


def test_each_of_a_few_faults_is_told() -> None:
    assert sentence(lost(2)) == "Host 0 broke off. Host 1 broke off."
    assert sentence(lost(FAULTS_TOLD)).endswith(f"Host {FAULTS_TOLD - 1} broke off.")


def test_of_a_thousand_faults_some_are_told_and_the_others_counted() -> None:
    told = sentence(lost(1000))
    assert told.count("broke off") == FAULTS_TOLD
    assert told.endswith(f"And {1000 - FAULTS_TOLD} more.")


def test_a_single_fault_speaks_for_itself() -> None:
    assert sentence(HostError("It broke off.", "Go on.")) == "It broke off."
    alone = HostError("Two things.", "Go on.", (Fault("One thing.", "Do."),))
    assert sentence(alone) == "One thing."
