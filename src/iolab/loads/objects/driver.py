"""How load on objects is made in a session: laid out by all hosts, measured, and removed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from iolab.core.events import Notice, SessionPhase
from iolab.core.object_store import ObjectStore, session_object_prefix
from iolab.core.run import PlannedRun
from iolab.errors import EngineError, Fault, HostError, Interrupted, IolabError
from iolab.hosts.engine import Command
from iolab.hosts.engine_lines import (
    LineError,
    count_or_zero,
    printable_sentences,
    require_object,
)
from iolab.hosts.host import Host
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.objects.data_set import (
    ObjectDataSet,
    host_object_range,
    point_data_set,
    required_data_set,
)
from iolab.loads.objects.engine import (
    ObjectsLineReader,
    ObjectStoreAccess,
    document_of_load_task,
    engine_command,
    parse_read_back_counts,
    read_back_task_document,
    time_and_output_limits_of_load_task,
)
from iolab.loads.objects.remedies import request_failure_hint
from iolab.loads.objects.store_check import endpoint_faults, probe_object_store_endpoints
from iolab.loads.objects.store_tasks import (
    CONCURRENCY,
    LONG_TASK_LIMIT_S,
    create_bucket_if_missing,
    load_object_store_access,
    remove_objects_below_prefix,
    run_object_store_task,
)
from iolab.loads.objects.workload import (
    GENERATOR_LIMIT_LOAD_S,
    GENERATOR_LIMIT_S,
    S3_ENGINE,
    GeneratorLimitKey,
    ObjectsHostDetails,
    ObjectsJob,
    ReadBackCounts,
    generator_limit_key,
)
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress, run_on_each_host
from iolab.session.kinds import LoadSessionKind
from iolab.session.process_driver import ProcessDriver
from iolab.session.start import watch_for_background_io
from iolab.study.targets import load_host_names_of_point
from iolab.targets.context import arrival_offset_share, run_seed
from iolab.text import counted_noun, excerpt
from iolab.units import NS_PER_S, format_bytes, format_count

PARTS_IN_FLIGHT: Final = 4

EXAMPLES_MAX: Final = 3
"""Reasons that are named where objects cannot be put."""

NULL_PREFIX: Final = "iolab-null/"
FAULT_CHARACTERS_MAX: Final = 200
GENERATOR_LIMIT_LEFT_OUT: Final = "method.generator_limit is false"


class GeneratorLimit(Record):
    """Operations per second on a null target; None, with the reason, where they are not known."""

    ops_per_s: float | None = None
    fault: str = ""
    threads: int = 1

    def ops_per_s_with_tls(self, run_details: ObjectsHostDetails) -> float | None:
        """The limit with what encryption took of the processors for each operation of a run.

        The null target has none.
        """
        if self.ops_per_s is None or not run_details.tls_ns or not run_details.done_count:
            return self.ops_per_s
        plain_s = self.threads / self.ops_per_s
        return self.threads / (plain_s + run_details.tls_ns / NS_PER_S / run_details.done_count)


class ObjectLayoutResult(Record):
    """What a layout found and wrote on all hosts; `failure_examples` say why objects failed."""

    objects: int = 0
    bytes: int = 0
    found_objects: int = 0
    failed_objects: int = 0
    failure_examples: tuple[str, ...] = ()

    @classmethod
    def from_answer(cls, answer: object) -> ObjectLayoutResult:
        """What one host told. LineError for anything else."""
        table = require_object(answer)
        return cls(
            count_or_zero(table, "objects"),
            count_or_zero(table, "bytes"),
            count_or_zero(table, "found_objects"),
            count_or_zero(table, "failed"),
            printable_sentences(table.get("examples"))[:EXAMPLES_MAX],
        )

    def __add__(self, other: ObjectLayoutResult) -> ObjectLayoutResult:
        return ObjectLayoutResult(
            self.objects + other.objects,
            self.bytes + other.bytes,
            self.found_objects + other.found_objects,
            self.failed_objects + other.failed_objects,
            (*self.failure_examples, *other.failure_examples)[:EXAMPLES_MAX],
        )


class ObjectsDriver(ProcessDriver):
    """One process of the agent on each host; objects lie below the session's own prefix."""

    def __init__(self) -> None:
        self._session: SessionContext | None = None
        self._stores: dict[str, ObjectStoreAccess] = {}
        self._data_set_bytes: dict[str, int] = {}
        self._readers: dict[str, ObjectsLineReader] = {}
        self._generator_limits: dict[GeneratorLimitKey, dict[str, GeneratorLimit]] = {}

    async def do_steps_before_load(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """The bucket is there, and the objects that the run reads; devices are watched idle."""
        self._session = session
        access = await self._load_access_and_create_bucket(session, run, host_runs)
        await self._measure_missing_and_set_limits(session, run, host_runs, access)
        data_set = required_data_set(session.study, run.point)
        if data_set is not None and data_set.id not in self._data_set_bytes:
            await self._lay_out_missing_objects(session, run, host_runs, access, data_set)
        if not session.stop.is_requested:
            await watch_for_background_io(session, run, host_runs)

    async def measure(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        counters: CounterCollector,
    ) -> None:
        """See `ProcessDriver`; then what each host did."""
        self._readers.clear()
        try:
            await super().measure(session, run, host_runs, counters)
        finally:
            data_set = point_data_set(session.study, run.point)
            size = self._data_set_bytes.get(data_set.id, 0)
            key = _generator_limit_key(run, host_runs)
            for host_run in host_runs:
                if host_run.details is None:
                    continue
                details = ObjectsHostDetails.require_type(host_run.details)
                limit = self._generator_limits.get(key, {}).get(host_run.name)
                if limit is not None:
                    host_run.generator_limit_iops = limit.ops_per_s_with_tls(details)
                host_run.details = replace(
                    details,
                    data_set_bytes=size,
                    generator_limit_has_tls=limit is not None
                    and bool(details.tls_ns and details.done_count),
                )

    async def do_steps_after_load(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """What the run put is read back where the job asks for it, and removed."""
        job = ObjectsJob.require_type(run.point.job)
        if not job.put or not any(host_run.command for host_run in host_runs):
            return
        has_failed = any(host_run.error for host_run in host_runs)
        if job.read_back and not has_failed and not session.stop.is_requested:
            await self._read_back_and_compare_puts(session, run, host_runs)
        await self._remove_objects_or_failure_text(
            session, run.point.configuration, _run_put_prefix(session, run)
        )

    def prepare_host_command(
        self, session: SessionContext, run: PlannedRun, host_run: HostRunInProgress
    ) -> Command:
        """See `ProcessDriver`."""
        job, study = ObjectsJob.require_type(run.point.job), session.study
        hosts = load_host_names_of_point(study, run.point)
        place = hosts.index(host_run.name)
        access = self._stores[run.point.configuration]
        seconds = study.method.load_seconds_range[1]
        first, count = host_object_range(job.object_count, place, len(hosts))
        document: dict[str, Any] = {
            **access.document_without_keys(access.store.endpoints_of_host(place), job.timeout_s),
            **document_of_load_task(
                job,
                _data_set_document(session, run),
                _host_put_prefix(session, run, place),
                len(hosts),
            ),
            "share": {"first": first, "count": count},
            "later": arrival_offset_share(study, run.point, host_run.name),
            "runtime_s": seconds,
            "seed": run_seed(study, run.point, host_run.name, run.repeat),
        }
        self._readers[host_run.name] = ObjectsLineReader(job)
        limit_s, output_limit_bytes = time_and_output_limits_of_load_task(seconds, job.timeout_s)
        return engine_command(
            access,
            document,
            host_run.workdir.dir,
            limit_s=limit_s,
            output_limit_bytes=output_limit_bytes,
            waits_for_start=True,
        )

    def get_or_create_output_reader(
        self,
        run: PlannedRun,  # noqa: ARG002 - of the present run
        host_run: HostRunInProgress,
    ) -> ObjectsLineReader:
        """See `ProcessDriver`."""
        return self._readers[host_run.name]

    async def _read_back_and_compare_puts(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """Each host reads the objects that it put, and compares them."""
        job, study = ObjectsJob.require_type(run.point.job), session.study
        access = self._stores[run.point.configuration]
        hosts = load_host_names_of_point(study, run.point)
        session.begin_session_phase(SessionPhase.PROVE, run, "what the run put is read back")

        async def read_back_on_host(host_run: HostRunInProgress) -> None:
            if host_run.details is None:
                return
            details = ObjectsHostDetails.require_type(host_run.details)
            objects = details.put_objects + details.failed_put_count
            if not objects:
                return
            place = hosts.index(host_run.name)
            document = read_back_task_document(
                job,
                _data_set_document(session, run),
                _host_put_prefix(session, run, place),
                run_seed(study, run.point, host_run.name, run.repeat),
                objects,
                LONG_TASK_LIMIT_S,
            )
            limit_s, _ = time_and_output_limits_of_load_task(LONG_TASK_LIMIT_S, job.timeout_s)
            try:
                count = await run_object_store_task(
                    host_run.workdir.host,
                    access,
                    document,
                    "end",
                    directory=host_run.workdir.dir,
                    endpoints=access.store.endpoints_of_host(place),
                    limit_s=limit_s,
                    stop=session.stop,
                    parse_answer=partial(parse_read_back_counts, object_count=objects),
                )
            except Interrupted:
                return
            except (HostError, EngineError) as fault:
                # The run itself went well: its check says that nothing is known.
                reason = excerpt(fault.message, FAULT_CHARACTERS_MAX)
                count = ReadBackCounts(objects, 0, 0, 0, objects, reason)
            host_run.details = replace(details, read_back=count)

        await run_on_each_host(host_runs, read_back_on_host)

    async def close_and_list_failures(self) -> tuple[str, ...]:
        """Remove all objects of the session, unless the study keeps them."""
        session = self._session
        if session is None or session.study.target.keep_files:
            return ()
        faults: list[str] = []
        for configuration in self._stores:
            prefix = session_object_prefix(session.session_id)
            if fault := await self._remove_objects_or_failure_text(session, configuration, prefix):
                faults.append(fault)
        return tuple(faults)

    async def _load_access_and_create_bucket(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> ObjectStoreAccess:
        """The store of a run's configuration, whose bucket is made where the study says so."""
        name = run.point.configuration
        if name not in self._stores:
            access = load_object_store_access(_require_object_store(session, name))
            if access.store.create_bucket:
                await create_bucket_if_missing(host_runs[0].workdir.host, access)
            self._stores[name] = access
        return self._stores[name]

    async def _measure_missing_and_set_limits(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        access: ObjectStoreAccess,
    ) -> None:
        """Give each host what it makes on a null target, measured once for each kind of load."""
        if not session.study.method.generator_limit:
            for host_run in host_runs:
                host_run.generator_limit_fault = GENERATOR_LIMIT_LEFT_OUT
            return
        key = _generator_limit_key(run, host_runs)
        if key not in self._generator_limits and not session.stop.is_requested:
            session.begin_session_phase(
                SessionPhase.GENERATOR_LIMIT, run, "s3's limit, on a null target", GENERATOR_LIMIT_S
            )
            measured: dict[str, GeneratorLimit] = {}

            async def set_generator_limit_of_host(host_run: HostRunInProgress) -> None:
                measured[host_run.name] = await _measure_generator_limit(host_run, access, key[0])

            await run_on_each_host(host_runs, set_generator_limit_of_host)
            self._generator_limits[key] = measured
        for host_run in host_runs:
            limit = self._generator_limits.get(key, {}).get(host_run.name, GeneratorLimit())
            host_run.generator_limit_iops, host_run.generator_limit_fault = (
                limit.ops_per_s,
                limit.fault,
            )

    async def _lay_out_missing_objects(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        access: ObjectStoreAccess,
        data_set: ObjectDataSet,
    ) -> None:
        """Each host puts its part of the objects that are not there yet with their size."""
        size = format_bytes(round(data_set.expected_bytes))
        makers = counted_noun(len(host_runs), "host")
        detail = f"{format_count(data_set.object_count)} objects, {size}, from {makers}"
        session.begin_session_phase(SessionPhase.LAY_OUT, run, detail)
        laid_out: list[ObjectLayoutResult] = []

        async def lay_out_on_host(host_run: HostRunInProgress) -> None:
            place = [each.name for each in host_runs].index(host_run.name)
            first, count = host_object_range(data_set.object_count, place, len(host_runs))
            document = {
                "task": "layout",
                "objects": data_set.agent_document(session_object_prefix(session.session_id)),
                "share": {"first": first, "count": count},
                "concurrency": CONCURRENCY,
                "parts_in_flight": PARTS_IN_FLIGHT,
            }
            with suppress(Interrupted):
                result = await run_object_store_task(
                    host_run.workdir.host,
                    access,
                    document,
                    "layout",
                    directory=host_run.workdir.dir,
                    endpoints=access.store.endpoints_of_host(place),
                    limit_s=LONG_TASK_LIMIT_S,
                    stop=session.stop,
                    parse_answer=ObjectLayoutResult.from_answer,
                )
                laid_out.append(result)

        await run_on_each_host(host_runs, lay_out_on_host)
        if session.stop.is_requested:
            return
        whole = sum(laid_out, ObjectLayoutResult())
        if whole.failed_objects or whole.objects < data_set.object_count:
            why = "; ".join(example.rstrip(".") for example in whole.failure_examples)
            message = (
                f"{whole.failed_objects} of {data_set.object_count} objects could not be put in "
                f"{access.store.url_text}: {why or 'no reason was given'}."
            )
            raise EngineError(message, request_failure_hint(why))
        if whole.found_objects:
            session.emit(Notice(f"{format_count(whole.found_objects)} objects were there already."))
        self._data_set_bytes[data_set.id] = whole.bytes

    async def _remove_objects_or_failure_text(
        self, session: SessionContext, configuration_id: str, object_prefix: str
    ) -> str:
        """Remove what lies below a prefix, from any host that answers; why not, or ""."""
        access = self._stores.get(configuration_id)
        host = _first_reachable_host(session)
        if access is None:
            return ""
        if host is None:
            return (
                f"Objects below {object_prefix} stay in {access.store.url_text}: no host answers."
            )
        try:
            answer = await remove_objects_below_prefix(host, access, object_prefix)
        except IolabError as fault:
            return f"Objects below {object_prefix} stay: {fault.message}"
        left = answer.get("left")
        if not left:
            return ""
        return f"{left} objects below {object_prefix} stay in {access.store.url_text}."


def _generator_limit_key(
    run: PlannedRun, host_runs: Sequence[HostRunInProgress]
) -> GeneratorLimitKey:
    return generator_limit_key(run.point, [host_run.name for host_run in host_runs])


async def _measure_generator_limit(
    host_run: HostRunInProgress, access: ObjectStoreAccess, job: ObjectsJob
) -> GeneratorLimit:
    """What one host makes of a job on a null target, or why that is not known."""
    sizes = [{"bytes": job.object_bytes, "share": 1.0}]
    objects = {
        "prefix": NULL_PREFIX,
        "count": job.object_count,
        "prefixes": job.prefix_count,
        "sizes": sizes,
        "seed": 0,
        "part_bytes": job.part_bytes if job.has_multipart_objects else None,
    }
    document = document_of_load_task(job, objects, NULL_PREFIX, 1)
    document |= {"task": "generator-limit", "runtime_s": GENERATOR_LIMIT_LOAD_S}
    try:
        answer = await run_object_store_task(
            host_run.workdir.host,
            access,
            document,
            "generator_limit",
            directory=host_run.workdir.dir,
        )
        table = require_object(answer)
        operations = count_or_zero(table, "operations")
        cpu_ns, threads = count_or_zero(table, "cpu_ns"), count_or_zero(table, "threads")
    except EngineError as fault:
        return GeneratorLimit(fault=excerpt(fault.message, FAULT_CHARACTERS_MAX))
    except LineError as fault:
        return GeneratorLimit(fault=str(fault))
    if not operations or not cpu_ns:
        examples = "; ".join(printable_sentences(table.get("examples")))
        return GeneratorLimit(fault=excerpt(examples, FAULT_CHARACTERS_MAX) or "no operation ended")
    return GeneratorLimit(operations * NS_PER_S / cpu_ns * threads, threads=max(threads, 1))


def _require_object_store(session: SessionContext, configuration_id: str) -> ObjectStore:
    store = session.study.configuration(configuration_id).object_store
    if store is None:
        message = f"Configuration '{configuration_id}' has no object store."
        raise EngineError(message, "Give endpoint and bucket under [target].")
    return store


def _data_set_document(session: SessionContext, run: PlannedRun) -> dict[str, Any]:
    """The data set of a run, as the agent is told."""
    data_set = point_data_set(session.study, run.point)
    return data_set.agent_document(session_object_prefix(session.session_id))


def _host_put_prefix(session: SessionContext, run: PlannedRun, host_index: int) -> str:
    """Below which one host of a run puts new objects."""
    return f"{_run_put_prefix(session, run)}host-{host_index}/"


def _run_put_prefix(session: SessionContext, run: PlannedRun) -> str:
    """Below which a run puts new objects, on all hosts."""
    number = f"{run.point.digest}-{run.repeat}-{run.attempt}"
    return f"{session_object_prefix(session.session_id)}run-{number}/"


def _first_reachable_host(session: SessionContext) -> Host | None:
    return next((host for host in session.hosts.values() if not host.lost_reason), None)


async def probe_session_stores_for_faults(session: SessionContext) -> tuple[Fault, ...]:
    """What is wrong with the stores of the session's load, as its hosts see them."""
    used = {point.configuration for point in session.plan.points if point.job.engine == S3_ENGINE}
    faults: list[Fault] = []
    for configuration in session.study.configurations:
        if configuration.id in used and configuration.object_store is not None:
            access = load_object_store_access(configuration.object_store)
            hosts = [session.hosts[name] for name in configuration.hosts if name in session.hosts]
            statuses = await probe_object_store_endpoints(
                hosts, access, session_object_prefix(session.session_id)
            )
            faults += endpoint_faults(access.store, statuses)
    return tuple(dict.fromkeys(faults))


SESSION: Final = LoadSessionKind(
    driver_factory_by_engine={S3_ENGINE: ObjectsDriver},
    list_preflight_faults=probe_session_stores_for_faults,
)
