"""Training-read load in studies and plans: its table, its faults, what it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from iolab.core.engine import EngineName
from iolab.core.host import DeviceFacts, HostFacts
from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.errors import Fault
from iolab.loads.training.datasets import CUSTOM, MEMORY_FACTOR
from iolab.loads.training.problems import add_training_faults, add_training_point_faults
from iolab.loads.training.table import TrainingTable
from iolab.loads.training.workload import TRAINING_ENGINE, TrainingJob
from iolab.study.document import StudyDocument
from iolab.study.kinds import KnownFacts, LoadStudyKind
from iolab.study.load_tables import LoadTable
from iolab.study.tables import StudyTables
from iolab.study.targets import load_host_names_of_point
from iolab.text import counted_noun
from iolab.units import format_bytes, format_count, format_ns, format_rate_bytes


class TrainingStudyKind(LoadStudyKind):
    """The part of training-read load in studies and plans."""

    engines_by_table: Mapping[type[LoadTable], tuple[EngineName, ...]] = {
        TrainingTable: (TRAINING_ENGINE,)
    }
    example_by_key: Mapping[str, str] = {"dataset": '"unet3d"', "accelerators": "[1, 2, 4]"}

    def job_text(self, job: TrainingJob) -> str:
        """See `LoadStudyKind`."""
        name = job.dataset if job.dataset != CUSTOM else "a data set of its own"
        step = f"{counted_noun(job.batch, 'sample')} per {format_ns(job.compute_ns)}"
        emulated = counted_noun(job.accelerators, f"{job.accelerator} accelerator".strip())
        return (
            f"{emulated} of {name}, {step}, "
            f"{format_count(job.samples_per_client)} samples of {format_bytes(job.sample_bytes)} "
            f"in {counted_noun(job.files, 'file')} on each host"
        )

    def add_workload_faults(self, document: StudyDocument, tables: StudyTables) -> None:
        """Add every fault of its workloads that no single key shows."""
        add_training_faults(document, tables)

    def add_point_faults(self, document: StudyDocument, study: Study) -> None:
        """Add the faults of accelerators that hosts cannot share."""
        add_training_point_faults(document, study)

    def readiness_faults(
        self,
        study: Study,
        plan: Plan,
        facts_by_target: Mapping[str, HostFacts],
        device_facts_by_target: Mapping[str, DeviceFacts],  # noqa: ARG002 - it needs files
    ) -> list[Fault]:
        """Too little memory for the reads of all loaders."""
        faults: dict[str, Fault] = {}
        for point in plan.points:
            if not isinstance(point.job, TrainingJob):
                continue
            hosts = load_host_names_of_point(study, point)
            for place, name in enumerate(hosts):
                loaders = point.job.accelerator_count_of_host(place, len(hosts)) * point.job.loaders
                needed = loaders * point.job.read_bytes
                found = facts_by_target.get(name)
                if found is not None and needed > found.memory.usable_bytes:
                    message = (
                        f"{loaders} loaders on host '{name}' read {format_bytes(needed)} at a "
                        f"time, and its memory is {format_bytes(found.memory.usable_bytes)}."
                    )
                    faults[name] = Fault(message, "Give a smaller read_size or fewer loaders.")
        return list(faults.values())

    def plan_notes(self, study: Study, plan: Plan, facts_by_target: KnownFacts) -> Iterable[str]:
        """What each number of accelerators asks of the storage, and sets that fit into memory."""
        for point in plan.points:
            job = point.job
            if not isinstance(job, TrainingJob):
                continue
            hosts = load_host_names_of_point(study, point)
            demand = job.accelerators * job.bytes_per_s_of_accelerator
            steps = job.steps_of_epoch_on_host(job.accelerator_count_of_host(0, len(hosts)))
            emulated = counted_noun(job.accelerators, "accelerator")
            yield (
                f"{point.title_text}: without any wait {emulated} "
                f"read {format_rate_bytes(demand)}; an epoch has {format_count(steps)} steps"
            )
        yield from _notes_on_data_fitting_in_memory(study, plan, facts_by_target or {})


def _notes_on_data_fitting_in_memory(
    study: Study, plan: Plan, facts_by_target: Mapping[str, HostFacts]
) -> Iterable[str]:
    """Hosts whose memory may hold much of what is read through it."""
    for point in plan.points:
        job = point.job
        if not isinstance(job, TrainingJob) or job.direct:
            continue
        size = job.files * job.file_bytes
        for name in load_host_names_of_point(study, point):
            found = facts_by_target.get(name)
            if found is not None and size < MEMORY_FACTOR * found.memory.usable_bytes:
                yield (
                    f"{point.title_text}: the files of host '{name}' ({format_bytes(size)}) are "
                    f"less than {MEMORY_FACTOR} times its memory "
                    f"({format_bytes(found.memory.usable_bytes)}), and are read through it"
                )
