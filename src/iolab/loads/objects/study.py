"""Load on objects in studies and plans: its table, its faults, its requests and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from iolab.core.engine import EngineName
from iolab.core.host import DeviceFacts, HostFacts
from iolab.core.run import Plan, PlannedRun, Point
from iolab.core.study import Study
from iolab.errors import Fault, HostError
from iolab.loads.objects.data_set import ObjectDataSet, required_data_set
from iolab.loads.objects.problems import add_objects_faults
from iolab.loads.objects.table import ObjectsTable
from iolab.loads.objects.workload import (
    GENERATOR_LIMIT_S,
    S3_ENGINE,
    ObjectsJob,
    generator_limit_key,
)
from iolab.study.document import StudyDocument
from iolab.study.kinds import HostStudyKind, LoadStudyKind, TimeAndSpaceDemand
from iolab.study.load_tables import LoadTable
from iolab.study.tables import StudyTables
from iolab.study.targets import load_host_names_of_point
from iolab.study.writes import RunWrites
from iolab.text import counted_noun
from iolab.units import format_bytes, format_count

LAYOUT_BYTES_PER_S: Final = 200e6
"""What one host is taken to put in a second, for the time of a plan."""

LAYOUT_PUTS_PER_S: Final = 500.0
"""Requests that a server is taken to answer in a second, for the same."""


class ObjectsStudyKind(LoadStudyKind):
    """The part of load on objects in studies and plans."""

    engines_by_table: Mapping[type[LoadTable], tuple[EngineName, ...]] = {
        ObjectsTable: (S3_ENGINE,)
    }
    example_by_key: Mapping[str, str] = {"objects": "10000"}
    uses_object_store = True

    def job_text(self, job: ObjectsJob) -> str:
        """See `LoadStudyKind`."""
        pace = f"{job.concurrency} at a time on each host"
        if job.rate is not None:
            pace = f"{format_count(job.rate)}/s, {pace} at most"
        count = format_count(job.object_count) if job.reads_data_set else "new"
        objects = f"{count} objects of {object_sizes_text(job)}"
        return f"{operation_shares_text(job)} of {objects}, {pace}"

    def add_workload_faults(self, document: StudyDocument, tables: StudyTables) -> None:
        """Add every fault of its workloads that no single key shows."""
        add_objects_faults(document, tables)

    def writes_of_run(self, study: Study, point: Point, host_kind: HostStudyKind) -> RunWrites:  # noqa: ARG002
        """What its PUTs write, at their rate where there is one."""
        job = ObjectsJob.require_type(point.job)
        seconds = study.method.load_seconds_range
        if not job.put:
            return RunWrites()
        share = job.put / sum(share for _, share in job.operation_weights)
        if job.rate is not None:
            return RunWrites(
                limited_bytes_per_s=job.rate * share * job.mean_object_bytes, seconds_range=seconds
            )
        makers = len(load_host_names_of_point(study, point))
        return RunWrites(host_share_at_target_speed=makers, seconds_range=seconds)

    def time_and_space_demand(
        self,
        study: Study,
        runs: Sequence[PlannedRun],
        host_write_bytes_per_s: float,
        host_kind: HostStudyKind,
    ) -> TimeAndSpaceDemand:
        """With the objects that are put before the runs, by all hosts together."""
        demand = super().time_and_space_demand(study, runs, host_write_bytes_per_s, host_kind)
        generator_limit_items = _generator_limit_time_items(study, self.runs_of_kind(runs))
        read_back_items = _read_back_time_items(study, self.runs_of_kind(runs))
        demand = replace(
            demand,
            generator_limit_time_items=generator_limit_items,
            own_preparation_time_items=read_back_items,
        )
        data_sets = host_counts_by_data_set(study, self.runs_of_kind(runs))
        if not data_sets:
            return demand
        seconds, total = 0.0, 0
        for data_set, makers in data_sets.items():
            size = round(data_set.expected_bytes)
            total += size
            seconds += max(
                size / (LAYOUT_BYTES_PER_S * makers), data_set.object_count / LAYOUT_PUTS_PER_S
            )
        text = f"{counted_noun(len(data_sets), 'set')} of objects, {format_bytes(total)}"
        return replace(
            demand,
            own_preparation_time_items=((text, seconds), *read_back_items),
            set_up_bytes=total,
        )

    def readiness_faults(
        self,
        study: Study,
        plan: Plan,
        facts_by_target: Mapping[str, HostFacts],  # noqa: ARG002 - of targets on hosts
        device_facts_by_target: Mapping[str, DeviceFacts],  # noqa: ARG002 - as above
    ) -> list[Fault]:
        """Why a store cannot be reached: no keys, or no authorities of its certificate."""
        used = {run.point.configuration for run in self.runs_of_kind(plan.runs)}
        if not used:
            return []
        from iolab.loads.objects.store_tasks import load_object_store_access  # brings numpy

        faults: list[Fault] = []
        for configuration in study.configurations:
            if configuration.id in used and configuration.object_store is not None:
                try:
                    load_object_store_access(configuration.object_store)
                except HostError as error:
                    faults.append(Fault(error.message, error.hint))
        return list(dict.fromkeys(faults))

    def plan_lines(self, study: Study, plan: Plan) -> Iterable[tuple[str, str]]:
        """Where objects go, and how many requests it takes to lay them out and remove them."""
        runs = tuple(self.runs_of_kind(plan.runs))
        data_sets = host_counts_by_data_set(study, runs)
        if runs and not data_sets:
            yield "objects", "none laid out before the runs"
        for data_set in data_sets:
            store = study.configuration(data_set.configuration).object_store
            where = store.url_text if store else "no object store yet"
            yield (
                "objects",
                f"{where}: {data_set.object_count:,} objects, "
                f"{format_bytes(round(data_set.expected_bytes))}, which take "
                f"{data_set.put_request_count:,} PUT, {data_set.list_request_count:,} LIST and "
                f"{data_set.object_count:,} DELETE requests beside those of runs",
            )


def _read_back_time_items(
    study: Study, runs: Iterable[PlannedRun]
) -> tuple[tuple[str, float], ...]:
    """What reading back takes: about as long as it was put."""
    count = sum(ObjectsJob.require_type(run.point.job).read_back for run in runs)
    seconds = study.method.load_seconds_range[1]
    text = f"reading back what {counted_noun(count, 'run')} put"
    return ((text, count * seconds),) if count else ()


def _generator_limit_time_items(
    study: Study, runs: Iterable[PlannedRun]
) -> tuple[tuple[str, float], ...]:
    """How long the engine's limit takes to measure, once for each kind of load."""
    if not study.method.generator_limit:
        return ()
    kinds = {
        generator_limit_key(run.point, load_host_names_of_point(study, run.point)) for run in runs
    }
    text = f"{counted_noun(len(kinds), 'kind')} of load: s3's limit, on a null target"
    return ((text, len(kinds) * GENERATOR_LIMIT_S),) if kinds else ()


