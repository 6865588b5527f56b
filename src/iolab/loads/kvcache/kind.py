"""KV-cache load as a kind of load."""

from __future__ import annotations

from typing import Final

from iolab.loads.kind import LoadKind
from iolab.loads.kvcache.metric_specs import METRICS

KIND: Final = LoadKind(
    "kv-cache",
    {"kv-cache": "iolab.loads.kvcache.workload:KvCacheJob"},
    study_words=("kv-cache",),
    session="iolab.loads.kvcache.driver:SESSION",
    study="iolab.loads.kvcache.study:KvCacheStudyKind",
    analysis="iolab.loads.kvcache.analysis:KvCacheAnalysis",
    report="iolab.loads.kvcache.report:KvCacheReport",
    metrics=METRICS,
)
