"""How long one run of a plan may load its target, as far as that is known beforehand."""

from __future__ import annotations

from iolab.model.metadata import MetadataJob
from iolab.model.run import Point
from iolab.model.study import Study
from iolab.plan.budget import RUN_OVERHEAD_S
from iolab.plan.key_value_budget import key_value_seconds, run_overhead_s
from iolab.plan.key_value_cost import KeyJob
from iolab.plan.metadata_cost import iteration_seconds


def foretold_s(study: Study, point: Point) -> float:
    """Seconds of I/O at most, of metadata by the assumed rates, of key-value load as written.

    What a run on keys takes beside its load, beyond the `RUN_OVERHEAD_S` of every run, is in it.
    """
    method, job = study.method, point.job
    if isinstance(job, MetadataJob):
        return iteration_seconds(job)
    if not isinstance(job, KeyJob):
        return method.load_s[1]
    (here,) = (one for one in study.configurations if one.id == point.configuration)
    written_s = method.warmup_s + method.runtime_s
    load_s = key_value_seconds(written_s, job, study.server.kind, len(here.hosts))
    return max(load_s + run_overhead_s(study, job) - RUN_OVERHEAD_S, 0.0)
