"""Where a session's events go: each run is judged, committed, and then shown."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from msgspec.structs import replace

from iolab.analysis.adaptive import AdaptiveQueue
from iolab.analysis.kinds import ANALYSIS_VERSION, judge_run
from iolab.analysis.steady import FleetStoppingRule
from iolab.analysis.stored_results import study_and_results_with_session_checks
from iolab.cli.invocation import quoted_iolab_command
from iolab.cli.live import LiveView, choose_live_view
from iolab.cli.options import OutputFormat
from iolab.cli.output import open_session, print_message, wrap_for_terminal
from iolab.cli.output import print_result as result_line
from iolab.cli.progress import LoadGenerators, PointHostCounts, SessionProgress
from iolab.cli.report import REPORT_FILE, write_html_report
from iolab.cli.results import resume_command
from iolab.cli.show import (
    FailOnLevel,
    exit_code_of_results,
    print_results_in_format,
    print_session,
)
from iolab.core.events import (
    Event,
    FilesystemsCreated,
    LedgerChanged,
    RunFinished,
    SessionEnded,
    SessionPhase,
    SessionPhaseStarted,
    SessionStarted,
    SessionStatus,
)
from iolab.core.host import HostFacts, HostSpec, HostTransport
from iolab.core.metric import RunResult
from iolab.core.run import Plan, PlannedRun, RunStatus
from iolab.core.study import Study
from iolab.errors import ExitCode, Interrupted, IolabError, StoreError
from iolab.hosts.barrier import StopRequest
from iolab.hosts.connect import create_hosts
from iolab.hosts.host import Host
from iolab.hosts.intervals import trim_malloc_heap
from iolab.record import Record
from iolab.registry import (
    analysis_kinds,
    session_kinds,
    study_kinds,
)
from iolab.session.context import StoppingRule, StoppingRuleFactory
from iolab.session.session import EarlierSegments, run_session
from iolab.session.times import COMMIT, JUDGE, SessionPhaseTimer, engine_seconds_of_record
from iolab.store import parquet
from iolab.store.layout import INDEX
from iolab.store.writer import SessionWriter
from iolab.study.cost import meter_idle_seconds_per_run, run_overhead_seconds
from iolab.study.forecast import VerdictCap, forecast_verdicts
from iolab.study.repeats import repeats_advice
from iolab.study.targets import load_host_names_of_point, reached_host_specs
from iolab.study.writes import WriteForecaster
from iolab.text import one_line

OpenWriter = Callable[[Mapping[str, HostFacts]], SessionWriter]
"""Opens the session for writing when its hosts' facts are known; IolabError to refuse."""


LIBRARY_S: Final = 10.0
"""Seconds that the end of a session waits for a library that is still being loaded for its tables:
it takes a tenth of one, and more from a disk that hangs."""

STOPPING_TEXT: Final = "Stopping after what is measured; press Ctrl-C again to stop at once."

STOPPING_AT_ONCE: Final = "Stopping at once."
"""What the user is told at the first signal, and at a further one."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A terminal that goes away is treated as a request to stop: nobody watches any more."""

_signal_handler: ContextVar[Callable[[], None] | None] = ContextVar("signal handler", default=None)
"""What a signal calls now."""

COLLECTION_THRESHOLD: Final = 50_000
"""Containers made and not freed between two searches, in place of Python's 700. Every report and
sample makes some dozens that are freed by themselves; a thousand hosts' newest samples live all the
while, and searching them anew took a quarter of the controller's time. What may lie about unfound
is some megabytes. A session takes hours, so this is fewer than a command has
(`iolab.__main__`), which ends before memory counts."""


