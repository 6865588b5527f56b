"""How many small faults of the code the tests find: a mutation run of a sample, by cosmic-ray.

    make mutation MUTATION="--most 50 --only percentiles"

Each mutant is a module with one place changed, tried with the narrowest tests of that module
(`mutation.toml`) in a copy of the checkout in a temporary folder. One that they do not find is
printed. The score tells which subject to look at, not whether the tests are good: worth a test is
what would hurt a user.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import sys
import tempfile
import time
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.testing import run_tests
from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome

ROOT = Path(__file__).resolve().parents[1]
CONFIG = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

ONE_TEST_S = 120
ALL_TESTS_S = 900
"""What takes longer than that hangs, and is found thereby."""

PYTEST = (
    f"{sys.executable} -m pytest -x -m 'not e2e' -p no:cacheprovider"
    f" -o timeout={ONE_TEST_S} --randomly-seed=1"
)


@dataclass(frozen=True)
class Mutant:
    """One change, and the command that has to find it."""

    subject: str
    command: str
    change: MutationSpec


def main() -> int:
    """Sample, try and tell; 2 where tests fail without any change."""
    args = _arguments()
    end = time.monotonic() + 60 * args.minutes
    found: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    passes: dict[str, bool] = {}
    with tempfile.TemporaryDirectory(prefix="iolab-mutation-") as folder:
        _enter_copy(Path(folder) / "checkout")
        mutants = _sample(args.seed, args.only, Path(folder) / "work.sqlite")[: args.most]
        print(f"seed {args.seed}: {len(mutants)} mutants", flush=True)
        for mutant in mutants:
            if time.monotonic() > end:
                print(f"out of time: {len(mutants) - tried.total()} were not tried")
                break
            if mutant.command not in passes:
                passes[mutant.command] = _passes(mutant.command)
            if passes[mutant.command]:
                result = mutate_and_test([mutant.change], mutant.command, ALL_TESTS_S)
                tried[mutant.subject] += 1
                found[mutant.subject] += result.is_killed
                if not result.is_killed:
                    print(f"survived ({mutant.subject})\n{result.diff}\n", flush=True)
        os.chdir(ROOT)
    for subject, count in tried.items():
        print(f"{subject:12} {found[subject]:4} of {count:4} found")
    print(f"{'all':12} {found.total():4} of {tried.total():4} found")
    return 0 if all(passes.values()) else 2


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How many small faults of the code tests find.")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 16))
    parser.add_argument("--most", type=int, default=200, help="mutants; 200 unless told")
    parser.add_argument("--minutes", type=float, default=30, help="begin none after so long; 30")
    parser.add_argument("--only", default="", help="modules or subjects whose name holds this")
    return parser.parse_args()


def _enter_copy(checkout: Path) -> None:
    """Go to where nothing is lost; what tests import and start comes from there."""
    unneeded = shutil.ignore_patterns(".*", "target", "scratch")
    shutil.copytree(ROOT, checkout, ignore=unneeded)
    os.environ["PYTHONPATH"] = str(checkout / "src")
    os.chdir(checkout)


def _sample(seed: int, only: str, db: Path) -> list[Mutant]:
    """All mutants in an order of chance, the subjects in turn."""
    chance = random.Random(seed)  # noqa: S311 (to be repeated)
    pools: list[list[Mutant]] = []
    for subject, modules in CONFIG["subjects"].items():
        pool: list[Mutant] = []
        for module, tests in modules.items():
            if only in subject or only in module:
                command = " ".join([PYTEST, *(f"tests/{test}" for test in tests.split())])
                changes = _changes(Path("src/iolab", module), db)
                pool += [Mutant(subject, command, change) for change in changes]
        chance.shuffle(pool)
        pools.append(pool)
    if not any(pools):
        sys.exit(f"no module or subject has {only!r} in its name")
    turns = range(max(map(len, pools)))
    return [pool[turn] for turn in turns for pool in pools if turn < len(pool)]


def _changes(module: Path, path: Path) -> list[MutationSpec]:
    """What cosmic-ray changes in a module, always in the same order."""
    lines = module.read_text(encoding="utf-8").splitlines()
    with use_db(path) as db:
        init([module], db, {})
        changes = [change for item in db.work_items for change in item.mutations]
    wanted = re.compile(f"core/({'|'.join(CONFIG['operators'])})")
    untried = re.compile(CONFIG["untried"])
    return sorted(
        (
            change
            for change in changes
            if wanted.fullmatch(change.operator_name)
            and not untried.search(lines[change.start_pos[0] - 1])
        ),
        key=lambda change: (change.operator_name, change.occurrence),
    )


def _passes(command: str) -> bool:
    outcome, output = run_tests(command, ALL_TESTS_S)
    if outcome is TestOutcome.SURVIVED:
        return True
    print(f"fails without any change: {command}\n{output}", file=sys.stderr, flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
