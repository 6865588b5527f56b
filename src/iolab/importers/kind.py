"""What others measured as a kind of load: no study asks for it, and no session makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from iolab.core.engine import EngineName
from iolab.importers.model import ImportedHost, ImportedJob, ImportedRun
from iolab.report.load_kind import LoadKind
from iolab.study.kinds import Cost

if TYPE_CHECKING:
    from iolab.core.host import DeviceFacts, HostFacts
    from iolab.core.run import Plan, PlannedRun, Point
    from iolab.core.study import Study
    from iolab.core.workload import Workload
    from iolab.errors import Fault
    from iolab.importers.analysis import ImportedAnalysis
    from iolab.importers.report import ImportedReport
    from iolab.report.kinds import HostsReport
    from iolab.session.kinds import LoadSession
    from iolab.study.document import Document, Faults
    from iolab.study.kinds import HostStudy
    from iolab.study.tables import Item, Tables
    from iolab.study.target_tables import Table


class ImportedStudy:
    """The part in studies and plans: none of its own."""

    tables: Mapping[type[Table], tuple[EngineName, ...]] = {}
    axes: Final = ()
    examples: Mapping[str, str] = {}
    on_device_filesystem: Final = False

    def job_text(self, job: ImportedJob) -> str:
        """The job's options as its file tells them."""
        return " ".join(f"{name}={value}" for name, value in job.settings)

    def check(self, document: Document, tables: Tables, faults: Faults) -> None:
        """No study has such workloads."""

    def workload(self, item: Item, table: Table, tables: Tables) -> Workload:
        """No study has such workloads."""
        raise NotImplementedError

    def cost(self, study: Study, runs: Sequence[PlannedRun], rate: float, hosts: HostStudy) -> Cost:
        """Nothing: it was measured."""
        del study, runs, rate, hosts
        return Cost()

    def load_seconds(self, study: Study, point: Point) -> float:
        """None: it was measured."""
        del study, point
        return 0.0

    def faults(
        self,
        study: Study,
        plan: Plan,
        facts: Mapping[str, HostFacts],
        devices: Mapping[str, DeviceFacts],
    ) -> list[Fault]:
        """None: no host is asked."""
        del study, plan, facts, devices
        return []


def _session() -> LoadSession:
    from iolab.session.kinds import LoadSession

    return LoadSession(drivers={})


def _analysis() -> ImportedAnalysis:
    from iolab.importers.analysis import ImportedAnalysis

    return ImportedAnalysis()


def _report(hosts: HostsReport) -> ImportedReport:
    from iolab.importers.report import ImportedReport

    del hosts
    return ImportedReport()


KIND: Final = LoadKind(
    "imported",
    (ImportedJob,),
    ImportedStudy(),
    _session,
    _analysis,
    _report,
    stored=(ImportedHost, ImportedRun),
)
