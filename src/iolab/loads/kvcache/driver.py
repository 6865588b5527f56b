"""How KV-cache load is made in a session: the agent's own engine on the store that was laid out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.core.run import PlannedRun
from iolab.errors import EngineError
from iolab.hosts.engine import Command
from iolab.loads.kvcache.engine import KvCacheLineReader, kv_cache_command
from iolab.loads.kvcache.replay import ReplayPlan, plan_replay
from iolab.loads.kvcache.trace import RequestTraceError
from iolab.loads.kvcache.workload import KV_CACHE_ENGINE, KvCacheJob
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress
from iolab.session.kinds import LoadSessionKind
from iolab.session.laid_out_files import drop_caches, prove_extents_written
from iolab.session.process_driver import ProcessDriver
from iolab.session.start import watch_for_background_io
from iolab.study.targets import load_host_names_of_point
from iolab.targets.context import run_seed


class KvCacheDriver(ProcessDriver):
    """One process of the agent on each host, on its own part of the requests."""

    preparations = (prove_extents_written, drop_caches, watch_for_background_io)

    def __init__(self) -> None:
        self._readers: dict[str, KvCacheLineReader] = {}
        self._replay: ReplayPlan | None = None

    async def do_steps_before_load(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """The requests drawn; then as `ProcessDriver` does."""
        self._replay = _replay_of_run(session, run)
        await super().do_steps_before_load(session, run, host_runs)

    def prepare_host_command(
        self, session: SessionContext, run: PlannedRun, host_run: HostRunInProgress
    ) -> Command:
        """See `ProcessDriver`."""
        job = KvCacheJob.require_type(run.point.job)
        replay = self._replay or _replay_of_run(session, run)
        host = _index_among_load_hosts(session, run, host_run)
        self._readers[host_run.name] = KvCacheLineReader(job, replay, host)
        return kv_cache_command(
            job,
            replay,
            host,
            host_run.workdir.dir,
            seconds=session.study.method.load_seconds_range[1],
            seed=run_seed(session.study, run.point, host_run.name, run.repeat),
        )

    def get_or_create_output_reader(
        self,
        run: PlannedRun,  # noqa: ARG002 - of the present run
        host_run: HostRunInProgress,
    ) -> KvCacheLineReader:
        """See `ProcessDriver`."""
        return self._readers[host_run.name]


def _index_among_load_hosts(
    session: SessionContext, run: PlannedRun, host_run: HostRunInProgress
) -> int:
    return load_host_names_of_point(session.study, run.point).index(host_run.name)


def _replay_of_run(session: SessionContext, run: PlannedRun) -> ReplayPlan:
    job = KvCacheJob.require_type(run.point.job)
    hosts = len(load_host_names_of_point(session.study, run.point))
    seconds = session.study.method.load_seconds_range[1]
    try:
        replay = plan_replay(job, seconds, hosts, session.study.method.seed)
    except RequestTraceError as fault:
        raise EngineError(f"The trace {fault}.", "See workload.*.trace.") from None
    if replay.trace.digest != job.trace_digest:
        raise EngineError(
            f"The trace {job.trace} is not the one that was planned.",
            "Give the same file again, or begin a new session.",
        )
    return replay


SESSION: Final = LoadSessionKind(driver_factory_by_engine={KV_CACHE_ENGINE: KvCacheDriver})
