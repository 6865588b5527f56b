"""fio on a target that does nothing: what its jobs make where only fio and system calls take time.

That target is `/dev/null`, and not fio's own engine `null`: with that one fio makes no system call
at all, so what its I/O engine and the kernel's way in cost would be missing from the ceiling, and
no two I/O engines would differ. Reads of `/dev/null` give nothing, and those of `/dev/zero` cost
the time to fill a block, so all I/O is writes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from iolab.model.run import DataSet
from iolab.model.workload import Access, Job
from iolab.run.engines.fio_job import measure_job

NULL_FOLDER: Final = "/dev"
"""Where the device is: no path ever stands in a job file."""

NULL_ARGV: Final = ("fio", "--output-format=json+", "--eta=never", "-")
"""One report, at the end: so fio need not run for a whole second."""

_DEVICE: Final = "null"
_REGION_BYTES: Final = 1 << 30
"""What each job believes that it works on: offsets are drawn as on files of usual sizes."""


def null_job(job: Job, seconds: float) -> str:
    """The job file; EngineError names every value that cannot be told."""
    size = max(_REGION_BYTES // job.block_bytes, 1) * job.block_bytes
    access = Access.RANDWRITE if job.access.random else Access.WRITE
    same = replace(
        job, access=access, read_percent=None, direct=False, file_bytes=size, files_per_job=1
    )
    device = DataSet("null", "", job.numjobs, 1, size, device=_DEVICE)
    return measure_job(same, device, max(math.ceil(seconds * 1000), 1), 0)
