"""A campaign: sessions under faults drawn from a seed, and what a user would have lost by them.

    python -m tests.campaign.campaign [--faults N] [--seed S] [--minutes M] [--lanes L] [--trial T]

Each trial is a small session on hosts of its own, disturbed, resumed until it is whole, and looked
at after every segment: no process, file, mount, loop device or control group is left; what was
committed is as it was; the runs of the plan are there, once, and verified. A trial that fails is
played again with fewer faults. Needs root; see CONTRIBUTING.md.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from tools import fleet

import iolab.cli.run
import iolab.cli.session
import iolab.hosts.ssh_host
from iolab.record import Record
from iolab.store.reader import SessionReader
from tests.campaign.faults import ENDING, SIGNALS, Fault, applied, draw, draw_lasting
from tests.campaign.stage import (
    ALLOWED_EXITS,
    GONE_AFTER_LINK_S,
    GONE_LIMIT_S,
    SILENCE_S,
    SITTING_LIMIT_S,
    STUDY,
    Stage,
    Trouble,
    committed,
    complete,
    run,
)
from tests.campaign.surroundings import SURROUNDINGS
from tests.fleet.bed import Bed, bed

PRELOADED = (iolab.cli.session, iolab.cli.run, iolab.hosts.ssh_host)
"""So that no controller, a fork of this process, spends a second on reading them."""

HOSTS_OF_LANE = 2
LONG, LONG_SHARE = "35s", 0.15
"""A run that does not end by itself while it is waited for, and how many trials have one."""

SURROUNDED_SHARE = 0.4
"""How many trials begin where something is missing, limited, or lies."""

FAULTS_MAX = 3
SHRUNK_MAX = 5
SHRINKING_MAX = 6
"""Failures that are played again, one of a sort, and how often each."""


class Trial(Record):
    """A session and the faults it has to bear, one after the other."""

    number: int
    where: str
    hosts: int
    study: str
    faults: tuple[Fault, ...]
    surroundings: str = ""

    def __str__(self) -> str:
        faults = "; ".join(
            [*([self.surroundings] if self.surroundings else []), *map(str, self.faults)]
        )
        return f"trial {self.number} ({self.where}, {self.hosts} hosts): {faults or 'no fault'}"


class Outcome(Record):
    """What came of a trial: the faults that took place, and the trouble, empty where none."""

    trial: Trial
    counts: Counter[str]
    trouble: str
    log: str


def trial_of(seed: int, number: int) -> Trial:
    """The trial of that number; the first is undisturbed."""
    dice = Random(f"{seed} {number}")  # noqa: S311 - repeatable, no secret
    where = dice.choices(("local", "ssh"), (4, 6))[0]
    hosts = 1 if where == "local" else dice.choice((1, 2))
    long = dice.random() < LONG_SHARE
    study = STUDY.format(
        engine=dice.choice(("native", "fio")),
        rw=dice.choice(("randread", "randwrite", "write", "randrw")),
        depths=[1, 2, 4][: 1 if long else dice.randint(1, 3)],
        policy=dice.choice(("retry", "skip-point")),
        runtime=LONG if long else "1s",
        rate="rate_iops = 100" if long else "",
    )
    faults = [draw(dice, where, hosts) for _ in range(dice.randint(1, FAULTS_MAX))]
    surroundings = dice.choice(list(SURROUNDINGS)) if dice.random() < SURROUNDED_SHARE else ""
    if long:
        surroundings = ""
        cut = where == "ssh" and dice.random() < 1 / 3
        faults = [draw_lasting(dice, faults[0], cut=cut)]
    if not number:
        faults, surroundings = [], ""
    return Trial(number, where, hosts, study, tuple(faults), surroundings)


def play(trial: Trial) -> Outcome:
    """One trial on the hosts of this lane."""
    made, names = LANE
    stage = Stage(made, names[: trial.hosts], trial.where, trial.study)
    counts: Counter[str] = Counter()
    trouble = ""
    try:
        stage.set_up()
        Segments(stage, list(trial.faults), counts, trial.surroundings).play()
    except Trouble as found:
        trouble = str(found)
    except Exception as error:
        trouble = f"campaign: {type(error).__name__}: {error}"
    finally:
        if stage.ended() is None:
            os.kill(stage.pid, 9)
            os.waitpid(stage.pid, 0)
            stage.pid = 0
        if trouble:
            stage.repair()
            stage.tidy()
    log = stage.log.read_text("utf-8", "replace")
    if not trouble and ("a bug in iolab" in log or "Traceback" in log):
        trouble = "bug: told by the controller"
    return Outcome(trial, counts, trouble, log[-3000:])


class Segments(Struct):
    """The run and the resumes of one trial."""

    stage: Stage
    faults: list[Fault]
    counts: Counter[str]
    surroundings: str = ""
    unswept: bool = False

    def play(self) -> None:
        """Segment after segment, until one was not disturbed."""
        kept: dict[str, str] = {}
        while True:
            before, told = self._commits(), self.stage.log.stat().st_size
            surroundings, self.surroundings = self.surroundings, ""
            self.stage.surroundings = SURROUNDINGS.get(surroundings)
            self.counts.update([surroundings] if surroundings else [])
            message = self._sit()
            ran = self._commits() > before
            self._settle(message, told, ran=ran)
            now = committed(self.stage.session)
            if lost := [name for name in kept if now.get(name) != kept[name]]:
                raise Trouble(f"lost or changed: {lost}")
            kept = now
            if (self.stage.session / "session.json").exists() and (
                damage := SessionReader(self.stage.session).verify_all_files()
            ):
                raise Trouble(f"damaged: {damage}")
            if not message and not surroundings:
                break
        if self.stage.code:
            raise Trouble(f"unfinished: the undisturbed segment exits with {self.stage.code}")
        complete(self.stage.session)
        if self.unswept and self.stage.left():
            self._sweep()

    def _sit(self) -> list[Fault]:
        """One segment; the faults that took place in it."""
        message = []
        stage = self.stage
        stage.begin()
        began = time.monotonic()
        while self.faults and self._comes(self.faults[0]):
            fault = self.faults.pop(0)
            with applied(fault, stage) as done:
                if done:
                    message.append(fault)
                    self.counts[fault.kind] += 1
                    if fault.is_lasting:
                        self._hold(fault)
        while stage.ended() is None:
            if time.monotonic() > began + SITTING_LIMIT_S:
                raise Trouble("hang: the controller does not come to its end")
            time.sleep(0.03)
        signals = {
            -SIGNALS[fault.kind]
            for fault in message
            if fault.kind in SIGNALS and "controller" in fault.roles
        }
        if stage.code not in ALLOWED_EXITS | signals:
            raise Trouble(f"exit: the controller exits with {stage.code}")
        return message

    def _told(self, since: int, strays: Sequence[str]) -> bool:
        """Whether the exit code or a sentence says that not all is as it should be."""
        said = self.stage.log.read_bytes()[since:].decode("utf-8", "replace")
        return self.stage.code != 0 or any(name in said for name in ("scratch", *strays))

    def _comes(self, fault: Fault) -> bool:
        """Whether the fault's moment comes while the controller runs."""
        stage = self.stage
        before = self._commits()
        while stage.ended() is None:
            if (
                fault.when == "start"
                or (fault.when == "engine" and stage.pids(fault.host, ("engine",)))
                or (fault.when == "commit" and self._commits() > before)
            ):
                return self._pause(fault.delay_s)
            time.sleep(0.03)
        return False

    def _commits(self) -> int:
        try:
            return len(list(self.stage.session.glob("points/*/run-?/manifest.json")))
        except OSError:
            return 0  # its file system was aborted

    def _pause(self, seconds: float) -> bool:
        """Whether the controller still runs after so long."""
        end = time.monotonic() + seconds
        while self.stage.ended() is None and time.monotonic() < end:
            time.sleep(0.02)
        return self.stage.ended() is None

    def _hold(self, fault: Fault) -> None:
        """Leave the fault for its time; a host that is cut off must not work on for long."""
        if fault.hold_s <= SILENCE_S or fault.kind == "link delayed":
            self._pause(fault.hold_s)
            return
        end = time.monotonic() + fault.hold_s
        time.sleep(SILENCE_S)
        if engines := self.stage.pids(fault.host, ("engine",)):
            raise Trouble(f"works on: {len(engines)} engines {SILENCE_S} s after {fault.kind}")
        self._pause(end - time.monotonic())

    def _sweep(self) -> None:
        """Nobody could remove files, and nothing was left to be resumed: the next session does."""
        self.stage.begin(another=True)
        while self.stage.ended() is None:
            time.sleep(0.03)
        self.unswept = False
        self._settle((), 0, ran=True)

    def _settle(self, message: Sequence[Fault], since: int, *, ran: bool) -> None:
        """Wait for the hosts, repair them; Trouble when something is left that should not be."""
        stage = self.stage
        links = any(fault.kind.startswith("link") for fault in message)
        stage.await_gone(GONE_AFTER_LINK_S if links else GONE_LIMIT_S)
        stage.mount_again()
        if (strays := stage.tidy()) and not self._told(since, strays):
            raise Trouble(f"silent: {strays} stay, and nothing says so")
        # What nobody could remove, the next session does that comes so far.
        swept = ran and not message
        self.unswept = may_leave_files(message) or (self.unswept and not swept)
        if not self.unswept and (left := stage.left()):
            raise Trouble(f"left: {left[:5]}")


