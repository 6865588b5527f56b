"""Witnesses: asked on their hosts before a session begins, and while its load goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Final

from iolab.core.scenario import EventPlan, ScenarioPlan, Witness
from iolab.core.study import Study
from iolab.errors import Fault, HostError, IolabError
from iolab.hosts.engine import Command
from iolab.hosts.host import Host
from iolab.hosts.remote_process import exit_fault_text, fetch_file, run_process
from iolab.record import Record
from iolab.text import excerpt, quote_value

WITNESS_GRACE_S: Final = 2.0
"""Beyond the timeout of a witness, whose process may hang with the system that it looks at."""

WITNESS_BYTES_MAX: Final = 1 << 20
COUNTER_END: Final = 1 << 63
THROTTLE_CHARACTERS: Final = 100
PRINTED_CHARACTERS: Final = 80
YES, NO = 0, 1
"""Exit codes of a witness without a field."""

CORRECT_HINT: Final = "Correct the [[witness]] in the inventory, and try its command on that host."


class WitnessReading(Record):
    """A state, the bytes that were copied, and what holds the copy back, as a witness says.

    `state` is None where it says nothing that can be used: for a `fault` of the witness, or, with
    "", because it was silent.
    """

    state: bool | None = None
    rebuilt_bytes: int | None = None
    throttle: str = ""
    fault: str = ""


class EventPreflight(Record):
    """What speaks against the events of a plan on its hosts, and what should be known of them."""

    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()


async def read_witness(host: Host, witness: Witness) -> WitnessReading:
    """What the witness says; nothing where it is too late, or what it says cannot be read."""
    try:
        async with asyncio.timeout(witness.timeout_s + WITNESS_GRACE_S):
            if witness.file:
                return await _read_file_witness(host, witness)
            return await _read_command_witness(host, witness)
    except TimeoutError:
        return WitnessReading()
    except IolabError as fault:
        return WitnessReading(fault=excerpt(fault.message))


async def _read_file_witness(host: Host, witness: Witness) -> WitnessReading:
    content = await fetch_file(host, witness.file, WITNESS_BYTES_MAX)
    if content is None:
        return WitnessReading(fault=f"There is no file {quote_value(witness.file)}.")
    return WitnessReading(content.decode("utf-8", "replace").strip() == witness.equals)


async def _read_command_witness(host: Host, witness: Witness) -> WitnessReading:
    printed = bytearray()
    command = Command(
        witness.argv,
        "/",
        b"",
        " ".join(witness.argv),
        witness.timeout_s,
        WITNESS_BYTES_MAX,
        in_host_pid_namespace=True,
    )
    ending = await run_process(host, command, asyncio.Event(), printed.extend)
    if ending.exited.timed_out:
        return WitnessReading()
    codes = frozenset({YES} if witness.field else {YES, NO})
    if (fault := exit_fault_text(ending, command, codes)) is not None:
        return WitnessReading(fault=f"{quote_value(witness.argv[0])} {fault}.")
    if witness.field:
        return _parse_witness_document(witness, bytes(printed))
    return WitnessReading(ending.exited.code == YES)


def _parse_witness_document(witness: Witness, printed: bytes) -> WitnessReading:
    """What the JSON object of a witness says; nothing of what is none, or of another type."""
    try:
        document = json.loads(printed)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        text = excerpt(printed.decode("utf-8", "replace").strip(), PRINTED_CHARACTERS)
        return WitnessReading(fault=f"It prints {quote_value(text)}, which is no JSON object.")
    field = quote_value(witness.field)
    state, count = document.get(witness.field), document.get(witness.rebuilt_field)
    throttle = document.get(witness.throttle_field)
    fault = ""
    if witness.field not in document:
        fault = f"The JSON object that it prints has no key {field}."
    elif state is not None and not isinstance(state, bool):
        value = quote_value(excerpt(json.dumps(state), PRINTED_CHARACTERS))
        fault = f"Its key {field} is {value}, and neither true nor false."
    return WitnessReading(
        state if isinstance(state, bool) else None,
        count if type(count) is int and 0 <= count < COUNTER_END else None,
        excerpt(throttle, THROTTLE_CHARACTERS) if isinstance(throttle, str) else "",
        fault,
    )


async def witness_preflight(study: Study, hosts: Mapping[str, Host]) -> EventPreflight:
    """Ask each witness that phases and events need once, before anything is destroyed.

    A fault is one that cannot be asked, or that shows what an event is yet to bring about; a note
    is that one is silent.
    """
    scenario = study.scenario
    if scenario is None:
        return EventPreflight()
    faults: list[Fault] = []
    notes: list[str] = []
    names = scenario.expected_witnesses
    for witness in scenario.witnesses:
        host = hosts.get(witness.host)
        if witness.id not in names or host is None:
            continue
        who = f"Witness {quote_value(witness.id)} on host {quote_value(witness.host)}"
        reading = await _read_reachable_witness(host, witness)
        if reading.fault:
            faults.append(Fault(f"{who} cannot be used. {reading.fault}", CORRECT_HINT))
        elif reading.state is None:
            notes.append(
                f"{who} gave no answer when it was tried: whether events happen may stay unknown"
            )
        else:
            faults += _early_state_faults(scenario, who, witness, state=reading.state)
    return EventPreflight(tuple(faults), tuple(notes))


async def _read_reachable_witness(host: Host, witness: Witness) -> WitnessReading:
    """The reading; HostError where the host was lost meanwhile, which is no fault of a witness."""
    reading = await read_witness(host, witness)
    if host.lost_reason:
        raise HostError(f"Host '{host.name}' was lost: {host.lost_reason}.", "Run again.")
    return reading


def _early_state_faults(
    scenario: ScenarioPlan, who: str, witness: Witness, *, state: bool
) -> Iterator[Fault]:
    event = _first_event_of_witness(scenario, witness.id)
    if event is not None and event.expected is not None and event.expected.state is state:
        yield Fault(
            f"{who} says {quote_value(str(event.expected))} already, which event "
            f"{quote_value(event.id)} is to bring about.",
            f"See what is wrong with the storage first; else correct 'expect', or the [[witness]] "
            f"({_witness_source_text(witness)}).",
        )


def _first_event_of_witness(scenario: ScenarioPlan, witness: str) -> EventPlan | None:
    """The first event that a witness is to see."""
    return next(
        (
            event
            for event in scenario.ordered_events
            if event.expected is not None and event.expected.witness == witness
        ),
        None,
    )


def _witness_source_text(witness: Witness) -> str:
    return f"file {witness.file}" if witness.file else " ".join(witness.argv)
