"""Load on key-value stores as a kind of load."""

from __future__ import annotations

from typing import Final

from iolab.loads.kind import LoadKind

KIND: Final = LoadKind(
    "keyvalue",
    {
        "db_bench": "iolab.loads.keyvalue.workload:DbBenchJob",
        "ycsb": "iolab.loads.keyvalue.workload:YcsbJob",
    },
    study_words=("db_bench", "ycsb", "server"),
    session_kind_path="iolab.loads.keyvalue.driver:KEY_VALUE",
    study_kind_path="iolab.loads.keyvalue.study:KeyValueStudyKind",
    analysis_path="iolab.loads.keyvalue.analysis:KeyValueAnalysis",
    report_path="iolab.loads.keyvalue.report:KeyValueReport",
    document_list_names=("gains",),
)
