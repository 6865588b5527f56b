"""Answers of agents parsed at the edge: what does not fit is a HostError, not a surprise later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from iolab.errors import HostError
from iolab.model.histogram import BIN_COUNT
from iolab.model.host import DeviceFacts, HostFacts, TargetProbe
from iolab.model.run import ExtentProof
from iolab.run.hosts.base import Hello, Message
from iolab.run.hosts.text import printable

WIRE: Final = 1
"""The number of the wire that this controller speaks."""

MAX_COUNT: Final = 2**63 - 1
"""Counts and times are kept in 64 signed bits everywhere after this edge."""

Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Answer = TypeVar("Answer", bound="_Answer")


class _Answer(BaseModel):
    """Further keys are ignored: an agent may say more than this controller reads."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ClockAnswer(_Answer):
    """The host's two clocks at one moment, in ns, and its time stamp counter at `mono_ns`."""

    mono_ns: Count
    real_ns: Count
    tsc: Count | None = None


class ScratchAnswer(_Answer):
    """A scratch folder held by this session; `left_over_bytes` is what a dead one left there."""

    dir: Annotated[str, Field(min_length=1, max_length=4096)]
    left_over_bytes: Count = 0


class LedgerAnswer(_Answer):
    """Where processes of the agent find a ledger that it keeps in its memory."""

    path: Annotated[str, Field(min_length=1, max_length=4096)]


class FilesystemAnswer(_Answer):
    """A file system of the session's own: where it is mounted, and the name of its block device.

    `kept` is true for one that an earlier session had kept, `direct` when its device passes the
    page cache of what is below.
    """

    dir: Annotated[str, Field(min_length=1, max_length=4096)]
    device: Annotated[str, Field(min_length=1, max_length=255)]
    kept: bool = False
    direct: bool = False


class PurgedAnswer(_Answer):
    """A discard or a trim: how many bytes were given back."""

    bytes: Count


class ExtentsAnswer(_Answer):
    """Bytes of files by what the file system holds for them."""

    method: Annotated[str, Field(max_length=40)]
    files: Count
    size_bytes: Count
    written_bytes: Count
    unwritten_bytes: Count
    hole_bytes: Count

    @property
    def proof(self) -> ExtentProof:
        """The same as the model says it."""
        return ExtentProof(
            self.method,
            self.files,
            self.size_bytes,
            self.written_bytes,
            self.unwritten_bytes,
            self.hole_bytes,
        )


class EvictAnswer(_Answer):
    """Page cache of the files before and after the drop; None where the kernel does not count."""

    resident_bytes_before: Count | None
    resident_bytes_after: Count | None
    methods: Annotated[tuple[Annotated[str, Field(max_length=40)], ...], Field(max_length=16)]


class FileAnswer(_Answer):
    """A file that was read, by its size and the SHA-256 of its content."""

    size: Count
    sha256: Annotated[str, Field(max_length=64)]


class ExitedAnswer(_Answer):
    """How a process ended and what it used.

    `memory_peak_bytes` and `oom_kills` are of all its processes together and only told where its
    memory was bounded; None also where the kernel does not count.
    """

    code: int | None
    signal: int | None
    user_s: Annotated[float, Field(ge=0)]
    system_s: Annotated[float, Field(ge=0)]
    max_rss_bytes: Count
    real_ns: Count
    timed_out: bool = False
    truncated: bool = False
    memory_peak_bytes: Count | None = None
    oom_kills: Count | None = None


class UseAnswer(_Answer):
    """What a run's process has used so far; None for what the kernel does not count.

    `run_ns` and `wait_ns` are sums of its living threads, the `vcpu_` ones of those that are a
    guest's processors; `user_ns` and `system_ns` are of the whole process.
    """

    real_ns: Count
    run_ns: Count | None
    wait_ns: Count | None
    vcpu_run_ns: Count | None
    vcpu_wait_ns: Count | None
    user_ns: Count | None
    system_ns: Count | None


