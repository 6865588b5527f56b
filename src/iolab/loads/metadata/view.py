"""A run of metadata load as its checks see it."""

from __future__ import annotations

from dataclasses import dataclass, field

from iolab.analysis.view import RunView
from iolab.analysis.window import Window
from iolab.loads.metadata.metrics import MetadataLoad
from iolab.loads.metadata.workload import MetadataJob, reported_in


@dataclass(frozen=True, slots=True)
class MetadataView(RunView):
    """With what its phases did; `load` is empty but for its cut and its seconds."""

    metadata: MetadataLoad = field(kw_only=True)

    @property
    def metadata_job(self) -> MetadataJob:
        """What each host was asked to do; TypeError for any other load."""
        job = self.record.run.point.job
        if not isinstance(job, MetadataJob):
            raise TypeError(f"{job.engine} makes no metadata load")
        return job

    @property
    def has_load(self) -> bool:
        """Whether any operation was done, or its engine printed a rate."""
        return any(phase.done for phase in self.metadata.phases) or bool(reported_in(self.record))

    def measured(self, host: int) -> Window | None:  # noqa: ARG002 - phases are of all hosts
        """All phases with what is between them; where the engine tells no times, the whole run."""
        record = self.record
        return self.metadata.span() or Window(record.started_real_ns, record.ended_real_ns)
