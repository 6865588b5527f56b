"""Print the tables of the experiments and hold the method's claims against them.

Run as `python -m bench.method`; --studies and --replicates make it shorter or longer, --only one
experiment. Ends with 1 where a claim does not hold.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from pathlib import Path

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.method import coverage, stopping, whole_study
from bench.method.claims import (
    Claim,
    coverage_claims,
    print_coverage,
    print_rows,
    print_studies,
    stopping_claims,
    study_claims,
    summed,
)

WORKERS = 2
EXPERIMENTS = ("stopping", "studies", "coverage")


def main() -> int:
    """The experiments, their tables, and the claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--studies", type=int, default=25)
    parser.add_argument("--between", type=float, default=0.005, help="median spread of run means")
    parser.add_argument("--only", choices=EXPERIMENTS, action="append", help="not the others")
    parser.add_argument("--workers", type=int, default=WORKERS)
    asked = parser.parse_args()
    wanted = asked.only or EXPERIMENTS
    began = time.monotonic()
    claims: list[Claim] = []
    with multiprocessing.Pool(asked.workers) as pool:
        if "stopping" in wanted:
            rows = stopping.table(asked.replicates, lambda tasks: pool.imap(stopping.play, tasks))
            print_rows(rows)
            claims += stopping_claims(rows)
        if "studies" in wanted:
            settings = [whole_study.Setting(seed, asked.between) for seed in range(asked.studies)]
            designs = summed(pool.imap(whole_study.play, settings))
            print_studies(designs)
            claims += study_claims(designs)
        if "coverage" in wanted:
            runs = coverage.table(asked.replicates, lambda tasks: pool.imap(coverage.play, tasks))
            percentiles = pool.imap(coverage.play_latency, coverage.latency_tasks(asked.replicates))
            latencies = [row for rows_of_task in percentiles for row in rows_of_task]
            print_coverage(runs, latencies)
            claims += coverage_claims(runs, latencies)
    print_claims(claims)
    print(f"\n{time.monotonic() - began:.0f} s")
    return 0 if all(claim.holds for claim in claims) else 1


def print_claims(claims: list[Claim]) -> None:
    """Each claim, what was found, and whether it holds."""
    print("\nclaims")
    for claim in claims:
        print(f"  {'holds' if claim.holds else 'FAILS':5s}  {claim.words}: {claim.found}")


if __name__ == "__main__":
    sys.exit(main())
