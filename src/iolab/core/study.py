"""A study: the whole question, with every default filled in and every override applied."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, Final

from iolab.core.configuration import Configuration
from iolab.core.host import HostSpec
from iolab.core.kubernetes import PodFleet
from iolab.core.power import MeterSettings
from iolab.core.scenario import ScenarioPlan
from iolab.core.stopping import StoppingRuleSettings
from iolab.core.tagged import TaggedRecord
from iolab.core.target_state import NO_PRECONDITION, Precondition
from iolab.core.workload import Workload
from iolab.record import Record

FULL_SCALE: Final = "full"
"""The scale that is the study as it is written; always there."""

REPEATS_MAX: Final = 5
"""More runs narrow a point's interval by less than a tenth each."""

REPEATS_FOR_INTERVAL: Final = 3
"""Fewer runs of a point have so wide an interval that it says nothing."""

TARGET_HALF_WIDTH: Final = 0.015
"""What a published point should reach."""

LINK_TIMEOUT_S: Final = 15.0
"""A loaded host or a stopped controller may be silent for seconds; load that nobody watches any
more should not go on for long."""

IDLE_WATCH_S: Final = 1.0
"""A second shows anybody who is busy on the target's devices before a run."""

NO_IDLE_POWER: Final = MeterSettings()
"""Meters are read each second, and not while the machines idle."""


class MethodKind(StrEnum):
    """How a run decides when it has seen enough."""

    FIXED = "fixed"
    """Warm-up and duration as written, the published studies' way."""
    ADAPTIVE = "adaptive"
    """A run goes on until it is steady and precise enough, a point until its repeats are."""


class RunOrder(StrEnum):
    """In which order a session executes its runs."""

    AS_WRITTEN = "as-written"
    RANDOMISED = "randomised"
    """Shuffled within each repeat by the recorded seed, so drift does not follow the axis."""


class AnswerKind(StrEnum):
    """What kind of answer the question of a study wants."""

    FIGURES = "figures"
    """The best figure of each operation; of several configurations, which is the best in what."""
    ORDER = "order"
    """Which configuration is the best for which workload: it takes at least two."""
    MACHINES = "machines"
    """How many machines a target carries, along `hosts` or `vms_per_node`."""


class FailurePolicy(StrEnum):
    """What a session does when a run fails."""

    STOP = "stop"
    """End the session; what is committed stays."""
    SKIP_POINT = "skip-point"
    """Go on with the next point: further repeats of this one are left out."""
    RETRY = "retry"
    """Try the run again, a stated number of times, then go on as with `skip-point`."""
    WITHOUT_HOST = "without-host"
    """Go on without the host that failed; such runs never mix with those of the whole fleet."""


class Method(Record):
    """How the study measures; seconds unless named otherwise.

    Before each run the target's devices are watched for `idle_watch_s`, 0 for not at all. With
    `generator_limit` each engine's I/Os a second on a target that does nothing are measured once.
    `retries` is how often a failed run is tried again, 0 unless `on_failure` is to retry.
    The adaptive method repeats a point up to `repeats_max` times until half its published interval
    is below `target_half_width`, a share; `sentinel` is the workload whose first point it measures
    again and again, "" for that of the first. Its `rule` ends each run of I/O; `warmup_s` and
    `runtime_s` are those of the fixed method and stand unused then.
    A host and the controller that hear nothing of each other for `link_timeout_s` have lost each
    other: the host ends what was started there.
    """

    kind: MethodKind
    warmup_s: float
    runtime_s: float
    repeats: int
    settle_s: float
    order: RunOrder
    seed: int
    drop_caches: bool
    on_failure: FailurePolicy = FailurePolicy.SKIP_POINT
    retries: int = 0
    repeats_max: int = REPEATS_MAX
    target_half_width: float = TARGET_HALF_WIDTH
    sentinel: str = ""
    rule: StoppingRuleSettings | None = None
    idle_watch_s: float = IDLE_WATCH_S
    generator_limit: bool = True
    link_timeout_s: float = LINK_TIMEOUT_S

    @property
    def load_seconds_range(self) -> tuple[float, float]:
        """The least and the most seconds that a run of I/O loads its target."""
        if self.rule is None:
            fixed = self.warmup_s + self.runtime_s
            return fixed, fixed
        return float(self.rule.shortest_run_s), float(self.rule.longest_s)

    @property
    def chooses_repeats_by_results(self) -> bool:
        """Whether results decide how often a point is measured."""
        return self.kind is MethodKind.ADAPTIVE