Bins = Annotated[
    tuple[tuple[Annotated[int, Field(ge=0, lt=BIN_COUNT)], Count], ...], Field(max_length=BIN_COUNT)
]
Errors = Annotated[dict[Annotated[str, Field(max_length=40)], Count], Field(max_length=200)]


class MetadataIntervalAnswer(_Answer):
    """What a metadata phase did on a host between two moments of its clock."""

    from_real_ns: Count
    to_real_ns: Count
    ops: Count
    bins: Bins


class MeasuredAnswer(_Answer):
    """What a metadata phase did on a host from its start to its end."""

    phase: Annotated[str, Field(max_length=40)]
    ops: Count
    errors: Errors
    skipped: Count
    bins: Bins
    latency_min_ns: Count | None
    latency_max_ns: Count | None
    latency_sum_ns: Count
    first_start_real_ns: Count | None
    last_start_real_ns: Count | None
    first_end_real_ns: Count | None
    last_end_real_ns: Count | None
    preemptions: Count
    cancelled: bool
    timed_out: bool


class _HelloAnswer(_Answer):
    wire: int
    version: Annotated[str, Field(max_length=100)]
    pid: Count = 0
    capabilities: Annotated[tuple[str, ...], Field(max_length=100)] = ()


_FACTS: Final = TypeAdapter(HostFacts)
_PROBE: Final = TypeAdapter(TargetProbe)
_DEVICE: Final = TypeAdapter(DeviceFacts)


def read_answer(host: str, model: type[Answer], message: Message) -> Answer:
    """The message as `model`; HostError when it does not fit."""
    try:
        return model.model_validate(dict(message.header))
    except ValidationError as fault:
        raise _nonsense(host, message, fault) from None


def read_hello(host: str, message: Message) -> Hello:
    """The hello of an agent that speaks our wire; HostError else."""
    if message.is_ != "hello":
        what = printable(message.is_, 60)
        happened = f"Host '{printable(host)}' began with '{what}' instead of a hello."
        raise HostError(happened, "See that the host's command starts nothing but the agent.")
    hello = read_answer(host, _HelloAnswer, message)
    if hello.wire != WIRE:
        happened = (
            f"The agent on host '{printable(host)}' is {printable(hello.version, 60)} and speaks "
            f"wire {hello.wire}, this controller speaks wire {WIRE}."
        )
        raise HostError(happened, "Use an agent of the same iolab version as this command.")
    return Hello(hello.wire, printable(hello.version, 100), hello.pid, hello.capabilities)


def read_facts(host: str, message: Message) -> HostFacts:
    """The facts of a host; HostError when they do not fit the model."""
    try:
        return _FACTS.validate_python(_object(message.header.get("facts")))
    except ValidationError as fault:
        raise _nonsense(host, message, fault) from None


def read_probe(host: str, message: Message) -> TargetProbe:
    """What trying a target told; HostError when it does not fit the model."""
    try:
        return _PROBE.validate_python(dict(message.header))
    except ValidationError as fault:
        raise _nonsense(host, message, fault) from None


def read_device(host: str, message: Message) -> DeviceFacts:
    """A block device as its host tells it; HostError when it does not fit the model."""
    try:
        return _DEVICE.validate_python(dict(message.header))
    except ValidationError as fault:
        raise _nonsense(host, message, fault) from None


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _nonsense(host: str, message: Message, fault: ValidationError) -> HostError:
    first = fault.errors(include_url=False, include_input=False)[0]
    where = printable(".".join(str(part) for part in first["loc"]) or message.is_, 100)
    happened = (
        f"Host '{printable(host)}' sent a '{printable(message.is_, 60)}' that makes no sense: "
        f"{where}: {printable(first['msg'], 100)}."
    )
    return HostError(happened, "Use an agent of the same iolab version as this command.")
