"""Figures side by side and stacked costs, as sections draw them."""

from __future__ import annotations

from typing import Final

from iolab.core.configuration import Capacity, Configuration, ProcurementCost
from iolab.core.metric import Metric, VerdictLevel
from iolab.report.charts.chart import Chart, ConfigurationStyle, SeriesStyles
from iolab.report.charts.cost import procurement_cost_chart
from iolab.report.charts.palette import SERIES
from iolab.report.charts.rows import Dot, DotRow, dot_chart
from iolab.report.table import Table, row_of_cells, text_and_number_columns

TABLE: Final = Table("Figures", text_and_number_columns(("What",)), (row_of_cells("all"),))


def bought() -> list[Configuration]:
    """Three configurations: two in euros, one of them without capacity, and one in yen."""
    return [
        Configuration(
            "a",
            "Mainstream",
            ("c",),
            "/t",
            6,
            Capacity(461.0, 304.0),
            ProcurementCost("EUR", 180e3, 40e3, 130e3),
        ),
        Configuration(
            "b", "High capacity", ("c",), "/t", cost=ProcurementCost("EUR", 0.0, 40e3, 260e3)
        ),
        Configuration("c", "Elsewhere", ("c",), "/t", cost=ProcurementCost("JPY", 1e6, 1e6, 1e6)),
    ]


def styles(*configurations: Configuration) -> SeriesStyles:
    """A colour each."""
    return {
        one.id: ConfigurationStyle(one.title, color)
        for one, color in zip(configurations, SERIES, strict=False)
    }


def groups() -> tuple[DotRow, ...]:
    """Two workloads; of one configuration each verdict, an interval, a rounding and no value."""
    return (
        DotRow(
            "Random read",
            (
                Dot(
                    "Mainstream",
                    SERIES[0],
                    Metric(642.0, "1/s", 600.0, 700.0, 3),
                    VerdictLevel.VALID,
                    "at iodepth 16",
                ),
                Dot("High capacity", SERIES[1], Metric(202.0, "1/s"), VerdictLevel.INVALID),
                Dot("Printed", SERIES[2], Metric(1052.0, "1/s", 1000.0, 1100.0)),
            ),
        ),
        DotRow(
            "Random write",
            (
                Dot("Mainstream", SERIES[0], Metric(308.0, "1/s", n=1), VerdictLevel.INDICATIVE),
                Dot("High capacity", SERIES[1], Metric(None, "1/s"), VerdictLevel.INVALID),
            ),
        ),
    )


def value_figures() -> dict[str, Chart]:
    """Each figure by the name of its kind."""
    lying = dot_chart(
        "Price/performance",
        "IOPS for each TB raw",
        groups(),
        finding="Random read: Printed has the most.",
        table=TABLE,
        divisor_unit="TB raw",
    )
    cost = procurement_cost_chart("EUR", bought(), styles(*bought()), TABLE)
    assert lying is not None
    assert cost is not None
    return {"value": lying, "cost": cost}
