"""The load from which more of it no longer pays, on curves of key-value load."""

from __future__ import annotations

from iolab.analysis.findings import knee_findings
from iolab.loads.keyvalue.charts import configuration_chart_lines
from iolab.loads.keyvalue.tables import point_groups
from iolab.report.charts.chart import series_styles
from tests.loads.keyvalue.key_value_session import rocksdb
from tests.report.made import build_brief


def test_curves_mark_the_knee_that_is_told_in_words() -> None:
    brief = build_brief(rocksdb(("one",), 1, 2, 1, threads=(1, 2, 4, 16, 32)))
    told = {one.fixed_axis_values: one.load for one in knee_findings(brief.study, brief.points)}
    (workload,) = brief.study.workloads
    groups = point_groups(workload, brief.points)
    drawn = {
        group.fixed_axis_values: configuration_chart_lines(group, series_styles(brief.study))[
            0
        ].knee
        for group in groups
    }
    assert drawn == {others: told.get(others) for others in drawn}
    assert any(drawn.values())
