"""What training-read workloads are refused for: over several keys, and in their points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.core.study import Study
from iolab.loads.training.datasets import CUSTOM
from iolab.loads.training.table import TrainingTable
from iolab.loads.training.workload import TrainingJob
from iolab.study.checks import FILES_PER_HOST_MAX
from iolab.study.document import StudyDocument
from iolab.study.schedule import expand_points
from iolab.study.tables import ElementFault, StudyTables, add_element_faults, table_name
from iolab.study.targets import load_host_names_of_point
from iolab.text import list_text

THREADS_MAX: Final = 16_384
"""Threads of one host that the engine starts."""

SAMPLES_MAX: Final = 1 << 28
"""Samples of one host whose order the engine keeps."""


def add_training_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add every fault of training-read workloads that no single key shows."""
    for item, table in tables.items_of_table("workload", TrainingTable):
        add_element_faults(document, item, _training_element_faults(table))


def _training_element_faults(table: TrainingTable) -> Iterator[ElementFault]:
    yield from _data_set_element_faults(table)
    if table.step is None or table.mean_read_bytes_per_sample is None:
        return
    job = table.build_job()
    if job.sample_stdev and job.samples_per_file > 1:
        has = "sample_stdev and samples_per_file > 1"
        hint = "Leave one out: samples of several sizes have files of their own."
        yield ElementFault(("sample_stdev",), has, hint)
    if job.files > FILES_PER_HOST_MAX:
        has = f"{job.files:,} files ({job.accelerators} accelerators, 500 steps of an epoch)"
        yield ElementFault(("files",), has, f"Give files, at most {FILES_PER_HOST_MAX:,}.")
    elif job.samples_per_client > SAMPLES_MAX:
        has = f"{job.samples_per_client:,} samples on a host"
        yield ElementFault(
            ("files",), has, f"Give fewer files; {SAMPLES_MAX:,} samples are the most."
        )


def _data_set_element_faults(table: TrainingTable) -> Iterator[ElementFault]:
    own = table.published_sample_set
    if own is None:
        for key, example in (("sample_bytes", '"4m"'), ("batch", "8"), ("compute", '"250ms"')):
            if getattr(table, key) is None:
                hint = f"Write for example {key} = {example}."
                yield ElementFault((key,), f"dataset = '{CUSTOM}' and no {key}", hint)
        return
    if table.accelerator is not None and table.accelerator not in own.steps and table.step is None:
        has = (
            f"accelerator = '{table.accelerator}', for which nothing was published with "
            f"'{table.dataset}'"
        )
        hint = f"{list_text(own.steps)} have been; or give batch and compute."
        yield ElementFault(("accelerator",), has, hint)


def add_training_point_faults(document: StudyDocument, study: Study) -> None:
    """Add the faults of points whose accelerators the hosts and their files cannot serve."""
    places = {workload.id: index for index, workload in enumerate(study.workloads)}
    for point in expand_points(study):
        job = point.job
        if not isinstance(job, TrainingJob):
            continue
        hosts = len(load_host_names_of_point(study, point))
        where = ("workload", places[point.workload])
        if problem := _accelerator_split_fault(job, hosts):
            message = f"{table_name(document, where)} has {problem.conflict_text}"
            about = f"{problem.key_path[0]} {job.accelerators}"
            document.add_fault((*where, *problem.key_path), message, problem.hint, about=about)


def _accelerator_split_fault(job: TrainingJob, host_count: int) -> ElementFault | None:
    """Why so many hosts cannot share the accelerators of a job; None where they can."""
    if job.accelerators < host_count:
        message = f"accelerators = {job.accelerators}, which {host_count} hosts cannot share."
        return ElementFault(
            ("accelerators",), message, f"Give at least {host_count}, or fewer hosts."
        )
    most = job.accelerator_count_of_host(0, host_count)
    threads = most * (job.loaders + 1)
    if threads > THREADS_MAX:
        message = (
            f"{most} accelerators on a host with {job.loaders} loaders each: {threads} threads."
        )
        hint = f"{THREADS_MAX:,} are the most: take more hosts."
        return ElementFault(("accelerators",), message, hint)
    if job.steps_of_epoch_on_host(most) < 1:
        message = (
            f"files = {job.files} on a host, {job.samples_per_client:,} samples: less than a batch "
            f"of {job.batch} for each of {most} accelerators."
        )
        groups = -(-job.batch // job.samples_per_file)
        return ElementFault(("files",), message, f"Give at least {groups * most} files.")
    return None
