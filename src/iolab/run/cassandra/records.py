"""What a workload wants to find in the store, and how a folder or a table says that it has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from iolab.model.run import PlannedRun
from iolab.model.ycsb import YcsbJob


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a workload: how many, of how many fields, of how many bytes each."""

    records: int
    fields: int
    field_bytes: int

    def __str__(self) -> str:
        return f"{self.records:,} records of {self.fields} x {self.field_bytes} bytes"

    @property
    def name(self) -> str:
        """The same as part of a file's name."""
        return f"{self.records}x{self.fields}x{self.field_bytes}"

    @property
    def told(self) -> Mapping[str, Any]:
        """The same for a marker."""
        return asdict(self)

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns of YCSB's table for them, and their types."""
        fields = {f"field{number}": "text" for number in range(self.fields)}
        return {"y_id": "text", **fields}


def records_of(run: PlannedRun) -> Records:
    """What the run's job wants; TypeError for a job that is none of YCSB's."""
    job = run.point.job
    if not isinstance(job, YcsbJob):
        raise TypeError(f"{job.engine} has no records in Cassandra")
    return Records(job.records, job.fields, job.field_bytes)
