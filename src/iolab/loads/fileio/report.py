"""I/O on files in briefs and exports, of which some may be swept over guests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from iolab.analysis.points import PointSummary
from iolab.core.study import Study
from iolab.core.workload import AnyJob, Workload
from iolab.loads.fileio.workload import Job
from iolab.report.best import BestFigure, BestPointHeadline
from iolab.report.brief import Brief, Charts, MeasurementSource
from iolab.report.numbers import DASH
from iolab.report.scenario import scenario_answer_text
from iolab.report.single_figure import SingleFigureReport
from iolab.report.table import Cell, Table, row_of_cells, text_and_number_columns
from iolab.text import counted_noun
from iolab.units import format_bytes, parse_size


class FileReport(SingleFigureReport):
    """I/O on files, of which `hosts` tell what is swept over guests."""

    uses_laid_out_files: ClassVar[bool] = True

    def best_figures(self, measurements: MeasurementSource) -> tuple[BestFigure, ...]:
        """Each with the block size, jobs and depth that its title and its place leave out."""
        jobs = {workload.id: workload.job for workload in measurements.study.workloads}
        return tuple(
            replace(
                figure, load_text=_block_size_jobs_and_depth_text(jobs[figure.workload], figure)
            )
            for figure in super().best_figures(measurements)
        )

    def has_published_figures(self, workload: Workload) -> bool:
        """Of guests."""
        return self.hosts.is_swept_over_hosts_per_node(workload)

    def best_point_headlines(
        self, study: Study, points: Sequence[PointSummary]
    ) -> tuple[BestPointHeadline, ...]:
        """Every workload; of guests each mix is one by itself."""
        every = SingleFigureReport.best_point_headlines(self, study, points)
        plain = (
            headline
            for headline in every
            if not self.hosts.is_swept_over_hosts_per_node(headline.workload)
        )
        return (*plain, *self.hosts.best_point_headlines(study, points))

    def extra_answer_text(self, study: Study, points: Sequence[PointSummary]) -> str:
        """What a fault cost, of runs with phases; empty without."""
        return scenario_answer_text(study, points)

    def charts_by_workload(self, brief: Brief) -> Charts:
        """As of any load, and those of guests."""
        from iolab.report.charts.choose import chart_groups_over_load

        workloads = [
            workload for workload in brief.study.workloads if self.handles_workload(workload)
        ]
        plain = [
            workload
            for workload in workloads
            if not self.hosts.is_swept_over_hosts_per_node(workload)
        ]
        return {**chart_groups_over_load(brief, plain), **self.hosts.charts_by_workload(brief)}

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:  # noqa: ARG002
        """The jobs."""
        return (workloads_table(study),)

    def job_count_and_depth_rows(self, study: Study) -> tuple[tuple[str, str], ...]:
        """How many jobs make the load, and how far they fill a queue."""
        own = [workload for workload in study.workloads if isinstance(workload.job, Job)]
        return tuple(
            (name, f"{_job_field_range_text(own, key)} {per}")
            for name, key, per in (
                ("Jobs", "numjobs", "on each host"),
                ("Queue depth", "iodepth", "of each job"),
            )
        )


def _job_field_range_text(workloads: Sequence[Workload], field_name: str) -> str:
    """The least and the most that workloads ask for of a number, swept or not."""
    values = [
        int(value)
        for workload in workloads
        for value in next(
            (axis.values for axis in workload.sweep if axis.name == field_name),
            (getattr(Job.require_type(workload.job), field_name),),
        )
    ]
    least, most = min(values), max(values)
    return f"{least}" if least == most else f"{least} to {most}"


def _block_size_jobs_and_depth_text(job: AnyJob, figure: BestFigure) -> str:
    """`4 KiB · 4 jobs · iodepth 8`, without what the title or the place of the axes says."""
    if not isinstance(job, Job):
        return ""
    swept = {name for name, _ in figure.axis_values}
    block = format_bytes(job.block_bytes)
    parts = (
        "" if "bs" in swept or block in figure.title else block,
        "" if "numjobs" in swept or job.numjobs == 1 else counted_noun(job.numjobs, "job"),
        "" if "iodepth" in swept else f"iodepth {job.iodepth}",
    )
    return " · ".join(filter(None, parts))


def workloads_table(study: Study) -> Table:
    """The jobs of each workload of I/O, with the values of their axes."""
    texts = ("Workload", "Access", "Block", "iodepth", "Jobs", "File", "Direct", "Engine")
    rows = tuple(
        _workload_row(workload) for workload in study.workloads if isinstance(workload.job, Job)
    )
    return Table(
        "Workloads", text_and_number_columns((*texts, "Contents", "Further options")), rows
    )


def _workload_row(workload: Workload) -> tuple[Cell, ...]:
    job = Job.require_type(workload.job)
    swept = workload.axis_values_texts
    # Rates in bytes have their unit, where all else is told as it is written.
    for axis in workload.sweep:
        if axis.name == "rate":
            swept["rate"] = ", ".join(_rate_text(parse_size(value)) for value in axis.values)
    mix = swept.get("rwmixread", job.read_percent)
    access = job.access.value + (f", {mix} % reads" if job.access.is_mixed else "")
    options = [f"{name}={value}" for name, value in job.options]
    rates = {
        "rate_iops": job.rate_iops,
        "rate": job.rate_bytes_per_s and _rate_text(job.rate_bytes_per_s),
        "fleet_rate_iops": job.fleet_rate_iops,
    }
    if job.trace:
        options.append(f"trace={job.trace} trace_speed={job.trace_speed:g}")
    texts = ((name, swept.get(name, rate)) for name, rate in rates.items())
    options += [f"{name}={rate}" for name, rate in texts if rate is not None]
    return row_of_cells(
        workload.title,
        access,
        swept.get("bs", format_bytes(job.block_bytes)),
        swept.get("iodepth", str(job.iodepth)),
        swept.get("numjobs", str(job.numjobs)),
        _file_count_and_size_text(job, swept.get("filesize")),
        "yes" if job.direct else "no, buffered",
        f"{job.engine}, {job.ioengine}",
        job.contents.value,
        " ".join(options) or DASH,
    )


def _rate_text(bytes_per_s: int) -> str:
    return f"{format_bytes(bytes_per_s)}/s"


def _file_count_and_size_text(job: Job, swept_sizes_text: str | None) -> str:
    size = swept_sizes_text or format_bytes(job.file_bytes)
    if job.shared_file:
        return f"{size} of one for all jobs"
    return size if job.files_per_job == 1 else f"{job.files_per_job} of {size}"
