"""How training-read load is made in a session: the agent's own engine on laid-out files."""

from __future__ import annotations

from typing import Final

from iolab.core.run import PlannedRun
from iolab.hosts.engine import Command
from iolab.loads.training.engine import TrainingLineReader, training_command
from iolab.loads.training.workload import TRAINING_ENGINE, TrainingJob
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress
from iolab.session.kinds import LoadSessionKind
from iolab.session.laid_out_files import drop_caches, prove_extents_written
from iolab.session.process_driver import ProcessDriver
from iolab.session.start import watch_for_background_io
from iolab.study.targets import load_host_names_of_point
from iolab.targets.context import run_seed


class TrainingDriver(ProcessDriver):
    """One process of the agent on each host, for its accelerators."""

    preparations = (prove_extents_written, drop_caches, watch_for_background_io)

    def __init__(self) -> None:
        self._readers: dict[str, TrainingLineReader] = {}

    def prepare_host_command(
        self, session: SessionContext, run: PlannedRun, host_run: HostRunInProgress
    ) -> Command:
        """See `ProcessDriver`."""
        job = TrainingJob.require_type(run.point.job)
        hosts = load_host_names_of_point(session.study, run.point)
        accelerators = job.accelerator_count_of_host(hosts.index(host_run.name), len(hosts))
        self._readers[host_run.name] = TrainingLineReader(accelerators)
        return training_command(
            job,
            accelerators,
            host_run.workdir.dir,
            seconds=session.study.method.load_seconds_range[1],
            seed=run_seed(session.study, run.point, host_run.name, run.repeat),
        )

    def get_or_create_output_reader(
        self,
        run: PlannedRun,  # noqa: ARG002 - of the present run
        host_run: HostRunInProgress,
    ) -> TrainingLineReader:
        """See `ProcessDriver`."""
        return self._readers[host_run.name]


SESSION: Final = LoadSessionKind(driver_factory_by_engine={TRAINING_ENGINE: TrainingDriver})
