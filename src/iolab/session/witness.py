"""Witnesses: what they say when they are asked on their hosts, again and again."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from iolab.core.scenario import Witness
from iolab.errors import IolabError
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


class WitnessReading(Record):
    """A state, the bytes that were copied, and what holds the copy back, as a witness says.

    `state` is None where it says nothing that can be used: for a `fault` of the witness, or, with
    "", because it was silent.
    """

    state: bool | None = None
    rebuilt_bytes: int | None = None
    throttle: str = ""
    fault: str = ""


class WitnessReader:
    """A witness on its host, which is asked no further question while one goes on there.

    A process that hangs with the storage outlives its question and every signal: such ones would
    take all places that the host's agent has for programs, those that undo events among them.
    """

    def __init__(self, host: Host, witness: Witness) -> None:
        self._host = host
        self._witness = witness
        self._request_id: int | None = None

    async def read(self) -> WitnessReading:
        """What it says; nothing where it is too late, or what it says cannot be read."""
        if self._request_id is not None and self._host.is_working_on(self._request_id):
            return WitnessReading()
        try:
            async with asyncio.timeout(self._witness.timeout_s + WITNESS_GRACE_S):
                return await (self._read_file() if self._witness.file else self._read_command())
        except TimeoutError:
            return WitnessReading()
        except IolabError as fault:
            return WitnessReading(fault=excerpt(fault.message))

    def _remember_request_id(self, request_id: int) -> None:
        self._request_id = request_id

    async def _read_file(self) -> WitnessReading:
        path = self._witness.file
        content = await fetch_file(self._host, path, WITNESS_BYTES_MAX, self._remember_request_id)
        if content is None:
            return WitnessReading(fault=f"There is no file {quote_value(path)}.")
        return WitnessReading(content.decode("utf-8", "replace").strip() == self._witness.equals)

    async def _read_command(self) -> WitnessReading:
        witness, printed = self._witness, bytearray()
        command = Command(
            witness.argv,
            "/",
            b"",
            " ".join(witness.argv),
            witness.timeout_s,
            WITNESS_BYTES_MAX,
            in_host_pid_namespace=True,
        )
        ending = await run_process(
            self._host,
            command,
            asyncio.Event(),
            printed.extend,
            on_request_id=self._remember_request_id,
        )
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
