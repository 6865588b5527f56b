"""A run on a key-value store as its checks see it."""

from __future__ import annotations

from dataclasses import dataclass, field

from iolab.analysis.view import RunView
from iolab.loads.keyvalue.sums import KeyValueLoad
from iolab.loads.keyvalue.workload import KeyValueJob, YcsbJob


@dataclass(frozen=True, slots=True)
class KeyValueView(RunView):
    """With what was done to the store; `load` is empty but for its cut and its seconds."""

    key_value_load: KeyValueLoad = field(kw_only=True)

    @property
    def key_value_job(self) -> KeyValueJob | YcsbJob:
        """What each host was asked to do; TypeError for any other load."""
        job = self.record.run.point.job
        if not isinstance(job, KeyValueJob | YcsbJob):
            raise TypeError(f"{job.engine} makes no load on a key-value store")
        return job

    @property
    def has_load(self) -> bool:
        """Whether any whole operation was measured in the window."""
        return bool(self.key_value_load.whole.sum() > 0)