def may_leave_files(message: Sequence[Fault]) -> bool:
    """Whether nobody was there to remove files, or nobody could: the next session does it then."""
    kinds = {one.kind for one in message}
    killed = {role for fault in message if fault.kind in ENDING for role in fault.roles}
    closed = {"file system aborted", "file system read-only", "unmounted"} & kinds
    limited = {"limit of files", "limit of memory"} & {
        fault.kind for fault in message if "agent" in fault.roles
    }
    nobody = {"controller", "agent"} <= killed or {"controller", "keeper"} <= killed
    return nobody or bool(closed | limited)


LANE: tuple[Bed, list[str]]


def take_lane(made: Bed, lanes: Any) -> None:
    """At the start of a lane's process: the hosts that are its own."""
    global LANE
    LANE = made, lanes.get()


def prepare(made: Bed) -> list[list[str]]:
    """The hosts in lanes, each as most machines are: sshd does not look whether its client lives.

    And they see what belongs to root, for where the controller is one of them.
    """
    names = sorted(made.specs)
    home = Path("~root").expanduser()
    for name in names:
        config = made.fleet.folder(name) / "sshd_config"
        text = config.read_text("utf-8").replace("ClientAliveInterval 2", "ClientAliveInterval 0")
        config.write_text(text, encoding="utf-8")
        pid_file = made.fleet.folder(name) / "sshd.pid"
        pid_file.unlink()
        made.start_sshd(name)
        # A new sshd makes the file before it writes its number there.
        fleet.wait_until(lambda file=pid_file: file.exists() and file.stat().st_size > 0)  # type: ignore[misc]
        run("nsenter", "-t", str(made.listener(name)), "-m", "umount", str(home))
    return [names[at : at + HOSTS_OF_LANE] for at in range(0, len(names), HOSTS_OF_LANE)]


