"""How `run` and `resume` end: the summary, the files, what to do next, and the exit code."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iolab.analyse.apart import shown_of
from iolab.cli.conduct import Order, conduct
from iolab.cli.heading import resume_line
from iolab.cli.live import choose_view
from iolab.cli.progress import Makers, Progress
from iolab.cli.report import write_report
from iolab.cli.show import FailOn, print_session, verdict_code
from iolab.cli.talk import result_json, say
from iolab.errors import ExitCode, IolabError
from iolab.model.event import SessionStatus
from iolab.model.host import HostKind
from iolab.model.metric import Result
from iolab.model.run import RunStatus
from iolab.plan.foretold import foretold_s
from iolab.plan.guests import makers_of
from iolab.report.export import session_document
from iolab.store.reader import SessionReader


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line asks for beside the measuring."""

    directory: Path
    quiet: bool
    as_json: bool
    report: bool
    fail_on: FailOn | None


def carry_out(order: Order, wishes: Wishes) -> int:
    """Conduct the session, print what came of it, and say what to exit with.

    An error that ends the session is raised again after the results so far were shown.
    """
    if not _is_left(order):
        order.open_writer({}).ended(SessionStatus.DONE)
        return _conclude(SessionStatus.DONE, wishes)
    view = choose_view(_progress(order), quiet=wishes.quiet)
    view.open()
    try:
        status = asyncio.run(conduct(order, view))
    except IolabError:
        view.close()
        _tell_rest(wishes)
        raise
    finally:
        view.close()
    return _conclude(status, wishes)


def _conclude(status: SessionStatus, wishes: Wishes) -> int:
    reader = SessionReader(wishes.directory)
    study, results = shown_of(reader)
    if wishes.as_json:
        result_json(session_document(study, results))
    else:
        print_session(reader, study, results, advise=False)
    if wishes.report:
        _say(f"Report: {write_report(wishes.directory)}", wishes)
    _say(f"Session: {wishes.directory}", wishes)
    if status is not SessionStatus.DONE:
        _say(f"To continue it: {resume_line(str(wishes.directory))}", wishes)
    return exit_code(status, results, wishes.fail_on)


def exit_code(status: SessionStatus, results: Sequence[Result], fail_on: FailOn | None) -> ExitCode:
    """What a session that came to its end exits with; see docs/reference/cli.md."""
    if status is SessionStatus.INTERRUPTED:
        return ExitCode.INTERRUPTED
    if status is SessionStatus.FAILED:
        return ExitCode.HOST
    if any(result.status is not RunStatus.DONE for result in results):
        return ExitCode.ENGINE
    return verdict_code(results, fail_on)


def _is_left(order: Order) -> bool:
    """Whether there is anything to run."""
    if order.agenda is not None:
        return order.agenda().next() is not None
    done = order.earlier.done
    return any((run.point.digest, run.repeat) not in done for run in order.plan.runs)


def _tell_rest(wishes: Wishes) -> None:
    """What remains of a session that an error ended, if it had begun."""
    try:
        reader = SessionReader(wishes.directory)
        if not wishes.as_json and not wishes.quiet:
            print_session(reader, *shown_of(reader), advise=False)
    except IolabError:
        return
    _say(f"Session: {wishes.directory}", wishes)
    _say(f"To continue it: {resume_line(str(wishes.directory))}", wishes)


def _say(text: str, wishes: Wishes) -> None:
    if not wishes.quiet:
        say(text)


def _progress(order: Order) -> Progress:
    method = order.study.method
    hosts = {name for item in order.study.configurations for name in item.hosts}
    return Progress(
        study=order.study.id,
        run_count=len(order.plan.runs),
        ended=len(order.earlier.done),
        host_count=len(hosts),
        warmup_s=method.warmup_s,
        load_s=_mean_load_s(order),
        settle_s=method.settle_s,
        now_s=time.monotonic(),
        runs_most=len(order.plan.runs) + order.plan.runs_more,
        makers=_makers(order),
        guest_count=sum(1 for spec in order.study.hosts if spec.kind is HostKind.VM),
    )


def _makers(order: Order) -> dict[tuple[str, int, int], Makers]:
    """Who makes the load of each point."""
    study = order.study
    places = {spec.name: spec.node for spec in study.hosts}
    found = {}
    for point in order.plan.points:
        hosts = makers_of(study, point)
        nodes = dict.fromkeys(node for host in hosts if (node := places.get(host, "")))
        found[point.configuration, point.per_node, point.host_count] = Makers(hosts, tuple(nodes))
    return found


def _mean_load_s(order: Order) -> float:
    """Seconds of a run's load on average over the plan."""
    foretold = [foretold_s(order.study, run.point) for run in order.plan.runs]
    return sum(foretold) / len(foretold) if foretold else order.study.method.load_s[1]