def operation_shares_text(job: ObjectsJob) -> str:
    """The operations of a job with their shares, where it has several: `GET 70, PUT 30`."""
    names = {kind: kind.replace("_", " ").upper() for kind, _ in job.operation_weights}
    if len(names) == 1:
        return next(iter(names.values()))
    return ", ".join(f"{names[kind]} {share}" for kind, share in job.operation_weights)


def object_sizes_text(job: ObjectsJob) -> str:
    """The sizes of a job's objects."""
    if job.size_spread is not None:
        spread = job.size_spread
        return (
            f"{format_bytes(spread.median_bytes)} in the median, from "
            f"{format_bytes(spread.min_bytes)} to {format_bytes(spread.max_bytes)}"
        )
    if job.sizes:
        total = sum(each.share for each in job.sizes)
        return ", ".join(
            f"{format_bytes(each.size_bytes)} ({100 * each.share / total:.3g} %)"
            for each in job.sizes
        )
    return format_bytes(job.object_bytes)


def host_counts_by_data_set(study: Study, runs: Iterable[PlannedRun]) -> dict[ObjectDataSet, int]:
    """The data sets that runs need, each with the hosts that lay it out."""
    return {
        data_set: len(load_host_names_of_point(study, run.point))
        for run in runs
        if (data_set := required_data_set(study, run.point)) is not None
    }
