"""mdtest's output of all versions: real files, broken files, and sums done again."""

from __future__ import annotations

import csv
import statistics
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.core.limits import MDTEST_OUTPUT_BYTES_MAX
from iolab.loads.metadata.mdtest_output import (
    OPERATIONS,
    TREES,
    RateRule,
    output_contradictions,
    parse_mdtest_output,
    reported_rates,
)
from iolab.loads.metadata.workload import MetadataOperation
from tests.recorded import recorded

RULES: Final = {
    "1.9.0": ("1.9", RateRule.FASTEST_RANK),
    "1.9.3": ("1.9.3", RateRule.FASTEST_RANK),
    "1.9.4": ("1.9.4-rc1", RateRule.FASTEST_RANK),
    "3.2.1": ("1.9.3", RateRule.FASTEST_RANK),
    "3.3.0": ("3.3.0", RateRule.EVERY_RANK),
    "4.0.0": ("4.0.0", RateRule.SLOWEST_RANK),
    "4.1.0-dev": ("4.1.0+dev", RateRule.SLOWEST_RANK),
}


def golden(name: str) -> bytes:
    return recorded(f"mdtest/{name}.txt")


@pytest.mark.parametrize("build", RULES)
def test_a_single_iteration_gives_six_rates(build: str) -> None:
    output = parse_mdtest_output(golden(f"one-{build}"))
    assert (output.version, output.rule) == RULES[build]
    assert (output.ranks, output.files, output.iterations) == (4, 200, 1)
    assert output.finished
    assert output.faults == output.messages == output_contradictions(output) == ()
    rates = reported_rates(output)
    assert [rate.operation for rate in rates] == list(MetadataOperation)
    for rate in rates:
        assert rate.seconds is not None
        work = 1 if rate.operation in TREES else 200
        # Printed with three decimals of a second where it is printed.
        assert rate.seconds == pytest.approx(work / rate.ops_per_s, abs=0.0006)


@pytest.mark.parametrize("build", RULES)
def test_three_iterations_are_told_apart_and_never_reported_as_one(build: str) -> None:
    output = parse_mdtest_output(golden(f"three-{build}"))
    assert (output.iterations, output.faults, output_contradictions(output)) == (3, (), ())
    assert reported_rates(output) == ()
    for operation in MetadataOperation:
        assert [line.iteration for line in output.phase_lines if line.operation is operation] == [
            1,
            2,
            3,
        ]


@pytest.mark.parametrize("build", ["1.9.3", "3.3.0", "4.1.0-dev"])
def test_without_verbose_lines_the_summary_is_all_there_is(build: str) -> None:
    output = parse_mdtest_output(golden(f"quiet-{build}"))
    assert not output.phase_lines
    assert not output.faults
    assert [row.operation for row in output.rows] == list(MetadataOperation)
    assert output.iterations == 3


@pytest.mark.parametrize("name", ["full-1.9.3", "full-3.3.0", "full-4.1.0-dev", "missing-1.9.3"])
def test_a_run_that_broke_off_gives_what_is_known_and_says_why(name: str) -> None:
    output = parse_mdtest_output(golden(name))
    assert not output.finished
    assert not output.rows
    assert not reported_rates(output)
    assert output.version
    assert "No s" in output.messages[0]
    trees = [one.operation for one in output.phase_lines]
    assert trees == ([MetadataOperation.TREE_CREATE] if name.startswith("full") else [])


