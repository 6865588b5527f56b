"""KV-cache load as a kind of load."""

from __future__ import annotations

from typing import Final

from iolab.loads.kind import LoadKind
from iolab.loads.kvcache.metric_specs import METRICS

KIND: Final = LoadKind(
    "kv-cache",
    {"kv-cache": "iolab.loads.kvcache.workload:KvCacheJob"},
    study_words=("kv-cache",),
    session_kind_path="iolab.loads.kvcache.driver:SESSION",
    study_kind_path="iolab.loads.kvcache.study:KvCacheStudyKind",
    analysis_path="iolab.loads.kvcache.analysis:KvCacheAnalysis",
    report_path="iolab.loads.kvcache.report:KvCacheReport",
    non_operation_metrics=METRICS,
)