class TelemetrySettings(Record):
    """How often the hosts are watched, and how many I/Os are told one by one.

    Of each host `slow_ios` are its slowest; `recorded_ios` are its first, to be replayed.
    """

    interval_ms: int
    slow_ios: int = 0
    recorded_ios: int = 0


class TargetSettings(Record):
    """What may happen on the target.

    `keep_files` leaves the laid-out files for a later session; `allow_memory` permits a target
    that lives in memory (its results are invalid, but they are made). With `rotate` n, client i
    reads the files that client i + n wrote, which all clients must then see; 0 is its own.
    `overwrite` permits a device with a file system on it. With `make_xfs` the session makes an XFS
    of its own: on the device, else in an image file of `image_bytes` in the target's directory.
    `volume` is the type of cloud volume that it is, `cloud_metadata` asks the cloud for it.
    """

    keep_files: bool
    allow_memory: bool
    rotate: int = 0
    overwrite: bool = False
    make_xfs: bool = False
    image_bytes: int | None = None
    volume: str | None = None
    cloud_metadata: bool = False


class ServerConfig(TaggedRecord):
    """The settings of a server that the study's clients load.

    Results compare where those of `keys_that_must_agree` are the same.
    """

    __slots__ = ()

    keys_that_must_agree: ClassVar[tuple[str, ...]] = ()

    @property
    def is_memory_limited(self) -> bool:
        """Whether a server of ours is held to a bound of memory."""
        return False


class BootedGuestsConfig(TaggedRecord):
    """The settings of guests that a session boots as clients.

    `keys_that_must_agree` are as in `ServerConfig`.
    """

    __slots__ = ()

    keys_that_must_agree: ClassVar[tuple[str, ...]] = ()

    @property
    def settings_that_change_results(self) -> Mapping[str, object]:
        """What of them changes what is measured."""
        return {}


class Study(Record, dict=True):
    """The whole question. `text` is the file as given, `overrides` what was set over it.

    `inventory` is the text of the inventory whose hosts took the place of the file's, "" if none.
    `server` is the store that clients share, None where each has its own.
    `guests` are booted for the session on every hypervisor, None where there are none to boot.
    `kubernetes` are pods that a session makes and removes, None where it makes none.
    `answer` is what kind of answer the `question` wants, `meters` how power meters are read.
    `scenario` are the phases and events of each run, None for a load that nothing happens to.
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
    precondition: Precondition = NO_PRECONDITION
    server: ServerConfig | None = None
    guests: BootedGuestsConfig | None = None
    kubernetes: PodFleet | None = None
    answer: AnswerKind = AnswerKind.FIGURES
    meters: MeterSettings = NO_IDLE_POWER
    scenario: ScenarioPlan | None = None

    @property
    def load_seconds_range(self) -> tuple[float, float]:
        """The least and the most seconds that a run of I/O loads its target, phases with it."""
        least, most = self.method.load_seconds_range
        if self.scenario is None:
            return least, most
        return self.method.warmup_s + self.scenario.min_duration_s, most

    @property
    def has_reduced_scale(self) -> bool:
        """Whether a smaller study was run than the one that is written."""
        return self.scale not in ("", FULL_SCALE)

    def host(self, name: str) -> HostSpec:
        """The host of that name; KeyError when the study has none (the loader made sure)."""
        return self._hosts_by_name[name]

    @cached_property
    def _hosts_by_name(self) -> Mapping[str, HostSpec]:
        return {spec.name: spec for spec in self.hosts}

    @property
    def configuration_titles(self) -> dict[str, str]:
        """The titles of its configurations by their ids."""
        return {configuration.id: configuration.title for configuration in self.configurations}

    @property
    def workload_titles(self) -> dict[str, str]:
        """The titles of its workloads by their ids."""
        return {workload.id: workload.title for workload in self.workloads}

    def configuration(self, name: str) -> Configuration:
        """The configuration of that id; KeyError when the study has none."""
        for configuration in self.configurations:
            if configuration.id == name:
                return configuration
        raise KeyError(name)

    def workload(self, name: str) -> Workload:
        """The workload of that id; KeyError when the study has none."""
        for workload in self.workloads:
            if workload.id == name:
                return workload
        raise KeyError(name)