@pytest.mark.parametrize("build", RULES)
@pytest.mark.parametrize("end", [0.3, 0.5, 0.8, 0.95])
def test_an_output_cut_anywhere_is_a_part_of_the_whole(build: str, end: float) -> None:
    raw = golden(f"three-{build}")
    whole, part = parse_mdtest_output(raw), parse_mdtest_output(raw[: int(len(raw) * end)])
    # A number may be cut short as the last word.
    assert part.phase_lines[:-1] == whole.phase_lines[: max(len(part.phase_lines) - 1, 0)]
    assert set(part.rows[:-1]) <= set(whole.rows)
    assert not part.finished


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("9019", "nan", "summarises"),
        ("(of 3 iterations)", "(of 3000000 iterations)", "cannot be"),
        ("mdtest-4.1.0+dev was", "mdtest was", "version"),
    ],
)
def test_nonsense_is_a_fault(old: str, new: str, message: str) -> None:
    text = golden("three-4.1.0-dev").decode()
    (row,) = (line for line in text.splitlines() if line.startswith("   Tree creation"))
    old = row.split()[-1] if old == "9019" else old
    assert old in text
    assert any(
        message in fault for fault in parse_mdtest_output(text.replace(old, new).encode()).faults
    )


@pytest.mark.parametrize("column", range(4))
@pytest.mark.parametrize("build", RULES)
def test_a_summary_that_is_not_of_its_iterations_is_found_out(build: str, column: int) -> None:
    text = golden(f"three-{build}").decode()
    row = next(line for line in text.splitlines() if line.startswith("   Tree removal"))
    word = row.split()[-4:][column]
    forged = text.replace(row, row.replace(word, f"{float(word) + 1:.3f}"))
    assert forged != text
    assert output_contradictions(parse_mdtest_output(forged.encode()))


@pytest.mark.parametrize(("build", "factor"), [("1.9.3", 0.5), ("3.3.0", 0.2), ("4.0.0", 2.0)])
def test_rates_of_files_are_held_against_what_rank_0_saw(build: str, factor: float) -> None:
    text = golden(f"three-{build}").decode()
    row = next(line for line in text.splitlines() if line.startswith("   File creation  "))
    words = row.split()[-4:]
    forged = row
    for word in words:
        forged = forged.replace(word, f"{float(word) * factor:.3f}")
    assert output_contradictions(parse_mdtest_output(text.replace(row, forged).encode()))


def test_two_summaries_are_one_too_many() -> None:
    raw = golden("one-4.0.0")
    assert any("more than one summary" in fault for fault in parse_mdtest_output(raw + raw).faults)


def test_an_endless_output_is_cut() -> None:
    raw = golden("one-1.9.3") + b"V-1: x\n" * (MDTEST_OUTPUT_BYTES_MAX // 7)
    assert any("more than" in fault for fault in parse_mdtest_output(raw).faults)


@settings(max_examples=30)
@given(st.sampled_from(sorted(RULES)), st.integers(0, 11_000), st.binary(max_size=40))
def test_no_bytes_make_the_parser_fail(build: str, at: int, junk: bytes) -> None:
    raw = golden(f"three-{build}")
    output = parse_mdtest_output(raw[:at] + junk + raw[at + len(junk) :])
    output_contradictions(output)
    reported_rates(output)


@pytest.mark.parametrize("build", ["4.0.0", "4.1.0-dev"])
def test_the_table_of_ranks_bounds_the_rate_of_all(build: str) -> None:
    rows = list(csv.DictReader(recorded(f"mdtest/ranks-{build}.csv").decode().splitlines()))
    ranks = [row for row in rows if row["rank"] != "all"]
    assert [row["rank"] for row in ranks] == ["0", "1", "2", "3"]
    names = {operation: name for name, operation in OPERATIONS.items() if f"rate-{name}" in rows[0]}
    rates = {
        rate.operation: rate
        for rate in reported_rates(parse_mdtest_output(golden(f"saved-{build}")))
    }
    for operation in set(MetadataOperation) - set(TREES):
        own = [float(row[f"rate-{names[operation]}"]) for row in ranks]
        seconds = [float(row[f"time-{names[operation]}"]) for row in ranks]
        assert [rate * s for rate, s in zip(own, seconds, strict=True)] == pytest.approx([50] * 4)
        # A rank's own time ends before it waits for the others.
        assert rates[operation].ops_per_s <= 4 * statistics.fmean(own)
