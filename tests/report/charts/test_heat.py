from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.report.charts.palette import SERIES
from iolab.report.charts.run import (
    SHADE_STEPS,
    TABLE_ROWS,
    heat_map_chart,
    heat_map_segments_by_shade,
    heat_map_shade_index,
)
from iolab.report.charts.series import HeatMap
from tests.facts import tells
from tests.report.charts.specs import heat


def test_shades_rise_with_the_share_and_an_empty_cell_has_none() -> None:
    assert heat_map_shade_index(0, 1000) is None
    assert heat_map_shade_index(1, 1_000_000) == 0
    assert [heat_map_shade_index(round(1000 * least), 1000) for least in SHADE_STEPS[1:]] == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert heat_map_shade_index(299, 1000) == 4


def test_segments_cover_every_cell_that_has_an_io_once_and_no_other() -> None:
    shown = heat()
    covered = [
        (moment, band, shade)
        for shade, found in heat_map_segments_by_shade(shown).items()
        for band, start, after in found
        for moment in range(start, after)
    ]
    wanted = [
        (moment, band, heat_map_shade_index(count, sum(row)))
        for moment, row in enumerate(shown.counts)
        for band, count in enumerate(row)
        if count
    ]
    assert sorted(covered) == sorted(wanted)


def test_equal_neighbours_in_time_are_one_segment() -> None:
    steady = replace(heat(), counts=((70, 30, 0),) * 4)
    assert heat_map_segments_by_shade(steady)[5] == [(0, 0, 4), (1, 0, 4)]


def test_the_finding_is_of_the_measured_window_alone() -> None:
    shown = replace(heat(), p99_ns=(9e9, 2e5, None, 3e5))
    finding = heat_map_chart("A run", shown, SERIES[0]).finding
    assert tells(finding, "110 µs", "130 µs", "second 3", "300 µs", "300 µs"), finding


@pytest.mark.parametrize(
    ("shown", "facts"),
    [
        (replace(heat(), interquartile_ns=None), ("No I/O",)),
        (replace(heat(), p99_ns=(None,) * 4, interquartile_ns=(1e5, 1e5)), ("100 µs", "No moment")),
    ],
)
def test_the_finding_says_what_is_not_known(shown: HeatMap, facts: tuple[str, ...]) -> None:
    assert tells(heat_map_chart("A run", shown, SERIES[0]).finding, *facts)


def test_the_table_is_bounded_and_keeps_every_io() -> None:
    moments = 5 * TABLE_ROWS
    long = replace(
        heat(),
        moment_edges_s=tuple(float(second) for second in range(moments + 1)),
        counts=tuple((second, 1, 0) for second in range(moments)),
        p50_ns=(1e5,) * moments,
        p99_ns=tuple(1e5 + second for second in range(moments)),
        window_end_s=float(moments),
    )
    table = heat_map_chart("A run", long, SERIES[0]).table
    assert len(table.rows) == TABLE_ROWS
    total = sum(int(row[1].text.replace(",", "")) for row in table.rows)
    assert total == sum(sum(row) for row in long.counts)
