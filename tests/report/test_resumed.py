"""A report on a session that was resumed says which runs were measured when."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.report.provenance import integer_ranges_text, versions_table
from tests.report import shared
from tests.report.studies import with_results


def test_runs_before_and_after_a_resume_are_told() -> None:
    brief = shared.brief("kpi")
    rows = [[cell.text for cell in row] for row in versions_table(brief).rows]
    assert not any("resume" in cells[0] for cells in rows)
    first, *others = brief.results
    later = (first, *(replace(result, segment=2) for result in others))
    hour_ns = 3_600_000_000_000
    resumed = with_results(replace(brief, segment_starts_ns=(0, hour_ns)), later)
    rows = [[cell.text for cell in row] for row in versions_table(resumed).rows]
    assert ["Measured at first", "1970-01-01 00:00 UTC: runs 1"] in rows
    last = len(brief.results)
    assert ["Measured after a resume", f"1970-01-01 01:00 UTC: runs 2-{last}"] in rows


def test_numbers_in_a_row_become_a_span() -> None:
    assert integer_ranges_text([3, 1, 2, 7, 9, 8, 5]) == "1-3, 5, 7-9"