def campaign(
    seed: int, faults: int, minutes: float, lanes: int, only: int | None, *, shrinking: bool = True
) -> int:
    """Play trials until so many faults took place or the time is over; 1 where one failed."""
    end = time.monotonic() + minutes * 60
    outcomes: list[Outcome] = []
    print(f"campaign: SEED={seed} FAULTS={faults}", flush=True)
    context = multiprocessing.get_context("fork")
    with bed(lanes * HOSTS_OF_LANE, "xfs") as made:
        queue = context.SimpleQueue()
        for lane in prepare(made):
            queue.put(lane)
        with ProcessPoolExecutor(lanes, context, take_lane, (made, queue)) as pool:
            numbers = iter([only] if only is not None else range(1 << 30))
            waiting: set[Future[Outcome]] = set()
            while True:
                so_far = sum(one.counts.total() for one in outcomes)
                going_on = so_far < faults and time.monotonic() < end
                for number in islice(numbers, lanes - len(waiting) if going_on else 0):
                    waiting.add(pool.submit(play, trial_of(seed, number)))
                if not waiting:
                    break
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for outcome in (future.result() for future in done):
                    outcomes.append(outcome)
                    if outcome.trouble:
                        print(f"FAILED {outcome.trial}\n  {outcome.trouble}", flush=True)
                        print(indented(outcome.log), flush=True)
            failures = [one for one in outcomes if one.trouble]
            for outcome in one_of_each(failures) if shrinking else ():
                small = shrink(pool, outcome)
                print(f"smallest: {small.trial}\n  {small.trouble}\n{indented(small.log)}")
    tell(outcomes)
    print(f"again: make campaign SEED={seed} FAULTS={faults}")
    return 1 if failures else 0


