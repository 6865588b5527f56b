"""A study: the whole question, with every default filled in and every override applied."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from iolab.model.configuration import Configuration
from iolab.model.host import HostSpec
from iolab.model.workload import Workload


class MethodKind(StrEnum):
    """How a run decides when it has seen enough."""

    FIXED = "fixed"
    """Warm-up and duration as written, the published studies' way."""


class Order(StrEnum):
    """In which order a session executes its runs."""

    AS_WRITTEN = "as-written"
    RANDOMISED = "randomised"
    """Shuffled within each repeat by the recorded seed, so drift does not follow the axis."""


@dataclass(frozen=True, slots=True)
class Method:
    """How the study measures; seconds unless named otherwise."""

    kind: MethodKind
    warmup_s: float
    runtime_s: float
    repeats: int
    settle_s: float
    order: Order
    seed: int
    drop_caches: bool


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """How often the hosts are watched."""

    interval_ms: int


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """What may happen on the target.

    `keep_files` leaves the laid-out files for a later session; `allow_memory` permits a target
    that lives in memory (its results are invalid, but they are made).
    """

    keep_files: bool
    allow_memory: bool


@dataclass(frozen=True, slots=True)
class Study:
    """The whole question. `text` is the file as given, `overrides` what was set over it.

    `inventory` is the text of the inventory whose hosts took the place of the file's, "" if none.
    """

    id: str
    title: str
    question: str
    source: str
    configurations: tuple[Configuration, ...]
    hosts: tuple[HostSpec, ...]
    workloads: tuple[Workload, ...]
    method: Method
    telemetry: TelemetrySettings
    target: TargetSettings
    scale: str
    text: str
    overrides: tuple[str, ...]
    inventory: str = ""

    def host(self, name: str) -> HostSpec:
        """The host of that name; KeyError when the study has none (the loader made sure)."""
        for spec in self.hosts:
            if spec.name == name:
                return spec
        raise KeyError(name)
