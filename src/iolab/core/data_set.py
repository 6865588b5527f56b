"""Files that a session lays out before the runs that work on them."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class DataSet:
    """Files laid out once on each client and shared by the points that fit them.

    File names are `<id>.<job number>.<file number>`; all have `file_bytes`. `host_numjobs` are the
    clients that have files for another number of jobs than `numjobs`. On a block `device`, named as
    it is in its folder, or in a `shared_file`, each job has its own region, one after the other.
    """

    id: str
    configuration: str
    numjobs: int
    files_per_job: int
    file_bytes: int
    host_numjobs: tuple[tuple[str, int], ...] = ()
    device: str = ""
    shared_file: bool = False

    @property
    def job_bytes(self) -> int:
        """What one job works on."""
        return self.files_per_job * self.file_bytes

    @property
    def regions_of(self) -> str:
        """The name of what all jobs have regions of; empty where each has files of its own."""
        return self.device or (self.file_names()[0] if self.shared_file else "")

    @property
    def bytes_per_host(self) -> int:
        """What the layout writes on each client that has no number of jobs of its own."""
        return self.numjobs * self.files_per_job * self.file_bytes

    def on(self, host: str) -> DataSet:
        """The files as that client has them."""
        numjobs = dict(self.host_numjobs).get(host, self.numjobs)
        return replace(self, numjobs=numjobs, host_numjobs=())

    def file_names(self, numjobs: int | None = None) -> tuple[str, ...]:
        """The names of the files that the first `numjobs` jobs use (all by default)."""
        jobs = 1 if self.shared_file else self.numjobs if numjobs is None else numjobs
        files = range(self.files_per_job)
        return tuple(f"{self.id}.{job}.{file}" for job in range(jobs) for file in files)
