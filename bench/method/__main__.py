"""Print the tables of both experiments and hold the method's claims against them.

Run as `python -m bench.method`; --studies and --replicates make it shorter or longer. Ends with 1
where a claim does not hold.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from pathlib import Path

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.method import stopping, whole_study
from bench.method.claims import (
    Claim,
    print_rows,
    print_studies,
    stopping_claims,
    study_claims,
    summed,
)

WORKERS = 2


def main() -> int:
    """Both experiments, their tables, and the claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--studies", type=int, default=25)
    parser.add_argument("--between", type=float, default=0.005, help="median spread of run means")
    asked = parser.parse_args()
    began = time.monotonic()
    with multiprocessing.Pool(WORKERS) as pool:
        rows = stopping.table(asked.replicates, lambda tasks: pool.imap(stopping.play, tasks))
        print_rows(rows)
        settings = [whole_study.Setting(seed, asked.between) for seed in range(asked.studies)]
        designs = summed(pool.imap(whole_study.play, settings))
    print_studies(designs)
    claims = stopping_claims(rows) + study_claims(designs)
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