def one_of_each(failures: Sequence[Outcome]) -> list[Outcome]:
    """One failure of each sort, that with the fewest faults, of as many as can be played again."""
    found: dict[str, Outcome] = {}
    for outcome in sorted(failures, key=lambda one: len(one.trial.faults)):
        found.setdefault(outcome.trouble.split(":")[0], outcome)
    return list(found.values())[:SHRUNK_MAX]


def shrink(pool: ProcessPoolExecutor, outcome: Outcome) -> Outcome:
    """The same with fewer faults, and those with fewer processes, as long as it fails."""
    tries = 0
    smaller = fewer(outcome.trial)
    while (trial := next(smaller, None)) is not None and tries < SHRINKING_MAX:
        tries += 1
        again = pool.submit(play, trial).result()
        if again.trouble:
            outcome, smaller = again, fewer(trial)
    return outcome


def fewer(trial: Trial) -> Iterator[Trial]:
    """Without one of the faults; then without one of a fault's processes."""
    for at in range(len(trial.faults)):
        rest = (*trial.faults[:at], *trial.faults[at + 1 :])
        if rest:
            yield replace(trial, faults=rest)
    for at, fault in enumerate(trial.faults):
        for role in fault.roles if len(fault.roles) > 1 else ():
            roles = tuple(one for one in fault.roles if one != role)
            changed = (*trial.faults[:at], replace(fault, roles=roles), *trial.faults[at + 1 :])
            yield replace(trial, faults=changed)


LOST: Final = {"lost", "damaged", "incomplete", "silent", "draft left in the session"}
LEFT: Final = {"left", "process left", "works on"}


def table(outcomes: Sequence[Outcome]) -> str:
    """Of each kind of fault: how often it was tried, and what came of those sessions."""
    columns = ("tried", "survived", "lost", "left behind", "failed else")
    rows: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        sort = outcome.trouble.split(":")[0]
        column = "survived" if not sort else "failed else"
        column = "lost" if sort in LOST else "left behind" if sort in LEFT else column
        for kind, count in outcome.counts.items():
            rows.setdefault(kind, Counter()).update({"tried": count, column: count})
    whole: Counter[str] = sum(rows.values(), Counter())
    lines: list[tuple[str, ...]] = [("kind of fault", *columns)]
    for kind, row in (*sorted(rows.items()), ("all", whole)):
        lines.append((kind, *(str(row[name]) for name in columns)))
    return "\n".join(f"{line[0]:36}" + "".join(f"{one:>12}" for one in line[1:]) for line in lines)


def tell(outcomes: Sequence[Outcome]) -> None:
    """The table, and the failures by sort."""
    print(table(outcomes))
    failures = [one for one in outcomes if one.trouble]
    faults = sum(one.counts.total() for one in outcomes)
    print(f"{faults:6}  faults in {len(outcomes)} trials, of which {len(failures)} failed")
    for sort, count in Counter(one.trouble.split(":")[0] for one in failures).items():
        print(f"{count:6}  {sort}")


def indented(text: str) -> str:
    """The end of a log, below what it belongs to."""
    return "".join(f"    {line}\n" for line in text.splitlines()[-25:])


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1000 % 1_000_000)
    parser.add_argument("--minutes", type=float, default=60.0, help="no new trial after so long")
    parser.add_argument("--lanes", type=int, default=4, help="trials at a time, two hosts each")
    parser.add_argument("--trial", type=int, help="only that one")
    parser.add_argument("--no-shrinking", action="store_true", help="play no failure again")
    chosen = parser.parse_args()
    return campaign(
        chosen.seed,
        chosen.faults,
        chosen.minutes,
        chosen.lanes,
        chosen.trial,
        shrinking=not chosen.no_shrinking,
    )


if __name__ == "__main__":
    sys.exit(main())