class SessionRecorder:
    """A recorder that keeps before it shows: what the user has seen is on the device.

    What came of each run it tells the `queue`, if results decide the next one, and
    `write_forecaster`, whose better forecast is shown. The session is opened at SessionStarted, so
    a session that was refused leaves no directory.
    """

    def __init__(
        self,
        open_writer: OpenWriter,
        view: LiveView,
        queue: AdaptiveQueue | None = None,
        write_forecaster: WriteForecaster | None = None,
    ) -> None:
        self._open_writer = open_writer
        self._view = view
        self._queue = queue
        self._writes = write_forecaster
        self._writer: SessionWriter | None = None
        self._facts: dict[str, HostFacts] = {}
        self._times = SessionPhaseTimer()
        self._loading = threading.Thread(target=parquet.preload_duckdb, daemon=True)

    @property
    def has_begun(self) -> bool:
        """Whether there is a session on disk by now."""
        return self._writer is not None

    def emit(self, event: Event) -> None:
        """Take one event; StoreError when it cannot be kept."""
        match event:
            case SessionStarted():
                self._facts = dict(event.facts)
                self._writer = self._open_writer(self._facts)
                self._writer.record_host_facts_at_start(self._facts, event.agent_version)
                self._view.on_event(event)
            case FilesystemsCreated():
                self._facts |= dict(event.facts)
                if self._writer is not None:
                    self._writer.record_created_target_facts(event.facts)
            case SessionPhaseStarted():
                self._times.begin_session_phase(event.phase)
                if event.phase is SessionPhase.LAY_OUT and self._loading.ident is None:
                    # Hosts write, we wait; the first commit would take this long more.
                    self._loading.start()
                self._view.on_event(event)
            case RunFinished():
                self._judge_commit_and_show_run(event)
            case LedgerChanged():
                if self._writer is not None:
                    self._writer.write_ledger(event.ledger)
            case SessionEnded():
                self._end_session(event.status, event.reason, event.leftover_texts)
                self._view.on_event(event)
            case _:
                self._view.on_event(event)

    def _judge_commit_and_show_run(self, event: RunFinished) -> None:
        """Judge a run and commit it, then show it."""
        self._times.split_load_from_measure_phase(engine_seconds_of_record(event.record))
        self._times.begin_session_phase(JUDGE)
        result = judge_run(event.record, self._facts, analysis_kinds())
        trim_malloc_heap()  # what writes tables has memory of its own
        self._times.begin_session_phase(COMMIT)
        if self._writer is not None:
            self._writer.commit_run(event.record, result, analysis_version=ANALYSIS_VERSION)
        if self._queue is not None:
            self._queue.add_result(result)
        self._view.on_event(event)
        self._view.on_result(result)
        forecast = self._writes.add_result(result) if self._writes is not None else None
        if forecast is not None:
            self._view.show_message(f"New estimate: writes {forecast.forecast_sentence}.")

    def record_failure(self, reason: str) -> None:
        """Say in the session why it ended, if even that can be written."""
        with suppress(StoreError):
            self._end_session(SessionStatus.FAILED, reason)

    def _end_session(
        self, status: SessionStatus, reason: str | None, leftover_texts: tuple[str, ...] = ()
    ) -> None:
        if self._writer is not None:
            self._writer.end_session_and_close(
                status, reason, self._times.phase_times(), leftover_texts
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of the session, whatever happened."""
        if self._writer is not None:
            self._writer.close()
        if self._loading.ident is not None:
            self._loading.join(LIBRARY_S)


class SessionRequest(Record):
    """What a session is to do.

    `earlier_segments` is what it has of earlier segments. `open_writer` is called with the facts of
    the hosts when the plan can run there; until then nothing is written. It may raise IolabError to
    refuse. `queue_factory`, called anew each time, decides which runs are made; None for those of
    the plan. `done_results` are those of runs that are done.
    """

    study: Study
    plan: Plan
    session_id: str
    earlier_segments: EarlierSegments
    open_writer: OpenWriter
    queue_factory: Callable[[], AdaptiveQueue] | None = None
    done_results: tuple[RunResult, ...] = ()

    def create_write_forecaster(self) -> WriteForecaster:
        """What forecasts its bytes, with what was measured before."""
        return WriteForecaster(self.study, self.plan, study_kinds(), self.done_results)


async def run_session_with_view(request: SessionRequest, view: LiveView) -> SessionStatus:
    """Run a session to its end, however it comes, in pods that are made for it if it wants such.

    The session itself leaves every host clean. Interrupted when the user stopped it before anything
    was written.
    """
    if request.study.kubernetes is None:
        return await _run_session_on_hosts(request, view)
    from iolab.cli.pods import temporary_session_pods

    async with temporary_session_pods(request.study, request.plan, view.show_message) as study:
        return await _run_session_on_hosts(replace(request, study=study), view)


async def _run_session_on_hosts(request: SessionRequest, view: LiveView) -> SessionStatus:
    stop = StopRequest()
    queue = request.queue_factory() if request.queue_factory else None
    with (
        rare_garbage_collection(),
        SessionRecorder(
            request.open_writer, view, queue, request.create_write_forecaster()
        ) as recorder,
        stop_on_signals(lambda: _request_stop_and_get_text(stop, recorder), view.show_message),
    ):
        try:
            status = await run_session(
                request.study,
                request.plan,
                _create_hosts(request.study, reached_host_specs(request.study)),
                recorder,
                stop,
                kinds=session_kinds(),
                session_id=request.session_id,
                earlier_segments=request.earlier_segments,
                host_factory=lambda spec: _create_hosts(request.study, [spec])[spec.name],
                rule_for=stopping_rule_factory(request.study),
                queue=queue,
            )
        except StoreError as error:
            recorder.record_failure(error.message)
            raise
    if not recorder.has_begun:
        raise Interrupted("Stopped before anything was measured.", "Nothing was written.")
    return status


def stopping_rule_factory(study: Study) -> StoppingRuleFactory:
    """Makes the rule that ends a run early, where the study's method has one."""

    def stopping_rule_for_run(run: PlannedRun, hosts: Sequence[str]) -> StoppingRule | None:
        rule = study.method.rule
        return FleetStoppingRule(hosts, rule) if rule and run.point.job.can_end_by_rule else None

    return stopping_rule_for_run


def _create_hosts(study: Study, specs: Iterable[HostSpec]) -> dict[str, Host]:
    """Hosts of one login: the old one of a host that was lost may be lost with a jump host."""
    return create_hosts(specs, link_timeout_s=study.method.link_timeout_s)


def _request_stop_and_get_text(stop: StopRequest, recorder: SessionRecorder) -> str:
    """Ask the session to stop; at once where there is nothing yet to finish. What to tell."""
    stop.request_stop()
    if not recorder.has_begun:
        stop.request_stop()
    return STOPPING_AT_ONCE if stop.is_immediate else STOPPING_TEXT


class RunOptions(Record):
    """Options of `iolab run` and `resume` that do not change what is measured."""

    directory: Path
    quiet: bool
    output_format: OutputFormat
    report: bool
    fail_on: FailOnLevel | None


def run_session_and_print_results(request: SessionRequest, options: RunOptions) -> ExitCode:
    """Run the session, print its results, and return the exit code."""
    if not _has_runs_left(request):
        request.open_writer({}).end_session_and_close(SessionStatus.DONE)
        return _print_results_and_write_report(SessionStatus.DONE, options)
    forecast = forecast_verdicts(request.study, request.plan, study_kinds())
    for message in forecast.text_lines() if forecast.caps else ():
        _print_unless_quiet(wrap_for_terminal(one_line(message)), options)
    if (writes := request.create_write_forecaster().forecast()).depends_on_target_speed:
        _print_unless_quiet(wrap_for_terminal(f"Writes {writes.forecast_sentence}."), options)
    status = run_session_showing_progress(request, options)
    return _print_results_and_write_report(status, options, forecast.too_short_run_cap)


def run_session_showing_progress(request: SessionRequest, options: RunOptions) -> SessionStatus:
    """Run the session while its progress is shown.

    An error that ends the session is raised again after the results so far were shown.
    """
    view = choose_live_view(_initial_progress(request), is_quiet=options.quiet)
    view.open()
    try:
        return asyncio.run(run_session_with_view(request, view))
    except IolabError:
        view.close()
        print_partial_results_and_resume_hint(options)
        raise
    finally:
        view.close()


def _print_results_and_write_report(
    status: SessionStatus,
    options: RunOptions,
    too_short_run_cap: VerdictCap | None = None,
) -> ExitCode:
    """Print the results, of a smoke test with what keeps them from a verdict; the exit code."""
    reader = open_session(options.directory)
    study, results = study_and_results_with_session_checks(reader)
    if options.output_format is not OutputFormat.TABLE:
        print_results_in_format(options.output_format, reader, study, results)
    else:
        print_session(reader, study, results, with_resume_hint=False)
        if too_short_run_cap is not None:
            result_line(
                f"Smoke test, no figure to quote: {too_short_run_cap.reason}; "
                f"{too_short_run_cap.hint}."
            )
    if options.report:
        _print_unless_quiet(f"Report: {write_html_report(options.directory)}", options)
    _warn_of_outdated_report(options)
    if (advice := repeats_advice(study, study_kinds())) is not None:
        _print_unless_quiet(wrap_for_terminal(f"Repeats: {advice.advice_text}."), options)
    _print_unless_quiet(f"Session: {options.directory}", options)
    if study.kubernetes is not None and study.kubernetes.keep:
        from iolab.cli.pods import kept_pods_sentences

        for text in kept_pods_sentences(study.kubernetes):
            _print_unless_quiet(text, options)
    if status is not SessionStatus.DONE:
        _print_unless_quiet(f"To continue it: {resume_command(str(options.directory))}", options)
    return session_exit_code(status, results, options.fail_on)


def session_exit_code(
    status: SessionStatus, results: Sequence[RunResult], fail_on: FailOnLevel | None
) -> ExitCode:
    """What a session that came to its end exits with; see docs/reference/cli.md."""
    if status is SessionStatus.INTERRUPTED:
        return ExitCode.INTERRUPTED
    if status is SessionStatus.FAILED:
        return ExitCode.HOST
    if any(result.status is not RunStatus.DONE for result in results):
        return ExitCode.ENGINE
    return exit_code_of_results(results, fail_on)


def _has_runs_left(request: SessionRequest) -> bool:
    """Whether there is anything to run."""
    if request.queue_factory is not None:
        return request.queue_factory().take_next_run() is not None
    done = request.earlier_segments.done_run_keys
    return any(run.key not in done for run in request.plan.runs)


def print_partial_results_and_resume_hint(options: RunOptions) -> None:
    """What remains of a session that an error ended, if it had begun."""
    try:
        reader = open_session(options.directory)
        if options.output_format is OutputFormat.TABLE and not options.quiet:
            print_session(
                reader, *study_and_results_with_session_checks(reader), with_resume_hint=False
            )
    except IolabError:
        return
    _warn_of_outdated_report(options)
    _print_unless_quiet(f"Session: {options.directory}", options)
    _print_unless_quiet(f"To continue it: {resume_command(str(options.directory))}", options)


def _warn_of_outdated_report(options: RunOptions) -> None:
    """That the session's report lacks runs. It is not renewed unasked: it may hold own words."""
    report = options.directory / REPORT_FILE
    try:
        is_old = report.stat().st_mtime_ns < (options.directory / INDEX).stat().st_mtime_ns
    except OSError:
        return
    if is_old:
        renew = quoted_iolab_command("report", str(options.directory))
        _print_unless_quiet(f"{report} is of an earlier state; to renew it: {renew}", options)


def _print_unless_quiet(text: str, options: RunOptions) -> None:
    if not options.quiet:
        print_message(text)


def _initial_progress(request: SessionRequest) -> SessionProgress:
    method = request.study.method
    hosts = {name for item in request.study.configurations for name in item.hosts}
    scenario = request.study.scenario
    return SessionProgress(
        study=request.study.id,
        run_count=len(request.plan.runs),
        ended_run_count=len(request.earlier_segments.done_run_keys),
        host_count=len(hosts),
        warmup_s=method.warmup_s,
        load_s=_mean_expected_load_s(request),
        can_end_early=_can_runs_end_early(request.study),
        settle_s=method.settle_s,
        overhead_s=run_overhead_seconds(method) + meter_idle_seconds_per_run(request.study),
        now_s=time.monotonic(),
        runs_most=len(request.plan.runs) + request.plan.extra_run_count,
        load_generators_by_host_counts=_load_host_and_node_names_by_point_key(request),
        guest_count=sum(1 for spec in request.study.hosts if spec.transport is HostTransport.VM),
        max_phase_s_by_id={phase.id: phase.max_duration_s for phase in scenario.phases}
        if scenario
        else {},
    )


def _load_host_and_node_names_by_point_key(
    request: SessionRequest,
) -> dict[PointHostCounts, LoadGenerators]:
    """Who makes the load of each point."""
    study = request.study
    places = {spec.name: spec.hypervisor for spec in study.hosts}
    makers = {}
    for point in request.plan.points:
        hosts = load_host_names_of_point(study, point)
        nodes = dict.fromkeys(node for host in hosts if (node := places.get(host, "")))
        key = PointHostCounts(point.configuration, point.per_node, point.host_count)
        makers[key] = LoadGenerators(hosts, tuple(nodes))
    return makers


def _can_runs_end_early(study: Study) -> bool:
    """Whether runs end when a rule or a witness says so, and may be shorter than is foretold."""
    least_s, most_s = study.load_seconds_range
    return least_s < most_s


def _mean_expected_load_s(request: SessionRequest) -> float:
    """Seconds of a run's load on average over the plan."""
    points = [run.point for run in request.plan.runs]
    seconds = [
        study_kinds().kind_for_engine(p.job.engine).expected_run_seconds(request.study, p)
        for p in points
    ]
    return sum(seconds) / len(seconds) if seconds else request.study.method.load_seconds_range[1]


def _signals_to_handle() -> list[signal.Signals]:
    """Those that are not ignored: whoever starts iolab with nohup wants it to outlive the login."""
    return [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def stop_on_signals(
    request_stop: Callable[[], str], show_text: Callable[[str], None]
) -> Iterator[None]:
    """Within the context each signal calls `request_stop` in the running loop and shows its answer.

    The same answer is not shown twice. A signal that is ignored stays so. Only the main thread gets
    signals. After a context within another one the outer one is called again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    last = ""

    def request_stop_and_show_text() -> None:
        nonlocal last
        text = request_stop()
        if text != last:
            show_text(text)
        last = text

    outer = _signal_handler.get()
    _signal_handler.set(request_stop_and_show_text)
    heeded = _signals_to_handle()
    for number in heeded:
        loop.add_signal_handler(number, request_stop_and_show_text)
    try:
        yield
    finally:
        _signal_handler.set(outer)
        for number in heeded:
            if outer is None:
                loop.remove_signal_handler(number)
            else:
                loop.add_signal_handler(number, outer)


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Search for garbage as seldom as a session may until the block is left, then as before it."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECTION_THRESHOLD, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
