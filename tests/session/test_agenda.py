"""Sessions of which results decide the scenario: searches, failures on the way, what is said."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from iolab.analysis.adaptive import AdaptiveQueue
from iolab.core.events import Event, Notice, RunFinished, SessionStatus
from iolab.core.metric import RunResult
from iolab.core.run import PlannedRun, RunStatus
from tests.judging import judge
from tests.session.stage import Notes, Stage

PEAK = """
format = 1
id = "trial"

[target]
path = "/mnt/t"

[[workload]]
id = "best"
rw = "randread"
bs = "4k"
filesize = "1m"
iodepth = [1, 2, 4, 8, 16]
objective = "peak"

[method]
warmup = 0
runtime = 3
settle = 0
on_failure = "skip-point"
"""


@dataclass
class Deciding:
    """A queue that is told of every run as the recorder of a session tells it."""

    queue: AdaptiveQueue
    results: list[RunResult] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def take_next_run(self) -> PlannedRun | None:
        return self.queue.take_next_run()

    def take_new_messages(self) -> tuple[str, ...]:
        said, self.words = tuple(self.words), []
        return (*said, *self.queue.take_new_messages())

    def react(self, event: Event) -> None:
        if isinstance(event, RunFinished):
            result = judge(event.record, {})
            self.results.append(result)
            self.queue.add_result(result)


def staged(stored: tuple[RunResult, ...] = ()) -> tuple[Stage, Deciding]:
    stage = Stage(text=PEAK)
    queue = Deciding(AdaptiveQueue(stage.study, stage.plan, stored))
    stage.queue = queue
    stage.notes = Notes(queue.react)
    return stage, queue


def test_what_an_agenda_has_to_say_is_told_before_its_next_run() -> None:
    stage, queue = staged()
    queue.words.append("The sentinel moved.")
    stage.play()
    assert [notice.text for notice in stage.notes.of(Notice)][:1] == ["The sentinel moved."]


def test_a_session_makes_the_runs_that_its_results_ask_for() -> None:
    stage, queue = staged()
    stage.play()
    assert stage.status is SessionStatus.DONE
    runs = [record.run for record in stage.records]
    assert [run.order for run in runs] == list(range(1, len(runs) + 1))
    assert len(runs) > len(stage.plan.runs)
    assert [result.order for result in queue.results] == [run.order for run in runs]
    assert queue.take_next_run() is None
    stage.assert_left_clean()


def test_a_session_that_goes_on_makes_only_what_is_left() -> None:
    whole, queue = staged()
    whole.play()
    runs = [record.run for record in whole.records]
    for ended in (0, 2, len(runs) - 1):
        stage, _ = staged(tuple(queue.results[:ended]))
        stage.play()
        assert [record.run for record in stage.records] == runs[ended:]


def test_a_run_that_is_stored_as_failed_is_made_again() -> None:
    whole, queue = staged()
    whole.play()
    first = replace(queue.results[0], status=RunStatus.FAILED)
    stage, _ = staged((first, *queue.results[1:]))
    stage.play()
    assert stage.records[0].run.order == 1
