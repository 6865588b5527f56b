"""How an engine's process ended, as a sentence: pure."""

from __future__ import annotations

import signal

from iolab.core.engine import EngineName
from iolab.errors import EngineError
from iolab.hosts.host import printable
from iolab.session.driver import HostShare


def engine_fault(engine: EngineName, mine: HostShare) -> EngineError | None:
    """Why the engine did not do what it was asked on that host; None when it did.

    An engine that was stopped on our wish has not failed, whatever it says of it.
    """
    fault = ending_fault(engine, mine)
    if fault or mine.ending is None or mine.ending.halted or mine.command is None:
        return fault
    if mine.reading is None or not mine.reading.intervals:
        happened = f"{engine} on host '{mine.name}' reported nothing."
        return EngineError(happened, "See the engine's own output in the session's folder.")
    return None


def ending_fault(engine: EngineName, mine: HostShare) -> EngineError | None:
    """The same for an engine that has no intervals to report."""
    ending, reading = mine.ending, mine.reading
    if ending is None or ending.halted or mine.command is None:
        return None
    exited = ending.exited
    said = "; ".join(reading.faults if reading else ())
    words = "; ".join(ending.stderr_tail.strip().splitlines()[-2:])
    on = f"on host '{mine.name}'"
    if exited.timed_out:
        happened = (
            f"{engine} {on} did not end within {mine.command.wall_limit_s:g} s, and was killed."
        )
        return EngineError(happened, "See whether the target still answers.")
    if exited.signal is not None:
        name = _signal_name(exited.signal)
        happened = f"{engine} {on} was killed by signal {exited.signal}{name}."
        return EngineError(happened, "See that host's kernel log for who killed it, and run again.")
    if exited.code != 0:
        reason = printable("; ".join(part for part in (said, words) if part)) or "it said nothing"
        happened = f"{engine} {on} ended with exit code {exited.code} ({reason.rstrip('.')})."
        return EngineError(happened, "Correct what it says and run again.")
    if exited.truncated:
        limit = mine.command.output_limit_bytes
        happened = f"{engine} {on} printed more than {limit} bytes."
        return EngineError(happened, "Use fewer intervals: a shorter method.runtime.")
    if said:
        happened = f"{engine} {on}: {printable(said).rstrip('.')}."
        return EngineError(happened, "See the engine's own output in the session's folder.")
    return None


def _signal_name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""
