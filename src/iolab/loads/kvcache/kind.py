"""KV-cache load as a kind of load."""

from __future__ import annotations

from typing import Final

from iolab.loads.kind import LoadKind
from iolab.loads.kvcache.metric_specs import METRICS
from iolab.loads.kvcache.workload import KvCacheJob

KIND: Final = LoadKind(
    "kv-cache",
    (KvCacheJob,),
    session="iolab.loads.kvcache.driver:SESSION",
    study="iolab.loads.kvcache.study:KvCacheStudyKind",
    analysis="iolab.loads.kvcache.analysis:KvCacheAnalysis",
    report="iolab.loads.kvcache.report:KvCacheReport",
    metrics=METRICS,
)
